// Package reach finds out whether an address that people are sent to leads to
// this very process, and which addresses this machine has in its own network.
// It owns the questions that are under way. It must never send anything but a
// number of its own making there, nor follow where the answer points.
package reach

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"tapin/internal/fault"
)

const (
	// Path is where the public listener answers questions, before their number.
	Path = "/reach/"
	// within bounds one question; a tunnel's first answer may take some seconds.
	within = 10 * time.Second
	// maxOpen bounds the questions under way.
	maxOpen = 16
	// maxAnswer is more than any answer of ours has.
	maxAnswer = 256
)

// Options change how questions are asked; nil means the defaults.
type Options struct {
	// Transport carries them; nil means as the system has it, proxies included.
	Transport http.RoundTripper
}

// Prober asks addresses and answers what it asked. It is safe for concurrent use.
type Prober struct {
	client *http.Client

	mu   sync.Mutex
	open map[string]question // by its number
}

type question struct {
	answer string
	near   bool // it was sent to this machine's own address
}

// New makes a prober that has asked nothing.
func New(opts *Options) *Prober {
	p := &Prober{open: map[string]question{}, client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if opts != nil {
		p.client.Transport = opts.Transport
	}
	if p.client.Transport == nil {
		// Without kept connections: one to an address that has moved would go on
		// working for nobody else.
		p.client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	}
	return p
}

// Answer is what the public listener says to a number, once, and whether the
// number was sent to this machine's own address.
func (p *Prober) Answer(number string) (answer string, near, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, ok := p.open[number]
	delete(p.open, number)
	return q.answer, q.near, ok
}

// Check asks an address, such as https://tapin.example.com, whether it leads
// here. It returns nil if it does, and otherwise why not, in words for the owner.
func (p *Prober) Check(ctx context.Context, address string) error {
	number, want := rand.Text(), rand.Text()
	p.mu.Lock()
	if len(p.open) >= maxOpen {
		p.mu.Unlock()
		return fault.New(fault.RateLimited, "", "it is being asked already").WithHint("Wait for the answer.")
	}
	p.open[number] = question{want, isNear(address)}
	p.mu.Unlock()
	defer p.Answer(number)

	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(address, "/")+Path+number, nil)
	if err != nil {
		return fault.New(fault.InvalidRequest, "", "it is not an address")
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return unreachable(req.URL.Hostname(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode == http.StatusOK && subtle.ConstantTimeCompare(got, []byte(want)) == 1 {
		return nil
	}
	return elsewhere(resp)
}

// isNear reports whether an address is this machine's own.
func isNear(address string) bool {
	at, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(at.Hostname())
	return at.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// unreachable says why nobody answered.
func unreachable(host string, err error) error {
	f := func(hint, format string, args ...any) error {
		return fault.New(fault.Busy, "", format, args...).WithHint("%s", hint)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return f("A new tunnel's name takes a minute to be known; otherwise check the address.", "the name %s is not known here", host)
		}
		return f("This machine may have no way to the internet now.", "the name %s cannot be looked up from here", host)
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, wrong := errors.AsType[x509.HostnameError](err)
	_, stale := errors.AsType[x509.CertificateInvalidError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case unknown, wrong, stale, alert, plain:
		return f("Whatever ends the encryption there needs a certificate of that name that phones trust.", "%s has no certificate that can be trusted", host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return f("Start the tunnel or reverse proxy that should listen there.", "%s takes no connections", host)
	case errors.Is(err, context.DeadlineExceeded):
		return f("The tunnel or reverse proxy may not be running, or a firewall drops it.", "%s did not answer within %v", host, within)
	case errors.Is(err, context.Canceled):
		return err
	}
	cause := err
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		cause = wrapped.Err // without the address, which has the number in it
	}
	return f("See whether the tunnel or reverse proxy is running.", "%s cannot be reached from here: %v", host, cause)
}

// elsewhere says who answered in our place.
func elsewhere(resp *http.Response) error {
	host := resp.Request.URL.Hostname()
	status := resp.StatusCode
	switch {
	case status >= 300 && status < 400:
		return fault.New(fault.Busy, "", "%s sends people somewhere else (status %d)", host, status).
			WithHint("A sign-in page or a redirect stands in front of tapin there; let /live/, /assets/, /console and /reach/ through.")
	case status == http.StatusUnauthorized, status == http.StatusForbidden && resp.Header.Get("X-Frame-Options") == "":
		return fault.New(fault.Busy, "", "%s asks for a sign-in of its own (status %d)", host, status).
			WithHint("Let /live/, /assets/, /console and /reach/ through; tapin asks who is there by itself.")
	case status == http.StatusForbidden:
		return fault.New(fault.Busy, "", "a tapin answers at %s, but not under that name", host).
			WithHint("A reverse proxy has to pass on the Host header and X-Forwarded-For, and public_url has to be exactly that address.")
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout, status >= 520 && status <= 530:
		return fault.New(fault.Busy, "", "%s answers, but does not reach tapin behind it (status %d)", host, status).
			WithHint("The tunnel may not be connected yet, or points to another port than listen.public.")
	}
	return fault.New(fault.Busy, "", "something else than this tapin answers at %s (status %d)", host, status).
		WithHint("Point it to listen.public of this machine. Another tapin, or an older tunnel, may have the name.")
}
