package session_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/session"
	"tapin/internal/testwait"
)

// files is a site that sends files, some of them slowly.
func files(t *testing.T) (site *httptest.Server, release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<title>files</title>")
	})
	mux.HandleFunc("/file/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment; filename="+r.PathValue("name"))
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<16))
		if r.PathValue("name") != "slow" {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	site = httptest.NewServer(mux)
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	return site, release
}

// listed are the names of the files that somebody is told of, with their states.
func listed(ctx context.Context, t *testing.T, s *session.Session) string {
	t.Helper()
	all, err := s.Downloads(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range all {
		out = append(out, d.Name+" "+d.State)
	}
	return strings.Join(out, ", ")
}

func TestWhatAPersonDownloadedIsNotToldToTheAgent(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, release := files(t)
	dir := place(t)
	options := session.Options{Downloads: filepath.Join(dir, "downloads")}
	h := move(t, dir, site, options)
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	owner := session.As(ctx, session.Owner)
	sees := func(ctx context.Context, want string) {
		t.Helper()
		testwait.For(t, want, func() bool { return listed(ctx, t, s) == want })
	}
	_, _ = s.Navigate(ctx, site.URL+"/file/agents", "")
	sees(ctx, "agents completed")
	if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	_, _ = s.Navigate(owner, site.URL+"/file/statement", "")
	sees(owner, "agents completed, statement completed")
	_, _ = s.Navigate(owner, site.URL+"/file/slow", "")
	sees(owner, "agents completed, statement completed, slow in_progress")

	if err := h.host.Return(ctx, s.ID(), "hof_1", false); err != nil {
		t.Fatal(err)
	}
	if got := listed(ctx, t, s); got != "agents completed" {
		t.Errorf("the agent is told of %s", got)
	}
	if got := listed(owner, t, s); !strings.Contains(got, "statement") {
		t.Errorf("the owner is told of %s", got)
	}
	_, _ = s.Navigate(ctx, site.URL+"/file/more", "")
	sees(ctx, "agents completed, more completed")

	told := func() int {
		events, _ := h.feed.Since(0, 0)
		downloads := map[string]bool{}
		for _, e := range events {
			if e.Type == "session.download" {
				_, id, _ := strings.Cut(string(e.Data), `"download_id":"`)
				downloads[id[:36]] = true
			}
		}
		return len(downloads)
	}
	testwait.For(t, "the feed to tell of both", func() bool { return told() == 2 })

	// The next sidecar is told again of what is under way.
	h.crash()
	h = move(t, dir, site, options)
	if found, err := h.host.Recover(ctx); err != nil || len(found.Reconnected) != 1 {
		t.Fatalf("recovered %+v, %v", found, err)
	}
	if s, err = h.host.Get(s.ID()); err != nil {
		t.Fatal(err)
	}
	sees(owner, "slow in_progress")
	close(release)
	sees(owner, "slow completed")
	if got := listed(ctx, t, s); got != "" {
		t.Errorf("after a restart the agent is told of %s", got)
	}
	if n := told(); n != 2 {
		t.Errorf("the feed tells of %d downloads, and two are the agent's", n)
	}
}

func TestWhatAPersonAskedForAndArrivesAfterTheyLeftIsTheirs(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	asked, send := make(chan struct{}), make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<title>files</title>")
			return
		}
		if r.URL.Path == "/late" {
			close(asked)
			<-send
		}
		w.Header().Set("Content-Disposition", "attachment; filename="+r.URL.Path[1:])
		_, _ = io.WriteString(w, "x")
	}))
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	dir := place(t)
	h := move(t, dir, site, session.Options{Downloads: filepath.Join(dir, "downloads")})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	owner := session.As(ctx, session.Owner)
	under, cancel := context.WithCancel(owner)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Navigate(under, site.URL+"/late", "")
	}()
	<-asked
	cancel()
	<-ended
	if err := h.host.Return(ctx, s.ID(), "hof_1", false); err != nil {
		t.Fatal(err)
	}
	close(send)
	testwait.For(t, "the file", func() bool { return listed(owner, t, s) == "late completed" })
	if got := listed(ctx, t, s); got != "" {
		t.Errorf("the agent is told of %s", got)
	}
}

// stubborn is the claim of a hand-off on a provider that cannot end a browser
// until it is told to.
type stubborn struct {
	holder
	can *atomic.Bool
}

func (s stubborn) wrap(p browser.Provider) browser.Provider { return unending{p, s.can} }

type unending struct {
	browser.Provider
	can *atomic.Bool
}

func (u unending) End(ctx context.Context, ref browser.Ref) error {
	if !u.can.Load() {
		return fault.New(fault.ProviderError, "end "+ref.ID, "not now")
	}
	return u.Provider.End(ctx, ref)
}

func TestAParkedSessionWhoseBrowserCannotBeEndedYetIsParkedAllTheSame(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	before := move(t, dir, site, session.Options{})
	s, err := before.host.Start(ctx, session.StartOptions{URL: site.URL + "/agent"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	// As a kill between the record and the browser's end leaves it.
	if err := before.host.ParkOnRecord(ctx, s.ID()); err != nil {
		t.Fatal(err)
	}
	before.crash()
	can := &atomic.Bool{}
	after := move(t, dir, site, session.Options{}, stubborn{holder{s.ID(), "hof_1"}, can})
	if found, err := after.host.Recover(ctx); err != nil || len(found.Closed) > 0 {
		t.Fatalf("recovered %+v, %v", found, err)
	}
	if _, err := after.host.Get(s.ID()); code(err) != fault.HumanInControl {
		t.Fatalf("it is not parked: %v", err)
	}
	if err := after.host.Park(ctx, s.ID(), "hof_1"); err != nil {
		t.Errorf("parked again: %v", err)
	}
	if generation, err := after.host.Unpark(ctx, s.ID(), "hof_1"); err != nil || generation != 2 {
		t.Fatalf("the person comes back to %d, %v", generation, err)
	}
	can.Store(true)
	testwait.For(t, "the end of the old browser", func() bool {
		_, there := find(left(t, dir), s.ID()+"-1")
		return !there
	})
	if _, there := find(left(t, dir), s.ID()+"-2"); !there {
		t.Error("the new browser was ended with the old one")
	}
}

func find(all []string, name string) (string, bool) {
	for _, each := range all {
		if filepath.Base(each) == name {
			return each, true
		}
	}
	return "", false
}

func TestThatAPersonWasThereIsKnownAfterARestart(t *testing.T) {
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
	for range 3 { // the later ones are not worth a write
		if _, err := s.Press(session.As(ctx, session.Owner), "Tab"); err != nil {
			t.Fatal(err)
		}
	}
	last := before.host.Presence(s.ID())
	before.crash()
	after := move(t, dir, site, session.Options{}, holder{s.ID(), "hof_1"})
	if _, err := after.host.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got := after.host.Presence(s.ID()); got.Before(last) || got.After(time.Now()) {
		t.Errorf("a person was last there at %s, and is said to have been at %s", last, got)
	}

	// Another hand-off has another person, who has not been there yet.
	if err := after.host.Return(ctx, s.ID(), "hof_1", false); err != nil {
		t.Fatal(err)
	}
	if _, err := after.host.Lend(ctx, s.ID(), "hof_2", plain()); err != nil {
		t.Fatal(err)
	}
	after.crash()
	later := move(t, dir, site, session.Options{}, holder{s.ID(), "hof_2"})
	if _, err := later.host.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got := later.host.Presence(s.ID()); !got.IsZero() {
		t.Errorf("nobody was there yet, and somebody is said to have been at %s", got)
	}
}

func TestWhoeverFollowsASessionHearsOfAnotherBrowser(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, heard := browsertest.Site(t), make(chan int, 1)
	h := move(t, place(t), site, session.Options{OnReplace: func(_ string, generation int) { heard <- generation }})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.host.Lend(ctx, s.ID(), "hof_1", plain()); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(browsertest.ProcessesOf(t, s.ID()+"-1").Holder, syscall.SIGKILL)
	select {
	case generation := <-heard:
		if now, err := h.host.Generation(s.ID()); err != nil || generation != 2 || now != 2 {
			t.Errorf("heard of browser %d, and it is %d, %v", generation, now, err)
		}
	case <-testwait.Over():
		t.Fatal("nobody was told")
	}
}

// halfMade is a provider whose second browser is made and then out of reach, as
// for a sidecar that is killed before it has put the login in.
type halfMade struct{ holder }

func (halfMade) wrap(p browser.Provider) browser.Provider { return halfProvider{p} }

func TestABrowserThatWasOnlyHalfMadeAnewIsMadeAnewAgainAndStillSaysSo(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
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
	h.crash()
	_ = syscall.Kill(browsertest.ProcessesOf(t, s.ID()+"-1").Holder, syscall.SIGKILL)
	half := move(t, dir, site, session.Options{}, halfMade{holder{s.ID(), "hof_1"}})
	half.host.ReviveHalf(ctx, t.Fatal, s.ID())
	half.crash()

	h = move(t, dir, site, session.Options{}, holder{s.ID(), "hof_1"})
	if found, err := h.host.Recover(ctx); err != nil || len(found.Reconnected) != 1 {
		t.Fatalf("recovered %+v, %v", found, err)
	}
	again, err := h.host.Get(s.ID())
	if err != nil {
		t.Fatal(err)
	}
	status, err := again.Status(session.As(ctx, session.Owner))
	if err != nil || status.URL != site.URL+"/agent" || !status.PageLost || status.Generation != 3 {
		t.Errorf("came back as %+v, %v", status, err)
	}
}
