package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zalando/go-keyring"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// namesFile lists the credentials that were stored here, by name alone: a
// keychain cannot be asked for what it has.
const namesFile = "credentials.json"

type names struct {
	Sites []string `json:"sites"`
}

// Kept says which parts of a site's credential there are, and where; "" is nowhere.
type Kept struct {
	Site  string `json:"site"`
	Login Source `json:"login,omitempty"`
	TOTP  Source `json:"totp,omitempty"`
}

// SaveLogin keeps a login in the keychain, in place of an earlier one. It says
// for which site: the name has to be a domain, or the login to name one.
func (c *Credentials) SaveLogin(ctx context.Context, site string, l Login) error {
	op := "keep the login of " + site
	if err := l.check(); err != nil {
		return fault.New(fault.InvalidRequest, op, "%w", err)
	}
	if _, err := credentialVariable(loginEntry(site)); err != nil {
		return err
	}
	if l.Domain == "" {
		l.Domain = site
	}
	where, ok := domainOf(l.Domain)
	if !ok {
		return fault.New(fault.InvalidRequest, op, "nothing says which site it belongs to").
			WithHint("Name it by its domain, or give the domain with --domain.")
	}
	l.Domain = string(where)
	entry, err := l.entry()
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return c.save(ctx, site, loginEntry(site), entry)
}

// SaveTOTP keeps the secret of a site's one-time codes, as base32 or otpauth
// address. The codes go where the login of that name goes.
func (c *Credentials) SaveTOTP(ctx context.Context, site string, seed secret.Text) error {
	op := "keep the one-time codes of " + site
	if _, err := credentialVariable(totpEntry(site)); err != nil {
		return err
	}
	if _, err := parseTOTP(seed); err != nil {
		return fault.New(fault.InvalidRequest, op, "%w", err).
			WithHint("Give the secret that the site shows when a second factor is set up, or its otpauth:// address.")
	}
	login, err := c.Login(ctx, site)
	if err != nil && !errors.Is(err, fault.NotFound) {
		return err
	}
	if _, err := c.belongs(site, login.Domain); err != nil {
		return err
	}
	return c.save(ctx, site, totpEntry(site), seed)
}

// save notes the name first: an entry that no list tells of would stay for ever.
func (c *Credentials) save(ctx context.Context, site, entry string, value secret.Text) error {
	if err := fits(entry, value); err != nil {
		return err
	}
	err := c.note(ctx, func(n *names) {
		if !slices.Contains(n.Sites, site) {
			n.Sites = append(n.Sites, site)
			slices.Sort(n.Sites)
		}
	})
	if err != nil {
		return err
	}
	return c.store(ctx, entry, value)
}

func fits(entry string, value secret.Text) error {
	switch {
	case value.IsEmpty():
		return fault.New(fault.InvalidRequest, "keep "+entry, "it is empty")
	case len(value.Reveal()) > maxEntry:
		return fault.New(fault.InvalidRequest, "keep "+entry, "it is longer than %d bytes", maxEntry)
	}
	return nil
}

// store puts an entry into the keychain, and sees that it is there.
func (c *Credentials) store(ctx context.Context, entry string, value secret.Text) error {
	if err := fits(entry, value); err != nil {
		return err
	}
	if err := c.keys.set(ctx, entry, value); err != nil {
		return c.unkept(entry, err)
	}
	stored, err := c.keys.get(ctx, entry)
	if err == nil && !stored.Equal(value) {
		err = fmt.Errorf("%w: it changed an entry", errUnavailable)
	}
	return c.unkept(entry, err)
}

// unkept is how a keychain's refusal looks.
func (c *Credentials) unkept(entry string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	variable, _ := credentialVariable(entry)
	return fault.New(fault.Forbidden, "keep "+entry, "%w", err).
		WithHint("Unlock the keychain and try again. Where there is none, set %s in the environment of tapin up.", variable)
}

// List says what there is, sorted by name, and nothing of what it holds.
func (c *Credentials) List(ctx context.Context) ([]Kept, error) {
	known, err := c.names()
	if err != nil {
		return nil, err
	}
	list := make([]Kept, 0, len(known.Sites))
	for _, site := range known.Sites {
		kept := Kept{Site: site}
		if kept.Login, err = c.where(ctx, loginEntry(site)); err != nil {
			return nil, err
		}
		if kept.TOTP, err = c.where(ctx, totpEntry(site)); err != nil {
			return nil, err
		}
		if kept.Login != "" || kept.TOTP != "" { // else it was noted, and never stored
			list = append(list, kept)
		}
	}
	return list, nil
}

// where a credential would come from.
func (c *Credentials) where(ctx context.Context, entry string) (Source, error) {
	variable, err := credentialVariable(entry)
	if err != nil {
		return "", err
	}
	if c.getenv(variable) != "" {
		return FromEnvironment, nil
	}
	_, err = c.keys.get(ctx, entry)
	switch {
	case err == nil:
		return FromKeychain, nil
	case errors.Is(err, keyring.ErrNotFound):
		return "", nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	return "", fault.New(fault.Forbidden, "list credentials", "%w", err).WithHint("Unlock the keychain and try again.")
}

// Delete takes a site's login and one-time codes out of the keychain. One that
// is not there is NOT_FOUND.
func (c *Credentials) Delete(ctx context.Context, site string) error {
	op := "delete the credential " + site
	found := false
	for _, entry := range []string{loginEntry(site), totpEntry(site)} {
		if _, err := credentialVariable(entry); err != nil {
			return err
		}
		err := c.keys.remove(ctx, entry)
		switch {
		case err == nil:
			found = true
		case errors.Is(err, keyring.ErrNotFound):
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", op, ctx.Err())
		default:
			return fault.New(fault.Forbidden, op, "%w", err).WithHint("Unlock the keychain and try again.")
		}
	}
	// Last: what could not be deleted is still told of.
	err := c.note(ctx, func(n *names) {
		n.Sites = slices.DeleteFunc(n.Sites, func(s string) bool { return s == site })
	})
	if err == nil && !found {
		return fault.New(fault.NotFound, op, "the keychain has none of that name").WithHint("tapin credential list tells which there are.")
	}
	return err
}

func (c *Credentials) names() (names, error) {
	var n names
	err := c.home.ReadJSON(namesFile, &n)
	if missing(err) {
		err = nil
	}
	return n, err
}

func (c *Credentials) note(ctx context.Context, change func(*names)) error {
	unlock, err := c.home.Lock(ctx, "credentials")
	if err != nil {
		return err
	}
	defer unlock()
	n, err := c.names()
	if err != nil {
		return err
	}
	change(&n)
	return c.home.WriteJSON(namesFile, n)
}
