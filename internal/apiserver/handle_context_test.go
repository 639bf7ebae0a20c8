package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/browser"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/logins"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

const (
	cookieCanary = "canary-cookie-51aa"
	bankOrigin   = "https://bank.example"
)

// The room of logins fits the door.
var _ apiserver.Contexts = (*logins.Room)(nil)

// keys seal and open with age, as the vault does.
type keys struct{ id *age.X25519Identity }

func newKeys(t *testing.T) keys {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return keys{id}
}

func (k keys) Recipient() string { return k.id.Recipient().String() }

func (k keys) Seal(name, origin string, plain []byte) ([]byte, error) {
	s, err := k.SealTo([]string{k.Recipient()}, name, origin, plain)
	return []byte(s), err
}

func (k keys) SealTo(to []string, name, origin string, plain []byte) (string, error) {
	var recipients []age.Recipient
	for _, r := range to {
		one, err := age.ParseX25519Recipient(r)
		if err != nil {
			return "", fault.New(fault.InvalidRequest, "seal", "not a recipient")
		}
		recipients = append(recipients, one)
	}
	return encrypt(name, origin, plain, recipients...)
}

func encrypt(name, origin string, plain []byte, to ...age.Recipient) (string, error) {
	var out bytes.Buffer
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, to...)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(w, "%s %s\n%s", name, origin, plain)
	err = errors.Join(err, w.Close(), a.Close())
	return out.String(), err
}

func (k keys) SealWithPassphrase(pass secret.Text, name, origin string, plain []byte) (string, error) {
	to, err := age.NewScryptRecipient(pass.Reveal())
	if err != nil {
		return "", err
	}
	to.SetWorkFactor(10)
	return encrypt(name, origin, plain, to)
}

func (k keys) Open(name, origin string, sealed []byte) ([]byte, error) {
	return decrypt(name, origin, sealed, k.id)
}

func (k keys) OpenWithPassphrase(pass secret.Text, name, origin string, sealed []byte) ([]byte, error) {
	id, err := age.NewScryptIdentity(pass.Reveal())
	if err != nil {
		return nil, err
	}
	return decrypt(name, origin, sealed, id)
}

func decrypt(name, origin string, sealed []byte, id age.Identity) ([]byte, error) {
	var out bytes.Buffer
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), id)
	if err == nil {
		_, err = out.ReadFrom(r)
	}
	plain, ok := bytes.CutPrefix(out.Bytes(), []byte(name+" "+origin+"\n"))
	if err != nil || !ok {
		return nil, fault.New(fault.IntegrityMismatch, "open", "it does not open")
	}
	return plain, nil
}

// liveLogin is the login of the live session, in memory.
type liveLogin struct {
	mu       sync.Mutex
	state    browser.State
	pristine bool
	asked    apiserver.CaptureOptions
}

func (l *liveLogin) Capture(_ context.Context, _ string, o apiserver.CaptureOptions) (apiserver.Captured, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = o
	return apiserver.Captured{State: l.state, Origin: bankOrigin, At: time.UnixMilli(1_770_000_000_000), Pristine: l.pristine}, nil
}

func (l *liveLogin) Apply(_ context.Context, _ string, e logins.Envelope, o apiserver.ApplyOptions) (apiserver.Applied, error) {
	if o.StrictOrigin {
		return apiserver.Applied{}, fault.New(fault.OriginMismatch, "import", "the tab is elsewhere")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next, left := logins.Replace(l.state, e)
	l.state = next
	return apiserver.Applied{Cookies: len(e.Cookies), StorageKeys: len(e.Local) + len(e.Session), LeftAlone: left}, nil
}

type lines struct {
	apiserver.Journal // for what is not written
	mu                sync.Mutex
	all               []event.Entry
}

func (l *lines) Write(e event.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
	return nil
}

type looking struct{ seen logins.Seen }

func (l *looking) Look(context.Context, logins.Check, browser.State) (logins.Seen, error) {
	return l.seen, nil
}

// loginFixture is a server over a real room with one login, bank.
type loginFixture struct {
	*fixture
	saved   *logins.Room
	live    *liveLogin
	keys    keys
	other   keys // a tapin that the owner has named
	journal *lines
	looking *looking
	owner   *api.Client
}

func bankState() browser.State {
	return browser.State{
		Cookies: []browser.Cookie{{Name: "sid", Value: secret.New(cookieCanary), Domain: "bank.example", Path: "/", Secure: true, HTTPOnly: true}},
		Origins: []browser.OriginState{{Origin: bankOrigin, Local: []browser.Item{{Key: secret.New("k"), Value: secret.New(cookieCanary)}}, Databases: []byte("db")}},
	}
}

func serveLogins(t *testing.T) *loginFixture {
	t.Helper()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	f := &loginFixture{live: &liveLogin{state: bankState()}, keys: newKeys(t), other: newKeys(t), journal: &lines{}, looking: &looking{}}
	f.saved = logins.New(home, f.keys, &logins.Options{Checker: f.looking})
	manifest := "contexts:\n  bank:\n    notes: mine\n    check: {url: https://bank.example/me, text: Log out}\n    payment_approval: {max_amount: 200, auto_approve: true}\n"
	if err := os.WriteFile(f.saved.Manifest(), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{
		func() error { _, _, err := f.saved.Checkout(t.Context(), "bank", "ses_0"); return err },
		func() error {
			_, err := f.saved.Save(t.Context(), "bank", "ses_0", bankState(), logins.SaveOptions{URL: bankOrigin})
			return err
		},
		func() error { return f.saved.Release(t.Context(), "bank", "ses_0") },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	f.fixture = serveWith(t, nil, func(d *apiserver.Deps) {
		d.Contexts, d.Live, d.Porter, d.Known, d.Journal = f.saved, f.live, f.keys, []string{f.other.Recipient()}, f.journal
	})
	f.owner = f.client(t, ownerToken)
	return f
}

func TestTheInventoryTellsOfLoginsWithoutTheirValues(t *testing.T) {
	t.Parallel()
	f := serveLogins(t)
	all, err := f.agent.Contexts(t.Context())
	if err != nil || len(all.Contexts) != 1 {
		t.Fatalf("got %+v, %v", all, err)
	}
	got := all.Contexts[0]
	if got.Name != "bank" || got.Domain != "bank.example" || got.Notes != "mine" || !got.Saved || got.Cookies != 1 || got.Bytes == 0 ||
		got.PaymentApproval.MaxAmount != "200" || got.Check.Text != "Log out" || got.LastUsed == "" || got.LastVerified != "" || got.Lifetime.Since.IsZero() {
		t.Errorf("got %+v", got)
	}
	one, err := f.agent.Context(t.Context(), "bank")
	if diff := cmp.Diff(&got, one); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, name := range []string{"nobody", "..", "a b", "%2e%2e"} {
		if _, err := f.agent.Context(t.Context(), name); err == nil {
			t.Errorf("%q is a login", name)
		}
	}
	if _, err := f.agent.Context(t.Context(), "nobody"); !errors.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
	raw, _ := json.Marshal(all)
	if strings.Contains(string(raw), cookieCanary) || strings.Contains(f.log.String(), cookieCanary) {
		t.Error("a value got out")
	}
}

func TestDeletingIsTheOwnersUnlessTheCheckFailed(t *testing.T) {
	t.Parallel()
	f := serveLogins(t)
	if _, err := f.agent.DeleteContext(t.Context(), "bank"); !errors.Is(err, fault.Forbidden) {
		t.Errorf("the agent deletes one that nobody checked: %v", err)
	}
	f.looking.seen = logins.Seen{URL: bankOrigin + "/me", Status: 200, Found: true}
	if got, err := f.agent.CheckContext(t.Context(), "bank"); err != nil || got.Result != "valid" || got.Name != "bank" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := f.agent.DeleteContext(t.Context(), "bank"); !errors.Is(err, fault.Forbidden) {
		t.Errorf("the agent deletes one that works: %v", err)
	}
	f.looking.seen = logins.Seen{URL: bankOrigin + "/login", Status: 200}
	if got, err := f.agent.CheckContext(t.Context(), "bank"); err != nil || got.Result != "expired" {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err := f.agent.DeleteContext(t.Context(), "bank")
	if err != nil || !got.State || !got.Entry || !got.History {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := f.agent.Context(t.Context(), "bank"); !errors.Is(err, fault.NotFound) {
		t.Errorf("it is still there: %v", err)
	}

	g := serveLogins(t)
	if _, err := g.owner.DeleteContext(t.Context(), "bank"); err != nil {
		t.Errorf("the owner: %v", err)
	}
}

func TestRenamingIsTheOwners(t *testing.T) {
	t.Parallel()
	f := serveLogins(t)
	if _, err := f.agent.RenameContext(t.Context(), "bank", api.RenameRequest{To: "x"}); !errors.Is(err, fault.Forbidden) {
		t.Errorf("the agent: %v", err)
	}
	if got, err := f.owner.RenameContext(t.Context(), "bank", api.RenameRequest{To: "bank-2"}); err != nil || got.Name != "bank-2" || got.Was != "bank" {
		t.Errorf("the owner: %+v, %v", got, err)
	}
	if _, err := f.owner.RenameContext(t.Context(), "bank-2", api.RenameRequest{To: "../x"}); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("a name that is none: %v", err)
	}
}

func TestWhoMayExportWhatAndHow(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	stranger := newKeys(t)
	pass := secret.New("correct horse battery")
	for name, tt := range map[string]struct {
		login    string // "" is the live session
		owner    bool
		pristine bool
		req      func(f *loginFixture) api.ExportRequest
		want     fault.Code // "" means done
		sealed   bool
	}{
		"a saved login, the agent":                    {login: "bank", sealed: true},
		"a saved login, the agent, plain":             {login: "bank", req: fixed(api.ExportRequest{Sealed: &no}), want: fault.Forbidden},
		"a saved login, the agent, with a passphrase": {login: "bank", req: fixed(api.ExportRequest{Passphrase: pass}), want: fault.Forbidden},
		"a saved login, the agent, for a key of its own": {
			login: "bank", req: fixed(api.ExportRequest{Recipients: []string{stranger.Recipient()}}), want: fault.Forbidden,
		},
		"a saved login, the agent, for a tapin that the owner named": {
			login: "bank", sealed: true, req: func(f *loginFixture) api.ExportRequest {
				return api.ExportRequest{Recipients: []string{f.other.Recipient(), f.keys.Recipient()}}
			},
		},
		"a saved login, the owner":               {login: "bank", owner: true},
		"a saved login, the owner, sealed":       {login: "bank", owner: true, req: fixed(api.ExportRequest{Sealed: &yes}), sealed: true},
		"a saved login, the owner, a passphrase": {login: "bank", owner: true, req: fixed(api.ExportRequest{Passphrase: pass}), sealed: true},
		"a saved login, the owner, anybody":      {login: "bank", owner: true, req: fixed(api.ExportRequest{Recipients: []string{stranger.Recipient()}}), sealed: true},
		"plain and addressed":                    {login: "bank", owner: true, req: fixed(api.ExportRequest{Sealed: &no, Passphrase: pass}), want: fault.InvalidRequest},
		"a saved login with a tab":               {login: "bank", owner: true, req: fixed(api.ExportRequest{TabID: "x"}), want: fault.InvalidRequest},
		"a live session that a person was in":    {sealed: true},
		"and plain":                              {req: fixed(api.ExportRequest{Sealed: &no}), want: fault.Forbidden},
		"a pristine session":                     {pristine: true},
		"a pristine session, sealed":             {pristine: true, req: fixed(api.ExportRequest{Sealed: &yes}), sealed: true},
		"HTTP passwords, the agent":              {pristine: true, req: fixed(api.ExportRequest{IncludeHTTPAuth: true}), want: fault.Forbidden},
		"HTTP passwords, the owner":              {owner: true, req: fixed(api.ExportRequest{IncludeHTTPAuth: true})},
		"no such login":                          {login: "nobody", owner: true, want: fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serveLogins(t)
			f.live.pristine = tt.pristine
			if _, err := f.agent.Start(t.Context(), api.StartRequest{}); err != nil {
				t.Fatal(err)
			}
			var req api.ExportRequest
			if tt.req != nil {
				req = tt.req(f)
			}
			client := f.agent
			if tt.owner {
				client = f.owner
			}
			got, err := client.ExportContext(t.Context(), tt.login, req)
			if tt.want != "" {
				if !errors.Is(err, tt.want) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if readable := bytes.Contains(got.Envelope, []byte(cookieCanary)); got.Sealed != tt.sealed || readable == tt.sealed || got.Cookies != 1 || got.StorageKeys != 1 || got.Origin != bankOrigin {
				t.Errorf("got %+v", got)
			}
			line := f.journal.all[len(f.journal.all)-1]
			if line.What != "context.export" || line.Origin != bankOrigin || line.Counts["cookies"] != 1 || line.Outcome != "ok" {
				t.Errorf("the journal says %+v", line)
			}
		})
	}
}

func fixed(r api.ExportRequest) func(*loginFixture) api.ExportRequest {
	return func(*loginFixture) api.ExportRequest { return r }
}

func TestAnEnvelopeGoesIntoLoginsAndSessions(t *testing.T) {
	t.Parallel()
	f := serveLogins(t)
	if _, err := f.agent.Start(t.Context(), api.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	sealed, err := f.agent.ExportContext(t.Context(), "bank", api.ExportRequest{})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := f.owner.ExportContext(t.Context(), "bank", api.ExportRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for name, envelope := range map[string]json.RawMessage{"sealed": sealed.Envelope, "plain": plain.Envelope} {
		f.live.state = browser.State{}
		got, err := f.agent.ImportContext(t.Context(), "", api.ImportRequest{Envelope: envelope})
		if err != nil || got.AppliedCookies != 1 || got.AppliedStorageKeys != 1 || len(f.live.state.Cookies) != 1 || !cmp.Equal(got.LeftAlone, []string{"sessionStorage", "indexedDB"}) {
			t.Errorf("%s, into a session: %+v, %v", name, got, err)
		}
		got, err = f.agent.ImportContext(t.Context(), name, api.ImportRequest{Envelope: envelope})
		if err != nil || !got.New || got.Origin != bankOrigin {
			t.Errorf("%s, into a new login: %+v, %v", name, got, err)
		}
		if _, err := f.agent.ImportContext(t.Context(), "bank", api.ImportRequest{Envelope: envelope}); !errors.Is(err, fault.Forbidden) {
			t.Errorf("%s, by the agent over the owner's login: %v", name, err)
		}
		if got, err := f.owner.ImportContext(t.Context(), "bank", api.ImportRequest{Envelope: envelope}); err != nil || got.New {
			t.Errorf("%s, by the owner: %+v, %v", name, got, err)
		}
	}
	if _, err := f.agent.ImportContext(t.Context(), "", api.ImportRequest{Envelope: plain.Envelope, StrictOrigin: true}); !errors.Is(err, fault.OriginMismatch) {
		t.Errorf("a tab that is elsewhere: %v", err)
	}
	if _, err := f.owner.ImportContext(t.Context(), "bank", api.ImportRequest{Envelope: plain.Envelope, StrictOrigin: true}); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("a login with a tab: %v", err)
	}
}

func TestARefusedEnvelopeChangesNothingAndSaysWhy(t *testing.T) {
	t.Parallel()
	f := serveLogins(t)
	if _, err := f.agent.Start(t.Context(), api.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	plain, err := f.owner.ExportContext(t.Context(), "bank", api.ExportRequest{})
	if err != nil {
		t.Fatal(err)
	}
	before := f.live.state
	for name, tt := range map[string]struct {
		envelope  string
		want      fault.Code
		integrity bool
	}{
		"a changed value":   {strings.Replace(string(plain.Envelope), cookieCanary, "another-value", 1), fault.IntegrityMismatch, true},
		"an unknown member": {strings.Replace(string(plain.Envelope), `{"`, `{"x":1,"`, 1), fault.InvalidRequest, false},
		"another version":   {strings.Replace(string(plain.Envelope), `"version":1`, `"version":7`, 1), fault.InvalidRequest, false},
		"a list":            {`[1]`, fault.InvalidRequest, false},
		"half a character":  {strings.Replace(string(plain.Envelope), cookieCanary, `\ud800`, 1), fault.InvalidRequest, false},
		"far too long":      {`{"x":"` + strings.Repeat("a", 11<<20) + `"}`, fault.PayloadTooLarge, false},
	} {
		if name == "far too long" && !testwait.Long() {
			continue // the race detector takes half a minute to read it; logins holds the same limit
		}
		for _, path := range []string{"/context/import", "/contexts/fresh/import"} {
			got := f.do(t, http.MethodPost, path, `{"envelope":`+tt.envelope+`}`, nil)
			if got.status != tt.want.Status() || got.body["error"] != string(tt.want) || (got.body["integrityError"] != nil) != tt.integrity || strings.Contains(got.raw, cookieCanary) {
				t.Errorf("%s to %s: %d %s", name, path, got.status, got.raw)
			}
		}
	}
	if !cmp.Equal(len(f.live.state.Cookies), len(before.Cookies)) {
		t.Error("something was applied")
	}
	if _, err := f.agent.Context(t.Context(), "fresh"); !errors.Is(err, fault.NotFound) {
		t.Errorf("a login was made: %v", err)
	}
}

func TestWithoutLoginsTheirRoutesSaySo(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	_, err := f.agent.Contexts(t.Context())
	_, errLive := f.agent.ExportContext(t.Context(), "", api.ExportRequest{})
	_, errDelete := f.agent.DeleteContext(t.Context(), "bank")
	for _, err := range []error{err, errLive, errDelete} {
		if !errors.Is(err, fault.Disabled) {
			t.Errorf("got %v", err)
		}
	}
}
