// Package browsertest is the suite that every provider passes, and what tests
// with a real browser share. It owns the small web site they visit. It must
// never be imported by anything but tests.
package browsertest

import (
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/browser/local/holder"
	"tapin/internal/browser/phone"
	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/testwait"
)

// Main runs the tests, unless this process was started as the holder of a local
// browser: the provider starts its own program, which in a test is the test's.
func Main(m *testing.M, opts *holder.Options) {
	if len(os.Args) > 1 && os.Args[1] == "holder" {
		if err := holder.Main(context.Background(), os.Stdin, os.Stdout, opts); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	testwait.Draws("30")
	code := m.Run()
	demolish()
	os.Exit(code)
}

// Long leaves a test that takes its time to make test-long.
func Long(t *testing.T) {
	t.Helper()
	if !testwait.Long() {
		t.Skip("one of the long tests: make test-long")
	}
}

// Context is one for a whole test.
func Context(t *testing.T) context.Context {
	t.Helper()
	return testwait.Context(t)
}

// End ends a browser after a test, when the test's own context is over.
func End(t *testing.T, p browser.Provider, ref browser.Ref) {
	t.Helper()
	ctx, cancel := testwait.Within(context.Background())
	defer cancel()
	if err := p.End(ctx, ref); err != nil {
		t.Errorf("end the browser: %v", err)
	}
}

// Policy lets pages reach that server on loopback, and nothing else that is private.
func Policy(site *httptest.Server) egress.Policy {
	return egress.Policy{BlockPrivate: true, Allow: []string{strings.TrimPrefix(site.URL, "http://")}}
}

// Site serves the pages of the suite.
func Site(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `<!doctype html><title>plain</title><h1>Hello</h1>`)
	})
	mux.HandleFunc("/cookies", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `<!doctype html><title>cookies</title><pre id=c>%s</pre>`, html.EscapeString(r.Header.Get("Cookie")))
	})
	mux.HandleFunc("/agent", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `<!doctype html><title>agent</title><pre id=ua>%s</pre><pre id=ch>%s</pre>`, html.EscapeString(r.UserAgent()), html.EscapeString(r.Header.Get("Sec-Ch-Ua")))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

// Tab is a bare page in an instance, driven without the page room.
type Tab struct {
	Session *cdp.Session
	Target  target.ID
}

// NewTab opens a tab in the instance's own context.
func NewTab(ctx context.Context, t *testing.T, inst browser.Instance) Tab {
	t.Helper()
	made, err := proto.Call(ctx, inst.Conn().Root(), target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: proto.BrowserContextID(inst.Ref().Context)})
	if err != nil {
		t.Fatal(err)
	}
	return Attach(ctx, t, inst, made.TargetID)
}

// Attach opens a session to a tab that exists.
func Attach(ctx context.Context, t *testing.T, inst browser.Instance, id target.ID) Tab {
	t.Helper()
	flat := true
	at, err := proto.Call(ctx, inst.Conn().Root(), target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &flat})
	if err != nil {
		t.Fatal(err)
	}
	return Tab{Session: inst.Conn().Session(at.SessionID), Target: id}
}

// Open goes to an address and waits until its document is complete.
func (tab Tab) Open(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	if err := tab.Session.Call(ctx, "Page.navigate", map[string]string{"url": url}, nil); err != nil {
		t.Fatal(err)
	}
	tab.Eval(ctx, t, `new Promise(r => document.readyState === 'complete' ? r('') : addEventListener('load', () => r('')))`)
}

// Eval runs a script as if a click had caused it, and returns what it evaluates to, as text.
func (tab Tab) Eval(ctx context.Context, t *testing.T, script string) string {
	t.Helper()
	out, err := tab.TryEval(ctx, script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryEval is Eval for scripts that may fail.
func (tab Tab) TryEval(ctx context.Context, script string) (string, error) {
	return (&phone.Phone{Session: tab.Session}).See(ctx, script)
}

// FreePort is a TCP port that nobody uses now.
func FreePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().(*net.TCPAddr).Port
}
