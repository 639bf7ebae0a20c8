package sidecar_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// remote is a sidecar whose browser is elsewhere, at the end of a line, and is
// handed over to a person.
type remote struct {
	*running
	owner    *running
	line     *browsertest.Line
	site     *httptest.Server
	arrived  chan string   // slow pages that were asked for
	answer   chan struct{} // lets one of them be answered
	handoff  string
	deadline any
	session  string
}

func handOverRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{arrived: make(chan string, 8), answer: make(chan struct{}, 8)}
	r.site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasPrefix(q.URL.Path, "/slow") {
			r.arrived <- q.URL.Path
			select {
			case <-r.answer:
			case <-q.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>%s</title><input id=a>`, q.URL.Path)
	}))
	t.Cleanup(func() {
		r.site.CloseClientConnections()
		r.site.Close()
	})
	ws := *browsertest.Chromium(t)
	r.line = browsertest.NewLine(t, ws.Host)
	ws.Host = r.line.Addr()
	r.running = start(t, r.site, "provider=cdp", "cdp.url="+ws.String())
	r.owner = r.as("owner")
	r.session = r.must("POST", "/session/start", `{"url":"`+r.site.URL+`/home","screenshot":false}`)["session_id"].(string)
	h := r.must("POST", "/handoff/start", `{"reason":"login"}`)
	r.handoff, r.deadline = h["handoff_id"].(string), h["deadline"]
	r.owner.must("POST", "/session/type", `{"selector":"#a","text":"half a pass","screenshot":false}`)
	return r
}

// cutOff begins a navigation, breaks the line in the middle of it, and says
// what the navigation was answered.
func (r *remote) cutOff(path string, breaking func()) map[string]any {
	r.t.Helper()
	answered := make(chan map[string]any, 1)
	go func() {
		_, answer, _ := r.owner.do("POST", "/session/navigate", `{"url":"`+r.site.URL+path+`","screenshot":false}`)
		answered <- answer
	}()
	<-r.arrived
	breaking()
	select {
	case answer := <-answered:
		r.answer <- struct{}{}
		return answer
	case <-testwait.Over():
		r.t.Fatal("an operation under way was never answered")
		return nil
	}
}

// back waits until the owner can work again, and checks what must not change.
func (r *remote) back() {
	r.t.Helper()
	testwait.For(r.t, "the browser", func() bool {
		code, _, _ := r.owner.do("POST", "/session/navigate", `{"url":"`+r.site.URL+`/home","screenshot":false}`)
		return code == http.StatusOK
	})
	h := r.must("GET", "/handoff/"+r.handoff, "")
	status := r.must("GET", "/session/status", "")
	if h["status"] != "RUNNING" || h["deadline"] != r.deadline || h["generation"] != float64(1) || status["session_id"] != r.session || status["page_lost"] != nil {
		r.t.Fatalf("it came back as %v, %v", h, status)
	}
	r.refused("POST", "/session/reload", `{}`, "HUMAN_IN_CONTROL")
}

// told is the feed as it is on the disk.
func (r *running) told() string {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, "events", "*"))
	if err != nil {
		r.t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		raw, _ := os.ReadFile(file) //nolint:gosec // our own home
		all.Write(raw)
	}
	return all.String()
}

func TestALineThatIsCutUnderAPersonIsMended(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	r := handOverRemote(t)
	answer := r.cutOff("/slow/cut", r.line.Cut)
	if answer["error"] != "BROWSER_LOST" || answer["effect"] != "unknown" {
		t.Errorf("an operation that was cut off got %v", answer)
	}
	r.back()

	// Nothing gets through, and nobody hangs up.
	answer = r.cutOff("/slow/stalled", r.line.Stall)
	r.line.Flow()
	if answer["error"] != "BROWSER_LOST" || answer["effect"] != "unknown" {
		t.Errorf("an operation that was stalled got %v", answer)
	}
	r.back()
	r.owner.must("POST", "/handoff/"+r.handoff+"/finish", `{}`)
	r.must("POST", "/session/reload", `{"screenshot":false}`)
}

func TestALineIsTriedAtTwoFiveAndTenSecondsAndThenTheOwnerIsTold(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	r := handOverRemote(t)
	began := time.Now()
	answer := r.cutOff("/slow/down", r.line.Down)
	if answer["error"] != "BROWSER_LOST" || answer["effect"] != "unknown" {
		t.Errorf("an operation that was cut off got %v", answer)
	}
	testwait.For(t, "the end of the hand-off", func() bool {
		return r.must("GET", "/handoff/"+r.handoff, "")["status"] != "RUNNING"
	})
	took := time.Since(began)
	var tries []time.Duration // each may knock more than once
	for _, at := range r.line.Knocks() {
		if after := at.Sub(began); len(tries) == 0 || after-tries[len(tries)-1] > time.Second {
			tries = append(tries, after)
		}
	}
	want := []time.Duration{0, 2 * time.Second, 7 * time.Second, 17 * time.Second}
	t.Logf("tried after %v; the owner was told after %s", tries, took)
	for i, at := range want {
		if i >= len(tries) || tries[i] < at-200*time.Millisecond {
			t.Fatalf("it was tried after %v, and not after %v", tries, want)
		}
	}
	over := r.must("GET", "/handoff/"+r.handoff, "")
	if over["status"] != "CANCELLED" || over["after"] != nil || !strings.Contains(fmt.Sprint(over["resume_hint"]), "browser") {
		t.Errorf("the hand-off is %v", over)
	}
	if got := strings.Count(r.told(), `"handoff.cancelled"`); got != 1 {
		t.Errorf("the end of the hand-off was told %d times", got)
	}
	if running := r.must("GET", "/handoffs?status=RUNNING", "")["handoffs"].([]any); len(running) != 0 {
		t.Errorf("there is still %v", running)
	}
	r.refused("POST", "/sessions/"+r.session+"/reload", `{}`, "BROWSER_LOST")
	// What is out of reach is ended as soon as it is not.
	r.line.Up()
	testwait.For(t, "the end of the session", func() bool {
		return len(r.must("GET", "/sessions", "")["sessions"].([]any)) == 0
	})
	for _, kind := range []string{"session.ended", "handoff.cancelled"} {
		if got := strings.Count(r.told(), `"`+kind+`"`); got != 1 {
			t.Errorf("%s was told %d times", kind, got)
		}
	}
	r.must("POST", "/session/start", `{"url":"`+r.site.URL+`/home","screenshot":false}`)
}
