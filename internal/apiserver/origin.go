package apiserver

import (
	"net/http"
	"strings"

	"tapin/internal/fault"
	"tapin/internal/origin"
)

// ours refuses requests that a browser sent on behalf of a foreign page: by the
// name they were sent to, the page they came from, or the browser's own word.
func (s *Server) ours(r *http.Request) error {
	host := strings.ToLower(r.Host)
	if !origin.Loopback(r, host) && !s.names.Has(host) {
		return fault.New(fault.Forbidden, "", "this server does not answer to that Host").
			WithHint("Use the address tapin listens on, such as http://127.0.0.1:3849.")
	}
	refused := fault.New(fault.Forbidden, "", "a page of another origin may not call this server").
		WithHint("Call tapin from a program, not from a web page.")
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
	default: // same-site is foreign too: another port of localhost
		return refused
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	scheme, name, _ := strings.Cut(strings.ToLower(origins[0]), "://")
	switch {
	case len(origins) > 1:
		return refused
	case scheme == "http" && origin.Loopback(r, name), scheme == "https" && s.names.Has(name):
		return nil
	}
	return refused
}
