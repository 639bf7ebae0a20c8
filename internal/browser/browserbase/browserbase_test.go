package browserbase_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browserbase"
	"tapin/internal/browser/browserbase/standin"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/usage"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const mark = "tapin-test-1"

// cloud is a stand-in that nobody may have misused when the test is over.
func cloud(t *testing.T, o *standin.Options) *standin.Server {
	t.Helper()
	s, err := standin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, wrong := range s.Wrong() {
			t.Errorf("the API was misused: %s", wrong)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// account is that of the stand-in.
func account(s *standin.Server) func(context.Context) (browserbase.Account, error) {
	return func(context.Context) (browserbase.Account, error) {
		return browserbase.Account{Key: secret.New(s.Key()), Project: s.Project(), BaseURL: s.URL()}, nil
	}
}

func provider(t *testing.T, s *standin.Server, o *browserbase.Options) *browserbase.Provider {
	t.Helper()
	if o == nil {
		o = &browserbase.Options{Region: "us-east-1", BlockAds: true, SolveCaptchas: true}
	}
	p := browserbase.New(mark, account(s), o)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func ledger(t *testing.T, capMinutes int) *usage.Ledger {
	t.Helper()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	l := usage.Open(home, &usage.Options{CapMinutes: capMinutes})
	return l
}

func TestBrowserbaseIsAProvider(t *testing.T) {
	s := cloud(t, nil)
	theirs := s.Foreign(map[string]any{"tapin": "another-tapin", "tapin_browser": "ses_x-1"})
	browsertest.Run(t, func(t *testing.T) browsertest.Subject {
		own := store.NewID("tpn") // each test is a tapin of its own, in the same account
		next := func() browser.Provider {
			p := browserbase.New(own, account(s), nil)
			t.Cleanup(func() { _ = p.Close() })
			return p
		}
		sever := func(i browser.Instance) { _ = i.Conn().Close() }
		return browsertest.Subject{Provider: next(), Next: next, Sever: sever, Canary: s.Key()}
	})
	t.Cleanup(func() {
		running := s.Sessions("RUNNING")
		if len(running) != 1 || running[0].ID != theirs {
			t.Errorf("there run %+v; only somebody else's should", running)
		}
	})
}

func TestAWishSaysEverythingThatWasConfigured(t *testing.T) {
	t.Parallel()
	s, ctx := cloud(t, &standin.Options{Shared: true}), browsertest.Context(t)
	p := provider(t, s, &browserbase.Options{Region: "eu-central-1", BlockAds: true, SolveCaptchas: true, Spare: 30 * time.Minute})
	kept, err := p.NewKept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := p.Create(ctx, browser.Spec{
		ID: "ses_wish-1", KeepUntil: time.Now().Add(30 * time.Minute), Width: 1280, Height: 720, Kept: kept, Persist: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.End(ctx); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(s.Requests(), func(r standin.Request) bool { return r.Method == "POST" && r.Path == "/v1/sessions" })
	var got map[string]any
	if err := json.Unmarshal(s.Requests()[at].Body, &got); err != nil {
		t.Fatal(err)
	}
	timeout, _ := got["timeout"].(float64)
	if timeout < 3590 || timeout > 3600 {
		t.Errorf("the timeout is %v s, and not the session's and the spare time", timeout)
	}
	delete(got, "timeout")
	raw, _ := json.Marshal(got)
	want := `{"browserSettings":{"blockAds":true,"context":{"id":"` + kept + `","persist":true},"logSession":false,"recordSession":false,"solveCaptchas":true,"viewport":{"height":720,"width":1280}},` +
		`"keepAlive":true,"projectId":"` + s.Project() + `","region":"eu-central-1","userMetadata":{"tapin":"` + mark + `","tapin_browser":"ses_wish-1"}}`
	if string(raw) != want {
		t.Errorf("the wish was\n%s\nand not\n%s", raw, want)
	}
	for _, r := range s.Requests() {
		if strings.Contains(r.Query+r.Path, s.Key()) {
			t.Errorf("the key is in %s?%s", r.Path, r.Query)
		}
	}
}
