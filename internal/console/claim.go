package console

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	claimBytes  = 1 << 10 // more than any token needs
	claimWithin = 10 * time.Second
	// wrongPerMinute bounds how often one address may show a wrong token. A right
	// one is taken whatever others have tried.
	wrongPerMinute = 10
)

// claim signs a device in with the token of a printed link, once; without one it
// tells whether the device is in. Only a page of ours can have it posted: opening
// an address, as previews of links do, signs nobody in.
func (d *Door) claim(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(claimWithin))
	at := d.deps.Visit(r)
	id, renew, own, err := d.enter(r)
	token, bad := readToken(r)
	if bad != nil {
		refuse(w, bad)
		return
	}
	if !token.IsEmpty() {
		switch made, claimErr := d.signIn(r, token, id); {
		case claimErr == nil && id == "":
			renew, own, err = true, made, nil
		case claimErr != nil && id == "":
			err = claimErr
		}
	}
	if err != nil {
		refuse(w, err)
		return
	}
	if renew {
		http.SetCookie(w, at.cookie(own))
	}
	answer(w, http.StatusOK, map[string]any{"ok": true})
}

// signIn spends a token; the device that comes with it gets a secret, unless it
// is in already.
func (d *Door) signIn(r *http.Request, token secret.Text, already string) (secret.Text, error) {
	own, err := d.book.claim(r.Context(), token, nameOf(r.UserAgent()), already)
	if errors.Is(err, fault.Unauthorized) && !d.claims.Allow(d.deps.Visit(r).Address, time.Now()) {
		err = fault.New(fault.RateLimited, "sign in", "too many wrong sign-ins come from this address").WithHint("Wait a minute.")
	}
	if err == nil {
		d.note("console.sign_in", nil)
		d.poke()
	}
	return own, err
}

func readToken(r *http.Request) (secret.Text, error) {
	bad := fault.New(fault.InvalidRequest, "", "a claim is a JSON object with a token")
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return secret.Text{}, bad
	}
	var body struct {
		Token secret.Text `json:"token"`
	}
	in := json.NewDecoder(io.LimitReader(r.Body, claimBytes))
	in.DisallowUnknownFields()
	if in.Decode(&body) != nil || !errors.Is(in.Decode(&struct{}{}), io.EOF) {
		return secret.Text{}, bad // without the decoder's words, which may quote it
	}
	return body.Token, nil
}

// enter finds the device that a request comes from.
func (d *Door) enter(r *http.Request) (id string, renew bool, own secret.Text, err error) {
	c, err := r.Cookie(d.deps.Visit(r).cookieName())
	if err != nil || c.Value == "" {
		return "", false, secret.Text{}, fault.New(fault.Unauthorized, "sign in", "this browser is not signed in").WithHint("Run tapin console for a sign-in.")
	}
	own = secret.New(c.Value)
	id, renew, err = d.book.enter(own)
	return id, renew, own, err
}

// cookie keeps the device's secret where no script and no other site can have
// it. Without encryption, which is on this very machine only, a browser takes no
// __Host- cookie.
func (at Visit) cookie(own secret.Text) *http.Cookie {
	path := "/"
	if !at.encrypted() {
		path = "/console"
	}
	return &http.Cookie{ //nolint:gosec // where there is no encryption, no browser would keep a Secure one
		Name: at.cookieName(), Value: own.Reveal(), Path: path, MaxAge: int(signedInFor.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: at.encrypted(),
	}
}

func (at Visit) cookieName() string {
	if at.encrypted() {
		return "__Host-console"
	}
	return "console"
}

func (at Visit) encrypted() bool { return strings.HasPrefix(at.Origin, "https://") }

// The words of user agents, the more special ones first.
var (
	browsers = [][2]string{
		{"Telegram", "Telegram"}, {"EdgiOS/", "Edge"}, {"EdgA/", "Edge"}, {"Edg/", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"},
		{"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Chromium/", "Chromium"}, {"Safari/", "Safari"},
	}
	systems = [][2]string{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "ChromeOS"}, {"Windows", "Windows"}, {"Macintosh", "Mac"}, {"Linux", "Linux"},
	}
)

// nameOf is what a device is called in the list: of our own words only, whatever
// it says of itself.
func nameOf(userAgent string) string {
	name := func(words [][2]string, otherwise string) string {
		for _, w := range words {
			if strings.Contains(userAgent, w[0]) {
				return w[1]
			}
		}
		return otherwise
	}
	return name(browsers, "A browser") + " on " + name(systems, "a device")
}
