package page_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// scene is a site with handlers of the test's own, and a browser that keeps
// what it downloads and tells what surprises it.
type scene struct {
	*web
	provider browser.Provider
	folder   string

	heard struct {
		sync.Mutex
		list []page.Surprise
	}
}

func perform(t *testing.T, look page.Look, routes map[string]http.HandlerFunc, alsoAllow ...string) *scene {
	t.Helper()
	s := &scene{web: &web{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ok := routes[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		route(w, r)
	}))
	t.Cleanup(s.Server.Close)
	t.Cleanup(s.CloseClientConnections)
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.folder = filepath.Join(dir, "downloads")
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	own := strings.TrimPrefix(s.URL, "http://")
	policy := egress.Policy{BlockPrivate: true, Allow: append(alsoAllow, own, strings.Replace(own, "127.0.0.1", "localhost", 1))}
	ctx := browsertest.Context(t)
	s.provider = local.New(dir, 1, nil)
	s.inst, err = s.provider.Create(ctx, browser.Spec{ID: "ses_stage-1", KeepUntil: testwait.Late(), Policy: policy, Downloads: s.folder})
	if err != nil {
		t.Fatal(err)
	}
	s.tabs, err = page.Open(ctx, s.inst, &page.Options{Look: look, OnSurprise: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.tabs.Close()
		browsertest.End(t, s.provider, s.inst.Ref())
	})
	return s
}

func (s *scene) hear(what page.Surprise) {
	s.heard.Lock()
	defer s.heard.Unlock()
	s.heard.list = append(s.heard.list, what)
}

func (s *scene) heardOf(is func(page.Surprise) bool) bool {
	s.heard.Lock()
	defer s.heard.Unlock()
	return slices.ContainsFunc(s.heard.list, is)
}

// hears waits until somebody is told: a tab knows what befell it a moment earlier.
func (s *scene) hears(t *testing.T, what string, is func(page.Surprise) bool) {
	t.Helper()
	testwait.For(t, "being told of "+what, func() bool { return s.heardOf(is) })
}

// localhost is the same site under its other name: another origin, and one
// where pages may use everything that wants a secure place.
func (s *scene) localhost() string { return strings.Replace(s.URL, "127.0.0.1", "localhost", 1) }

func (s *scene) open(ctx context.Context, t *testing.T, path string) *page.Tab {
	t.Helper()
	tab := s.front(ctx, t)
	if _, err := tab.Navigate(ctx, s.URL+path, page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	return tab
}

// press is a real click at a point, so that the page counts as used by a person.
func (s *scene) press(ctx context.Context, t *testing.T, tab *page.Tab, x, y float64) {
	t.Helper()
	at := s.attach(ctx, t, tab)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		if err := at.Session.Call(ctx, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *scene) attach(ctx context.Context, t *testing.T, tab *page.Tab) browsertest.Tab {
	t.Helper()
	return browsertest.Attach(ctx, t, s.inst, targetID(tab))
}

// begin runs a script that may block its page, and does not wait for it.
func (s *scene) begin(ctx context.Context, t *testing.T, tab *page.Tab, script string) {
	t.Helper()
	at := s.attach(ctx, t, tab)
	if err := at.Session.Send(ctx, "Runtime.evaluate", map[string]any{"expression": script, "userGesture": true}); err != nil {
		t.Fatal(err)
	}
}

func document(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := strings.Cut(r.Host, ":")
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "OTHER", "http://localhost:"+port))
	}
}

// ends fails the test when fn goes on until the context of the test ends it.
func ends(t *testing.T, what string, fn func()) {
	t.Helper()
	began := time.Now()
	fn()
	if took := time.Since(began); took > testwait.Limit() {
		t.Errorf("%s took %s", what, took)
	}
}

func kinds(questions []page.Question) []string {
	var out []string
	for _, q := range questions {
		out = append(out, q.Kind)
	}
	return out
}

// refusing is an address where nobody listens, and nobody else can begin to: a port
// that was merely closed may be another test's a moment later.
func refusing(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

func TestEveryWayToFailEndsInTimeAndLeavesTheTabUsable(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	secure := httptest.NewTLSServer(document("never seen"))
	t.Cleanup(secure.Close)
	gone := refusing(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/": document(`<title>home</title>`),
		"/loop": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/loop?"+r.URL.RawQuery+"x", http.StatusFound)
		},
		"/missing": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<title>lost</title>")
		},
		"/never": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/empty": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	}, strings.TrimPrefix(secure.URL, "https://"), gone)
	tab := s.open(ctx, t, "/")
	for name, tt := range map[string]struct {
		url, reason string
		code        fault.Code
		status      int
	}{
		"a redirect without end":  {s.URL + "/loop", "ERR_TOO_MANY_REDIRECTS", fault.NavigationFailed, 0},
		"a page that is missing":  {s.URL + "/missing", "", "", http.StatusNotFound},
		"a load without end":      {s.URL + "/never", "", fault.NavigationTimeout, 0},
		"a page without content":  {s.URL + "/empty", "ERR_ABORTED", fault.NavigationFailed, 0},
		"a bad certificate":       {secure.URL, "ERR_CERT_AUTHORITY_INVALID", fault.NavigationFailed, 0},
		"a refused connection":    {"http://" + gone, "refused", fault.NavigationFailed, 0},
		"an address that is none": {"http://nosuch.invalid/", "resolved", fault.NavigationFailed, 0},
	} {
		ends(t, name, func() {
			limited, cancel := testwait.Within(ctx)
			defer cancel()
			if tt.code == fault.NavigationTimeout {
				limited, cancel = context.WithTimeout(ctx, 4*time.Second) // short: it must run out
				defer cancel()
			}
			nav, err := tab.Navigate(limited, tt.url, "")
			switch {
			case tt.code == "" && (err != nil || nav.Status != tt.status):
				t.Errorf("%s: got %+v, %v", name, nav, err)
			case tt.code != "" && (!errors.Is(err, tt.code) || !strings.Contains(err.Error(), tt.reason)):
				t.Errorf("%s: got %v", name, err)
			}
		})
		if nav, err := tab.Navigate(ctx, s.URL+"/", ""); err != nil || nav.Title != "home" {
			t.Errorf("after %s the tab shows %+v, %v", name, nav, err)
		}
	}
}

func TestAPageThatGoesElsewhereMeanwhileHasNotTheLastWord(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	asked := make(chan struct{}, 2)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/form": document(`<title>form</title><button style="position:fixed;inset:0">Save</button><form action="/saved"></form>
			<script>onclick = async () => { await fetch("/wanted-yet"); document.forms[0].submit() }</script>`),
		"/saved":      document(`<title>saved</title>`),
		"/wanted-yet": func(http.ResponseWriter, *http.Request) { <-asked },
		"/wanted": func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{} // now the form is sent, by the leave of a click
			select {
			case <-time.After(500 * time.Millisecond): // short: time for what overtakes it
			case <-r.Context().Done(): // overtaken
			}
			document(`<title>wanted</title>`)(w, r)
		},
	})
	tab := s.open(ctx, t, "/form")
	s.press(ctx, t, tab, 5, 5)
	if nav, err := tab.Navigate(ctx, s.URL+"/wanted", ""); err != nil || nav.Title != "wanted" {
		t.Errorf("%+v, %v", nav, err)
	}
}

func TestAPageThatAsksBeforeItIsLeftIsAsked(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/form":  document(`<title>form</title><script>addEventListener("beforeunload", e => e.preventDefault())</script>`),
		"/other": document(`<title>other</title>`),
	})
	tab := s.open(ctx, t, "/form")
	s.press(ctx, t, tab, 5, 5)
	leave := func() {
		t.Helper()
		ends(t, "leaving", func() {
			if _, err := tab.Navigate(ctx, s.URL+"/other", ""); !errors.Is(err, fault.DialogOpen) {
				t.Fatalf("leaving gave %v", err)
			}
		})
		if got := tab.Pending(); len(got) != 1 || got[0].Kind != page.AskDialog || got[0].Dialog != "beforeunload" {
			t.Fatalf("pending is %+v", got)
		}
	}
	leave()
	if err := tab.Answer(ctx, false, ""); err != nil {
		t.Fatal(err)
	}
	if nav, err := tab.Here(ctx); err != nil || nav.Title != "form" {
		t.Fatalf("after staying the tab shows %+v, %v", nav, err)
	}
	leave()
	if err := tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the navigation that was asked about", func() bool {
		nav, err := tab.Here(ctx)
		return err == nil && nav.Title == "other"
	})

	tab = s.open(ctx, t, "/form")
	s.press(ctx, t, tab, 5, 5)
	if err := s.tabs.CloseTab(ctx, tab.ID()); !errors.Is(err, fault.DialogOpen) {
		t.Fatalf("closing gave %v", err)
	}
	if err := tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the closed tab", func() bool { return len(s.tabs.List()) == 0 })
	s.open(ctx, t, "/other")
}

func TestDialogsComeOneAfterAnotherFromAnywhere(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/":      document(`<title>home</title>`),
		"/loop":  document(`<title>loop</title><script>for (let i = 1; i <= 20; i++) alert("number " + i)</script>`),
		"/top":   document(`<title>top</title><iframe src="OTHER/frame"></iframe>`),
		"/frame": document(`<script>setTimeout(() => top.postMessage(confirm("sure?"), "*"))</script>`),
		"/popup": document(`<title>popup</title><script>alert("from the popup")</script>`),
	})
	tab := s.open(ctx, t, "/")

	if _, err := tab.Navigate(ctx, s.URL+"/loop", ""); !errors.Is(err, fault.DialogOpen) {
		t.Fatalf("a loop of alerts gave %v", err)
	}
	for i := 1; i <= 20; i++ {
		testwait.For(t, fmt.Sprintf("alert %d", i), func() bool {
			d := tab.Dialog()
			return d != nil && d.Message == fmt.Sprintf("number %d", i) && d.Origin == s.URL
		})
		if err := tab.Answer(ctx, true, ""); err != nil {
			t.Fatal(err)
		}
	}
	testwait.For(t, "the end of the loop", func() bool {
		nav, err := tab.Here(ctx)
		return err == nil && nav.Title == "loop"
	})

	if _, err := tab.Navigate(ctx, s.URL+"/top", page.WaitCommit); err != nil && !errors.Is(err, fault.DialogOpen) {
		t.Fatal(err)
	}
	testwait.For(t, "the dialog of a frame", func() bool {
		d := tab.Dialog()
		return d != nil && d.Kind == "confirm" && d.Origin == s.localhost()
	})
	if err := tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}

	tab = s.open(ctx, t, "/")
	s.begin(ctx, t, tab, `void window.open("/popup")`)
	testwait.For(t, "the dialog of a popup", func() bool {
		front := s.front(ctx, t)
		return front != tab && front.Dialog() != nil && front.Dialog().Message == "from the popup"
	})
	popup := s.front(ctx, t).ID()
	s.hears(t, "the popup's dialog", func(h page.Surprise) bool {
		return h.Kind == page.SurpriseQuestion && h.Tab == popup && h.Question.Message == "from the popup"
	})
	// The opener shares the popup's process, and so waits for it.
	limited, cancel := context.WithTimeout(ctx, time.Second) // short: it may run out
	defer cancel()
	if nav, err := tab.Here(limited); err != nil && !errors.Is(err, fault.DialogOpen) {
		t.Errorf("the opener under the popup's dialog gave %+v, %v", nav, err)
	}
	ends(t, "closing the popup", func() {
		if err := s.tabs.CloseTab(ctx, ""); err != nil {
			t.Fatal(err)
		}
	})
	if front := s.front(ctx, t); front != tab {
		t.Error("the opener is not in front")
	}
	if nav, err := tab.Here(ctx); err != nil || nav.Title != "home" {
		t.Errorf("the opener shows %+v, %v", nav, err)
	}
}

func TestACrashIsToldAtOnceAndTheTabRecovers(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/":      document(`<title>home</title>`),
		"/other": document(`<title>other</title>`),
	})
	tab := s.open(ctx, t, "/")
	crash := func() {
		t.Helper()
		_ = s.attach(ctx, t, tab).Session.Send(ctx, "Page.crash", struct{}{})
		testwait.For(t, "the crash", tab.HasCrashed)
		ends(t, "the fault of a crashed page", func() {
			for name, err := range map[string]error{
				"a picture":   second(tab.Screenshot(ctx, page.ShotOptions{})),
				"the address": second(tab.Here(ctx)),
			} {
				if !errors.Is(err, fault.BrowserLost) {
					t.Errorf("%s of a crashed page gave %v", name, err)
				}
			}
		})
	}
	crash()
	s.hears(t, "the crash", func(h page.Surprise) bool { return h.Kind == page.SurpriseCrash && h.Tab == tab.ID() })
	if nav, err := tab.Navigate(ctx, s.URL+"/other", ""); err != nil || nav.Title != "other" {
		t.Fatalf("leaving a crashed page gave %+v, %v", nav, err)
	}
	crash()
	if nav, err := tab.Reload(ctx, ""); err != nil || nav.Title != "other" || tab.HasCrashed() {
		t.Fatalf("reloading a crashed page gave %+v, %v", nav, err)
	}
	crash()
	if err := s.tabs.CloseTab(ctx, tab.ID()); err != nil {
		t.Fatal(err)
	}
	s.open(ctx, t, "/")
}

func TestAHungPageCanBeLeft(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/": document(`<title>home</title>`),
	})
	tab := s.open(ctx, t, "/")
	hang := func() {
		t.Helper()
		s.begin(ctx, t, tab, `for (;;);`)
		testwait.For(t, "the hang", func() bool {
			limited, cancel := context.WithTimeout(ctx, 500*time.Millisecond) // short: it must run out
			defer cancel()
			_, err := tab.Here(limited)
			return errors.Is(err, fault.WaitTimeout)
		})
	}
	hang()
	ends(t, "what a hung page has no part in", func() {
		if err := s.tabs.Refresh(ctx); err != nil {
			t.Error(err)
		}
		if err := s.tabs.Switch(ctx, tab.ID()); err != nil {
			t.Error(err)
		}
	})
	limited, cancel := context.WithTimeout(ctx, time.Second) // short: it must run out
	defer cancel()
	if _, err := tab.Screenshot(limited, page.ShotOptions{}); !errors.Is(err, fault.WaitTimeout) {
		t.Errorf("a picture of a hung page gave %v", err)
	}
	ends(t, "leaving a hung page", func() {
		if nav, err := tab.Navigate(ctx, s.URL+"/", ""); err != nil || nav.Title != "home" {
			t.Fatalf("leaving a hung page gave %+v, %v", nav, err)
		}
	})
	hang()
	ends(t, "reloading a hung page", func() {
		if nav, err := tab.Reload(ctx, ""); err != nil || nav.Status != http.StatusOK {
			t.Fatalf("reloading a hung page gave %+v, %v", nav, err)
		}
	})
	hang()
	ends(t, "closing a hung page", func() {
		if err := s.tabs.CloseTab(ctx, tab.ID()); err != nil {
			t.Fatal(err)
		}
	})
	s.open(ctx, t, "/")
}

func TestAFileChooserNeverOpensAndCanBeAnswered(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const field = `<title>field</title><input type=file id=f multiple style="position:absolute;left:0;top:0;width:300px;height:100px">
		<script>f.onchange = () => document.title = [...f.files].map(x => x.name); f.addEventListener("cancel", () => document.title = "cancelled")</script>`
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/":    document(field),
		"/top": document(`<title>top</title><iframe src="OTHER/" style="position:absolute;left:0;top:0;width:600px;height:300px"></iframe>`),
	})
	file := filepath.Join(s.folder, "letter.txt")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	tab := s.open(ctx, t, "/")
	if err := tab.ChooseFiles(ctx, []string{file}); !errors.Is(err, fault.NotFound) {
		t.Fatalf("files nobody asked for gave %v", err)
	}
	asks := func() {
		t.Helper()
		s.press(ctx, t, tab, 40, 12)
		testwait.For(t, "the file chooser", func() bool {
			return cmp.Equal(tab.Pending(), []page.Question{{Kind: page.AskFileChooser, Multiple: true}})
		})
	}
	asks()
	if err := tab.ChooseFiles(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.title(ctx, t); got != "cancelled" || len(tab.Pending()) != 0 {
		t.Fatalf("after a cancel the title is %q, pending %+v", got, tab.Pending())
	}
	asks()
	if err := tab.ChooseFiles(ctx, []string{file}); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the chosen file", func() bool { return s.title(ctx, t) == "letter.txt" })
	asks()
	s.open(ctx, t, "/top")
	if len(tab.Pending()) != 0 {
		t.Fatal("a page that was left still asks for files")
	}
	testwait.For(t, "the file chooser of a frame of another site", func() bool {
		s.press(ctx, t, tab, 40, 12)
		return slices.Equal(kinds(tab.Pending()), []string{page.AskFileChooser})
	})
	if err := tab.ChooseFiles(ctx, []string{file}); err != nil {
		t.Fatal(err)
	}
}

func TestPermissionsAreRefusedToldAndGranted(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{"/": document(`<title>home</title>`)})
	tab := s.front(ctx, t)
	load := func() {
		t.Helper()
		if _, err := tab.Navigate(ctx, s.localhost()+"/", page.WaitLoad); err != nil {
			t.Fatal(err)
		}
	}
	load()
	const ask = `Notification.requestPermission()`
	if got := s.eval(ctx, t, tab, ask); got != "denied" {
		t.Fatalf("the page was told %q", got)
	}
	want := []page.Question{{Kind: page.AskPermission, Origin: s.localhost(), Name: "notifications"}}
	testwait.For(t, "the question", func() bool { return cmp.Equal(tab.Pending(), want) })
	if err := s.tabs.Permission(ctx, s.localhost(), "notifications", true); err != nil {
		t.Fatal(err)
	}
	if len(tab.Pending()) != 0 {
		t.Fatalf("granted, the page still asks %+v", tab.Pending())
	}
	if got := s.eval(ctx, t, tab, ask); got != "granted" {
		t.Fatalf("granted, the page was told %q", got)
	}
	if err := s.tabs.Permission(ctx, s.localhost(), "notifications", false); err != nil {
		t.Fatal(err)
	}
	load()
	if got := s.eval(ctx, t, tab, "Notification.permission"); got != "denied" || len(tab.Pending()) != 0 {
		t.Fatalf("refused, the page was told %q, and asks %+v", got, tab.Pending())
	}
	for name, err := range map[string]error{
		"an unknown name":   s.tabs.Permission(ctx, s.URL, "teleport", true),
		"an unknown origin": s.tabs.Permission(ctx, "file:///etc", "camera", true),
	} {
		if !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%s gave %v", name, err)
		}
	}
	if err := fault.Of(s.tabs.Permission(ctx, s.URL, "teleport", true)); !strings.Contains(err.Advice(), "geolocation") {
		t.Errorf("the hint is %q", err.Advice())
	}
}

func TestEveryPermissionWeNameIsOneTheBrowserKnows(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{})
	hint := fault.Of(s.tabs.Permission(ctx, s.URL, "teleport", true)).Advice()
	names := strings.Split(strings.TrimSuffix(strings.TrimPrefix(hint, "Use one of "), "."), ", ")
	if len(names) < 10 {
		t.Fatalf("the names are %q", names)
	}
	for _, name := range names {
		if err := s.tabs.Permission(ctx, s.localhost(), name, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
