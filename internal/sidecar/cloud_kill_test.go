package sidecar_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browserbase/standin"
	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// killable is a sidecar in a process of its own, whose browsers are elsewhere.
type killable struct {
	*process
	cloud  *standin.Server
	line   *browsertest.Line
	site   *visited
	theirs string // a session of somebody else in the same account
}

func startKillable(t *testing.T, o *standin.Options, set ...string) *killable {
	t.Helper()
	k := &killable{site: newVisited(t)}
	k.cloud, k.line = newCloud(t, o)
	k.theirs = k.cloud.Foreign(map[string]any{"tapin": "another", "tapin_browser": "ses_1-1"})
	env := []string{"BROWSERBASE_API_KEY=" + k.cloud.Key(), "BROWSERBASE_PROJECT_ID=" + k.cloud.Project(), "BROWSERBASE_BASE_URL=" + k.cloud.URL()}
	k.process = startProcessWith(t, k.site.URL, env, append([]string{"provider=browserbase", "listen.public=127.0.0.1:0"}, set...)...)
	return k
}

// sender makes requests that nobody waits for, to the process that runs now:
// the next one may be there before they end.
func (k *killable) sender() (send func(method, path, body string)) {
	base, agent := k.base, k.agent
	return func(method, path, body string) {
		req, err := http.NewRequestWithContext(k.t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			k.t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+agent)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
}

// killWhen waits until the API was asked for something, and kills the sidecar then.
func (k *killable) killWhen(what string) {
	k.t.Helper()
	testwait.For(k.t, what, func() bool {
		for _, r := range k.cloud.Requests() {
			if strings.HasPrefix(r.Method+" "+r.Path, what) {
				return true
			}
		}
		return false
	})
	k.kill()
}

// onlyTheirs waits until nothing of ours costs any more, and makes sure that
// nobody else's was touched.
func (k *killable) onlyTheirs() {
	k.t.Helper()
	testwait.For(k.t, "the release of all that is ours", func() bool {
		running := k.cloud.Sessions("RUNNING")
		return k.cloud.Settled() && len(running) == 1 && running[0].ID == k.theirs
	})
}

func TestAKilledSidecarLeavesNoBrowserThatCosts(t *testing.T) {
	t.Parallel()
	const begin = `{"context":"shop","screenshot":false}`
	for name, tt := range map[string]func(*killable){
		"killed while a session is made": func(k *killable) {
			k.cloud.Inject(standin.Fault{On: "POST /v1/sessions", Exact: true, Delay: 2 * time.Second})
			go k.sender()("POST", "/session/start", begin)
			k.killWhen("POST /v1/sessions")
		},
		"killed before a session is made that comes later": func(k *killable) {
			k.cloud.Inject(standin.Fault{On: "POST /v1/sessions", Exact: true, Late: 2 * time.Second})
			go k.sender()("POST", "/session/start", begin)
			k.killWhen("POST /v1/sessions")
		},
		"killed while a session is entered": func(k *killable) {
			go k.sender()("POST", "/session/start", begin)
			testwait.For(k.t, "the entrance", func() bool {
				all := k.cloud.Sessions("RUNNING")
				return len(all) == 2 && all[0].Entered+all[1].Entered > 0
			})
			k.kill()
		},
		"killed in use": func(k *killable) {
			k.must("POST", "/session/start", begin)
			k.kill()
		},
		"killed while a session is released": func(k *killable) {
			k.must("POST", "/session/start", begin)
			k.cloud.Inject(standin.Fault{On: "POST /v1/sessions/", Unsent: true, Times: 1})
			go k.sender()("POST", "/session/stop", `{}`)
			k.killWhen("POST /v1/sessions/")
		},
		"killed while the line is mended": func(k *killable) {
			k.must("POST", "/session/start", begin)
			k.line.Down()
			testwait.For(k.t, "a try", func() bool { return len(k.line.Knocks()) > 0 })
			k.kill()
			k.line.Up()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := startKillable(t, &standin.Options{Shared: true})
			tt(k)
			k.begin()
			k.onlyTheirs()
			if active := k.must("GET", "/session/status", ""); active["active"] != false {
				t.Errorf("there is %v", active)
			}
			if usage := k.must("GET", "/usage", ""); len(usage["running"].([]any)) != 0 && !strings.Contains(name, "later") {
				t.Errorf("the account says %v", usage)
			}
		})
	}
}

func TestAPersonInABrowserElsewhereIsFoundAgainAfterAKill(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	k := startKillable(t, nil)
	began := k.must("POST", "/session/start", `{"url":"`+k.site.URL+`/","screenshot":false}`)
	h := k.must("POST", "/handoff/start", `{"reason":"login"}`)
	k.owner().must("POST", "/session/type", `{"selector":"#a","text":"half a pass","screenshot":false}`)
	k.kill()
	k.begin()
	k.owner().must("POST", "/session/click", `{"selector":"#see","screenshot":false}`)
	now := k.owner().must("GET", "/session/status", "")
	if now["session_id"] != began["session_id"] || now["generation"] != float64(1) || !strings.HasSuffix(now["title"].(string), "half a pass") || now["page_lost"] != nil {
		t.Fatalf("it came back as %v", now)
	}
	k.refused("POST", "/session/reload", `{}`, "HUMAN_IN_CONTROL")
	k.owner().must("POST", "/handoff/"+h["handoff_id"].(string)+"/finish", `{}`)
	k.must("POST", "/session/stop", `{}`)
	k.onlyTheirs()
	if n := len(k.cloud.Sessions("")); n != 2 {
		t.Errorf("%d sessions were made in all", n)
	}
}

func TestABrowserElsewhereIsReleasedWhenItsProviderAnswersAgain(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	k := startKillable(t, &standin.Options{Shared: true})
	k.must("POST", "/session/start", `{"screenshot":false}`)
	k.kill()
	k.cloud.Inject(standin.Fault{On: "GET /v1/sessions", Refuse: http.StatusServiceUnavailable, Times: 1000})
	k.begin()
	if running := k.cloud.Sessions("RUNNING"); len(running) != 2 {
		t.Fatalf("there run %+v", running)
	}
	k.cloud.Mend()
	k.onlyTheirs()
}

// Killed at any moment: nothing of ours is left running, nobody else's touched.
func TestChaosElsewhere(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	rounds, _ := strconv.Atoi(os.Getenv("TAPIN_CHAOS"))
	if rounds == 0 {
		rounds = 2
	}
	plan := standin.Developer()
	plan.Concurrent, plan.CreatesMinute = 500, 10_000
	k := startKillable(t, &standin.Options{Shared: true, Plan: plan, Ending: 50 * time.Millisecond})
	random := rand.New(rand.NewPCG(7, uint64(rounds))) //nolint:gosec // the same moments each time
	for round := range rounds {
		switch random.IntN(4) {
		case 0:
			k.cloud.Inject(standin.Fault{On: "POST /v1/sessions", Exact: true, Lose: true})
		case 1:
			k.cloud.Inject(standin.Fault{On: "POST /v1/sessions", Exact: true, Late: time.Duration(random.IntN(500)) * time.Millisecond})
		}
		send := k.sender()
		go func() {
			send("POST", "/session/start", `{"context":"shop","screenshot":false}`)
			send("POST", "/session/stop", `{}`)
		}()
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		k.kill()
		k.cloud.Mend()
		k.begin()
		k.onlyTheirs()
		if round == rounds-1 {
			t.Logf("%d kills; %d sessions were made in all", rounds, len(k.cloud.Sessions(""))-1)
		}
	}
}
