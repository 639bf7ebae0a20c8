package liveview

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/secret"
)

const (
	claimBytes  = 1 << 10 // more than any token needs
	claimWithin = 10 * time.Second
)

// claim takes the token of a link, once, and gives the device a secret of its
// own. Only a page of ours can have it posted; opening an address, as previews
// of links do, claims nothing.
func (d *Door) claim(w http.ResponseWriter, r *http.Request) {
	at, id := visitOf(r), r.PathValue("link")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(claimWithin))
	switch l, err := d.enter(r, id); {
	case err == nil:
		// This device is in already: a reload, or a tap on the same link.
		answer(w, http.StatusOK, map[string]any{"ok": true, "mode": at.mode(l)})
		return
	case errors.Is(err, fault.LinkClaimed):
		refuse(w, err) // it waits already, and keeps its number
		return
	}
	if !d.claims.Allow(at.address, time.Now()) {
		refuse(w, fault.New(fault.RateLimited, "", "too many claims come from this address").WithHint("Wait a minute."))
		return
	}
	token, err := readToken(r)
	if err != nil {
		refuse(w, err)
		return
	}
	var device secret.Text
	switch {
	case !token.IsEmpty():
		device, err = d.deps.Links.Claim(r.Context(), id, token)
	case at.local && d.opts.SameUser && !d.masked.Load() || at.secure && d.opts.Owner != nil && d.opts.Owner(r, id):
		device, err = d.deps.Links.Admit(r.Context(), id)
	default:
		// Where that is possible, the owner is asked by a number.
		device, err = d.deps.Links.Knock(r.Context(), id)
	}
	if !device.IsEmpty() {
		if !at.secure {
			if err := d.deps.Links.Overhear(r.Context(), id, device); err != nil {
				refuse(w, err)
				return
			}
		}
		http.SetCookie(w, at.cookie(id, device))
	}
	if err != nil {
		refuse(w, err)
		return
	}
	l, err := d.deps.Links.Enter(r.Context(), id, device)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "mode": at.mode(l)})
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

// mode is what the link allows on this way: who can be read on the way only watches.
func (at visit) mode(l link.Link) link.Mode {
	if !at.secure {
		return link.Watch
	}
	return l.Mode
}

// cookie keeps the device's secret where no script and no other site can have
// it. Without encryption a browser takes no __Host- cookie: there it is bound to
// the one path that needs it.
func (at visit) cookie(id string, device secret.Text) *http.Cookie {
	path := "/"
	if !at.encrypted() {
		path = "/live/" + id
	}
	return &http.Cookie{ //nolint:gosec // where there is no encryption, no browser would keep a Secure one
		Name: at.cookieName(id), Value: device.Reveal(), Path: path, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: at.encrypted(),
	}
}

func (at visit) cookieName(id string) string {
	if at.encrypted() {
		return "__Host-live-" + id
	}
	return "live-" + id
}

func (at visit) encrypted() bool { return len(at.origin) > 5 && at.origin[:5] == "https" }

// enter finds the link that the caller's cookie belongs to.
func (d *Door) enter(r *http.Request, id string) (link.Link, error) {
	device, err := deviceOf(r, id)
	if shown, ok := bearerOf(r); err != nil && ok {
		return d.enterBy(r.Context(), id, shown)
	}
	if err != nil {
		return link.Link{}, err
	}
	return d.deps.Links.Enter(r.Context(), id, device)
}

func deviceOf(r *http.Request, id string) (secret.Text, error) {
	c, err := r.Cookie(visitOf(r).cookieName(id))
	if err != nil || c.Value == "" {
		return secret.Text{}, fault.New(fault.Unauthorized, "", "this browser has not claimed the link")
	}
	return secret.New(c.Value), nil
}
