package session_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
	"tapin/internal/testwait"
)

const keptWord = "canary-Kept-7e"

// keeper has one credential, of the site it is told.
type keeper struct{ site string }

func (k keeper) Fill(_ context.Context, name, _ string) (secret.Text, string, error) {
	if name != "mine" {
		return secret.Text{}, "", fault.New(fault.NotFound, "", "there is no %s", name)
	}
	return secret.New(keptWord), k.site, nil
}

func signInPage(t *testing.T) *httptest.Server {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><title>Bank</title><style>body{margin:0}input{display:block;border:0;width:400px;height:60px;font:40px monospace}</style>
		<input id=word aria-label=Word><p id=echo></p><button onclick="echo.textContent = 'it is ' + word.value">Echo</button>`)
	}))
	t.Cleanup(func() {
		site.CloseClientConnections()
		site.Close()
	})
	return site
}

// shows reports whether anything but black is where the field is.
func shows(ctx context.Context, t *testing.T, s *session.Session) bool {
	t.Helper()
	shot, err := s.Screenshot(ctx, page.ShotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(shot.Base64)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for x := range 400 {
		if r, g, b, _ := picture.At(x, 30).RGBA(); r|g|b != 0 {
			return true
		}
	}
	return false
}

func TestWhatWasEntrustedStaysHiddenThroughCutsAndCrashes(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := signInPage(t), place(t)
	before := moveWith(t, dir, site, session.Options{}, keeper{"127.0.0.1"})
	s, err := before.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if !shows(ctx, t, s) {
		t.Fatal("an empty field is masked")
	}
	word := []session.Field{{Locator: page.Locator{Label: "Word"}, Credential: "mine"}}
	if _, _, err := s.Fill(ctx, word, testwait.Limit()); err != nil {
		t.Fatal(err)
	}
	unread := func(s *session.Session, when string) {
		t.Helper()
		if _, _, err := s.Click(ctx, page.Locator{Text: "Echo"}, page.ClickOptions{}); err != nil {
			t.Fatal(err)
		}
		outline, err := s.Snapshot(ctx, page.SnapshotOptions{})
		if err != nil || strings.Contains(outline.Text, "Kept") || !strings.Contains(outline.Text, "it is ‹hidden›") {
			t.Errorf("%s: %s, %v", when, outline.Text, err)
		}
		if shows(ctx, t, s) {
			t.Errorf("%s: the picture shows the field", when)
		}
	}
	unread(s, "at first")
	before.host.Sever(s.ID())
	unread(s, "after the line was cut")

	// What it was died with the process; that there was something did not.
	before.crash()
	after := moveWith(t, dir, site, session.Options{}, keeper{"127.0.0.1"})
	if found, err := after.host.Recover(ctx); err != nil || len(found.Reconnected) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	s, err = after.host.Active()
	if err != nil {
		t.Fatal(err)
	}
	outline, err := s.Snapshot(ctx, page.SnapshotOptions{Interactive: true})
	if err != nil || strings.Contains(outline.Text, "Kept") {
		t.Errorf("after a crash: %s, %v", outline.Text, err)
	}
	if shows(ctx, t, s) {
		t.Error("after a crash: the picture shows the field")
	}
}

func TestCredentialsThatCannotBeHadChangeNothing(t *testing.T) {
	t.Parallel()
	site := signInPage(t)
	for name, tt := range map[string]struct {
		credentials session.Credentials
		wanted      string
		code        fault.Code
	}{
		"where there are none":        {nil, "mine", fault.Disabled},
		"one of another name":         {keeper{"127.0.0.1"}, "other", fault.NotFound},
		"one of another site":         {keeper{"chase.com"}, "mine", fault.Forbidden},
		"one that belongs to no site": {keeper{}, "mine", fault.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			h := moveWith(t, place(t), site, session.Options{}, tt.credentials)
			s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
			if err != nil {
				t.Fatal(err)
			}
			label := page.Locator{Label: "Word"}
			fields := []session.Field{{Locator: label, Credential: tt.wanted}}
			if tt.code != fault.Forbidden || tt.credentials == (keeper{}) {
				// Fetched before anything is typed: the field before it stays empty too.
				fields = []session.Field{{Locator: label, Value: secret.New("x")}, fields[0]}
			}
			_, _, err = s.Fill(ctx, fields, testwait.Limit())
			if f := fault.Of(err); f == nil || f.Code != tt.code || f.Advice() == "" || strings.Contains(err.Error(), "Kept") {
				t.Errorf("%v", err)
			}
			if outline, err := s.Snapshot(ctx, page.SnapshotOptions{}); err != nil || strings.Contains(outline.Text, "=") {
				t.Errorf("something was typed: %s, %v", outline.Text, err)
			}
		})
	}
}
