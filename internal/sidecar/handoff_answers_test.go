package sidecar_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// told are the routes that tell of hand-offs without being asked for one.
var told = []string{"/handoffs", "/journal?recent=200", "/todos", "/metrics", "/sessions", "/task-runs", "/contexts", "/health", "/openapi.json"}

// answers are what the routes say, beside that of one hand-off.
func (r *running) answers(handoff string) map[string][]byte {
	r.t.Helper()
	out := map[string][]byte{}
	for _, path := range slices.Concat(told, []string{"/handoff/" + handoff}) {
		code, _, raw := r.do("GET", path, "")
		if code != http.StatusOK {
			r.t.Fatalf("%s gave %d %s", path, code, raw)
		}
		out[path] = raw
	}
	return out
}

// follow reads the stream of events from its beginning until the test is over.
func (r *running) follow() *safeBuffer {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/events", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.agent)
	req.Header.Set("Last-Event-ID", "0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("the stream of events: %+v, %v", resp, err)
	}
	heard, ended := &safeBuffer{}, make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(heard, resp.Body)
	}()
	r.t.Cleanup(func() {
		cancel()
		<-ended
		_ = resp.Body.Close()
	})
	return heard
}

// hears waits until a stream has told something.
func hears(t *testing.T, stream *safeBuffer, what string) []byte {
	t.Helper()
	testwait.For(t, "the stream's word of "+what, func() bool { return strings.Contains(stream.String(), what) })
	return []byte(stream.String())
}

// TestALeakInAnAnswerIsNoticed plants words where people may put them, and
// looks for them as the test does that must not find any: each route is read,
// and what it says is really searched.
func TestALeakInAnAnswerIsNoticed(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>Login</title>")
	}))
	t.Cleanup(site.Close)
	r := start(t, site)
	for _, who := range []string{"agent", "owner"} {
		as := r.as(who)
		stream := as.follow()
		session := as.must("POST", "/session/start", `{"url":"`+site.URL+`","screenshot":false}`)["session_id"].(string)
		begun := as.must("POST", "/handoff/start", `{"reason":"login","instruction":"the zucchini","task":"an aubergine","timeout_ms":1000,"on_timeout":"close"}`)
		id := begun["handoff_id"].(string)
		all := map[string][]byte{"/events": hears(t, stream, "handoff.timed_out")}
		for path, raw := range as.answers(id) {
			all[path] = raw
		}
		for path, planted := range map[string]string{
			"/events": "zucchini", "/handoff/" + id: "zucchini", "/handoffs": "zucchini", "/todos": "aubergine",
			"/journal?recent=200": session, "/metrics": "go_goroutines", "/openapi.json": "/handoff/{id}/finish",
		} {
			if cage(planted).in(all[path]) == nil {
				t.Errorf("%s: %s tells nothing of %s: %.300s", who, path, planted, all[path])
			}
		}
		testwait.For(t, "the end of the session", func() bool {
			return len(as.must("GET", "/sessions", "")["sessions"].([]any)) == 0
		})
	}
}
