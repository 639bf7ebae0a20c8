package canary

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/egress"
)

// world is one test's site and its canaries.
type world struct {
	site   *httptest.Server // where pages come from; allowed
	secure *httptest.Server // the same over TLS
	rows   []*row
	pairs  []string // further addresses of the site, allowed as well
	gate   chan struct{}

	mu      sync.Mutex
	settled map[int]string // what pages said about their vectors
	sieges  map[string]*siege
}

// row is a vector and the canary it is after.
type row struct {
	vector
	n    int
	bird *bird
	fill *strings.Replacer
	skip string
}

// newWorld makes a site for all vectors that keep takes; nil means all.
func newWorld(t *testing.T, keep func(vector) bool) *world {
	t.Helper()
	w := &world{gate: make(chan struct{}), settled: map[int]string{}, sieges: map[string]*siege{}}
	handler := w.handler()
	w.site, w.secure = httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	w.secure.Config.ErrorLog = quiet()
	w.secure.StartTLS()
	for _, s := range []*httptest.Server{w.site, w.secure} {
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	}
	birds := newAviary(t, w.secure.TLS.Certificates[0])
	pairs := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	t.Cleanup(func() { _ = pairs.Close() })
	for _, v := range table() {
		if keep != nil && !keep(v) {
			continue
		}
		i := len(w.rows)
		r := &row{vector: v, n: i}
		w.rows = append(w.rows, r)
		var own []netip.Addr
		for _, place := range []string{"@OWN4@", "@OWN6@"} {
			if r.via != place {
				continue
			}
			addr, err := ownAddress(place == "@OWN6@")
			if err != nil {
				r.skip = "this machine has no address beside loopback"
				continue
			}
			own = append(own, addr)
			r.via, r.host = addr.String(), addr.String()
			if addr.Is6() {
				r.host = "[" + r.host + "]"
			}
		}
		if r.overIPv6() && !hasIPv6() {
			r.skip = "this machine has no IPv6"
		}
		var apart func(net.Listener)
		if r.pair {
			apart = func(ln net.Listener) {
				w.pairs = append(w.pairs, "127.0.0.1:"+portOf(ln))
				go func() { _ = pairs.Serve(ln) }()
			}
		}
		r.bird = birds.hatch(t, own, apart)
		names := strings.NewReplacer("@ROW@", strconv.Itoa(i), "@MACHINE@", machineName())
		r.host = names.Replace(r.host)
		r.fill = strings.NewReplacer("@HOST@", fmt.Sprintf("%s:%d", r.host, r.bird.port), "@SITE@", w.site.URL, "@SECURE@", w.secure.URL,
			"@BASE@", fmt.Sprintf("/files/%d/", i), "@ROW@", strconv.Itoa(i),
			"@ADDR@", r.via, "@PORT@", strconv.Itoa(int(r.bird.port)))
	}
	return w
}

// strict lets pages reach the site and nothing else of this machine.
func (w *world) strict() egress.Policy {
	return egress.Policy{BlockPrivate: true, Allow: append([]string{hostOf(w.site), hostOf(w.secure)}, w.pairs...)}
}

// open lets pages reach every canary too.
func (w *world) open() egress.Policy {
	p := w.strict()
	for _, r := range w.rows {
		addrs := []netip.Addr{loop4, loop6, netip.IPv4Unspecified(), netip.IPv6Unspecified()}
		if own, err := netip.ParseAddr(r.via); err == nil {
			addrs = append(addrs, own)
		}
		for _, a := range addrs {
			p.Allow = append(p.Allow, netip.AddrPortFrom(a, r.bird.port).String())
		}
	}
	return p
}

func hostOf(s *httptest.Server) string {
	_, host, _ := strings.Cut(s.URL, "://")
	return host
}

// outcome is what the vector's page said about its end, if it has come to one.
func (w *world) outcome(n int) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.settled[n]
	return o, ok
}

func (w *world) handler() http.Handler {
	mux := http.NewServeMux()
	html := func(body func(http.ResponseWriter, *row) string) http.HandlerFunc {
		return func(out http.ResponseWriter, in *http.Request) {
			n, err := strconv.Atoi(in.PathValue("row"))
			if err != nil || n >= len(w.rows) {
				http.NotFound(out, in)
				return
			}
			out.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(out, body(out, w.rows[n]))
		}
	}
	mux.HandleFunc("GET /driver", func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		only := in.URL.Query()["row"]
		_, _ = io.WriteString(out, w.driver(func(r *row) bool { return len(only) == 0 || slices.Contains(only, strconv.Itoa(r.n)) }))
	})
	mux.HandleFunc("GET /gate", func(_ http.ResponseWriter, in *http.Request) {
		select {
		case <-w.gate:
		case <-in.Context().Done():
		}
	})
	mux.HandleFunc("GET /vector/{row}", html(func(_ http.ResponseWriter, r *row) string {
		return r.fill.Replace(vectorPage + "(async () => {" + r.js + "})().then(settled, settled)</script>")
	}))
	mux.HandleFunc("GET /document/{row}", html(func(out http.ResponseWriter, r *row) string {
		for name, value := range r.header {
			out.Header().Set(name, r.fill.Replace(value))
		}
		return "<!doctype html>" + r.fill.Replace(r.html)
	}))
	mux.HandleFunc("/redirect/{code}/{row}", func(out http.ResponseWriter, in *http.Request) {
		code, _ := strconv.Atoi(in.PathValue("code"))
		n, _ := strconv.Atoi(in.PathValue("row"))
		scheme := "http"
		if in.URL.Query().Get("s") != "" {
			scheme = "https"
		}
		out.Header().Set("Access-Control-Allow-Origin", "*")
		http.Redirect(out, in, w.rows[n].fill.Replace(scheme+"://@HOST@/"), code)
	})
	mux.HandleFunc("POST /settled/{row}", func(_ http.ResponseWriter, in *http.Request) {
		n, _ := strconv.Atoi(in.PathValue("row"))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.settled[n] = in.URL.Query().Get("why")
	})
	w.handleSieges(mux)
	return http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		// A kept connection would spare the next request the question for the name.
		out.Header().Set("Connection", "close")
		out.Header().Set("Cache-Control", "no-store")
		if file, ok := strings.CutPrefix(in.URL.Path, "/files/"); ok {
			w.file(out, in, file)
			return
		}
		mux.ServeHTTP(out, in)
	})
}

func (w *world) file(out http.ResponseWriter, in *http.Request, at string) {
	number, name, _ := strings.Cut(at, "/")
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(w.rows) || w.rows[n].files[name] == "" {
		http.NotFound(out, in)
		return
	}
	out.Header().Set("Content-Type", map[string]string{
		".js": "text/javascript", ".html": "text/html", ".m3u8": "application/vnd.apple.mpegurl",
	}[path.Ext(name)])
	_, _ = io.WriteString(out, w.rows[n].fill.Replace(w.rows[n].files[name]))
}

// driver is the page that opens all others once the gate is open: frames in
// itself, and windows where a frame will not do. Windows and not tabs: a hidden
// page loads no media and prepares no next page.
func (w *world) driver(wanted func(*row) bool) string {
	var frames, windows []string
	for _, r := range w.rows {
		if r.skip != "" || !wanted(r) {
			continue
		}
		at := r.page()
		if r.window {
			windows = append(windows, strconv.Quote(at))
		} else {
			frames = append(frames, strconv.Quote(at))
		}
	}
	return fmt.Sprintf(`<!doctype html><title>driver</title><body><script>
fetch("/gate").then(() => {
	for (const at of [%s]) { const f = document.createElement("iframe"); f.src = at; document.body.append(f) }
	for (const at of [%s]) open(at, "", "popup,width=300,height=200")
	document.title = "driven"
})
</script>`, strings.Join(frames, ","), strings.Join(windows, ","))
}

// page is the vector's own page on the site, or behind the name it is about.
func (r *row) page() string {
	at := fmt.Sprintf("/vector/%d", r.n)
	switch {
	case r.html != "":
		return fmt.Sprintf("/document/%d", r.n)
	case r.pair:
		return r.fill.Replace("http://@HOST@" + at)
	}
	return at
}

// vectorPage begins every vector's page.
const vectorPage = `<!doctype html><meta charset="utf-8"><title>vector</title><body><script>
const settled = why => fetch("@SITE@/settled/@ROW@?why=" + encodeURIComponent(String(why)), {method: "POST", mode: "no-cors", keepalive: true})
const add = (tag, attrs, to = document.body) => new Promise(done => {
	const e = document.createElement(tag)
	for (const event of ["load", "error", "loadedmetadata"]) e.addEventListener(event, () => done(event))
	for (const [name, value] of Object.entries(attrs)) e.setAttribute(name, value)
	to.append(e)
})
const style = text => { const s = document.createElement("style"); s.textContent = text; document.head.append(s) }
const speculate = async (kind, url) => { // what a busy browser was asked to prepare it drops after a while, and says nothing
	for (let i = 0; i < 12; i++) {
		const s = document.createElement("script")
		s.type = "speculationrules"
		s.text = JSON.stringify({[kind]: [{source: "list", urls: [url + "?" + i]}]})
		document.head.append(s)
		await new Promise(done => setTimeout(done, 5000))
	}
}
const blob = text => URL.createObjectURL(new Blob([text], {type: "text/javascript"}))
const ends = thing => new Promise(done => { thing.onerror = () => { if (thing.close) thing.close(); done("error") }; thing.onopen = () => done("open") })
const says = thing => new Promise(done => { thing.onmessage = () => done("message"); thing.onerror = () => done("error") })
const active = async base => {
	const r = await navigator.serviceWorker.register(base + "sw.js", {scope: base})
	const w = r.installing || r.waiting || r.active
	if (w.state !== "activated") await new Promise(done => { w.onstatechange = () => /activated|redundant/.test(w.state) && done() })
}
const gather = async server => {
	const c = new RTCPeerConnection({iceServers: [server]})
	c.createDataChannel("a")
	const over = new Promise(done => { c.onicegatheringstatechange = () => c.iceGatheringState === "complete" && done("gathered") })
	await c.setLocalDescription(await c.createOffer())
	return over
}
const meet = async (transport, rest) => {
	const [a, b] = [new RTCPeerConnection, new RTCPeerConnection]
	a.createDataChannel("a")
	await a.setLocalDescription(await a.createOffer())
	await b.setRemoteDescription(a.localDescription)
	await b.setLocalDescription(await b.createAnswer())
	await a.setRemoteDescription({type: "answer", sdp: b.localDescription.sdp.replace(/a=candidate.*\r\n/g, "")})
	await a.addIceCandidate({candidate: "candidate:1 1 " + transport + " 2122260223 " + rest, sdpMLineIndex: 0})
	window.kept = [a, b]
}
`
