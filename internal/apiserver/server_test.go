package apiserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

const (
	agentToken = "canary-agent-7c1e"
	ownerToken = "canary-owner-93ab"
)

// The session room fits the door.
var _ apiserver.Host[*session.Session] = (*session.Host)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// room is a host of at most one session that lives in memory.
type room struct {
	mu      sync.Mutex
	active  *tab
	started int
	block   chan struct{} // Start waits for it
	fail    error         // Start's next error

	left    session.Recovered // what Recover finds
	leftErr error
}

func (r *room) Recover(context.Context) (session.Recovered, error) { return r.left, r.leftErr }

func (r *room) Start(ctx context.Context, o session.StartOptions) (*tab, error) {
	r.mu.Lock()
	block := r.block
	r.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fail; err != nil {
		r.fail = nil
		return nil, err
	}
	if r.active != nil {
		return nil, fault.New(fault.SessionActive, "start", "session %s is active", r.active.id).With("session_id", r.active.id)
	}
	r.started++
	r.active = &tab{id: fmt.Sprintf("ses_%d", r.started), options: o, url: o.URL, since: time.Now(), blocked: make(chan struct{}, 8), release: make(chan struct{})}
	return r.active, nil
}

func (r *room) Get(id string) (*tab, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == nil || r.active.id != id {
		return nil, fault.New(fault.NoSession, "", "there is no session %q", id)
	}
	return r.active, nil
}

func (r *room) Active() (*tab, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == nil {
		return nil, fault.NoSession
	}
	return r.active, nil
}

func (r *room) List() []session.Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == nil {
		return nil
	}
	return []session.Info{r.active.Info()}
}

func (r *room) Verified(context.Context, string) error { return nil }

func (r *room) Stop(_ context.Context, id string, save *bool) (session.Stopped, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == nil || r.active.id != id {
		return session.Stopped{}, fault.NoSession
	}
	r.active = nil
	return session.Stopped{ID: id, ContextSaved: save != nil && *save}, nil
}

// tab is a session whose page is its address.
type tab struct {
	id      string
	options session.StartOptions
	since   time.Time

	mu      sync.Mutex
	url     string
	wait    string
	shots   int
	noShots error
	garbled bool
	blocked chan struct{} // told when an action waits for its caller to leave, or for release
	release chan struct{}

	shot    page.ShotOptions // the last one
	deeds   []deed
	failure error           // of the next actions
	dialog  *session.Dialog // that they open
	moved   bool            // they lead to another page
}

func (b *tab) Info() session.Info {
	return session.Info{ID: b.id, Provider: "local", Generation: 1, StartedAt: b.since, LastUsedAt: b.since, Deadline: b.since.Add(time.Hour)}
}

func (b *tab) Status(context.Context) (session.Status, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return session.Status{
		Info: b.Info(), Driver: "agent", URL: b.url, Title: "T",
		Tabs:    []session.Tab{{ID: "tab_1", URL: b.url, Title: "T", Active: true}},
		Dialogs: []session.Dialog{{TabID: "tab_1", Kind: "alert", Message: "hi"}},
	}, nil
}

func (b *tab) Navigate(ctx context.Context, url, wait string) (page.Navigation, error) {
	switch {
	case url == "panic:":
		panic("secret-panic-value")
	case url == "block:":
		b.blocked <- struct{}{}
		<-ctx.Done()
		return page.Navigation{}, ctx.Err()
	case url == "broken:":
		return page.Navigation{}, fmt.Errorf("dial tcp: unvetted-cause")
	case !strings.HasPrefix(url, "http"):
		return page.Navigation{}, fault.New(fault.InvalidURL, "navigate", "not an address")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.url, b.wait = url, wait
	return page.Navigation{URL: url, Title: "T", Status: 200, Took: 12 * time.Millisecond}, nil
}

func (b *tab) Visit(ctx context.Context, url, wait string, o page.SnapshotOptions) (page.Navigation, *page.Snapshot, error) {
	nav, err := b.Navigate(ctx, url, wait)
	if err != nil {
		return nav, nil, err
	}
	shot, err := b.Snapshot(ctx, o)
	return nav, &shot, err
}

func (b *tab) Back(ctx context.Context) (page.Navigation, error) {
	return b.Navigate(ctx, "http://back/", "")
}

func (b *tab) Forward(ctx context.Context) (page.Navigation, error) {
	return b.Navigate(ctx, "http://forward/", "")
}

func (b *tab) Reload(ctx context.Context) (page.Navigation, error) {
	return b.Navigate(ctx, "http://reload/", "")
}

func (b *tab) Screenshot(_ context.Context, o page.ShotOptions) (page.Image, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shots++
	b.shot = o
	if b.noShots != nil {
		return page.Image{}, b.noShots
	}
	img := page.Image{Format: page.PNG, Base64: base64.StdEncoding.EncodeToString(picture(o)), URL: b.url, Title: "T"}
	if o.Format != "" {
		img.Format = o.Format
	}
	if b.garbled {
		img.Base64 = `AAAA","ok":false,"x":"`
	}
	return img, nil
}

func picture(o page.ShotOptions) []byte {
	var out bytes.Buffer
	size := image.Rect(0, 0, 4, 4)
	if o.FullPage {
		size = image.Rect(0, 0, 4, 400)
	}
	var err error
	if o.Format == page.JPEG {
		err = jpeg.Encode(&out, image.NewGray(size), &jpeg.Options{Quality: max(o.Quality, 1)})
	} else {
		err = png.Encode(&out, image.NewGray(size))
	}
	if err != nil {
		panic(err)
	}
	return out.Bytes()
}

// fixture is a server on a real listener.
type fixture struct {
	*apiserver.Server
	room     *room
	feed     *event.Feed
	registry *prometheus.Registry
	base     string
	journal  *event.Journal
	host     string
	agent    *api.Client
	log      *lockedBuffer
}

func serve(t *testing.T, options *apiserver.Options) *fixture {
	t.Helper()
	return serveWith(t, options, nil)
}

// serveWith is serve on other foundations.
func serveWith(t *testing.T, options *apiserver.Options, change func(*apiserver.Deps)) *fixture {
	t.Helper()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := event.OpenFeed(home, &event.FeedOptions{MaxEvents: 8})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{room: &room{}, feed: feed, journal: event.NewJournal(home, nil), registry: prometheus.NewRegistry(), log: &lockedBuffer{}}
	deps := apiserver.Deps{
		Sessions: apiserver.From(f.room),
		Feed:     feed,
		Journal:  f.journal,
		Cleaner:  f.room,
		Tokens: apiserver.FixedTokens{
			{Name: "agent", Role: apiserver.Agent, Value: secret.New(agentToken)},
			{Name: "owner", Role: apiserver.Owner, Value: secret.New(ownerToken)},
		},
		Registry:  f.registry,
		Version:   "1.2.3",
		Provider:  "local",
		StartedAt: time.Now().Add(-time.Minute),
		Logger:    slog.New(slog.NewJSONHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&deps)
	}
	f.Server = apiserver.New(deps, options)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.host = ln.Addr().String()
	f.base = "http://" + f.host
	served := make(chan error, 1)
	go func() { served <- f.Serve(ln) }()
	f.agent = f.client(t, agentToken)
	t.Cleanup(func() {
		f.agent.Close()
		ctx, cancel := testwait.Within(context.Background())
		defer cancel()
		if err := f.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		_ = feed.Close()
		_ = f.journal.Close()
		_ = home.Close()
	})
	return f
}

func (f *fixture) client(t *testing.T, token string) *api.Client {
	t.Helper()
	c, err := api.NewClient(f.base, secret.New(token), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// answer is a response read to its end.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// do sends a request with the agent's token; headers replace, "" removes.
func (f *fixture) do(t *testing.T, method, path, body string, headers map[string]string) answer {
	t.Helper()
	req, err := http.NewRequest(method, f.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+agentToken)
	for name, value := range headers {
		switch {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && len(raw) > 0 {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			t.Fatalf("%s %s: the answer is not JSON: %v\n%s", method, path, err, raw)
		}
	}
	return a
}

// lockedBuffer is a log that tests may read while the server writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// size is what the log takes of the heap.
func (l *lockedBuffer) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Cap()
}

// gauge reads a figure of the server without asking the server.
func (f *fixture) gauge(t *testing.T, name string) int {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return int(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	t.Fatalf("there is no figure %s", name)
	return 0
}
