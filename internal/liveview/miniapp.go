package liveview

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/secret"
)

// maxAppData is more than Telegram hands to a page.
const maxAppData = 16 << 10

// telegramWeb are the pages of Telegram that may show ours inside theirs.
const telegramWeb = "https://web.telegram.org https://webk.telegram.org https://weba.telegram.org"

// inTelegram reports whether a request is for the page that Telegram opens.
func inTelegram(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/tg/") }

// appShell answers with the live view for Telegram. It is the only page that
// another one may frame, and only Telegram's.
func (d *Door) appShell(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), "frame-ancestors 'none'", "frame-ancestors "+telegramWeb, 1))
	h.Del("X-Frame-Options")
	d.shell("live/index.html")(w, r)
}

// appClaim takes what Telegram handed to the page, and gives it a secret to
// show in place of a cookie: inside Telegram's page there are none.
func (d *Door) appClaim(w http.ResponseWriter, r *http.Request) {
	at, id := visitOf(r), r.PathValue("link")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(claimWithin))
	if !at.secure {
		refuse(w, fault.New(fault.Forbidden, "", "this is for https only"))
		return
	}
	if !d.claims.Allow(at.address, time.Now()) {
		refuse(w, fault.New(fault.RateLimited, "", "too many claims come from this address").WithHint("Wait a minute."))
		return
	}
	data, err := readAppData(r)
	if err != nil {
		refuse(w, err)
		return
	}
	device, err := d.opts.MiniApp(r.Context(), id, data)
	if device.IsEmpty() {
		refuse(w, err)
		return
	}
	if err != nil { // it waits for the owner's word, and needs its secret for that
		f := fault.Of(err)
		answer(w, f.Code.Status(), map[string]any{"ok": false, "error": f.Code, "details": f.Details(), "number": f.Data["number"], "bearer": device.Reveal()})
		return
	}
	l, err := d.deps.Links.Enter(r.Context(), id, device)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "mode": at.mode(l), "bearer": device.Reveal()})
}

func readAppData(r *http.Request) (secret.Text, error) {
	bad := fault.New(fault.InvalidRequest, "", "a claim is a JSON object with data")
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return secret.Text{}, bad
	}
	var body struct {
		Data secret.Text `json:"data"`
	}
	in := json.NewDecoder(io.LimitReader(r.Body, maxAppData))
	in.DisallowUnknownFields()
	if in.Decode(&body) != nil || !errors.Is(in.Decode(&struct{}{}), io.EOF) || body.Data.IsEmpty() {
		return secret.Text{}, bad // without the decoder's words, which may quote it
	}
	return body.Data, nil
}

// bearerOf is the secret that a page inside Telegram shows in a header.
func bearerOf(r *http.Request) (secret.Text, bool) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return secret.New(given), ok && given != "" && len(given) <= 128
}

// enterBy finds the link of a device by the secret it shows.
func (d *Door) enterBy(ctx context.Context, id string, device secret.Text) (link.Link, error) {
	if d.opts.MiniApp == nil {
		return link.Link{}, fault.New(fault.Unauthorized, "", "this browser has not claimed the link")
	}
	return d.deps.Links.Enter(ctx, id, device)
}
