package oneshot

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/testwait"
)

func TestMain(m *testing.M) { browsertest.Main(m, nil) }

// world is a room with a real browser, and the site that it may reach.
type world struct {
	*Room
	site     *httptest.Server
	run      string
	registry *prometheus.Registry
}

// newWorld serves the pages and opens a room. What the room leaves behind after
// the test is a failure of the test.
func newWorld(t *testing.T, mux *http.ServeMux, change func(*Options)) *world {
	t.Helper()
	run, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{site: httptest.NewServer(mux), run: run, registry: prometheus.NewRegistry()}
	o := &Options{Registry: w.registry, Policy: egress.Policy{BlockPrivate: true, Allow: []string{strings.TrimPrefix(w.site.URL, "http://")}}}
	if change != nil {
		change(o)
	}
	provider := local.New(run, 1, nil)
	if w.Room, err = New(Deps{Provider: func() (browser.Provider, error) { return provider, nil }}, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := testwait.Within(context.Background())
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(run, mark+"*")); len(left) > 0 {
			t.Errorf("browsers are left: %v", left)
		}
		w.site.CloseClientConnections()
		w.site.Close()
		_ = os.RemoveAll(run)
	})
	return w
}

func (w *world) at(path string) Call { return Call{URL: w.site.URL + path} }

// html serves a page under a path.
func html(mux *http.ServeMux, path, body string) {
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!doctype html><link rel=icon href="data:,">`+body)
	})
}

func decoded(t *testing.T, shot Shot) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(shot.Base64)
	if err != nil {
		t.Fatal(err)
	}
	if bytesOf(shot.Base64) != len(raw) {
		t.Errorf("%d bytes were counted as %d", len(raw), bytesOf(shot.Base64))
	}
	return raw
}

func wantCode(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	if err == nil {
		t.Fatalf("it worked, want %s", code)
	}
	f := fault.Of(err)
	if f.Code != code {
		t.Fatalf("got %s (%v), want %s", f.Code, err, code)
	}
	return f
}

// noise is a page that compresses badly: so many pixels of it, each another colour.
func noise(width, height int) string {
	return fmt.Sprintf(`<title>noise</title><body style="margin:0"><canvas width=%d height=%d style="display:block"></canvas><script>
		const c = document.querySelector("canvas"), x = c.getContext("2d"), i = x.createImageData(c.width, c.height)
		let s = 1; for (let n = 0; n < i.data.length; n++) { s = (Math.imul(s, 1103515245) + 12345) & 0x7fffffff; i.data[n] = n %% 4 == 3 ? 255 : s >> 16 & 255 }
		x.putImageData(i, 0, 0)</script>`, width, height)
}

// contexts counts those that were given out warm, or made on the spot.
func (w *world) contexts(from string) float64 {
	families, _ := w.registry.Gather()
	for _, f := range families {
		if f.GetName() != "tapin_oneshot_contexts_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == from {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}
