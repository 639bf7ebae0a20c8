package liveview

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"tapin/internal/fault"
	"tapin/internal/origin"
)

// visit is how a request reached us.
type visit struct {
	host    string
	origin  string // what a page of ours there calls itself
	address string // whose it is, as far as that can be known
	local   bool   // from a browser on this very machine
	secure  bool   // nobody on the way can read or change it
}

type visitKey struct{}

func visitOf(r *http.Request) visit {
	at, _ := r.Context().Value(visitKey{}).(visit)
	return at
}

// forwarded are the headers by which a proxy says that it is one.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Cf-Connecting-Ip", "Cf-Ray", "Tailscale-User-Login", "Via"}

// look finds out how a request came. A name that is not ours is refused: it may
// be another site's that points here.
func (d *Door) look(r *http.Request) (visit, error) {
	at := visit{host: strings.ToLower(r.Host)}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	near := peer.Addr().Unmap().IsLoopback()
	at.address = peer.Addr().Unmap().String()
	proxied := false
	for _, name := range forwarded {
		proxied = proxied || r.Header.Get(name) != ""
	}
	switch {
	case origin.Loopback(r, at.host) && near && !proxied:
		at.local, at.secure, at.origin = true, true, "http://"+at.host
	case d.names.Has(at.host) && (near || r.TLS != nil):
		// A tunnel of this machine ends the encryption, and says so.
		if proto := r.Header.Get("X-Forwarded-Proto"); proto != "" && proto != "https" {
			return at, fault.New(fault.Forbidden, "", "the live view is for https only").WithHint("Open the same address with https.")
		}
		// A browser leaves out the port that https has anyway; not every proxy does.
		at.secure, at.origin = true, "https://"+strings.TrimSuffix(at.host, ":443")
		if near {
			at.address = farther(r, at.address)
		}
	case d.opts.WatchOnLAN && neighbour(r, at.host, peer.Addr().Unmap()) && !proxied:
		at.origin = "http://" + at.host
	default:
		return at, fault.New(fault.Forbidden, "", "this server does not answer to that Host").
			WithHint("Use the address that tapin printed.")
	}
	return at, nil
}

// farther is who a tunnel on this machine speaks for. What is written there is
// only used to count. Every tunnel ends X-Forwarded-For with the address that it
// saw; what stands before, and every other header, may be the visitor's own words,
// by which he could be somebody else each time, or the owner.
func farther(r *http.Request, near string) string {
	said := r.Header.Get("Cf-Connecting-Ip")
	if lines := r.Header.Values("X-Forwarded-For"); len(lines) > 0 {
		all := strings.Split(lines[len(lines)-1], ",")
		said = all[len(all)-1]
	}
	if a, err := netip.ParseAddr(strings.TrimSpace(said)); err == nil {
		return a.String()
	}
	return near
}

// neighbour reports whether host is our own address in a private network, and
// the caller in one too.
func neighbour(r *http.Request, host string, peer netip.Addr) bool {
	own, port, ok := origin.Listener(r)
	return ok && own.IsPrivate() && peer.IsPrivate() && host == net.JoinHostPort(own.String(), port)
}

// ours refuses what a page of another origin had a browser send. Opening a shell
// is the one thing that may come from anywhere, as a link in a chat does: it
// claims nothing.
func (at visit) ours(r *http.Request) error {
	refused := fault.New(fault.Forbidden, "", "a page of another origin may not do that")
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && origins[0] != at.origin {
		return refused
	}
	socket := strings.HasSuffix(r.URL.Path, "/ws")
	if (socket || r.Method != http.MethodGet && r.Method != http.MethodHead) && len(origins) == 0 {
		return refused
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	}
	dest := r.Header.Get("Sec-Fetch-Dest")
	shown := dest == "document" || dest == "iframe" && inTelegram(r) // whose frame it may be, the browser is told
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && shown && !strings.Contains(r.URL.Path, "/download/") {
		return nil
	}
	return refused
}

// harden sets what holds for every answer.
func (d *Door) harden(w http.ResponseWriter, at visit) {
	h := w.Header()
	connect := "'self'"
	if at.origin != "" {
		// Not every browser takes 'self' for a WebSocket.
		connect += " " + strings.Replace(at.origin, "http", "ws", 1)
	}
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; "+
		"manifest-src 'self'; worker-src 'self'; connect-src "+connect+"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
	if strings.HasPrefix(at.origin, "https:") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"ok":false,"error":"INTERNAL"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}
