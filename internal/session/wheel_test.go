package session_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/vault"
)

// slowSaved takes its time to save a login.
type slowSaved struct{ entered, release chan struct{} }

func (slowSaved) Checkout(context.Context, string, string) (browser.State, bool, error) {
	return browser.State{}, false, nil
}

func (s slowSaved) Save(context.Context, string, string, string, browser.State) error {
	s.entered <- struct{}{}
	<-s.release
	return nil
}

func (slowSaved) Release(context.Context, string, string) error  { return nil }
func (slowSaved) Stale(context.Context, string, string) error    { return nil }
func (slowSaved) Verified(context.Context, string, string) error { return nil }

// halfProvider loses the line to the second browser of a session at once.
type halfProvider struct{ browser.Provider }

func (p halfProvider) Create(ctx context.Context, spec browser.Spec) (browser.Instance, error) {
	inst, err := p.Provider.Create(ctx, spec)
	if err == nil && strings.HasSuffix(spec.ID, "-2") {
		_ = inst.Release()
	}
	return inst, err
}

// hostWith is a host with other logins, or a provider that fails half-way.
func hostWith(t *testing.T, dir string, site *httptest.Server, saved session.Saved, half bool) *session.Host {
	t.Helper()
	home, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	epoch, _ := home.Counter("epoch")
	var provider browser.Provider = local.New(filepath.Join(dir, "run"), epoch, nil)
	if half {
		provider = halfProvider{provider}
	}
	schedule := event.NewSchedule()
	sealer, err := vault.Open(context.Background(), home, &vault.Options{Keyring: noKeyring{}, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	host, err := session.New(session.Deps{
		Home: home, Sealer: sealer, Saved: saved, Pump: event.NewPump(feed, home, nil), Schedule: schedule, Journal: event.NewJournal(home, nil),
		Providers: func(string) (browser.Provider, error) { return provider, nil },
	}, &session.Options{Policy: browsertest.Policy(site)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go schedule.Run(ctx)
	go host.Run(ctx)
	t.Cleanup(func() { closeAll(host); cancel() })
	return host
}

// mirror is a page that writes what is typed into an attribute, as frameworks do.
func mirror(t *testing.T) *httptest.Server {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><title>t</title><input aria-label=Word autofocus oninput="this.setAttribute('value', this.value)">`)
	}))
	t.Cleanup(site.Close)
	return site
}

func TestATextThatWaitedIsNotTypedOnceTheHandoffIsOver(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := mirror(t)
	saved := slowSaved{make(chan struct{}, 9), make(chan struct{})}
	host := hostWith(t, place(t), site, saved, false)
	s, err := host.Start(ctx, session.StartOptions{URL: site.URL, Context: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	returned, relayed := make(chan error, 1), make(chan error, 1)
	go func() { returned <- host.Return(ctx, s.ID(), "hof_1", false) }()
	<-saved.entered // it has the turn
	go func() {
		_, err := host.Relay(ctx, s.ID(), "hof_1", secret.New("hunter2"), "k1")
		relayed <- err
	}()
	testwait.For(t, "the text waits for its turn", func() bool { return !host.Presence(s.ID()).IsZero() })
	close(saved.release)
	if err := <-returned; err != nil {
		t.Fatal(err)
	}
	if err := <-relayed; code(err) != fault.HandoffNotRunning {
		t.Errorf("the text: %v", err)
	}
	if shot, err := s.Snapshot(ctx, page.SnapshotOptions{}); err != nil || strings.Contains(shot.Text, "hunter2") {
		t.Errorf("the page: %s %v", shot.Text, err)
	}
}

func TestARelayedTextIsNoReadingForTheAgent(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := mirror(t)
	host := hostWith(t, place(t), site, nil, false)
	s, err := host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Relay(ctx, s.ID(), "hof_1", secret.New("hunter2"), "k1"); err != nil {
		t.Fatal(err)
	}
	if err := host.Return(ctx, s.ID(), "hof_1", false); err != nil {
		t.Fatal(err)
	}
	shot, err := s.Snapshot(ctx, page.SnapshotOptions{})
	if err != nil || strings.Contains(shot.Text, "hunter2") {
		t.Errorf("the outline: %s %v", shot.Text, err)
	}
	if _, err := s.Extract(ctx, page.ExtractOptions{Instruction: `json: {"v": "input@value"}`}); code(err) != fault.Forbidden {
		t.Errorf("the attribute: %v", err)
	}
}

func TestAPersonsAddressIsNotToldWhileTheirSessionEnds(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := mirror(t)
	saved := slowSaved{make(chan struct{}, 9), make(chan struct{})}
	host := hostWith(t, place(t), site, saved, false)
	s, err := host.Start(ctx, session.StartOptions{URL: site.URL, Context: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Navigate(session.As(ctx, session.Owner), site.URL+"/cb?code=canary", ""); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := host.Shut(ctx, s.ID(), "the owner gave up"); ended <- err }()
	<-saved.entered
	if status, err := s.Status(ctx); strings.Contains(status.URL, "canary") || len(status.Tabs) > 0 {
		t.Errorf("the agent is told %+v %v", status, err)
	}
	if tabs, err := s.Tabs(ctx); err == nil {
		t.Errorf("the agent is told of %v", tabs)
	}
	close(saved.release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestABrowserThatCouldNotTakeAnothersPlaceIsEnded(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site, dir := mirror(t), place(t)
	host := hostWith(t, dir, site, nil, true)
	s, err := host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(browsertest.ProcessesOf(t, s.ID()+"-1").Holder, syscall.SIGKILL)
	testwait.For(t, "the session is over", func() bool { _, err := host.Get(s.ID()); return code(err) == fault.NoSession })
	if rest := left(t, dir); len(rest) > 0 {
		t.Errorf("left: %v", rest)
	}
}

// late is the claim of a hand-off whose time is over, and that has not ended yet.
type late struct{ session, handoff string }

func (h late) Holder(session string) (string, time.Time, bool) {
	return h.handoff, time.Now().Add(-time.Second), session == h.session
}

func TestAHandoffPastItsTimeStillHasTheWheel(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	before := move(t, dir, site, session.Options{})
	s, err := before.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	before.crash()
	after := move(t, dir, site, session.Options{}, late{s.ID(), "hof_1"})
	if _, err := after.host.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	again, err := after.host.Get(s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Reload(ctx); code(err) != fault.HumanInControl {
		t.Errorf("the agent: %v", err)
	}
}

func TestAConditionCannotAskForAValue(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := mirror(t)
	host := hostWith(t, place(t), site, nil, false)
	s, err := host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []page.Condition{{Visible: `input[value^="a"]`}, {Absent: `input[ VALUE *= 'a']`}, {Absent: `[\\76 alue]`}} {
		o := plain()
		o.Conditions = []page.Condition{c}
		if _, err := host.Lend(ctx, s.ID(), "hof_1", o); code(err) != fault.Forbidden {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := s.Reload(ctx); err != nil {
		t.Errorf("a refused hand-off left the gate closed: %v", err)
	}
}
