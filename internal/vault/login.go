package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/site"
)

// The parts of a site's credential that a field can be filled with.
const (
	Password = "password"
	Username = "username"
	TOTP     = "totp"
)

// maxEntry is more than any password, and less than what keychains refuse.
const maxEntry = 8 << 10

// Login is how the owner signs in to a site. Domain is where it may be typed;
// empty where the entry does not say.
type Login struct {
	Username secret.Text
	Password secret.Text
	Domain   string
}

// Login fetches credential-{site}-login: the bare password, or an object with
// username, password and domain.
func (c *Credentials) Login(ctx context.Context, site string) (Login, error) {
	entry, err := c.Credential(ctx, loginEntry(site))
	if err != nil {
		return Login{}, advised(err, "The owner keeps one with: tapin credential set "+site)
	}
	login, err := parseLogin(entry)
	if err != nil {
		return Login{}, fault.New(fault.InvalidRequest, "get "+loginEntry(site), "%w", err).
			WithHint("Store it anew with tapin credential set.")
	}
	return login, nil
}

// TOTP is the one-time code of a site at a time, made of credential-{site}-totp.
func (c *Credentials) TOTP(ctx context.Context, site string, at time.Time) (secret.Text, error) {
	entry, err := c.Credential(ctx, totpEntry(site))
	if err != nil {
		return secret.Text{}, advised(err, "The owner keeps them with: tapin credential set "+site+" --totp")
	}
	g, err := parseTOTP(entry)
	if err != nil {
		return secret.Text{}, fault.New(fault.InvalidRequest, "get "+totpEntry(site), "%w", err).
			WithHint("Store it anew with tapin credential set --totp.")
	}
	return g.at(at), nil
}

// advised gives a credential that is not there a hint for its kind.
func advised(err error, hint string) error {
	if f := fault.Of(err); f.Code == fault.NotFound {
		return f.WithHint("%s", hint)
	}
	return err
}

// Fill is what goes into a field for a part of a credential, "" meaning the
// password, and the site it may be typed on. One that belongs nowhere is refused.
func (c *Credentials) Fill(ctx context.Context, name, part string) (value secret.Text, only string, err error) {
	op := "use the credential " + name
	login, err := c.Login(ctx, name)
	if err != nil && (part != TOTP || !errors.Is(err, fault.NotFound)) {
		return secret.Text{}, "", err
	}
	where, err := c.belongs(name, login.Domain)
	if err != nil {
		return secret.Text{}, "", err
	}
	switch part {
	case "", Password:
		value = login.Password
	case Username:
		if value = login.Username; value.IsEmpty() {
			return secret.Text{}, "", fault.New(fault.NotFound, op, "it has no username").
				WithHint("Store it anew with tapin credential set %s --username.", name)
		}
	case TOTP:
		if value, err = c.TOTP(ctx, name, time.Now()); err != nil {
			return secret.Text{}, "", err
		}
	default:
		return secret.Text{}, "", fault.New(fault.InvalidRequest, op, "it has no part %.32q", part).
			WithHint("Parts are password, username and totp.")
	}
	return value, string(where), nil
}

// belongs is the site of a credential: that of the saved login of its name and
// the one its entry names, which must agree, or else the name itself.
func (c *Credentials) belongs(name, entry string) (site.Site, error) {
	op := "use the credential " + name
	saved, err := c.saved(name)
	if err != nil {
		return "", err // which site it is cannot be known, so it is none
	}
	var where site.Site
	for _, domain := range []string{saved, entry} {
		if domain == "" {
			continue
		}
		s, err := site.Of(domain)
		if err != nil {
			return "", fault.New(fault.Forbidden, op, "the domain it is kept with is none").
				WithHint("Store it anew with tapin credential set %s --domain DOMAIN.", name)
		}
		if where != "" && where != s {
			return "", fault.New(fault.Forbidden, op, "it is kept for %s, and the saved login of that name is of %s", s, where).
				WithHint("Give one of them another name.")
		}
		where = s
	}
	if where != "" {
		return where, nil
	}
	if where, ok := domainOf(name); ok {
		return where, nil
	}
	return "", fault.New(fault.Forbidden, op, "nothing says which site it belongs to").
		WithHint("The owner says so with: tapin credential set %s --domain DOMAIN.", name)
}

// domainOf is the site that a name is by itself: chase.com is one, chase is not.
func domainOf(name string) (site.Site, bool) {
	where, err := site.Of(name)
	if err != nil {
		return "", false
	}
	_, notAddress := netip.ParseAddr(string(where))
	return where, strings.Contains(string(where), ".") || notAddress == nil || where == "localhost"
}

func loginEntry(site string) string { return credentialPrefix + site + "-login" }
func totpEntry(site string) string  { return credentialPrefix + site + "-totp" }

// loginForm is a login entry that says more than the password.
type loginForm struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password"`
	Domain   string `json:"domain,omitempty"`
}

// parseLogin reads an entry. One that begins with a brace is an object and
// nothing else: a slip in it must not become the password. Errors do not quote it.
func parseLogin(entry secret.Text) (Login, error) {
	text := strings.TrimRight(entry.Reveal(), "\r\n") // which tools and editors add
	if len(text) > maxEntry {
		return Login{}, errors.New("the entry is too long")
	}
	form := loginForm{Password: text}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		form = loginForm{}
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		if d.Decode(&form) != nil {
			return Login{}, errors.New("the entry is neither a password nor an object with username, password and domain")
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return Login{}, errors.New("something follows the object in the entry")
		}
	}
	login := Login{Username: secret.New(form.Username), Password: secret.New(form.Password), Domain: form.Domain}
	return login, login.check()
}

// check refuses what no field takes.
func (l Login) check() error {
	switch {
	case l.Password.IsEmpty():
		return errors.New("the password is empty")
	case !line(l.Password.Reveal()):
		return errors.New("the password is not one line of text")
	case !line(l.Username.Reveal()):
		return errors.New("the username is not one line of text")
	case !line(l.Domain):
		return errors.New("the domain is not one line of text")
	}
	return nil
}

func line(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// entry is the login as the keychain keeps it. It is always an object, so that
// no password can be taken for one.
func (l Login) entry() (secret.Text, error) {
	raw, err := json.Marshal(loginForm{l.Username.Reveal(), l.Password.Reveal(), l.Domain}) //nolint:gosec // it is on its way into the keychain
	return secret.New(string(raw)), err
}
