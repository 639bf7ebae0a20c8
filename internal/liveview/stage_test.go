package liveview_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/coder/websocket"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/liveview"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

func TestMain(m *testing.M) { browsertest.Main(m, nil) }

const session = "ses_live"

// stage is a session with a real browser, and the hand-off that may hold it.
type stage struct {
	*httptest.Server // the site that the browser visits
	provider         browser.Provider
	inst             browser.Instance

	mu      sync.Mutex
	tabs    *page.Tabs
	gone    chan struct{}
	status  liveview.Status
	changed chan struct{}
	decided []string
	disk    chan struct{} // a sign of life is written when it is closed
}

func (s *stage) Screen(id string) (liveview.Screen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != session || s.status.Over {
		return nil, fault.New(fault.NoSession, "", "there is no such session")
	}
	return s, nil
}

func (s *stage) Tabs() (*page.Tabs, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tabs, s.gone
}

func (s *stage) Status() (liveview.Status, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, s.changed
}

func (s *stage) Fit(ctx context.Context, _ string, g page.Glass, want page.Fitting) error {
	tabs, _ := s.Tabs()
	if tabs == nil {
		return nil
	}
	return tabs.Fit(ctx, g, want)
}

func (s *stage) Act(ctx context.Context, handoff string, fn func(context.Context, *page.Tabs) error) error {
	s.mu.Lock()
	held := s.status.Handoff != nil && s.status.Handoff.ID == handoff && s.status.Handoff.Status == "RUNNING"
	tabs := s.tabs
	s.mu.Unlock()
	if !held || tabs == nil {
		return fault.New(fault.HandoffNotRunning, "", "that hand-off does not hold this browser")
	}
	return fn(ctx, tabs)
}

// set changes how the session stands.
func (s *stage) set(change func(*liveview.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
	close(s.changed)
	s.changed = make(chan struct{})
}

// lend begins a hand-off.
func (s *stage) lend(id string) {
	s.set(func(now *liveview.Status) {
		now.Handoff = &liveview.Handoff{ID: id, Version: 1, Status: "RUNNING", Reason: "login", Instruction: "Log in, please.", Deadline: time.Now().Add(time.Hour)}
	})
}

func (s *stage) over(status string) {
	s.set(func(now *liveview.Status) {
		o := *now.Handoff
		o.Status = status
		now.Handoff = &o
	})
}

// swap gives the session other tabs, as a restart does; nil takes them away.
func (s *stage) swap(tabs *page.Tabs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tabs = tabs
	close(s.gone)
	s.gone = make(chan struct{})
}

func (s *stage) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decided = append(s.decided, what)
	return nil
}

func (s *stage) Finish(_ context.Context, id string, anyway bool) error {
	s.over("FINISHED")
	return s.note(fmt.Sprint("finish ", id, " ", anyway))
}
func (s *stage) Cancel(_ context.Context, id string) error { return s.note("cancel " + id) }
func (s *stage) Extend(_ context.Context, id string, more time.Duration) error {
	return s.note(fmt.Sprint("extend ", id, " ", more))
}
func (s *stage) Park(_ context.Context, id string) error   { return s.note("park " + id) }
func (s *stage) Resume(_ context.Context, id string) error { return s.note("resume " + id) }
func (s *stage) Present(context.Context, string) error {
	if s.disk != nil {
		<-s.disk
	}
	return nil
}
func (s *stage) Takeover(_ context.Context, id string) error {
	s.lend("hof_mine")
	return s.note("takeover " + id)
}

func (s *stage) decisions() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.decided, ", ")
}

// house is a door with a stage behind it.
type house struct {
	*stage
	t     *testing.T
	door  *liveview.Door
	links *link.Room
	addr  string // of the public listener
	dir   string
}

var webPages = fstest.MapFS{
	"live/index.html":    {Data: []byte(`<!doctype html><title>live</title><script type="module" src="main.js"></script><link rel="stylesheet" href="main.css"><a href="https://example.com/">x</a>`)},
	"live/main.js":       {Data: []byte("import './input.js'\n")},
	"live/input.js":      {Data: []byte("export {}\n" + strings.Repeat("// a comment\n", 50))},
	"live/main.css":      {Data: []byte("body { margin: 0 }\n")},
	"console/index.html": {Data: []byte(`<!doctype html><title>console</title>`)},
}

// closed is a house without a browser.
func closed(t *testing.T, opts *liveview.Options) *house { return built(t, webPages, opts) }

func built(t *testing.T, pages fs.FS, opts *liveview.Options) *house {
	t.Helper()
	dir := t.TempDir()
	home, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	h := &house{t: t, links: link.New(home, nil), dir: dir, stage: &stage{gone: make(chan struct{}), changed: make(chan struct{})}}
	h.status = liveview.Status{Look: page.Look{Width: 1280, Height: 720, Scale: 1}, Deadline: time.Now().Add(time.Hour)}
	h.door = liveview.New(liveview.Deps{
		Links: h.links, Screens: h.stage, Handoffs: h.stage, Pages: func() (fs.FS, error) { return pages, nil }, Uploads: filepath.Join(dir, "uploads"),
	}, opts)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- h.door.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := testwait.Within(context.Background())
		defer cancel()
		if err := h.door.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return h
}

// open is a house whose browser shows the first of the pages.
func open(ctx context.Context, t *testing.T, pages map[string]string, opts *liveview.Options) *house {
	t.Helper()
	h := closed(t, opts)
	h.show(ctx, pages)
	return h
}

// show starts the browser on the first of the pages.
func (h *house) show(ctx context.Context, pages map[string]string) {
	h.t.Helper()
	t := h.t
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "OTHER", strings.Replace(h.URL, "127.0.0.1", "localhost", 1)))
	}))
	t.Cleanup(h.Server.Close)
	t.Cleanup(h.Server.CloseClientConnections)
	var end func()
	h.inst, end = h.launch(ctx, "ses_live-1", h.Server)
	t.Cleanup(end)
	tabs := h.openTabs(ctx, h.inst)
	tab, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Navigate(ctx, h.URL+"/", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
}

// launch starts a browser that may visit a site.
func (h *house) launch(ctx context.Context, id string, site *httptest.Server) (browser.Instance, func()) {
	h.t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		h.t.Fatal(err)
	}
	policy := browsertest.Policy(site)
	policy.Allow = append(policy.Allow, strings.Replace(policy.Allow[0], "127.0.0.1", "localhost", 1))
	provider := local.New(dir, 1, nil)
	inst, err := provider.Create(ctx, browser.Spec{ID: id, KeepUntil: testwait.Late(), Policy: policy})
	if err != nil {
		h.t.Fatal(err)
	}
	h.provider = provider
	return inst, func() {
		browsertest.End(h.t, provider, inst.Ref())
		_ = os.RemoveAll(dir)
	}
}

func (h *house) openTabs(ctx context.Context, inst browser.Instance) *page.Tabs {
	h.t.Helper()
	tabs, err := page.Open(ctx, inst, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(tabs.Close)
	h.swap(tabs)
	return tabs
}

// eval runs a script in the page, beside everything under test.
func (h *house) eval(ctx context.Context, script string) string {
	h.t.Helper()
	tabs, _ := h.Tabs()
	tab, err := tabs.Front(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return browsertest.Attach(ctx, h.t, h.inst, target.ID(tab.ID())).Eval(ctx, h.t, script)
}

// mint makes a link.
func (h *house) mint(mode link.Mode) (link.Link, secret.Text) {
	h.t.Helper()
	l, token, err := h.links.Mint(h.t.Context(), session, mode, time.Now().Add(time.Hour))
	if err != nil {
		h.t.Fatal(err)
	}
	return l, token
}

// request is one that a page of ours would send.
func (h *house) request(ctx context.Context, method, path, body string, change ...func(*http.Request)) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+h.addr+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if method != http.MethodGet {
		r.Header.Set("Origin", "http://"+h.addr)
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(r)
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// claim claims a link as a phone does, and returns its cookie.
func (h *house) claim(ctx context.Context, id string, token secret.Text) (int, map[string]any, *http.Cookie) {
	h.t.Helper()
	body, _ := json.Marshal(map[string]string{"token": token.Reveal()})
	if token.IsEmpty() {
		body = []byte("{}")
	}
	answer := h.request(ctx, http.MethodPost, "/live/"+id+"/claim", string(body))
	var said map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		h.t.Fatal(err)
	}
	var cookie *http.Cookie
	if all := answer.Cookies(); len(all) == 1 {
		cookie = all[0]
	}
	return answer.StatusCode, said, cookie
}

// phone is a page that shows the live view.
type phone struct {
	t      *testing.T
	conn   *websocket.Conn
	width  float64
	noAcks bool

	mu     sync.Mutex
	frames []frame
	words  []map[string]any
	closed error
	news   chan struct{}
}

type frame struct {
	flags         byte
	tab           uint16
	number        uint32
	width, height float32
	scale         float32
	scrollY       float32
	age           uint32
	jpeg          []byte
	at            time.Time
}

// dial opens the socket of a link; header may change the request.
func (h *house) dial(ctx context.Context, id string, cookie *http.Cookie, client *http.Client) (*websocket.Conn, *http.Response, error) {
	header := http.Header{"Origin": {"http://" + h.addr}}
	if cookie != nil {
		header.Set("Cookie", cookie.Name+"="+cookie.Value)
	}
	conn, answer, err := websocket.Dial(ctx, "ws://"+h.addr+"/live/"+id+"/ws", &websocket.DialOptions{HTTPHeader: header, HTTPClient: client})
	if conn != nil {
		conn.SetReadLimit(16 << 20)
	}
	return conn, answer, err
}

// enter claims a new link and shows it on a phone.
func (h *house) enter(ctx context.Context, mode link.Mode) *phone {
	h.t.Helper()
	l, token := h.mint(mode)
	status, said, cookie := h.claim(ctx, l.ID, token)
	if status != http.StatusOK || cookie == nil {
		h.t.Fatalf("claim: %d %v", status, said)
	}
	return h.phone(ctx, l.ID, cookie, nil)
}

func (h *house) phone(ctx context.Context, id string, cookie *http.Cookie, client *http.Client) *phone {
	h.t.Helper()
	conn, _, err := h.dial(ctx, id, cookie, client)
	if err != nil {
		h.t.Fatal(err)
	}
	p := &phone{t: h.t, conn: conn, width: 640, news: make(chan struct{})}
	var reads sync.WaitGroup
	reads.Go(func() { p.read(context.WithoutCancel(ctx)) })
	h.t.Cleanup(func() { _ = conn.CloseNow(); reads.Wait() })
	return p
}

func (p *phone) read(ctx context.Context) {
	var parts []byte // of a picture that is not whole yet
	for {
		kind, raw, err := p.conn.Read(ctx)
		if err == nil && kind == websocket.MessageBinary {
			if raw[0] == 2 {
				parts = append(parts, raw[2:]...)
			} else {
				parts = raw
			}
			if raw[0] == 1 && raw[1]&4 != 0 || raw[0] == 2 && raw[1] == 0 {
				continue
			}
			raw = parts
		}
		p.mu.Lock()
		switch {
		case err != nil:
			p.closed = err
		case kind == websocket.MessageBinary:
			p.frames = append(p.frames, decode(raw))
		default:
			var m map[string]any
			_ = json.Unmarshal(raw, &m)
			p.words = append(p.words, m)
		}
		number := uint32(0)
		if len(p.frames) > 0 {
			number = p.frames[len(p.frames)-1].number
		}
		close(p.news)
		p.news = make(chan struct{})
		quiet := p.noAcks
		p.mu.Unlock()
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary && !quiet {
			p.send(ctx, map[string]any{"t": "ack", "number": number, "w": p.width, "h": 360, "dpr": 1})
		}
	}
}

func decode(raw []byte) frame {
	get := binary.BigEndian
	float := func(at int) float32 { return math.Float32frombits(get.Uint32(raw[at:])) }
	return frame{
		flags: raw[1], tab: get.Uint16(raw[2:]), number: get.Uint32(raw[4:]), width: float(8), height: float(12),
		scale: float(16), scrollY: float(28), age: get.Uint32(raw[32:]), jpeg: raw[40:], at: time.Now(),
	}
}

func (p *phone) send(ctx context.Context, m any) {
	raw, ok := m.([]byte)
	if !ok {
		raw, _ = json.Marshal(m)
	}
	_ = p.conn.Write(ctx, websocket.MessageText, raw)
}

// until waits, by what comes through the socket alone.
func (p *phone) until(what string, is func() bool) {
	p.t.Helper()
	late := testwait.Over()
	for {
		p.mu.Lock()
		done, news := is(), p.news
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-news:
		case <-late:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("%s: did not come; %d frames, closed %v, last words %v", what, len(p.frames), p.closed, p.words[max(0, len(p.words)-2):])
		}
	}
}

// state waits for one that is so.
func (p *phone) state(what string, is func(map[string]any) bool) map[string]any {
	p.t.Helper()
	var found map[string]any
	p.until(what, func() bool {
		for i := len(p.words) - 1; i >= 0; i-- {
			if p.words[i]["t"] == "state" {
				found = p.words[i]
				return is(found)
			}
		}
		return false
	})
	return found
}

// word waits for the next message of a kind that is so, from a place on.
func (p *phone) word(kind string, from int, is func(map[string]any) bool) map[string]any {
	p.t.Helper()
	var found map[string]any
	p.until(kind, func() bool {
		for _, m := range p.words[min(from, len(p.words)):] {
			if m["t"] == kind && (is == nil || is(m)) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func (p *phone) heard() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.words)
}

// said is every message so far.
func (p *phone) said() []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]map[string]any(nil), p.words...)
}

func (p *phone) seen() []frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]frame(nil), p.frames...)
}

func (p *phone) tap(ctx context.Context, handoff string, x, y float64) {
	p.send(ctx, map[string]any{"t": "ptr", "h": handoff, "k": "tap", "x": x, "y": y, "f": -1, "b": "left", "c": 1})
}

// hover is what a finger does that comes to rest.
func (p *phone) hover(ctx context.Context, handoff string, x, y float64) {
	p.send(ctx, map[string]any{"t": "ptr", "h": handoff, "k": "move", "x": x, "y": y, "f": -1})
}

// colour is that of the middle of a frame: r, g or b.
func (f frame) colour() string {
	img, err := jpeg.Decode(bytes.NewReader(f.jpeg))
	if err != nil {
		return ""
	}
	r, g, b, _ := img.At(img.Bounds().Dx()/2, img.Bounds().Dy()/2).RGBA()
	switch {
	case r > g && r > b:
		return "r"
	case g > r && g > b:
		return "g"
	}
	return "b"
}

func (p *phone) shows(colour string) {
	p.t.Helper()
	seen, is := uint32(0), ""
	p.until("a picture in "+colour, func() bool {
		if len(p.frames) == 0 {
			return false
		}
		if last := p.frames[len(p.frames)-1]; last.number != seen {
			seen, is = last.number, last.colour()
		}
		return is == colour
	})
}

// painted is a page of one colour that a click makes blue.
func painted(c string) string {
	return `<!doctype html><title>t</title><body style="margin:0;height:3000px;background:` + c + `"><script>onclick = () => document.body.style.background = 'rgb(0,0,255)'</script>`
}

const animated = `<!doctype html><body style="margin:0"><script>
(function f() { document.body.style.background = 'hsl(' + performance.now() / 5 % 360 + ' 100% 50%)'; requestAnimationFrame(f) })()</script>`

// numberOf is by which the browser wants a frame acknowledged.
func numberOf(raw []byte) int64 {
	var e struct {
		SessionID int64 `json:"sessionId"`
	}
	_ = json.Unmarshal(raw, &e)
	return e.SessionID
}
