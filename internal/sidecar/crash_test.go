package sidecar_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/secret"
)

// login opens the site's login with a saved login, and waits until it is there.
func (r *running) login(site *account, context string) string {
	r.t.Helper()
	begun := r.must("POST", "/session/start", `{"context":"`+context+`","url":"`+site.URL+`/login","screenshot":false}`)
	r.settled("logged in")
	id, _ := begun["session_id"].(string)
	return id
}

// settled waits until the page says that it has done what it had to.
func (r *running) settled(word string) {
	r.t.Helper()
	r.must("POST", "/session/wait", `{"text":"`+word+`","screenshot":false}`)
}

// restored starts a session with the login, and makes sure that it is one.
func (r *running) restored(site *account, context string) {
	r.t.Helper()
	if begun := r.must("POST", "/session/start", `{"context":"`+context+`","url":"`+site.URL+`/","screenshot":false}`); begun["context_restored"] != true {
		r.t.Errorf("the start says %v", begun)
	}
	r.settled("judged")
	site.mu.Lock()
	defer site.mu.Unlock()
	if len(site.strange) > 0 {
		r.t.Errorf("the site saw requests without the login: %v", site.strange)
	}
	if n := len(site.verdicts); n == 0 || site.verdicts[n-1] != "true,true,true" {
		r.t.Errorf("the page found %v", site.verdicts)
	}
}

func TestALoginOutlivesAKilledSidecar(t *testing.T) {
	t.Parallel()
	site := openAccount(t)
	p := startProcess(t, site.URL)
	id := p.login(site, "bank")
	p.kill()
	p.begin()
	// It was used just now: the same browser goes on, and has its login still.
	if status := p.must("GET", "/session/status", ""); status["session_id"] != id {
		t.Fatalf("the session is %v", status)
	}
	p.refused("POST", "/session/start", `{"context":"bank"}`, "SESSION_ACTIVE")
	if stopped := p.must("POST", "/session/stop", `{}`); stopped["context_saved"] != true {
		t.Errorf("the stop says %v", stopped)
	}
	p.restored(site, "bank")
	noCanary(t, p.dir, accountCookie, accountLocal, accountRow)
}

// A session that nobody has used for a while is not picked up again: its login
// is saved, and it is closed.
func TestALoginOfASessionThatNobodyUsedIsSavedAtRecovery(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	p := startProcess(t, site.URL)
	id := p.login(site, "bank")
	p.kill()
	used := regexp.MustCompile(`"last_used_at": ?"[^"]+"`)
	file := filepath.Join(p.dir, "sessions", id+".json")
	raw, err := os.ReadFile(file) //nolint:gosec // a file of the test's own home
	if err != nil || !used.Match(raw) {
		t.Fatalf("%v: %s", err, raw)
	}
	old := used.ReplaceAll(raw, []byte(`"last_used_at":"`+time.Now().Add(-10*time.Minute).UTC().Format(time.RFC3339)+`"`))
	if err := os.WriteFile(file, old, 0o600); err != nil {
		t.Fatal(err)
	}
	p.begin()
	if status := p.must("GET", "/session/status", ""); status["active"] != false {
		t.Errorf("the status says %v", status)
	}
	if login := p.must("GET", "/contexts/bank", ""); login["saved"] != true || login["in_use_by"] != nil {
		t.Errorf("the login is %v", login)
	}
	p.restored(site, "bank")
}

// The lock of a login is of its session, and not of the process that it was in.
func TestALoginIsStillLockedAfterAKill(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	p := startProcess(t, site.URL, "max_sessions=2")
	id := p.login(site, "bank")
	p.kill()
	p.begin()
	if answer := p.refused("POST", "/session/start", `{"context":"bank"}`, "CONTEXT_LOCKED"); answer["session_id"] != id {
		t.Errorf("it says %v", answer)
	}
	p.owner().refused("DELETE", "/contexts/bank", "", "CONTEXT_LOCKED")
	p.owner().refused("POST", "/contexts/bank/rename", `{"to":"other"}`, "CONTEXT_LOCKED")
	p.must("POST", "/sessions/"+id+"/stop", `{}`)
	p.restored(site, "bank")
}

func TestALoginIsSavedWhenTheSessionsTimeIsUp(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	r := start(t, site.Server)
	begun := r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/login","timeout_s":10,"screenshot":false}`)
	r.settled("logged in")
	if ended := r.news("session.ended"); ended["id"] != begun["session_id"] {
		t.Errorf("the feed says %v", ended)
	}
	r.restored(site, "bank")
}

// news follows the feed from its beginning until something has happened.
func (r *running) news(what string) map[string]any {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.base+"/events", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.agent)
	req.Header.Set("Last-Event-ID", "0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines, told := bufio.NewScanner(resp.Body), ""
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && told == what {
			var answer map[string]any
			_ = json.Unmarshal([]byte(data), &answer)
			return answer
		}
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			told = kind
		}
	}
	r.t.Fatalf("the feed ended before %s", what)
	return nil
}

func TestADamagedLoginIsSetAsideAndTheSessionStarts(t *testing.T) {
	t.Parallel()
	site := openAccount(t)
	r := start(t, site.Server)
	r.login(site, "bank")
	r.must("POST", "/session/stop", `{}`)
	file := filepath.Join(r.dir, "contexts", "bank.age")
	sealed, err := os.ReadFile(file) //nolint:gosec // a file of the test's own home
	if err != nil {
		t.Fatal(err)
	}
	sealed[len(sealed)/2] ^= 1
	if err := os.WriteFile(file, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	if begun := r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/login","screenshot":false}`); begun["context_restored"] == true {
		t.Errorf("the start says %v", begun)
	}
	r.settled("logged in")
	login := r.must("GET", "/contexts/bank", "")
	if damaged, _ := login["damaged"].([]any); len(damaged) != 1 || !strings.Contains(damaged[0].(string), "bank.age.damaged-") {
		t.Errorf("the login is %v", login)
	}
	r.must("POST", "/session/stop", `{}`)
	r.restored(site, "bank")
}

// The sidecar is killed at every moment of an import: the next one finds what
// was there before, or all of what was to come.
func TestAKillDuringAnImportLeavesTheOldOrTheNew(t *testing.T) {
	browsertest.Long(t)
	t.Parallel()
	site := openAccount(t)
	p := startProcess(t, site.URL)
	p.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
	p.settled("logged in")
	state := func() string { return stateOf(t, p.envelope(`{"origin":"`+site.URL+`"}`)) }
	var items []browser.Item
	for i := range 50 {
		items = append(items, browser.Item{Key: secret.New(fmt.Sprintf("k%d", i)), Value: secret.New("v")})
	}
	var cookies []browser.Cookie
	for i := range 40 {
		cookies = append(cookies, cookie(fmt.Sprintf("c%d", i), "v", "127.0.0.1"))
	}
	old := p.envelope(`{}`)
	before, next := state(), envelopeOf(t, site.URL, cookies, items...)
	began := time.Now()
	p.must("POST", "/context/import", `{"envelope":`+next+`}`)
	whole, after := time.Since(began), state()
	p.must("POST", "/context/import", `{"envelope":`+old+`}`)
	const moments = 10
	olds := 0
	for i := range moments {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, p.base+"/context/import", strings.NewReader(`{"envelope":`+next+`}`))
			if err != nil {
				return
			}
			req.Header.Set("Authorization", "Bearer "+p.agent)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}()
		select {
		case <-ended:
		case <-time.After(whole * time.Duration(i) / moments):
		}
		p.kill()
		<-ended
		p.begin()
		switch now := state(); now {
		case before:
			olds++
		case after:
			p.must("POST", "/context/import", `{"envelope":`+old+`}`)
		default:
			t.Fatalf("killed at %d of %d there is\n%.600s\nwas\n%.600s", i, moments, now, before)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, "sessions", "*.undo")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	t.Logf("%d kills in an import of %s: %d times the old, %d times the new", moments, whole, olds, moments-olds)
}

// stateOf is an envelope without what differs from one export to the next.
func stateOf(t *testing.T, envelope string) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(envelope), &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "capturedAt")
	delete(members, "integrity")
	out, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
