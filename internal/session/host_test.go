package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
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
	"tapin/internal/session"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/vault"
)

func TestMain(m *testing.M) { browsertest.Main(m, nil) }

// house is a home with everything a host needs, as one sidecar has it.
type house struct {
	home  *store.Home
	feed  *event.Feed
	host  *session.Host
	close func()
}

// place is a home that several sidecars use, one after the other.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func move(t *testing.T, dir string, site *httptest.Server, opts session.Options, claims ...session.Claims) *house {
	t.Helper()
	return moveWith(t, dir, site, opts, nil, claims...)
}

func moveWith(t *testing.T, dir string, site *httptest.Server, opts session.Options, credentials session.Credentials, claims ...session.Claims) *house {
	t.Helper()
	home, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := home.Counter("epoch")
	if err != nil {
		t.Fatal(err)
	}
	var provider browser.Provider = local.New(filepath.Join(dir, "run"), epoch, nil)
	for _, c := range claims {
		if w, ok := c.(interface {
			wrap(browser.Provider) browser.Provider
		}); ok {
			provider = w.wrap(provider)
		}
	}
	schedule := event.NewSchedule()
	journal := event.NewJournal(home, nil)
	opts.Policy = browsertest.Policy(site)
	sealer, err := vault.Open(context.Background(), home, &vault.Options{Keyring: noKeyring{}, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	var claimed session.Claims
	if len(claims) > 0 {
		claimed = claims[0]
	}
	host, err := session.New(session.Deps{
		Home: home, Sealer: sealer, Claims: claimed, Pump: event.NewPump(feed, home, nil), Schedule: schedule, Journal: journal,
		Providers: func(string) (browser.Provider, error) { return provider, nil }, Credentials: credentials,
	}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go schedule.Run(ctx)
	go host.Run(ctx)
	h := &house{home: home, feed: feed, host: host}
	closed := false
	h.close = func() {
		if closed {
			return
		}
		closed = true
		cancel()
		_, _, _ = journal.Close(), feed.Close(), home.Close()
	}
	t.Cleanup(func() {
		if !closed {
			closeAll(host)
		}
		h.close()
	})
	return h
}

// noKeyring is a machine without a keychain.
type noKeyring struct{}

func (noKeyring) Get(string, string) (string, error) { return "", errors.New("no keychain here") }
func (noKeyring) Set(string, string, string) error   { return errors.New("no keychain here") }
func (noKeyring) Delete(string, string) error        { return errors.New("no keychain here") }

// closeAll ends also what a person holds, which an orderly end leaves running.
func closeAll(host *session.Host) {
	for _, id := range host.IDs() {
		_, _ = host.Shut(context.Background(), id, "the test is over")
	}
	_ = host.Close(context.Background())
}

// crash lets go of everything as a kill would: the browsers live on.
func (h *house) crash() { h.close() }

// left is what of a session is still in the home.
func left(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"run/*", "sessions/*.json", "sessions/open/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		out = append(out, found...)
	}
	return out
}

func TestASessionFromStartToStop(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})

	if _, err := h.host.Active(); !errors.Is(err, fault.NoSession) {
		t.Fatalf("before the start: %v", err)
	}
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL + "/?canary=1", Viewport: &session.Viewport{Width: 640, Height: 480}})
	if err != nil {
		t.Fatal(err)
	}
	if active, err := h.host.Active(); err != nil || active != s {
		t.Fatalf("the active session is %v, %v", active, err)
	}
	_, err = h.host.Start(ctx, session.StartOptions{})
	if f := fault.Of(err); f.Code != fault.SessionActive || f.Data["session_id"] != s.ID() {
		t.Fatalf("a second start got %v %v", err, f.Data)
	}
	one, err := s.Screenshot(ctx, page.ShotOptions{Asked: true})
	if err != nil || !strings.HasPrefix(one.Base64, "iVBORw0KGgo") || one.Title != "plain" {
		t.Fatalf("the picture begins with %.12q, %v", one.Base64, err)
	}
	if nav, err := s.Navigate(ctx, site.URL+"/agent", ""); err != nil || nav.Title != "agent" || nav.Status != 200 {
		t.Fatalf("navigated to %+v, %v", nav, err)
	}
	two, err := s.Screenshot(ctx, page.ShotOptions{Format: page.JPEG, FullPage: true})
	if err != nil || two.Base64 == one.Base64 || !strings.HasPrefix(two.Base64, "/9j/") {
		t.Fatalf("the second picture is no other JPEG: %v", err)
	}
	if nav, err := s.Back(ctx); err != nil || nav.Title != "plain" {
		t.Fatalf("back led to %+v, %v", nav, err)
	}
	if nav, err := s.Forward(ctx); err != nil || nav.Title != "agent" {
		t.Fatalf("forward led to %+v, %v", nav, err)
	}
	if _, err := s.Forward(ctx); !errors.Is(err, fault.NavigationFailed) {
		t.Fatalf("forward from the end gave %v", err)
	}
	if nav, err := s.Reload(ctx); err != nil || nav.Title != "agent" {
		t.Fatalf("reload led to %+v, %v", nav, err)
	}
	status, err := s.Status(ctx)
	if err != nil || status.Driver != "agent" || len(status.Tabs) != 1 || !status.Tabs[0].Active || status.URL != site.URL+"/agent" {
		t.Fatalf("the status is %+v, %v", status, err)
	}
	if stopped, err := h.host.Stop(ctx, s.ID(), nil); err != nil || stopped.ID != s.ID() {
		t.Fatalf("stop gave %+v, %v", stopped, err)
	}
	if files := left(t, dir); len(files) > 0 {
		t.Fatalf("after the stop there is %v", files)
	}
	for _, err := range []error{
		errOf(s.Navigate(ctx, site.URL, "")), errOf(h.host.Stop(ctx, s.ID(), nil)), errOf(h.host.Get(s.ID())), errOf(h.host.Active()),
	} {
		if !errors.Is(err, fault.NoSession) && !errors.Is(err, fault.BrowserLost) {
			t.Fatalf("after the stop: %v", err)
		}
	}
	wantTypes(t, h.feed, "session.started", "session.stopped")
	journal, _ := filepath.Glob(filepath.Join(dir, "journal", "*"))
	for _, name := range journal {
		raw, _ := os.ReadFile(name)
		if strings.Contains(string(raw), "canary") || !strings.Contains(string(raw), `"what":"session.navigate"`) {
			t.Fatalf("the journal says\n%s", raw)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

func wantTypes(t *testing.T, feed *event.Feed, want ...string) {
	t.Helper()
	events, _ := feed.Since(0, 100)
	var got []string
	for _, e := range events {
		got = append(got, e.Type)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("the feed has %v, want %v", got, want)
	}
}

func TestAFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	for name, tt := range map[string]struct {
		o    session.StartOptions
		code fault.Code
	}{
		"a private address":          {session.StartOptions{URL: "http://127.0.0.1:1/"}, fault.BlockedTarget},
		"no web address":             {session.StartOptions{URL: "file:///etc/passwd"}, fault.InvalidURL},
		"an address nobody answers":  {session.StartOptions{URL: "http://nobody.invalid/"}, fault.NavigationFailed},
		"a viewport out of bounds":   {session.StartOptions{Viewport: &session.Viewport{Width: 1, Height: 1}}, fault.InvalidRequest},
		"a time zone that is none":   {session.StartOptions{Timezone: "Mars/Base"}, fault.InvalidRequest},
		"a locale that is none":      {session.StartOptions{Locale: "English, please"}, fault.InvalidRequest},
		"a login that is not saved":  {session.StartOptions{Context: "bank"}, fault.Disabled},
		"a session of a millisecond": {session.StartOptions{Timeout: time.Millisecond}, fault.InvalidRequest},
		"a recording, locally":       {session.StartOptions{Record: true}, fault.InvalidRequest},
	} {
		_, err := h.host.Start(browsertest.Context(t), tt.o)
		if !errors.Is(err, tt.code) {
			t.Errorf("%s: got %v", name, err)
		}
		if files := left(t, dir); len(files) > 0 || len(h.host.List()) > 0 {
			t.Errorf("%s: there is %v", name, files)
		}
	}
	wantTypes(t, h.feed)
}

func TestACallerWhoGivesUpLeavesNothing(t *testing.T) {
	t.Parallel()
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 120 * time.Millisecond, 250 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		_, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
		cancel()
		if err == nil {
			t.Logf("a start was faster than %s", after)
			_ = h.host.Close(t.Context())
		}
		if files := left(t, dir); len(files) > 0 || len(h.host.List()) > 0 {
			t.Fatalf("given up after %s: there is %v", after, files)
		}
	}
}

func TestOfManyStartsAtOnceOneWins(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	results := make(chan error, 8)
	for range cap(results) {
		go func() { _, err := h.host.Start(ctx, session.StartOptions{}); results <- err }()
	}
	won := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, fault.SessionActive):
			t.Errorf("a start got %v", err)
		}
	}
	if won != 1 {
		t.Fatalf("%d starts won", won)
	}
}

func TestTheDeadlineEndsASession(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{Timeout: 2 * time.Second})
	if _, err := h.host.Start(ctx, session.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the end", func() bool { return len(h.host.List()) == 0 && len(left(t, dir)) == 0 })
	if _, err := h.host.Active(); !errors.Is(err, fault.NoSession) || !strings.Contains(err.Error(), "its time was over") {
		t.Fatalf("afterwards: %v", err)
	}
	wantTypes(t, h.feed, "session.started", "session.ended")
}

func TestALostBrowserEndsItsSessionAndSaysWhy(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(browsertest.ProcessesOf(t, s.ID()+"-1").Browser, syscall.SIGKILL)
	testwait.For(t, "the end", func() bool { return len(h.host.List()) == 0 })
	if _, err := s.Screenshot(ctx, page.ShotOptions{}); !errors.Is(err, fault.BrowserLost) {
		t.Fatalf("a later call got %v", err)
	}
	if _, err := h.host.Active(); !errors.Is(err, fault.NoSession) || !strings.Contains(err.Error(), "its browser was lost") {
		t.Fatalf("afterwards: %v", err)
	}
	if files := left(t, dir); len(files) > 0 {
		t.Fatalf("there is %v", files)
	}
}

func TestASessionInUseSurvivesACrash(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	before := move(t, dir, site, session.Options{})
	s, err := before.host.Start(ctx, session.StartOptions{URL: site.URL + "/agent"})
	if err != nil {
		t.Fatal(err)
	}
	before.crash()

	after := move(t, dir, site, session.Options{})
	found, err := after.host.Recover(ctx)
	if err != nil || len(found.Reconnected) != 1 || found.Reconnected[0] != s.ID() {
		t.Fatalf("recovered %+v, %v", found, err)
	}
	again, err := after.host.Get(s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if shot, err := again.Screenshot(ctx, page.ShotOptions{Asked: true}); err != nil || shot.Title != "agent" {
		t.Fatalf("the page is %q, %v", shot.Title, err)
	}
	if again.Info().Deadline != s.Info().Deadline {
		t.Fatal("the deadline moved")
	}
	if _, err := after.host.Stop(ctx, s.ID(), nil); err != nil {
		t.Fatal(err)
	}
	if files := left(t, dir); len(files) > 0 {
		t.Fatalf("there is %v", files)
	}
	wantTypes(t, after.feed, "session.started", "session.recovered", "session.stopped")
}

func TestOrphansAreClosedAfterACrash(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	before := move(t, dir, site, session.Options{})
	s, err := before.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	// It was last used two minutes ago.
	file := filepath.Join(dir, "sessions", s.ID()+".json")
	var rec map[string]any
	raw, _ := os.ReadFile(file)
	if err := json.Unmarshal(raw, &rec); err != nil {
		t.Fatal(err)
	}
	rec["last_used_at"] = time.Now().Add(-2 * time.Minute).UTC()
	raw, _ = json.Marshal(rec)
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	before.crash()

	// And one that was killed between its browser and anything else.
	stray := local.New(filepath.Join(dir, "run"), 50, nil)
	lone, err := stray.Create(ctx, browser.Spec{ID: "ses_stray-1", KeepUntil: testwait.Late()})
	if err != nil {
		t.Fatal(err)
	}
	_ = lone.Release()

	for range 60 { // this sidecar comes after all those
		home, err := store.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := home.Counter("epoch"); err != nil {
			t.Fatal(err)
		}
		_ = home.Close()
	}
	after := move(t, dir, site, session.Options{})
	found, err := after.host.Recover(ctx)
	if err != nil || len(found.Closed) != 1 || found.Closed[0] != s.ID() || len(found.LeftAlone) != 0 {
		t.Fatalf("recovered %+v, %v", found, err)
	}
	if files := left(t, dir); len(files) > 0 {
		t.Fatalf("there is %v", files)
	}
	wantTypes(t, after.feed, "session.started", "session.ended")
}

func TestACutLineToALivingBrowserIsMended(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL + "/agent", Viewport: &session.Viewport{Width: 640, Height: 480}})
	if err != nil {
		t.Fatal(err)
	}
	h.host.Sever(s.ID())
	// Whoever comes meanwhile waits; nobody is told that the browser is lost.
	shot, err := s.Screenshot(ctx, page.ShotOptions{Asked: true})
	if err != nil || shot.Title != "agent" {
		t.Fatalf("after the cut the picture is of %q, %v", shot.Title, err)
	}
	testwait.For(t, "the news", func() bool {
		events, _ := h.feed.Since(0, 10)
		return len(events) == 2 && events[1].Type == "session.reconnected"
	})
}

func TestALaterSidecarIsNotDisturbed(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	ref := browser.Ref{Provider: local.Name, ID: s.ID() + "-1"}
	later := local.New(filepath.Join(dir, "run"), 99, nil)
	inst, err := later.Reconnect(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the older one to let go", func() bool { return len(h.host.List()) == 0 })
	if inst.Conn().Err() != nil || len(left(t, dir)) != 3 {
		t.Fatalf("the later one has %v and %v", inst.Conn().Err(), left(t, dir))
	}
	_ = inst.Release()
	browsertest.End(t, later, ref)
}

func TestAnEndGoesOnWithoutItsCaller(t *testing.T) {
	t.Parallel()
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(browsertest.Context(t), session.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hungUp, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.host.Stop(hungUp, s.ID(), nil); err != nil {
		t.Fatal(err)
	}
	if files := left(t, dir); len(files) > 0 {
		t.Fatalf("there is %v", files)
	}
	wantTypes(t, h.feed, "session.started", "session.stopped")
}

func TestAStartDuringTheEndLeavesNothing(t *testing.T) {
	t.Parallel()
	site, dir := browsertest.Site(t), place(t)
	for _, after := range []time.Duration{10 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond} {
		h := move(t, dir, site, session.Options{})
		done := make(chan error, 1)
		go func() { _, err := h.host.Start(t.Context(), session.StartOptions{URL: site.URL}); done <- err }()
		time.Sleep(after)
		if err := h.host.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-done
		if files := left(t, dir); len(files) > 0 || len(h.host.List()) > 0 {
			t.Fatalf("closed %s into a start: there is %v", after, files)
		}
		if _, err := h.host.Start(t.Context(), session.StartOptions{}); !errors.Is(err, fault.Busy) {
			t.Fatalf("a start after the end got %v", err)
		}
		h.crash()
	}
}

func TestRecoveryLeavesAloneWhatItCannotJudge(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	before := move(t, dir, site, session.Options{})
	s, err := before.host.Start(ctx, session.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before.crash()
	file := filepath.Join(dir, "sessions", s.ID()+".json")
	if err := os.WriteFile(file, []byte(`{"session_id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	after := move(t, dir, site, session.Options{})
	found, err := after.host.Recover(ctx)
	if err != nil || len(found.LeftAlone) != 1 || found.LeftAlone[0] != s.ID() {
		t.Fatalf("recovered %+v, %v", found, err)
	}
	procs := browsertest.ProcessesOf(t, s.ID()+"-1")
	if len(procs.Alive()) == 0 {
		t.Fatal("its browser was ended")
	}
	browsertest.End(t, local.New(filepath.Join(dir, "run"), 99, nil), browser.Ref{Provider: local.Name, ID: s.ID() + "-1"})
}

func TestNewsThatWereNotToldAreToldByTheNextOne(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	before := move(t, dir, site, session.Options{})
	if _, err := before.host.Start(ctx, session.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	before.crash()
	// As after a kill between the record and the feed.
	if err := os.RemoveAll(filepath.Join(dir, "events")); err != nil {
		t.Fatal(err)
	}
	after := move(t, dir, site, session.Options{})
	if _, err := after.host.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, after.feed, "session.started", "session.recovered")
}

func TestAHungOrCrashedPageIsPickedUpAgain(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{"hung": "for (;;) ;", "crashed": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			mux := http.NewServeMux()
			mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "<title>fine</title>")
			})
			mux.HandleFunc("/spoiled", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "<title>spoiled</title><script>setTimeout(() => { "+spoil+" }, 300)</script>")
			})
			site := httptest.NewServer(mux)
			t.Cleanup(site.Close)
			dir := place(t)
			before := move(t, dir, site, session.Options{})
			s, err := before.host.Start(ctx, session.StartOptions{URL: site.URL + "/spoiled"})
			if err != nil {
				t.Fatal(err)
			}
			if name == "crashed" {
				if err := before.host.CrashPage(ctx, s.ID()); err != nil {
					t.Fatal(err)
				}
				testwait.For(t, "the crash", func() bool {
					_, err := s.Screenshot(ctx, page.ShotOptions{})
					return errors.Is(err, fault.BrowserLost)
				})
			} else {
				time.Sleep(500 * time.Millisecond)
			}
			before.crash()
			after := move(t, dir, site, session.Options{})
			if found, err := after.host.Recover(ctx); err != nil || len(found.Reconnected) != 1 {
				t.Fatalf("recovered %+v, %v", found, err)
			}
			again, err := after.host.Get(s.ID())
			if err != nil {
				t.Fatal(err)
			}
			if name == "crashed" {
				if _, err := again.Screenshot(ctx, page.ShotOptions{}); !errors.Is(err, fault.BrowserLost) || !strings.Contains(err.Error(), "crashed") {
					t.Fatalf("a picture of a crashed page: %v", err)
				}
				if nav, err := again.Navigate(ctx, site.URL, ""); err != nil || nav.Title != "fine" {
					t.Fatalf("after the crash: %+v, %v", nav, err)
				}
			}
			if _, err := after.host.Stop(ctx, s.ID(), nil); err != nil {
				t.Fatal(err)
			}
		})
	}
}
