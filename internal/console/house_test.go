package console_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tapin/internal/browser/browsertest"
	"tapin/internal/console"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/link"
	"tapin/internal/liveview"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/web"
)

func TestMain(m *testing.M) { browsertest.Main(m, nil) }

// stage is what is behind the door: it says what it is told to say, and keeps
// what it is asked to do.
type stage struct {
	links *link.Room

	mu      sync.Mutex
	state   console.State
	changed chan struct{}
	driven  bool // by a person
	deeds   []string
	past    map[string][]console.Past
	sticks  bool // links cannot be revoked
}

func (s *stage) Look(ctx context.Context) console.State {
	s.mu.Lock()
	now := s.state
	s.mu.Unlock()
	links, _ := s.links.List(ctx)
	now.Links = nil
	for _, l := range links {
		now.Links = append(now.Links, console.Link{
			ID: l.ID, SessionID: l.SessionID, Host: "shop.example", Mode: string(l.Mode), CreatedAt: l.CreatedAt, ExpiresAt: l.ExpiresAt, Claimed: l.Claimed, Waiting: l.Waiting,
		})
	}
	return now
}

func (s *stage) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *stage) set(change func(*console.State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stage) Past(_ context.Context, cursor string) ([]console.Past, string, error) {
	items, ok := s.past[cursor]
	if !ok {
		return nil, "", fault.New(fault.InvalidRequest, "", "there is no such place in the list")
	}
	return items, "", nil
}

func (s *stage) Picture(_ context.Context, session string) (page.Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.driven || session != "ses_1" {
		return page.Image{}, fault.New(fault.NotFound, "", "there is no picture of that session now")
	}
	large := image.NewRGBA(image.Rect(0, 0, 1280, 720))
	for y := range 720 {
		for x := range 1280 {
			large.Set(x, y, color.RGBA{uint8(x / 5), uint8(y / 3), 60, 255})
		}
	}
	var raw bytes.Buffer
	if err := jpeg.Encode(&raw, large, nil); err != nil {
		return page.Image{}, err
	}
	return page.Image{Base64: base64.StdEncoding.EncodeToString(raw.Bytes()), Format: page.JPEG}, nil
}

func (s *stage) did(what ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deeds = append(s.deeds, strings.TrimSpace(fmt.Sprintln(what...)))
	return nil
}

func (s *stage) done() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.deeds...)
}

func (s *stage) Finish(_ context.Context, id string, version int) (bool, error) {
	return id != "hof_stuck", s.did("finish", id, version)
}

func (s *stage) Cancel(_ context.Context, id string, version int) error {
	return s.did("cancel", id, version)
}

func (s *stage) Park(_ context.Context, id string, version int) error {
	return s.did("park", id, version)
}

func (s *stage) Resume(_ context.Context, id string, version int) error {
	return s.did("resume", id, version)
}

func (s *stage) Extend(_ context.Context, id string, more time.Duration) error {
	return s.did("extend", id, more)
}
func (s *stage) TodoDone(_ context.Context, id string) error { return s.did("todo", id) }

func (s *stage) Check(_ context.Context, name string) (string, bool, error) {
	return "the page for members was shown.", true, s.did("check", name)
}

func (s *stage) Delete(_ context.Context, name string) error { return s.did("delete", name) }
func (s *stage) End(_ context.Context, id string) error      { return s.did("end", id) }

func (s *stage) Open(ctx context.Context, session string) (string, secret.Text, error) {
	if session != "ses_1" {
		return "", secret.Text{}, fault.New(fault.NoSession, "", "there is no such session")
	}
	l, token, err := s.links.Mint(ctx, session, link.Drive, time.Now().Add(time.Hour))
	return l.ID, secret.New("/live/" + l.ID + "#t=" + token.Reveal()), err
}

func (s *stage) Move(ctx context.Context, id string, number int) error {
	_, err := s.links.Move(ctx, id, number)
	return err
}

func (s *stage) Revoke(ctx context.Context, id string) error {
	s.mu.Lock()
	sticks := s.sticks
	s.mu.Unlock()
	if sticks {
		return fault.New(fault.Internal, "", "the disk is gone")
	}
	return s.links.Revoke(ctx, id)
}

// empty has neither sessions nor hand-offs: the live view is not what is tested.
type empty struct{ liveview.Handoffs }

func (empty) Screen(string) (liveview.Screen, error) {
	return nil, fault.New(fault.NoSession, "", "there is no such session")
}

// house is the door on the real public listener, with the real pages.
type house struct {
	*stage
	t    *testing.T
	home *store.Home
	dir  string
	door *console.Door
	addr string

	claims atomic.Int32 // that reached the door
}

func ago(d time.Duration) time.Time { return time.Now().Add(-d).UTC().Truncate(time.Second) }

// filled is a state with something in each list.
func filled() console.State {
	one, yes := uint32(1), true
	return console.State{
		Handoffs: []console.Handoff{
			{ID: "hof_1", Version: 3, Reason: "login", Instruction: "Please sign in.", Task: "Collect statements", Site: "shop.example", SessionID: "ses_1", CreatedAt: ago(time.Minute), Deadline: ago(-10 * time.Minute), Attempts: 1},
			{ID: "hof_2", Version: 5, Reason: "captcha", Site: "paper.example", SessionID: "ses_2", CreatedAt: ago(time.Hour), Deadline: ago(-time.Hour), Attempts: 2, Parked: true},
		},
		Sessions: []console.Session{{ID: "ses_1", Driver: "agent", Host: "www.shop.example", Registrable: "shop.example", Title: "Shop", StartedAt: ago(time.Minute), Deadline: ago(-time.Hour), Provider: "local", Thumb: &one}},
		Logins:   []console.Login{{Name: "shop", Domain: "shop.example", LastUsed: ago(time.Hour), Freshness: "stale", Bytes: 1200}},
		History:  []console.Past{{ID: "hof_0", Reason: "2fa", Site: "mail.example", Status: "FINISHED", CreatedAt: ago(2 * time.Hour), FinishedAt: ago(time.Hour), FinishedBy: "owner", Attempts: 1, Verified: &yes, Summary: "The title changed.", Delta: []console.Change{{Field: "title", Change: "Sign in → Inbox"}}}},
		Todos:    []console.Todo{{ID: "tdo_1", Text: "Solve the check", Site: "paper.example", CreatedAt: ago(time.Hour)}},
	}
}

func newHouse(t *testing.T, more func(*console.Deps)) *house {
	t.Helper()
	dir := t.TempDir()
	home, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	h := &house{t: t, home: home, dir: dir, stage: &stage{links: link.New(home, nil), changed: make(chan struct{}), state: filled(), past: map[string][]console.Past{}}}
	h.door = h.open(more)
	// Not the door itself: a test may open another one on the same home.
	mounted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/console/claim" {
			h.claims.Add(1)
		}
		h.door.ServeHTTP(w, r)
	})
	front := liveview.New(liveview.Deps{Links: h.links, Screens: empty{}, Handoffs: empty{}, Pages: web.Pages, Uploads: dir},
		&liveview.Options{Console: mounted, Names: []string{"tapin.example.com"}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- front.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := testwait.Within(context.Background())
		defer cancel()
		if err := h.door.Close(ctx); err != nil {
			t.Errorf("close the console: %v", err)
		}
		if err := front.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return h
}

// open makes the door, as another sidecar on the same home does.
func (h *house) open(more func(*console.Deps)) *console.Door {
	h.t.Helper()
	deps := console.Deps{
		Home: h.home, Journal: event.NewJournal(h.home, nil), House: h.stage, Handoffs: h.stage, Logins: h.stage, Links: h.stage, Sessions: h.stage,
		Visit: func(r *http.Request) console.Visit {
			origin, address, secure := liveview.Reached(r)
			return console.Visit{Origin: origin, Address: address, Secure: secure}
		},
	}
	if more != nil {
		more(&deps)
	}
	d := console.New(h.t.Context(), deps, nil)
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		guard.NewHouse(&guard.Options{Pauses: []time.Duration{time.Millisecond}}).Room(ctx, guard.Console, d.Run)
	}()
	h.t.Cleanup(func() { stop(); <-over })
	return d
}

// signIn is the token of a printed sign-in.
func (h *house) signIn() string {
	h.t.Helper()
	path, _, err := h.door.SignIn(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	token, ok := strings.CutPrefix(path.Reveal(), "/console#t=")
	if !ok || len(token) != 43 {
		h.t.Fatal("the sign-in does not look like one")
	}
	return token
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
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(raw))
	return answer
}

// tunnelled makes a request one that came through a tunnel, over HTTPS.
func tunnelled(r *http.Request) {
	r.Host = "tapin.example.com"
	r.Header.Set("X-Forwarded-Proto", "https")
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	if r.Header.Get("Origin") != "" {
		r.Header.Set("Origin", "https://tapin.example.com")
	}
}

func with(c *http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(c) } }

func (h *house) claim(ctx context.Context, token string, change ...func(*http.Request)) (int, *http.Cookie) {
	h.t.Helper()
	body := "{}"
	if token != "" {
		body = `{"token":"` + token + `"}`
	}
	answer := h.request(ctx, http.MethodPost, "/console/claim", body, change...)
	if all := answer.Cookies(); len(all) == 1 {
		return answer.StatusCode, all[0]
	}
	return answer.StatusCode, nil
}

// device signs a new one in.
func (h *house) device(ctx context.Context) *http.Cookie {
	h.t.Helper()
	status, cookie := h.claim(ctx, h.signIn())
	if status != http.StatusOK || cookie == nil {
		h.t.Fatalf("the sign-in: %d, %v", status, cookie)
	}
	return cookie
}

// sheet is an open console, without a browser around it.
type sheet struct {
	t    *testing.T
	conn *websocket.Conn

	mu    sync.Mutex
	words []map[string]any
	ended error
	more  chan struct{}
}

func (h *house) dial(ctx context.Context, cookie *http.Cookie, change ...func(http.Header)) (*websocket.Conn, *http.Response, error) {
	header := http.Header{"Origin": {"http://" + h.addr}}
	if cookie != nil {
		header.Set("Cookie", cookie.Name+"="+cookie.Value)
	}
	for _, c := range change {
		c(header)
	}
	conn, answer, err := websocket.Dial(ctx, "ws://"+h.addr+"/console/ws", &websocket.DialOptions{HTTPHeader: header})
	if err == nil {
		conn.SetReadLimit(1 << 20)
		h.t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, answer, err
}

func (h *house) sheet(ctx context.Context, cookie *http.Cookie) *sheet {
	h.t.Helper()
	conn, _, err := h.dial(ctx, cookie)
	if err != nil {
		h.t.Fatal(err)
	}
	s := &sheet{t: h.t, conn: conn, more: make(chan struct{}, 1)}
	go func() {
		for {
			_, raw, err := conn.Read(ctx)
			var m map[string]any
			if err == nil {
				err = json.Unmarshal(raw, &m)
			}
			s.mu.Lock()
			if err != nil {
				s.ended = err
			} else {
				s.words = append(s.words, m)
			}
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *sheet) send(ctx context.Context, m any) {
	s.t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.conn.Write(ctx, websocket.MessageText, raw); err != nil {
		s.t.Fatal(err)
	}
}

// heard waits for a message that is so.
func (s *sheet) heard(ctx context.Context, what string, is func(map[string]any) bool) map[string]any {
	s.t.Helper()
	for from := 0; ; {
		s.mu.Lock()
		words, ended := s.words[from:], s.ended
		s.mu.Unlock()
		for _, m := range words {
			from++
			if is(m) {
				return m
			}
		}
		if ended != nil {
			s.t.Fatalf("%s: the socket ended: %v", what, ended)
		}
		select {
		case <-s.more:
		case <-ctx.Done():
			s.t.Fatalf("%s: nothing of the kind was said", what)
		}
	}
}

// end waits for the end of the socket.
func (s *sheet) end(ctx context.Context) websocket.StatusCode {
	s.t.Helper()
	for {
		s.mu.Lock()
		ended := s.ended
		s.mu.Unlock()
		if ended != nil {
			return websocket.CloseStatus(ended)
		}
		select {
		case <-s.more:
		case <-ctx.Done():
			s.t.Fatal("the socket did not end")
		}
	}
}

func kind(t string) func(map[string]any) bool {
	return func(m map[string]any) bool { return m["t"] == t }
}

func note(seq int) func(map[string]any) bool {
	return func(m map[string]any) bool { return m["t"] == "note" && m["seq"] == float64(seq) }
}
