package egress

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
)

// buffers are lent to one answer after the other: a page has dozens.
type buffers struct{ free sync.Pool }

const bufferSize = 32 << 10

// Get lends a buffer.
func (b *buffers) Get() []byte {
	if kept, ok := b.free.Get().(*[bufferSize]byte); ok {
		return kept[:]
	}
	return make([]byte, bufferSize)
}

// Put takes it back.
func (b *buffers) Put(lent []byte) { b.free.Put((*[bufferSize]byte)(lent)) }

// newForward makes the handler of plain http. httputil strips the hop-by-hop
// headers, carries upgrades and trailers, and ends what the browser gives up.
func (p *Proxy) newForward() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     p.transport,
		BufferPool:    &buffers{},
		FlushInterval: -1,                         // server-sent events must not wait for a full buffer
		ErrorLog:      log.New(io.Discard, "", 0), // its lines name the sites a person visits
		Rewrite: func(r *httputil.ProxyRequest) {
			// What httputil cleans for a server behind it is the page's own
			// business here.
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = v
				}
			}
			for name := range r.Out.Header {
				if strings.HasPrefix(name, "Proxy-") {
					delete(r.Out.Header, name)
				}
			}
			r.Out.URL.User = nil
			r.Out.Host = "" // the URL's, never another one from a header
		},
		ModifyResponse: func(res *http.Response) error {
			for name := range res.Header {
				// Only we speak for the guard.
				if strings.HasPrefix(name, "Proxy-") || name == headerBlocked || name == headerError {
					delete(res.Header, name)
				}
			}
			return nil
		},
		ErrorHandler: p.answerError,
	}
}

func (p *Proxy) serveForward(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Host == "":
		fail(w, r, http.StatusBadRequest, "not-a-proxy-request")
		return
	case r.URL.Scheme != "http":
		fail(w, r, http.StatusBadRequest, "scheme")
		return
	}
	if _, err := parseAuthority(r.URL.Host, "http"); err != nil {
		fail(w, r, http.StatusBadRequest, "address")
		return
	}
	scheme := "http"
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		scheme = "ws"
	}
	// A page without a type stays one: no guessing by net/http.
	w.Header()["Content-Type"] = nil
	p.forward.ServeHTTP(w, r.WithContext(withScheme(r.Context(), scheme)))
}
