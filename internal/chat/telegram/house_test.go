package telegram

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"image"
	"image/jpeg"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	payments "tapin/internal/approval"
	"tapin/internal/chat/telegram/bottest"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/handoff"
	"tapin/internal/inbox"
	"tapin/internal/owners"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	robin = int64(4711) // the owner
	kim   = int64(42)
)

// wire is a network of its own, so that time can stand still around it.
type wire struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newWire() *wire { return &wire{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// local is a connection that looks like one of this machine.
type local struct{ net.Conn }

func (local) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }
func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000} }

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case w.conns <- local{far}:
		return local{near}, nil
	case <-w.closed:
		return nil, &net.OpError{Op: "dial", Err: errors.New("nobody listens")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// house has the rooms that the conversation is about, behind their door, a Bot
// API, and the conversation itself. Only the browser is not real.
type house struct {
	t    *testing.T
	home *store.Home
	bot  *bottest.Server
	tg   *wire
	logs *bytes.Buffer
	logM sync.Mutex

	page     *fakePage
	handoffs *handoff.Room
	owners   *owners.Room
	inbox    *inbox.Room
	feed     *event.Feed
	shop     *shop // nil: nothing is paid in this house
	till     *payments.Room

	stopSidecar func()
	stopRoom    func()
	room        *Room
	opts        Options
	fixed       []int64
}

type lockedLog struct{ h *house }

func (l lockedLog) Write(p []byte) (int, error) {
	l.h.logM.Lock()
	defer l.h.logM.Unlock()
	return l.h.logs.Write(p)
}

// live runs a test in a house where time passes when nothing else happens.
func live(t *testing.T, test func(h *house), fixed ...int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "h")
	if fixed == nil {
		fixed = []int64{robin}
	}
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, logs: &bytes.Buffer{}, page: &fakePage{photo: jpegOf(t)}, tg: newWire(), fixed: fixed}
		var err error
		if h.home, err = store.Open(path, nil); err != nil {
			t.Fatal(err)
		}
		h.bot = bottest.Serve(h.tg)
		h.bot.Enter(robin, "Robin", true)
		h.bot.Enter(kim, "Kim", true)
		defer func() { // also when a test gives up
			h.stopRoom()
			h.stopSidecar()
			h.bot.Close()
			_ = h.home.Close()
			synctest.Wait()
		}()
		h.startSidecar()
		h.startRoom()
		test(h)
		for _, p := range h.bot.Problems() {
			t.Errorf("the Bot API was misused: %s", p)
		}
	})
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%v\n%s", err, h.log())
	}
}

func (h *house) log() string {
	h.logM.Lock()
	defer h.logM.Unlock()
	return h.logs.String()
}

// startSidecar opens the rooms and their door.
func (h *house) startSidecar() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	h.feed, err = event.OpenFeed(h.home, nil)
	h.must(err)
	pump := event.NewPump(h.feed, h.home, nil)
	schedule := event.NewSchedule()
	journal := event.NewJournal(h.home, nil)
	h.handoffs, err = handoff.New(handoff.Deps{
		Home: h.home, Pump: pump, Schedule: schedule, Journal: journal, Stage: h.page, Evidence: noRuns{}, Sealer: plainSealer{},
	}, &handoff.Options{Timeout: 30 * time.Minute, RemindAt: []time.Duration{10 * time.Minute}})
	h.must(err)
	h.owners = owners.New(h.home, pump, h.fixed)
	h.inbox, err = inbox.New(h.home)
	h.must(err)
	deps := apiserver.Deps{
		Handoffs: h.handoffs, Owners: h.owners, Inbox: h.inbox, Feed: h.feed, Journal: journal,
		Tokens: apiserver.FixedTokens{{Name: "owner", Role: apiserver.Owner, Value: secret.New("owner")}, {Name: "agent", Role: apiserver.Agent, Value: secret.New("agent")}},
	}
	if h.shop != nil {
		h.till, err = payments.New(payments.Deps{
			Home: h.home, Pump: pump, Schedule: schedule, Journal: journal, Totals: h.shop, Policies: noManifest{}, Sealer: plainSealer{},
		}, nil)
		h.must(err)
		deps.Approvals = h.till
	}
	server := apiserver.New(deps, nil)
	h.handoffs.Recover(ctx)
	line := newWire()
	var tasks sync.WaitGroup
	tasks.Go(func() { schedule.Run(ctx) })
	tasks.Go(func() { _ = server.Serve(line) })
	h.page.mu.Lock()
	h.page.line = line
	h.page.mu.Unlock()
	h.stopSidecar = func() {
		cancel()
		ending, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		_ = server.Shutdown(ending)
		_ = line.Close()
		tasks.Wait()
		_ = h.handoffs.Close()
		_ = journal.Close()
		_ = h.feed.Close()
	}
}

// startRoom begins the conversation, as a daemon does.
func (h *house) startRoom() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	opts := h.opts
	opts.APIURL = "http://bot.test"
	opts.Logger = slog.New(slog.NewTextHandler(lockedLog{h}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	h.room, err = New(h.home, secret.New(bottest.Token), &opts)
	h.must(err)
	h.room.line.http.Transport.(*http.Transport).DialContext = h.tg.dial
	h.room.line.http.Transport.(*http.Transport).Proxy = nil
	var tasks sync.WaitGroup
	room := h.room
	tasks.Go(func() { room.Run(ctx) })
	tasks.Go(func() {
		for ctx.Err() == nil {
			line := h.page.at()
			c, err := api.NewClient("http://127.0.0.1", secret.New("owner"), &api.ClientOptions{Dial: line.dial})
			if err != nil {
				panic(err)
			}
			following, stop := context.WithCancel(ctx)
			go func() {
				select {
				case <-line.closed:
				case <-following.Done():
				}
				stop()
			}()
			_ = room.Follow(following, c, func() bool { return ctx.Err() != nil })
			stop()
			c.Close()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
	h.stopRoom = func() {
		cancel()
		tasks.Wait()
	}
	// Until it follows: what begins as it looks around for the first time is told of
	// two seconds later.
	synctest.Wait()
}

// killRoom ends the conversation at this instruction and begins it anew. What
// is in memory is gone.
func (h *house) killRoom() {
	h.stopRoom()
	h.startRoom()
}

func (h *house) begin(o handoff.StartOptions) handoff.Record {
	h.t.Helper()
	o.By = handoff.Agent
	if o.Reason == "" {
		o.Reason = handoff.Login
	}
	rec, err := h.handoffs.Start(h.t.Context(), o)
	h.must(err)
	synctest.Wait()
	return rec
}

func (h *house) status(id string) handoff.Record {
	h.t.Helper()
	rec, err := h.handoffs.Get(id)
	h.must(err)
	return rec
}

// say has the owner write, and waits until nothing moves.
func (h *house) say(text string) int {
	id := h.bot.Say(robin, text, 0)
	h.settle()
	return id
}

// settle lets everything come to rest, with what is a moment away.
func (h *house) settle() {
	synctest.Wait()
	time.Sleep(300 * time.Millisecond)
	synctest.Wait()
}

// reads is the newest message to the owner with these words in it.
func (h *house) reads(words string) bottest.Message {
	h.t.Helper()
	m, ok := h.find(robin, words)
	if !ok {
		h.t.Fatalf("nobody reads %q:\n%s\n%s", words, h.chat(robin), h.log())
	}
	return m
}

func (h *house) find(in int64, words string) (found bottest.Message, ok bool) {
	for _, m := range h.bot.Chat(in) {
		if m.FromBot && strings.Contains(m.Text, words) {
			found, ok = m, true
		}
	}
	return found, ok
}

func (h *house) count(words string) int {
	n := 0
	for _, m := range h.bot.Chat(robin) {
		if m.FromBot && strings.Contains(m.Text, words) {
			n++
		}
	}
	return n
}

func (h *house) chat(in int64) string {
	var b strings.Builder
	for _, m := range h.bot.Chat(in) {
		who := "owner"
		if m.FromBot {
			who = "tapin"
		}
		b.WriteString(who + ": " + m.Text + "\n")
	}
	return b.String()
}

// fakePage is the browser that hand-offs are about. It remembers what it was
// asked to do.
type fakePage struct {
	mu     sync.Mutex
	line   *wire
	photo  page.Image
	typed  []string
	keys   map[string]bool
	focus  bool
	holds  bool
	parked int
	closed int
}

func (p *fakePage) at() *wire {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line
}

func (p *fakePage) Lend(_ context.Context, session, _ string, o handoff.LendOptions) (handoff.Lent, error) {
	if session == "" {
		session = "ses_06cz3qmhc04x2p5ae9gk8v71"
	}
	return handoff.Lent{
		SessionID: session, Generation: 1, TabID: "t1", Photo: &p.photo, Holds: make([]bool, len(o.Conditions)),
		Seen: page.Observation{URL: "https://login.bank.example/in", Origin: "https://login.bank.example", Title: "Sign in"},
	}, nil
}

func (*fakePage) Return(context.Context, string, string, bool) error { return nil }
func (*fakePage) Stale(context.Context, string) error                { return nil }
func (*fakePage) Generation(string) (int, error)                     { return 1, nil }
func (*fakePage) KeepUntil(context.Context, string, time.Time) error { return nil }
func (*fakePage) Presence(string) (time.Time, bool)                  { return time.Time{}, false }

func (*fakePage) Observe(context.Context, string, string, page.ObserveOptions) (page.Observation, error) {
	return page.Observation{URL: "https://login.bank.example/home", Origin: "https://login.bank.example", Title: "Home"}, nil
}

func (p *fakePage) Plain(context.Context, string, string) (func(), bool, error) {
	return func() {}, false, nil
}

func (p *fakePage) Fitted(string) bool { return false }

func (p *fakePage) Holds(_ context.Context, _, _ string, c []page.Condition) ([]bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]bool, len(c))
	for i := range out {
		out[i] = p.holds
	}
	return out, nil
}

func (p *fakePage) Screenshot(context.Context, string, string) (page.Image, error) {
	return p.photo, nil
}

func (p *fakePage) Type(_ context.Context, _, _ string, text secret.Text, key string) (page.Typed, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.focus {
		return page.Typed{}, fault.New(fault.NoFocusedField, "type", "nothing has the focus")
	}
	if p.keys == nil {
		p.keys = map[string]bool{}
	}
	if !p.keys[key] {
		p.keys[key] = true
		p.typed = append(p.typed, text.Reveal())
	}
	return page.Typed{Characters: len([]rune(text.Reveal())), Field: "password", Origin: "https://login.bank.example"}, nil
}

func (p *fakePage) Close(context.Context, string, string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed++
	return true, nil
}

func (p *fakePage) Park(context.Context, string, string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parked++
	return nil
}

func (*fakePage) Unpark(context.Context, string, string) (int, error) { return 2, nil }

func (p *fakePage) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.typed...)
}

type noRuns struct{}

func (noRuns) Check(context.Context, string) error                              { return nil }
func (noRuns) AppendOnce(context.Context, string, string, string, string) error { return nil }

type plainSealer struct{}

func (plainSealer) Seal(_, _ string, plain []byte) ([]byte, error)  { return plain, nil }
func (plainSealer) Open(_, _ string, sealed []byte) ([]byte, error) { return sealed, nil }

func jpegOf(t *testing.T) page.Image {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, 390, 844)), nil); err != nil {
		t.Fatal(err)
	}
	return page.Image{Format: page.JPEG, Base64: base64.StdEncoding.EncodeToString(b.Bytes())}
}

func encode(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }
