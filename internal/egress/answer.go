package egress

import (
	"errors"
	"html"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// Headers by which an answer of the proxy itself is told from one of a site.
const (
	headerBlocked = "X-Tapin-Blocked"
	headerError   = "X-Tapin-Error"
)

// pageFrame tells a person what happened, and only the rule: the page that
// caused it can read this text and must not learn an address from it.
const pageFrame = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>TITLE</title>
<style>
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 20vh auto; padding: 0 1.5rem }
</style>
<h1>Not reachable from here</h1>
<p>WHAT</p>
<p>WHY</p>
</html>
`

// PageTitle is the title of a page that the guard answered with instead of the
// site: by it, and its status, such an answer is told from a site's own.
const PageTitle = "Not reachable · tapin"

func ownPage(what, why string) string {
	return strings.NewReplacer("TITLE", PageTitle, "WHAT", what, "WHY", why).Replace(pageFrame)
}

// Failure is a target that the policy allows and that could not be reached. The
// browser sees only that its proxy failed; this says why.
type Failure struct {
	Host string    `json:"host"`
	Port uint16    `json:"port"`
	Kind string    `json:"kind"`           // dns, refused, timeout, unreachable, reset, upstream, failed
	Lane string    `json:"lane,omitempty"` // whose traffic it was, where several share a browser
	At   time.Time `json:"at"`
}

// answerError turns the failure of a dial or an exchange into an answer.
func (p *Proxy) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		deny(w, r, refusal.Block.Rule)
		return
	}
	status, kind := statusOf(err)
	authority := r.URL.Host
	if r.Method == http.MethodConnect {
		authority = r.Host
	}
	if t, err := parseAuthority(authority, "http"); err == nil && p.onFailure != nil && r.Context().Err() == nil {
		p.onFailure(Failure{Host: t.host(), Port: t.port, Kind: kind, At: time.Now()})
	}
	fail(w, r, status, kind)
}

// statusOf names a failure without telling an address.
func statusOf(err error) (status int, kind string) {
	if _, ok := errors.AsType[*lookupError](err); ok {
		return http.StatusBadGateway, "dns"
	}
	if up, ok := errors.AsType[*upstreamError](err); ok {
		if up.timeout {
			return http.StatusGatewayTimeout, "upstream"
		}
		return http.StatusBadGateway, "upstream"
	}
	switch {
	case isTimeout(err):
		return http.StatusGatewayTimeout, "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return http.StatusBadGateway, "refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return http.StatusBadGateway, "unreachable"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return http.StatusBadGateway, "reset"
	}
	return http.StatusBadGateway, "failed"
}

// deny answers for a refused target.
func deny(w http.ResponseWriter, r *http.Request, rule string) {
	h := ownHeader(w)
	h.Set(headerBlocked, rule)
	if r.Method == http.MethodConnect {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, ownPage("tapin's network guard does not let pages reach this address.", "Rule: <code>"+html.EscapeString(rule)+"</code>"))
}

// fail answers for everything else that did not work.
func fail(w http.ResponseWriter, r *http.Request, status int, kind string) {
	h := ownHeader(w)
	h.Set(headerError, kind)
	if status == http.StatusServiceUnavailable {
		h.Set("Connection", "close")
	}
	if r.Method == http.MethodConnect {
		w.WriteHeader(status)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, ownPage("tapin could not reach this address.", "Reason: <code>"+html.EscapeString(kind)+"</code>"))
}

func ownHeader(w http.ResponseWriter) http.Header {
	h := w.Header()
	clear(h)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	return h
}
