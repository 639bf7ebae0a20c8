package session_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

// form is a site of one page.
func form(t *testing.T, body string) *httptest.Server {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, "<!doctype html><title>Form</title>"+body)
	}))
	t.Cleanup(site.Close)
	return site
}

// reopen is a home that another process has left.
func reopen(t *testing.T, dir string) *store.Home {
	t.Helper()
	home, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	return home
}

func TestOnlyFilesOfTheFolderAreUploaded(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := form(t, `<input type=file multiple aria-label=Files onchange="document.title = [...this.files].map(f => f.name)">`)
	dir := place(t)
	outside := filepath.Join(dir, "agent.token")
	uploads := filepath.Join(dir, "uploads")
	linked := filepath.Join(dir, "linked")
	for _, folder := range []string{uploads, uploads + "/sub", uploads + "-not"} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{outside, uploads + "/a.txt", uploads + "/sub/b.txt", uploads + "/..c.txt", uploads + "-not/d.txt"} {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		uploads + "/escape":  outside,
		uploads + "/folder":  dir,
		uploads + "/inside":  uploads + "/a.txt",
		uploads + "/nowhere": dir + "/nothing",
		linked:               uploads,
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	// The folder itself may be reached through a link.
	h := move(t, dir, site, session.Options{Uploads: linked})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		files []string
		code  fault.Code // "" is allowed
	}{
		"a name in the folder":               {[]string{"a.txt"}, ""},
		"a name in a folder of the folder":   {[]string{"sub/b.txt"}, ""},
		"a full path in the folder":          {[]string{linked + "/a.txt"}, ""},
		"a full path past the link":          {[]string{uploads + "/a.txt"}, ""},
		"a link that stays inside":           {[]string{"inside"}, ""},
		"a name with dots in it":             {[]string{"..c.txt"}, ""},
		"several":                            {[]string{"a.txt", "sub/b.txt"}, ""},
		"a full path elsewhere":              {[]string{outside}, fault.Forbidden},
		"a way out by dots":                  {[]string{"../agent.token"}, fault.Forbidden},
		"a way out by dots in a full path":   {[]string{linked + "/sub/../../agent.token"}, fault.Forbidden},
		"a link that leads out":              {[]string{"escape"}, fault.Forbidden},
		"a file behind a linked folder":      {[]string{"folder/agent.token"}, fault.Forbidden},
		"a folder whose name begins alike":   {[]string{uploads + "-not/d.txt"}, fault.Forbidden},
		"one of several elsewhere":           {[]string{"a.txt", outside}, fault.Forbidden},
		"one elsewhere that does not exist":  {[]string{"/no/such/file"}, fault.Forbidden},
		"the folder itself":                  {[]string{linked}, fault.Forbidden},
		"a folder":                           {[]string{"sub"}, fault.InvalidRequest},
		"a file that is not there":           {[]string{"nothing.txt"}, fault.NotFound},
		"a link to nothing":                  {[]string{"nowhere"}, fault.NotFound},
		"a file of the process, by its link": {[]string{"/proc/self/environ"}, fault.Forbidden},
	} {
		_, err := s.Upload(ctx, &page.Locator{Label: "Files"}, tt.files, testwait.Limit())
		if tt.code == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		f := fault.Of(err)
		if !errors.Is(err, tt.code) {
			t.Errorf("%s: %v", name, err)
		} else if tt.code == fault.Forbidden && !strings.Contains(f.Advice(), linked) {
			t.Errorf("%s: the hint does not name the folder: %s", name, f.Advice())
		}
		if strings.Contains(f.Details(), "agent.token") {
			t.Errorf("%s: the answer tells the path: %s", name, f.Details())
		}
	}
	closed := move(t, place(t), site, session.Options{})
	s, err = closed.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Upload(ctx, &page.Locator{Label: "Files"}, []string{"a.txt"}, time.Second); !errors.Is(err, fault.Disabled) {
		t.Errorf("without a folder: %v", err)
	}
}

func TestTheJournalTellsHowMuchAndNeverWhat(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const canary = "canary-journal-19f2"
	site := form(t, `<label>Name <input></label><button onclick="alert('hi')">Go</button>
		<select aria-label=List><option>`+canary+`</select>`)
	dir := place(t)
	h := move(t, dir, site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	name := page.Locator{Label: "Name"}
	if typed, did, err := s.Type(ctx, secret.New(canary), page.TypeOptions{Locator: &name}); err != nil || typed.Characters != len(canary) || did.Title != "Form" || did.URL != site.URL+"/" {
		t.Fatalf("type: %+v, %+v, %v", typed, did, err)
	}
	if _, _, err := s.Fill(ctx, []session.Field{{Locator: name, Value: secret.New(canary)}, {Locator: page.Locator{Label: canary}, Value: secret.New(canary)}}, 200*time.Millisecond); !errors.Is(err, fault.ElementNotFound) || fault.Of(err).Data["filled"] != 1 {
		t.Fatalf("fill: %v", err)
	}
	if _, _, err := s.Select(ctx, page.Locator{Label: "List"}, []string{canary}, testwait.Limit()); err != nil {
		t.Fatal(err)
	}
	_, did, err := s.Click(ctx, page.Locator{Text: "Go"}, page.ClickOptions{})
	if err != nil || did.Dialog == nil || did.Dialog.Kind != "alert" || did.Dialog.Message != "hi" {
		t.Fatalf("click: %+v, %v", did, err)
	}
	if _, _, err := s.Type(ctx, secret.New(canary), page.TypeOptions{Locator: &name}); !errors.Is(err, fault.DialogOpen) {
		t.Fatalf("type under a dialog: %v", err)
	}
	if did, err := s.Answer(ctx, true, secret.Text{}); err != nil || did.Dialog != nil {
		t.Fatalf("answer: %+v, %v", did, err)
	}
	if err := h.host.Close(ctx); err != nil {
		t.Fatal(err)
	}
	h.close()

	var got []event.Entry
	home := reopen(t, dir)
	if err := event.NewJournal(home, nil).Scan(time.Time{}, func(e event.Entry) error { got = append(got, e); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []event.Entry{
		{What: "session.type", Counts: map[string]int{"characters": len(canary)}, Outcome: "ok"},
		{What: "session.fill", Counts: map[string]int{"fields": 1}, Outcome: "ELEMENT_NOT_FOUND"},
		{What: "session.select", Counts: map[string]int{"options": 1}, Outcome: "ok"},
		{What: "session.click", Counts: map[string]int{"strategies": 1}, Outcome: "ok"},
		{What: "session.type", Counts: map[string]int{"characters": 0}, Outcome: "DIALOG_OPEN"},
		{What: "session.dialog", Outcome: "ok"},
	} {
		if !slices.ContainsFunc(got, func(e event.Entry) bool {
			return e.What == want.What && e.Outcome == want.Outcome && fmt.Sprint(e.Counts) == fmt.Sprint(want.Counts) && e.Origin == site.URL && e.Who == "agent"
		}) {
			t.Errorf("the journal lacks %+v", want)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "journal", "*"))
	for _, file := range files {
		if raw, err := os.ReadFile(file); err != nil || strings.Contains(string(raw), canary) {
			t.Errorf("%s tells what was typed (%v)", file, err)
		}
	}
}

func TestActionsTakeTurns(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := form(t, `<button onclick="n = (window.n || 0) + 1; document.title = n">Count</button>`)
	h := move(t, place(t), site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	const clicks = 8
	failed := make(chan error, clicks)
	for range clicks {
		go func() {
			_, _, err := s.Click(ctx, page.Locator{Text: "Count"}, page.ClickOptions{})
			failed <- err
		}()
	}
	for range clicks {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if shot, err := s.Snapshot(ctx, page.SnapshotOptions{}); err != nil || shot.Title != fmt.Sprint(clicks) {
		t.Fatalf("%d clicks made %q, %v", clicks, shot.Title, err)
	}
}

func TestSurprisesAreToldInTheFeed(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const canary = "canary-dialog-77aa"
	site := form(t, `<button onclick="alert('`+canary+`')">Alert</button><button onclick="window.open('/')">Open</button>`)
	h := move(t, place(t), site, session.Options{})
	s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, did, err := s.Click(ctx, page.Locator{Text: "Alert"}, page.ClickOptions{}); err != nil || did.Dialog == nil {
		t.Fatalf("%+v, %v", did, err)
	}
	if _, err := s.Answer(ctx, true, secret.Text{}); err != nil {
		t.Fatal(err)
	}
	if _, did, err := s.Click(ctx, page.Locator{Text: "Open"}, page.ClickOptions{}); err != nil || did.URL != site.URL+"/" {
		t.Fatalf("%+v, %v", did, err)
	}
	told := func(kind, data string) bool {
		events, _ := h.feed.Since(0, 100)
		return slices.ContainsFunc(events, func(e event.Event) bool {
			return e.Type == kind && strings.Contains(string(e.Data), data) && strings.Contains(string(e.Data), s.ID())
		})
	}
	testwait.For(t, "the news of the dialog", func() bool { return told("session.question", `"dialog":"alert"`) })
	testwait.For(t, "the news of the tab", func() bool { return told("session.tab_opened", `"tab_id"`) })
	if told("session.question", canary) {
		t.Error("the feed tells what a dialog says")
	}
}
