package oneshot

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"tapin/internal/browser/browsertest"
)

// probe is a page that leaves a mark wherever a page can, says first which
// marks it has found, and keeps a channel open to whoever else is there.
const probe = `<title>probe</title><pre>…</pre><script>
const found = {}
const look = async (name, fn) => { try { const v = await Promise.race([fn(), new Promise(r => setTimeout(r, 1500, "late"))]); if (v) found[name] = String(v) } catch (e) { } }
const db = () => new Promise((ok, no) => { const r = indexedDB.open("mark", 1); r.onupgradeneeded = () => r.result.createObjectStore("s"); r.onsuccess = () => ok(r.result); r.onerror = no })
const read = d => new Promise(ok => { const r = d.transaction("s").objectStore("s").get("k"); r.onsuccess = () => ok(r.result) })
const channel = new BroadcastChannel("mark")
channel.onmessage = () => { found.channel = "somebody answered" }
channel.postMessage("anybody?");
(async () => {
  await look("cookie", () => document.cookie)
  await look("server cookie", () => SENT)
  await look("localStorage", () => localStorage.mark)
  await look("sessionStorage", () => sessionStorage.mark)
  await look("window.name", () => window.name)
  await look("indexedDB", async () => read(await db()))
  await look("cache storage", async () => (await caches.keys()).join())
  await look("service worker", async () => (await navigator.serviceWorker.getRegistrations()).length || "")
  await look("controller", () => navigator.serviceWorker.controller)
  await look("shared worker", () => new Promise(r => { const w = new SharedWorker("/shared.js"); w.port.onmessage = e => r(e.data > 1 ? e.data : "") }))
  await look("http cache", async () => { const a = await (await fetch("/once", {cache: "force-cache"})).text(); return a == COUNT ? "" : a + " instead of " + COUNT })
  await look("permission", async () => { for (const name of ["notifications", "geolocation", "clipboard-read"]) { const p = await navigator.permissions.query({name}); if (p.state == "granted") return name } })
  await look("clipboard", () => navigator.clipboard.readText())
  await look("origin private files", async () => { const d = await navigator.storage.getDirectory(); for await (const [n] of d.entries()) return n })
  await look("storage bucket", async () => (await navigator.storageBuckets?.keys())?.join())
  document.cookie = "mark=1; max-age=999"; localStorage.mark = 1; sessionStorage.mark = 1; window.name = "mark"
  await look("write", async () => { const d = await db(); d.transaction("s", "readwrite").objectStore("s").put("mark", "k"); (await caches.open("mark")).put("/x", new Response("1"))
    await navigator.serviceWorker.register("/sw.js"); await (await navigator.storage.getDirectory()).getFileHandle("mark", {create: true}); return "" })
  await look("copy", async () => { await navigator.clipboard.writeText("mark"); return "" })
  try { Notification.requestPermission(); navigator.storageBuckets?.open("mark") } catch (e) { }
  document.querySelector("pre").textContent = JSON.stringify(found)
  document.title = "probed"
})()</script>`

// probingSite counts visitors, and which connections they came over.
type probingSite struct {
	mux    *http.ServeMux
	visits atomic.Int64

	mu    sync.Mutex
	conns map[string]string // connection → visit
	mixed []string
}

func newProbingSite() *probingSite {
	p := &probingSite{mux: http.NewServeMux(), conns: map[string]string{}}
	script := func(path, body string) {
		p.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, body)
		})
	}
	script("/sw.js", `onactivate = e => e.waitUntil(clients.claim())`)
	script("/shared.js", `let n = 0; onconnect = e => e.ports[0].postMessage(++n)`)
	p.mux.HandleFunc("/probe", func(w http.ResponseWriter, r *http.Request) {
		n := p.visits.Add(1)
		p.came(r, fmt.Sprint(n))
		http.SetCookie(w, &http.Cookie{Name: "server", Value: "mark", MaxAge: 999, HttpOnly: true}) //nolint:gosec // a test's
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><link rel=icon href="data:,"><script>const SENT = %q, COUNT = "%d"</script>%s`, r.Header.Get("Cookie"), n, probe)
	})
	p.mux.HandleFunc("/once", func(w http.ResponseWriter, r *http.Request) {
		// Whose it is is in the cookie of the visit's own page; the count is that
		// of the page when visits come one after the other.
		w.Header().Set("Cache-Control", "max-age=9999, immutable")
		_, _ = fmt.Fprint(w, p.visitOf(r))
	})
	return p
}

// came notes over which connection a visit came; one that served another visit
// already joins two one-shots that should not know of each other.
func (p *probingSite) came(r *http.Request, visit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, ok := p.conns[r.RemoteAddr]; ok && before != visit {
		p.mixed = append(p.mixed, before+" and "+visit)
	}
	p.conns[r.RemoteAddr] = visit
}

// visitOf is the visit that a request belongs to, by its connection; a new
// connection belongs to the newest visit of the machine that asks one by one.
func (p *probingSite) visitOf(r *http.Request) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if visit, ok := p.conns[r.RemoteAddr]; ok {
		return visit
	}
	return fmt.Sprint(p.visits.Load())
}

func TestOneShotsLeaveNothingForEachOther(t *testing.T) {
	t.Parallel()
	for name, warm := range map[string]int{"cold": 0, "warm": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			site := newProbingSite()
			w := newWorld(t, site.mux, func(o *Options) { o.Warm = warm })
			w.Begin()
			if warm > 0 {
				browsertest.Eventually(t, answerWithin, "the warm contexts", func() bool { return w.pool.readyNow() == warm })
			}
			for range 3 {
				if found := w.probed(ctx, t); found != "{}" {
					t.Errorf("one-shots one after the other: %s", found)
				}
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					got := map[string]string{}
					_ = json.Unmarshal([]byte(w.probed(ctx, t)), &got)
					delete(got, "http cache") // whose count is whose is not known here
					if len(got) > 0 {
						t.Errorf("one-shots side by side: %v", got)
					}
				})
			}
			wg.Wait()
			site.mu.Lock()
			defer site.mu.Unlock()
			if len(site.mixed) > 0 {
				t.Errorf("connections served more than one: %v", site.mixed)
			}
		})
	}
}

func (w *world) probed(ctx context.Context, t *testing.T) string {
	t.Helper()
	got, err := w.Extract(ctx, ExtractCall{Call: w.at("/probe"), Instruction: "selector: pre"})
	if err != nil {
		t.Error(err)
		return "{}"
	}
	if got.Title != "probed" {
		t.Errorf("the page did not come to its end: %q %v", got.Title, got.Content)
	}
	text, _ := got.Content.(string)
	return text
}

// TestTheProbeFindsWhatASecondVisitWouldFind is what lets the test above fail:
// the same page finds its marks when it comes back to the same context.
func TestTheProbeFindsWhatASecondVisitWouldFind(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := newProbingSite()
	w := newWorld(t, site.mux, nil)
	at, err := w.pool.take(ctx, desk)
	if err != nil {
		t.Fatal(err)
	}
	defer w.pool.give(at)
	found := ""
	for range 2 {
		if err := w.open(ctx, at.tab, w.site.URL+"/probe"); err != nil {
			t.Fatal(err)
		}
		browsertest.Eventually(t, answerWithin, "the probe", func() bool {
			nav, err := at.tab.Here(ctx)
			return err == nil && nav.Title == "probed"
		})
		if found, _, err = at.tab.Text(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	if err := json.Unmarshal([]byte(found), &got); err != nil {
		t.Fatal(found, err)
	}
	for _, mark := range []string{"cookie", "server cookie", "localStorage", "sessionStorage", "window.name", "indexedDB", "cache storage", "service worker", "http cache", "origin private files"} {
		if got[mark] == "" {
			t.Errorf("the probe does not find its %s: %v", mark, got)
		}
	}
}
