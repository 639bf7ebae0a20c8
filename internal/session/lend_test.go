package session_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
	"tapin/internal/testwait"
)

// holder is the claim of one hand-off.
type holder struct{ session, handoff string }

func (h holder) Holder(session string) (string, time.Time, bool) {
	return h.handoff, time.Now().Add(time.Minute), session == h.session
}

// plain is a look at the page and nothing else.
func plain() session.LendOptions {
	return session.LendOptions{Observe: page.ObserveOptions{Key: []byte("key of this installation")}}
}

// code is the code of a fault; "" for success.
func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

// calls are all that an agent can do to a page.
func calls(s *session.Session, host *session.Host) map[string]func(context.Context) error {
	at := page.Locator{CSS: "body"}
	return map[string]func(context.Context) error{
		"navigate":   func(ctx context.Context) error { _, err := s.Navigate(ctx, "http://example.com/", ""); return err },
		"back":       func(ctx context.Context) error { _, err := s.Back(ctx); return err },
		"forward":    func(ctx context.Context) error { _, err := s.Forward(ctx); return err },
		"reload":     func(ctx context.Context) error { _, err := s.Reload(ctx); return err },
		"screenshot": func(ctx context.Context) error { _, err := s.Screenshot(ctx, page.ShotOptions{}); return err },
		"click":      func(ctx context.Context) error { _, _, err := s.Click(ctx, at, page.ClickOptions{}); return err },
		"hover":      func(ctx context.Context) error { _, _, err := s.Hover(ctx, at, 0); return err },
		"drag":       func(ctx context.Context) error { _, _, err := s.Drag(ctx, at, at, 0); return err },
		"type": func(ctx context.Context) error {
			_, _, err := s.Type(ctx, secret.New("x"), page.TypeOptions{})
			return err
		},
		"fill": func(ctx context.Context) error {
			_, _, err := s.Fill(ctx, []session.Field{{Locator: at}}, 0)
			return err
		},
		"press":  func(ctx context.Context) error { _, err := s.Press(ctx, "Enter"); return err },
		"select": func(ctx context.Context) error { _, _, err := s.Select(ctx, at, []string{"x"}, 0); return err },
		"upload": func(ctx context.Context) error { _, err := s.Upload(ctx, &at, nil, 0); return err },
		"scroll": func(ctx context.Context) error {
			_, err := s.Scroll(ctx, page.ScrollOptions{Direction: "down"})
			return err
		},
		"wait":   func(ctx context.Context) error { _, err := s.WaitFor(ctx, page.WaitOptions{Text: "x"}); return err },
		"dialog": func(ctx context.Context) error { _, err := s.Answer(ctx, true, secret.Text{}); return err },
		"permission": func(ctx context.Context) error {
			_, err := s.Permission(ctx, "http://a", "geolocation", true)
			return err
		},
		"auth":      func(ctx context.Context) error { _, err := s.Authenticate(ctx, "u", secret.New("p")); return err },
		"snapshot":  func(ctx context.Context) error { _, err := s.Snapshot(ctx, page.SnapshotOptions{}); return err },
		"text":      func(ctx context.Context) error { _, _, err := s.Text(ctx, 100); return err },
		"tabs":      func(ctx context.Context) error { _, err := s.Tabs(ctx); return err },
		"downloads": func(ctx context.Context) error { _, err := s.Downloads(ctx); return err },
		"switch":    func(ctx context.Context) error { _, err := s.Switch(ctx, "x"); return err },
		"close tab": func(ctx context.Context) error { _, err := s.CloseTab(ctx, "x"); return err },
		"stop":      func(ctx context.Context) error { _, err := host.Stop(ctx, s.ID(), nil); return err },
	}
}

func TestWhileAPersonDrivesTheAgentIsRefused(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL + "/agent?code=canary"})
	if err != nil {
		t.Fatal(err)
	}
	lent, err := h.host.Lend(ctx, "", "hof_1", session.LendOptions{Photo: true, Observe: page.ObserveOptions{Key: []byte("k")}})
	if err != nil {
		t.Fatal(err)
	}
	if lent.SessionID != s.ID() || lent.Generation != 1 || lent.TabID == "" || lent.Seen.URL != site.URL+"/agent" || lent.Photo == nil {
		t.Errorf("lent: %+v", lent)
	}
	for name, call := range calls(s, h.host) {
		err := call(ctx)
		if code(err) != fault.HumanInControl || fault.Of(err).Data["handoff_id"] != "hof_1" {
			t.Errorf("%s: %v", name, err)
		}
	}
	status, err := s.Status(ctx)
	if err != nil || status.Driver != "human" || status.Handoff != "hof_1" || status.URL != "" || status.Title != "" || status.Tabs != nil {
		t.Errorf("what the agent is told: %+v %v", status, err)
	}
	if _, err := h.host.Lend(ctx, "", "hof_2", plain()); code(err) != fault.HandoffActive {
		t.Errorf("a second hand-off: %v", err)
	}
	if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Errorf("the same again: %v", err)
	}

	owner := session.As(ctx, session.Owner)
	before := h.host.Presence(s.ID())
	if _, err := s.Navigate(owner, site.URL+"/owner", ""); err != nil {
		t.Errorf("the person: %v", err)
	}
	if !h.host.Presence(s.ID()).After(before) {
		t.Error("what the person does is no presence")
	}
	if status, err := s.Status(owner); err != nil || status.URL != site.URL+"/owner" {
		t.Errorf("what the person is told: %+v %v", status, err)
	}
	if err := h.host.Return(ctx, s.ID(), "hof_2", false); err != nil {
		t.Error(err)
	}
	if _, err := s.Reload(ctx); code(err) != fault.HumanInControl {
		t.Errorf("after somebody else's return: %v", err)
	}
	if err := h.host.Return(ctx, s.ID(), "hof_1", false); err != nil {
		t.Error(err)
	}
	if nav, err := s.Reload(ctx); err != nil || nav.URL != site.URL+"/owner" {
		t.Errorf("after the return: %+v %v", nav, err)
	}
}

func TestAnActionUnderWayEitherEndsOrSaysThatItsEffectIsUnknown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wait time.Duration
		want fault.Code
	}{
		"one that soon ends":         {2 * time.Second, fault.WaitTimeout},
		"one that does not soon end": {time.Minute, fault.HumanInControl},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			site, dir := browsertest.Site(t), place(t)
			h := move(t, dir, site, session.Options{})
			s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
			if err != nil {
				t.Fatal(err)
			}
			under, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				close(under)
				_, err := s.WaitFor(ctx, page.WaitOptions{Text: "never there", Timeout: tt.wait})
				ended <- err
			}()
			<-under
			testwait.For(t, "the action is under way", func() bool { return h.host.Busy(s.ID()) })
			if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if code(err) != tt.want {
					t.Errorf("got %v", err)
				}
				if tt.want == fault.HumanInControl && fault.Of(err).Data["effect"] != page.Unknown {
					t.Errorf("its effect: %v", fault.Of(err).Data)
				}
			default:
				t.Error("the wheel changed hands while the action was under way")
			}
		})
	}
}

// journalOf is everything that the journal says.
func journalOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(dir, "journal", "*"))
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	return all.String()
}

func TestNothingOfWhatAPersonDoesIsKeptOrTold(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	written, last := journalOf(t, dir), h.feed.Last()
	owner := session.As(ctx, session.Owner)
	if _, err := s.Navigate(owner, site.URL+"/owner", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Press(owner, "Tab"); err != nil {
		t.Fatal(err)
	}
	if more, _ := strings.CutPrefix(journalOf(t, dir), written); more != "" {
		t.Errorf("the journal also says %s", more)
	}
	if got := h.feed.Last(); got != last {
		t.Errorf("the feed grew from %d to %d", last, got)
	}
}

func TestAPersonsPageSurvivesARestart(t *testing.T) {
	t.Parallel()
	for name, provider := range map[string]func(browser.Provider) browser.Provider{
		"of which the browser notices nothing":       func(p browser.Provider) browser.Provider { return p },
		"that is stopped when it greets the browser": func(p browser.Provider) browser.Provider { return &cutShort{Provider: p} },
	} {
		t.Run(name, func(t *testing.T) {
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
			if _, err := s.Navigate(session.As(ctx, session.Owner), site.URL+"/owner", ""); err != nil {
				t.Fatal(err)
			}
			before.crash()

			after := move(t, dir, site, session.Options{}, holderOver{holder{s.ID(), "hof_1"}, provider})
			found, err := after.host.Recover(ctx)
			if err != nil || len(found.Reconnected) != 1 {
				t.Fatalf("recovered: %+v %v", found, err)
			}
			again, err := after.host.Get(s.ID())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := again.Reload(ctx); code(err) != fault.HumanInControl {
				t.Errorf("the agent: %v", err)
			}
			status, err := again.Status(session.As(ctx, session.Owner))
			if err != nil || status.URL != site.URL+"/owner" || status.PageLost {
				t.Errorf("the page: %+v %v", status, err)
			}
		})
	}
}

// holderOver is a claim on a browser that is reached through something.
type holderOver struct {
	holder
	way func(browser.Provider) browser.Provider
}

func (h holderOver) wrap(p browser.Provider) browser.Provider { return h.way(p) }

// cutShort is hung up on once, as one is who was away for longer than a holder waits.
type cutShort struct {
	browser.Provider
	tried bool
}

func (p *cutShort) Reconnect(ctx context.Context, ref browser.Ref) (browser.Instance, error) {
	if !p.tried {
		p.tried = true
		return nil, fault.New(fault.BrowserLost, "connect", "the browser's holder hung up")
	}
	return p.Provider.Reconnect(ctx, ref)
}

func TestABrowserLostUnderAPersonIsMadeAnewAndSaysSo(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"while the sidecar runs": false, "while it does not": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			site, dir := browsertest.Site(t), place(t)
			h := move(t, dir, site, session.Options{})
			s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL + "/agent"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
				t.Fatal(err)
			}
			if restart {
				h.crash()
			}
			_ = syscall.Kill(browsertest.ProcessesOf(t, s.ID()+"-1").Holder, syscall.SIGKILL)
			if restart {
				h = move(t, dir, site, session.Options{}, holder{s.ID(), "hof_1"})
				if _, err := h.host.Recover(ctx); err != nil {
					t.Fatal(err)
				}
			}
			owner := session.As(ctx, session.Owner)
			var status session.Status
			testwait.For(t, "the session is back", func() bool {
				again, err := h.host.Get(s.ID())
				if err != nil || again.Info().Generation != 2 {
					return false
				}
				status, err = again.Status(owner)
				return err == nil
			})
			if status.URL != site.URL+"/agent" || !status.PageLost || status.Handoff != "hof_1" {
				t.Errorf("came back as %+v", status)
			}
		})
	}
}

func TestWhatWasKeptForOnePersonIsNotForTheNext(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "sessions", s.ID()+".state")
	if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Fatalf("nothing is kept of a browser that a person is in: %v", err)
	}
	if err := h.host.Return(ctx, s.ID(), "hof_1", false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("it is still kept: %v", err)
	}
	// A browser that is lost as it changes hands is nobody's.
	processes := browsertest.ProcessesOf(t, s.ID()+"-1")
	if err := syscall.Kill(processes.Browser, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := h.host.Lend(ctx, s.ID(), "hof_2", plain()); err == nil {
		t.Error("a browser that is gone was lent")
	}
	testwait.For(t, "the end of the session", func() bool {
		_, err := h.host.Get(s.ID())
		return code(err) == fault.NoSession
	})
}

// timed notes until when a browser is kept that is made.
type timed struct {
	holder
	until *atomic.Int64
}

type timedProvider struct {
	browser.Provider
	until *atomic.Int64
}

func (t timed) wrap(p browser.Provider) browser.Provider { return timedProvider{p, t.until} }

func (p timedProvider) Create(ctx context.Context, spec browser.Spec) (browser.Instance, error) {
	p.until.Store(spec.KeepUntil.Unix())
	return p.Provider.Create(ctx, spec)
}

func TestAParkedSessionIsSavedFreedAndComesBack(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL + "/agent"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.host.Park(ctx, s.ID(), "hof_1"); code(err) != fault.HandoffNotRunning {
		t.Errorf("without a hand-off: %v", err)
	}
	if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	processes := browsertest.ProcessesOf(t, s.ID()+"-1")
	if err := h.host.Park(ctx, s.ID(), "hof_1"); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the end of its processes", func() bool { return len(processes.Alive()) == 0 })
	if _, err := h.host.Get(s.ID()); code(err) != fault.HumanInControl {
		t.Errorf("the agent meanwhile: %v", err)
	}
	if sealed, err := os.ReadFile(dir + "/sessions/" + s.ID() + ".state"); err != nil || strings.Contains(string(sealed), "/agent") {
		t.Errorf("what is kept is readable: %v", err)
	}
	h.crash()
	// It is taken up long after the session would have been over.
	record := dir + "/sessions/" + s.ID() + ".json"
	raw, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	raw = regexp.MustCompile(`"deadline":"[^"]+"`).ReplaceAll(raw, []byte(`"deadline":"`+time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)+`"`))
	if err := os.WriteFile(record, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	given := &atomic.Int64{}
	h = move(t, dir, site, session.Options{}, timed{holder{s.ID(), "hof_1"}, given})
	if _, err := h.host.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	generation, err := h.host.Unpark(ctx, s.ID(), "hof_1")
	if err != nil || generation != 2 {
		t.Fatalf("resumed: %d %v", generation, err)
	}
	if until := time.Unix(given.Load(), 0); until.Before(time.Now()) {
		t.Errorf("its browser was made to end at %v", until)
	}
	again, err := h.host.Get(s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if status, err := again.Status(session.As(ctx, session.Owner)); err != nil || status.URL != site.URL+"/agent" || status.PageLost {
		t.Errorf("came back as %+v %v", status, err)
	}
	if _, err := h.host.Shut(ctx, s.ID(), "the owner gave up"); err != nil {
		t.Error(err)
	}
	if rest := left(t, dir); len(rest) > 0 {
		t.Errorf("left: %v", rest)
	}
	if _, err := os.Stat(dir + "/sessions/" + s.ID() + ".state"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kept state is still there: %v", err)
	}
}

func TestAHandoffRaisesTheDeadlineOfItsSession(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	was := s.Info().Deadline
	for name, tt := range map[string]struct{ at, want time.Time }{
		"nearer": {was.Add(-time.Minute), was},
	} {
		if err := h.host.KeepUntil(ctx, s.ID(), tt.at); err != nil || !s.Info().Deadline.Equal(tt.want) {
			t.Errorf("%s: %v %v", name, s.Info().Deadline, err)
		}
	}
	if err := h.host.KeepUntil(ctx, s.ID(), was.Add(time.Hour)); err != nil || !s.Info().Deadline.Equal(was.Add(time.Hour)) {
		t.Errorf("later: %v %v", s.Info().Deadline, err)
	}
	if err := h.host.KeepUntil(ctx, s.ID(), was.Add(1000*time.Hour)); err != nil || s.Info().Deadline.After(s.Info().StartedAt.Add(6*time.Hour)) {
		t.Errorf("much later: %v %v", s.Info().Deadline, err)
	}
}

func TestATextThatWasBegunIsTypedToTheEndAlsoWhenItsSenderHangsUp(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	sender, hangUp := context.WithCancel(ctx)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/began" {
			hangUp()
			return
		}
		_, _ = io.WriteString(w, `<!doctype html><title>0</title><input autofocus oninput="if (value.length == 1) fetch('/began'); document.title = value.length">`)
	}))
	t.Cleanup(site.Close)
	h := move(t, place(t), site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	text := secret.New(strings.Repeat("x", 300))
	if typed, err := h.host.Relay(sender, s.ID(), "hof_1", text, "update-1"); err != nil || typed.Characters != 300 || sender.Err() == nil {
		t.Errorf("hung up in the middle: %+v %v, sender: %v", typed, err, sender.Err())
	}
	if typed, err := h.host.Relay(ctx, s.ID(), "hof_1", text, "update-1"); err != nil || typed.Characters != 300 {
		t.Errorf("it comes again: %+v %v", typed, err)
	}
	// Nobody is in doubt about what never began.
	if typed, err := h.host.Relay(sender, s.ID(), "hof_1", text, "update-2"); err == nil {
		t.Errorf("hung up before: %+v", typed)
	}
	if typed, err := h.host.Relay(ctx, s.ID(), "hof_1", secret.New("!"), "update-2"); err != nil || typed.Characters != 1 {
		t.Errorf("what never began comes again: %+v %v", typed, err)
	}
	if status, err := s.Status(session.As(ctx, session.Owner)); err != nil || status.Title != "301" {
		t.Errorf("the field holds %q characters: %v", status.Title, err)
	}
}

func TestARelayedTextIsTypedOnce(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><title>login</title><input type=password autofocus oninput="document.title = value.length">`)
	}))
	t.Cleanup(site.Close)
	dir := place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	text := secret.New("hunter2 canary")
	if _, err := h.host.Relay(ctx, s.ID(), "hof_1", text, "update-1"); code(err) != fault.HandoffNotRunning {
		t.Errorf("without a hand-off: %v", err)
	}
	if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		typed, err := h.host.Relay(ctx, s.ID(), "hof_1", text, "update-1")
		if err != nil || typed.Characters != 14 || typed.Field != "password" || typed.Origin != site.URL {
			t.Fatalf("typed: %+v %v", typed, err)
		}
	}
	h.crash()
	h = move(t, dir, site, session.Options{}, holder{s.ID(), "hof_1"})
	if _, err := h.host.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if typed, err := h.host.Relay(ctx, s.ID(), "hof_1", text, "update-1"); err != nil || typed.Characters != 14 {
		t.Errorf("after a restart: %+v %v", typed, err)
	}
	if _, err := h.host.Relay(ctx, s.ID(), "hof_1", secret.New("!"), "update-2"); err != nil {
		t.Errorf("another one: %v", err)
	}
	again, err := h.host.Get(s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if status, err := again.Status(session.As(ctx, session.Owner)); err != nil || status.Title != "15" {
		t.Errorf("the field holds %q characters: %v", status.Title, err)
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "/run/") {
			return nil
		}
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), "canary") {
			t.Errorf("%s holds the text", path)
		}
		return nil
	})
}

func TestTheOwnerIsWarnedOnceBeforeASessionEnds(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{Timeout: 2 * time.Minute}) // too short to warn of
	s, err := h.host.Start(ctx, session.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.host.KeepUntil(ctx, s.ID(), time.Now().Add(5*time.Minute+2*time.Second)); err != nil {
		t.Fatal(err)
	}
	warnings := func() int {
		n := 0
		events, _ := h.feed.Since(0, 1000)
		for _, e := range events {
			if e.Type == "session.expiring" && strings.Contains(string(e.Data), s.ID()) {
				n++
			}
		}
		return n
	}
	testwait.For(t, "the owner is warned", func() bool { return warnings() == 1 })
	h.crash()
	h = move(t, dir, site, session.Options{})
	if _, err := h.host.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if n := warnings(); n != 1 {
		t.Errorf("after a restart there are %d warnings", n)
	}
	if err := h.host.KeepUntil(ctx, s.ID(), time.Now().Add(5*time.Minute+2*time.Second)); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "of the later deadline too", func() bool { return warnings() == 2 })
}
