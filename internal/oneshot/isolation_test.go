package oneshot

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// probe is a page that leaves a mark wherever a page can, says first which
// marks it has found, and keeps a channel open to whoever else is there. The
// icon it finds is the one that the browser does not ask for again.
const probe = `<title>probe</title><pre>…</pre><script>
const found = {}
const after = (ms, v) => new Promise(r => setTimeout(r, ms, v))
const look = async (name, fn, within = 5000) => { try { const v = await Promise.race([fn(), after(within, "late")]); if (v) found[name] = String(v) } catch (e) { } }
const db = () => new Promise((ok, no) => { const r = indexedDB.open("mark", 1); r.onupgradeneeded = () => r.result.createObjectStore("s"); r.onsuccess = () => ok(r.result); r.onerror = no })
const read = d => new Promise(ok => { const r = d.transaction("s").objectStore("s").get("k"); r.onsuccess = () => ok(r.result) })
const channel = new BroadcastChannel("mark")
channel.onmessage = e => { if (e.data == "anybody?") channel.postMessage("somebody"); else found.channel = "somebody answered" }
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
  await look("http auth", async () => (await fetch("/auth/known", {cache: "no-store"})).text())
  await look("favicon", async () => { for (;;) { if (await (await fetch("/icons", {cache: "no-store"})).text() != ICONS) return ""; await after(50) } }, 4000)
  await look("storage bucket", async () => (await navigator.storageBuckets?.keys())?.join())
  document.cookie = "mark=1; max-age=999"; localStorage.mark = 1; sessionStorage.mark = 1; window.name = "mark"
  await look("write", async () => { const d = await db(); d.transaction("s", "readwrite").objectStore("s").put("mark", "k"); (await caches.open("mark")).put("/x", new Response("1"))
    await navigator.serviceWorker.register("/sw.js"); await (await navigator.storage.getDirectory()).getFileHandle("mark", {create: true}); return "" })
  await look("log in", () => new Promise(r => { const x = new XMLHttpRequest; x.onloadend = () => r(""); x.open("GET", "/auth/login", true, "mark", "mark"); x.send() }))
  await look("copy", async () => { await navigator.clipboard.writeText("mark"); return "" })
  await look("bucket", async () => { await navigator.storageBuckets?.open("mark"); return "" })
  try { Notification.requestPermission() } catch (e) { }
  document.querySelector("pre").textContent = JSON.stringify(found)
  document.title = "probed"
})()</script>`

// probingSite counts visitors, and which connections they came over.
type probingSite struct {
	mux    *http.ServeMux
	visits atomic.Int64
	icons  atomic.Int64 // how often the icon was asked for

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
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!doctype html><link rel=icon href="/icon.svg"><script>const SENT = %q, COUNT = "%d", ICONS = "%d"</script>%s`, r.Header.Get("Cookie"), n, p.icons.Load(), probe)
	})
	p.mux.HandleFunc("/icon.svg", func(w http.ResponseWriter, _ *http.Request) {
		p.icons.Add(1)
		w.Header().Set("Content-Type", "image/svg+xml")
		w.Header().Set("Cache-Control", "max-age=9999, immutable")
		_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><rect width="16" height="16"/></svg>`)
	})
	p.mux.HandleFunc("/icons", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, p.icons.Load()) })
	p.mux.HandleFunc("/auth/known", func(w http.ResponseWriter, r *http.Request) {
		// Never asks: the browser sends what it knows by itself.
		if name, _, ok := r.BasicAuth(); ok {
			_, _ = io.WriteString(w, name)
		}
	})
	p.mux.HandleFunc("/auth/login", func(w http.ResponseWriter, r *http.Request) {
		if _, _, ok := r.BasicAuth(); !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="mark"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
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

// marks are all that the probe can find.
var marks = []string{
	"cookie", "server cookie", "localStorage", "sessionStorage", "window.name", "indexedDB", "cache storage", "service worker", "controller",
	"shared worker", "channel", "http cache", "http auth", "favicon", "permission", "clipboard", "origin private files", "storage bucket",
}

// TestOneShotsLeaveNothingForEachOther has the probe come three times to one
// context, where it must find every mark it can leave: that is what lets the rest
// fail. That context stays open, with all its marks, beside the one-shots that
// follow, and they find nothing.
func TestOneShotsLeaveNothingForEachOther(t *testing.T) {
	t.Parallel()
	for name, warm := range map[string]int{"cold": 0, "warm": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			site := newProbingSite()
			w := newWorld(t, site.mux, func(o *Options) { o.Warm = warm })
			w.Begin()
			ready := func() {
				t.Helper()
				if warm > 0 {
					testwait.For(t, "the warm contexts", func() bool { return w.pool.readyNow() == warm })
				}
			}
			ready()
			at, err := w.pool.take(ctx, desk)
			if err != nil {
				t.Fatal(err)
			}
			defer w.pool.give(at)
			found := w.marked(ctx, t, at)
			for _, mark := range marks {
				// An icon that is there already is not asked for again: being late is its mark.
				if found[mark] == "" || found[mark] == "late" && mark != "favicon" {
					t.Errorf("the probe does not find its %s: %v", mark, found)
				}
			}
			site.mu.Lock()
			site.mixed = nil // the context's own visits may share connections
			site.mu.Unlock()
			for range 3 {
				ready()
				if found := w.probed(ctx, t); len(found) > 0 {
					t.Errorf("one-shots one after the other: %v", found)
				}
			}
			if got := w.contexts("warm"); (got >= 4) != (warm > 0) {
				t.Errorf("%v contexts were warm", got)
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					found := w.probed(ctx, t)
					delete(found, "http cache") // whose count is whose is not known here
					if len(found) > 0 {
						t.Errorf("one-shots side by side: %v", found)
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

// marked has the probe come to a context that may do everything: twice in one
// tab, then in another beside it. It tells all that was found.
func (w *world) marked(ctx context.Context, t *testing.T, at *place) map[string]string {
	t.Helper()
	root, id := at.inst.Conn().Root(), proto.BrowserContextID(at.inst.Ref().Context)
	for _, name := range []string{"clipboard-read", "clipboard-write", "notifications", "geolocation"} {
		if _, err := proto.Call(ctx, root, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
			BrowserContextID: id, Origin: w.site.URL, Setting: cdpbrowser.PermissionSettingGranted,
			Permission: &cdpbrowser.PermissionDescriptor{Name: name},
		}); err != nil {
			t.Fatal(name, err)
		}
	}
	all, tab := map[string]string{}, at.tab
	for visit := range 3 {
		if visit == 2 {
			_, err := proto.Call(ctx, root, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: id})
			if err != nil {
				t.Fatal(err)
			}
			testwait.For(t, "the second tab", func() bool {
				tab, err = at.tabs.Front(ctx)
				return err == nil && tab.ID() != at.tab.ID()
			})
		}
		if err := w.open(ctx, tab, w.site.URL+"/probe"); err != nil {
			t.Fatal(err)
		}
		testwait.For(t, "the probe", func() bool {
			nav, err := tab.Here(ctx)
			return err == nil && nav.Title == "probed"
		})
		text, _, err := tab.Text(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatal(text, err)
		}
		maps.Copy(all, found)
	}
	return all
}

// probed is what a one-shot finds. A one-shot waits only so long for its page:
// a probe that did not come to its end has said nothing, and is sent again.
func (w *world) probed(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	for {
		got, err := w.Extract(ctx, ExtractCall{Call: w.at("/probe"), Instruction: "selector: pre"})
		if err != nil {
			t.Error(err)
			return nil
		}
		// The title is read last: the page may come to its end after its text was read.
		text, _ := got.Content.(string)
		if got.Title != "probed" || text == "…" {
			t.Logf("the page did not come to its end: %q %v", got.Title, got.Content)
			continue
		}
		found := map[string]string{}
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Errorf("the probe said %q", text)
		}
		return found
	}
}
