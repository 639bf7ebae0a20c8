package page_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

func targetID(tab *page.Tab) target.ID { return target.ID(tab.ID()) }

// names are the titles of the tabs, the one in front last.
func (s *scene) names(ctx context.Context, t *testing.T) string {
	t.Helper()
	if err := s.tabs.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, tab := range s.tabs.List() {
		_, title := tab.Address()
		out = append(out, title)
	}
	return strings.Join(out, " ")
}

func (s *scene) eventually(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	var got string
	defer func() {
		if t.Failed() {
			t.Logf("the tabs are %q", got)
		}
	}()
	testwait.For(t, "the tabs "+want, func() bool {
		got = s.names(ctx, t)
		return got == want
	})
}

func TestTabsAreSwitchedAndClosed(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/a": document(`<title>a</title><a href="/b" target=_blank style="position:absolute;left:0;top:0">open b</a>`),
		"/b": document(`<title>b</title>`),
		"/c": document(`<title>c</title>`),
		"/d": document(`<title>d</title>`),
	})
	a := s.open(ctx, t, "/a")
	s.press(ctx, t, a, 10, 8)
	s.eventually(ctx, t, "a b")
	b := s.front(ctx, t)
	s.eval(ctx, t, a, `void open("/c", "_blank", "noopener")`)
	s.eventually(ctx, t, "a b c")
	c := s.front(ctx, t)

	if err := s.tabs.Switch(ctx, b.ID()); err != nil {
		t.Fatal(err)
	}
	s.eventually(ctx, t, "a c b")
	if got := s.eval(ctx, t, b, "document.visibilityState + document.hasFocus()"); got != "visibletrue" {
		t.Errorf("the tab in front is %s", got)
	}
	// One behind the others is still usable.
	if nav, err := a.Navigate(ctx, s.URL+"/d", ""); err != nil || nav.Title != "d" {
		t.Fatalf("a tab behind others gave %+v, %v", nav, err)
	}
	if _, err := c.Screenshot(ctx, page.ShotOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually(ctx, t, "d c b")
	if err := s.tabs.CloseTab(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if got := s.names(ctx, t); got != "c d" {
		t.Fatalf("after its popup closed, the opener is not in front: %s", got)
	}
	if err := s.tabs.CloseTab(ctx, c.ID()); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"switching": s.tabs.Switch(ctx, c.ID()), "closing": s.tabs.CloseTab(ctx, c.ID())} {
		if !errors.Is(err, fault.NotFound) {
			t.Errorf("%s to a tab that is gone gave %v", name, err)
		}
	}
	if err := s.tabs.CloseTab(ctx, a.ID()); err != nil {
		t.Fatal(err)
	}
	if len(s.tabs.List()) != 0 {
		t.Fatal("the last tab was not closed")
	}
	s.open(ctx, t, "/b")
	s.eventually(ctx, t, "b")
}

func TestAPopupIsWrittenIntoAndClosesItself(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{"/": document(`<title>home</title>`)})
	opener := s.open(ctx, t, "/")
	s.eval(ctx, t, opener, `void (w => { w.document.write("<title>written</title><p>text"); w.document.close() })(open(""))`)
	s.eventually(ctx, t, "home written")
	popup := s.front(ctx, t)
	if nav, err := popup.Here(ctx); err != nil || nav.Title != "written" {
		t.Fatalf("the popup is %+v, %v", nav, err)
	}
	s.begin(ctx, t, popup, `window.close()`)
	s.eventually(ctx, t, "home")
	if front := s.front(ctx, t); front != opener {
		t.Fatal("the opener is not in front")
	}
}

func TestAPageFillsTheScreenAndLeavesItAgain(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{"/": document(`<title>home</title><div style="width:100px">film</div>
		<button onclick="document.querySelector('div').requestFullscreen()">grow</button>
		<script>document.onfullscreenchange = () => document.title = document.fullscreenElement ? "grown" : "home again"</script>`)})
	tab := s.open(ctx, t, "/")
	if _, err := tab.Click(ctx, css("button"), page.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually(ctx, t, "grown")
	if got := s.eval(ctx, t, tab, `document.querySelector("div").offsetWidth`); got != "1280" {
		t.Errorf("on the whole screen it is %s wide", got)
	}
	s.eval(ctx, t, tab, `document.exitFullscreen()`)
	s.eventually(ctx, t, "home again")
	if got := s.eval(ctx, t, tab, `document.querySelector("div").offsetWidth + " in " + innerWidth + "x" + innerHeight`); got != "100 in 1280x720" {
		t.Errorf("after it, it is %s", got)
	}
}

func TestWindowsWithoutEndAreBounded(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/":  document(`<title>home</title>`),
		"/p": document(`<title>p</title>`),
	})
	opener := s.open(ctx, t, "/")
	// One window for each of fifty clicks: the browser itself stops a page that
	// opens several for one.
	clicks := s.attach(ctx, t, opener)
	for i := range 50 {
		ends(t, "opening a window", func() {
			if got := clicks.Eval(ctx, t, `String(open("/p") !== null)`); got != "true" {
				t.Errorf("window %d: the page was told %s", i, got)
			}
		})
	}
	testwait.For(t, "twenty tabs and no more", func() bool {
		var got struct {
			TargetInfos []struct {
				Type string `json:"type"`
			} `json:"targetInfos"`
		}
		if err := s.inst.Conn().Root().Call(ctx, "Target.getTargets", struct{}{}, &got); err != nil {
			t.Fatal(err)
		}
		pages := 0
		for _, info := range got.TargetInfos {
			if info.Type == "page" {
				pages++
			}
		}
		return pages == 20 && len(s.tabs.List()) == 20
	})
	s.hears(t, "the refused windows", func(h page.Surprise) bool { return h.Kind == page.SurprisePopupRefused })
	if err := s.tabs.CloseTab(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if front := s.front(ctx, t); front != opener {
		t.Fatal("the opener is not in front")
	}
	if nav, err := opener.Navigate(ctx, s.URL+"/p", ""); err != nil || nav.Title != "p" {
		t.Fatalf("the session is not usable: %+v, %v", nav, err)
	}
}

func TestDownloadsArriveUnderTheirNames(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	attach := func(name, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
			_, _ = io.WriteString(w, body)
		}
	}
	big := make(chan struct{})
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/":       document(`<title>home</title>`),
		"/report": attach("report.pdf", "one"),
		"/sneaky": attach(`..\\..\\.profile`, "two"),
		"/big": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2000000")
			attach("big.bin", strings.Repeat("x", 100_000))(w, r)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-big:
				_, _ = w.Write(bytes.Repeat([]byte("y"), 1_900_000))
			case <-r.Context().Done():
			}
		},
	})
	tab := s.open(ctx, t, "/")
	state := func(i int) string {
		if list := s.tabs.Downloads(); len(list) > i {
			return list[i].State
		}
		return ""
	}
	for i := range 2 {
		if nav, err := tab.Navigate(ctx, s.URL+"/report?token=canary", ""); err != nil || nav.Title != "home" {
			t.Fatalf("a navigation that is a download gave %+v, %v", nav, err)
		}
		// The name goes to the one that has arrived first.
		testwait.For(t, "it has arrived", func() bool { return state(i) == page.DownloadCompleted })
	}
	if _, err := tab.Navigate(ctx, s.URL+"/sneaky", ""); err != nil {
		t.Fatal(err)
	}
	s.eval(ctx, t, tab, `void (a => { a.download = "note.txt"; a.href = URL.createObjectURL(new Blob(["four"])); a.click() })(document.createElement("a"))`)
	for i, want := range []struct{ file, name, url, body string }{
		{"report.pdf", "report.pdf", s.URL + "/report", "one"},
		{"report (2).pdf", "report.pdf", s.URL + "/report", "one"},
		{"", "", s.URL + "/sneaky", "two"},
		{"note.txt", "note.txt", "blob:" + s.URL, "four"},
	} {
		testwait.For(t, fmt.Sprintf("download %d", i), func() bool { return state(i) == page.DownloadCompleted })
		got := s.tabs.Downloads()[i]
		body, err := os.ReadFile(got.Path)
		if err != nil || string(body) != want.body || got.Bytes != int64(len(want.body)) || got.Total != got.Bytes || got.URL != want.url {
			t.Errorf("download %d is %+v with %q, %v", i, got, body, err)
		}
		if filepath.Dir(got.Path) != s.folder || strings.HasPrefix(filepath.Base(got.Path), ".") {
			t.Errorf("download %d is at %s", i, got.Path)
		}
		if want.name != "" && (got.Name != want.name || filepath.Base(got.Path) != want.file) {
			t.Errorf("download %d is called %q, at %s", i, got.Name, got.Path)
		}
	}
	if files, _ := os.ReadDir(s.folder); len(files) != 4 {
		t.Errorf("the folder holds %v", files)
	}

	for i := 4; i < 6; i++ {
		if _, err := tab.Navigate(ctx, s.URL+"/big", ""); err != nil {
			t.Fatal(err)
		}
		testwait.For(t, "the beginning of a big one", func() bool {
			return state(i) == page.DownloadInProgress && s.tabs.Downloads()[i].Bytes > 0 && s.tabs.Downloads()[i].Total == 2_000_000
		})
		if i == 4 {
			if err := s.tabs.CancelDownload(ctx, s.tabs.Downloads()[i].ID); err != nil {
				t.Fatal(err)
			}
			testwait.For(t, "the cancelled one", func() bool { return state(i) == page.DownloadCanceled })
			if err := s.tabs.CancelDownload(ctx, s.tabs.Downloads()[i].ID); !errors.Is(err, fault.NotFound) {
				t.Fatalf("cancelling twice gave %v", err)
			}
		}
	}

	// Another sidecar takes over while the last one arrives.
	s.tabs.Close()
	if err := s.inst.Release(); err != nil {
		t.Fatal(err)
	}
	s.provider = local.New(filepath.Dir(s.folder), 2, nil)
	next, err := s.provider.Reconnect(ctx, s.inst.Ref())
	if err != nil {
		t.Fatal(err)
	}
	s.inst = next
	if s.tabs, err = page.Open(ctx, next, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.tabs.Downloads(); len(got) != 1 || got[0].Name != "big.bin" || got[0].State != page.DownloadInProgress {
		t.Fatalf("the next one knows of %+v", got)
	}
	close(big)
	testwait.For(t, "the big one", func() bool { return state(0) == page.DownloadCompleted })
	if got := s.tabs.Downloads()[0]; got.Path != filepath.Join(s.folder, "big.bin") || got.Bytes != 2_000_000 {
		t.Fatalf("the big one is %+v", got)
	}
}
