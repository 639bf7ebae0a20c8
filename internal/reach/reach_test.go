package reach_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/fault"
	"tapin/internal/reach"
)

// ours answers as the public listener does.
func ours(p *reach.Prober) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number, ok := strings.CutPrefix(r.URL.Path, reach.Path)
		answer, _, known := p.Answer(number)
		if !ok || !known || len(r.Cookies()) > 0 || r.Header.Get("Authorization") != "" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, answer)
	})
}

func TestAnAddressThatLeadsHereIsKnownByItsAnswer(t *testing.T) {
	t.Parallel()
	var p *reach.Prober
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ours(p).ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	p = reach.New(&reach.Options{Transport: server.Client().Transport})
	for range 3 {
		if err := p.Check(t.Context(), server.URL); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnAddressThatLeadsElsewhereIsToldApart(t *testing.T) {
	t.Parallel()
	other := reach.New(nil) // another tapin, which never asked
	status := func(code int, header ...string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "hello")
		})
	}
	var fetched atomic.Bool
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched.Store(true) }))
	t.Cleanup(trap.Close)
	for name, tt := range map[string]struct {
		handler http.Handler
		want    string
		hint    string
	}{
		"another tapin":                         {ours(other), "something else than this tapin", "listen.public"},
		"any site":                              {status(200), "something else than this tapin", "listen.public"},
		"a site that repeats what it was asked": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }), "something else", ""},
		"a sign-in in front":                    {status(302, "Location", trap.URL), "sends people somewhere else", "/live/"},
		"a password in front":                   {status(401), "asks for a sign-in", "/live/"},
		"a wall in front":                       {status(403), "asks for a sign-in", "/live/"},
		"a tapin under another name":            {status(403, "X-Frame-Options", "DENY"), "not under that name", "Host header"},
		"a proxy with nothing behind it":        {status(502), "does not reach tapin", "listen.public"},
		"a tunnel that is not connected":        {status(530), "does not reach tapin", "connected"},
		"an answer without an end":              {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) }), "something else", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.handler)
			t.Cleanup(server.Close)
			p := reach.New(nil)
			err := p.Check(t.Context(), server.URL)
			if err == nil || !strings.Contains(fault.Of(err).Details(), tt.want) || !strings.Contains(fault.Of(err).Advice(), tt.hint) {
				t.Errorf("got %v (%v), want %q", err, fault.Of(err).Advice(), tt.want)
			}
		})
	}
	t.Cleanup(func() {
		if fetched.Load() {
			t.Error("it went where a redirect pointed")
		}
	})
}

func TestWhyNobodyAnswersIsSaidWithoutTheQuestion(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	quiet := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	noDNS := func(notFound bool) http.RoundTripper {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Name: "x", IsNotFound: notFound, IsTemporary: !notFound}}
		}}
	}
	for name, tt := range map[string]struct {
		address   string
		transport http.RoundTripper
		want      string
	}{
		"nothing listens":         {"http://" + closed.Addr().String(), quiet, "takes no connections"},
		"a stranger's paper":      {untrusted.URL, quiet, "no certificate that can be trusted"},
		"no encryption":           {strings.Replace(plain.URL, "http:", "https:", 1), quiet, ""},
		"a name nobody has":       {"https://gone.example", noDNS(true), "is not known here"},
		"no way to look names up": {"https://any.example", noDNS(false), "cannot be looked up"},
		"no address":              {"https://bad host", quiet, "not an address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := reach.New(&reach.Options{Transport: tt.transport}).Check(t.Context(), tt.address)
			if err == nil || !strings.Contains(fault.Of(err).Details(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if strings.Contains(fmt.Sprint(err), reach.Path) {
				t.Errorf("the question is in %v", err)
			}
		})
	}
}

// slow never answers.
type slow struct{}

func (slow) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAQuestionHasAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := reach.New(&reach.Options{Transport: slow{}})
		began := time.Now()
		answers := make(chan error)
		for range 16 {
			go func() { answers <- p.Check(t.Context(), "https://slow.example") }()
		}
		synctest.Wait()
		if err := p.Check(t.Context(), "https://slow.example"); !errors.Is(err, fault.RateLimited) {
			t.Errorf("one question too many: %v", err)
		}
		for range 16 {
			if err := <-answers; err == nil || !strings.Contains(err.Error(), "did not answer within 10s") {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAnAnswerIsGivenOnceAndToNobodyWhoGuesses(t *testing.T) {
	t.Parallel()
	p := reach.New(nil)
	for _, number := range []string{"", "1", strings.Repeat("A", 26)} {
		if answer, _, ok := p.Answer(number); ok {
			t.Errorf("%q is answered with %q", number, answer)
		}
	}
}

func TestTheNeighbourhoodHasPrivateAddressesOnly(t *testing.T) {
	t.Parallel()
	for _, a := range reach.Neighbours() {
		if !a.IsPrivate() || a.IsLoopback() || a.Zone() != "" {
			t.Errorf("%v is no address for neighbours", a)
		}
	}
}
