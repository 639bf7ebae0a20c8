package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

func publish(t *testing.T, f *fixture, n int) {
	t.Helper()
	for range n {
		_, err := f.feed.Publish(t.Context(), event.Event{
			ID: "ses_1", Version: int(f.feed.Last()) + 1, Type: "session.moved", Data: json.RawMessage(`{"n":1}`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAReaderGetsEveryEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	publish(t, f, 3)
	want := uint64(1)
	for e, err := range f.agent.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq != want || e.Type != "session.moved" || e.ID != "ses_1" || string(e.Data) != `{"n":1}` || e.At.IsZero() {
			t.Fatalf("got %+v, want number %d", e, want)
		}
		if want++; want > 6 {
			break
		}
		if want == 4 {
			publish(t, f, 3) // while it follows
		}
	}
	for e, err := range f.agent.Events(t.Context(), 5) {
		if err != nil || e.Seq != 6 {
			t.Fatalf("after 5 came %+v, %v", e, err)
		}
		break
	}
}

func TestAReaderTooFarBehindIsToldToResync(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		published int
		after     uint64
	}{
		"a cursor older than what is kept": {40, 1},
		"a cursor of another feed":         {4, 1000},
		"another feed, nothing there yet":  {0, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil)
			publish(t, f, tt.published)
			kept, _ := f.feed.Since(0, 0)
			oldest := uint64(0)
			if len(kept) > 0 {
				oldest = kept[0].Seq
			}
			resyncs, got := 0, []uint64{}
			for e, err := range f.agent.Events(t.Context(), tt.after) {
				if gap, ok := errors.AsType[*api.ResyncError](err); ok {
					if resyncs++; gap.Oldest != oldest || resyncs > 1 || len(got) > 0 {
						t.Fatalf("resync %d with %d, after %v", resyncs, gap.Oldest, got)
					}
					publish(t, f, 1)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, e.Seq); e.Seq == f.feed.Last() {
					break
				}
			}
			if resyncs != 1 || len(got) != len(kept)+1 {
				t.Fatalf("%d resyncs, events %v, kept %d", resyncs, got, len(kept))
			}
		})
	}
}

func TestTheStreamIsServerSentEvents(t *testing.T) {
	t.Parallel()
	f := serve(t, &apiserver.Options{Heartbeat: 10 * time.Millisecond})
	publish(t, f, 2)
	for name, tt := range map[string]struct {
		query, lastID string
		first         string
	}{
		"the header says where to go on":           {"", "1", "id: 2"},
		"the query does too":                       {"?after=0", "", "id: 1"},
		"the header wins":                          {"?after=0", "1", "id: 2"},
		"without either only what is to come does": {"", "", "id: 3"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", f.base+"/events"+tt.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+agentToken)
		if tt.lastID != "" {
			req.Header.Set("Last-Event-ID", tt.lastID)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", name, resp.Header)
		}
		lines := bufio.NewScanner(resp.Body)
		beats := 0
		var block []string
		for lines.Scan() {
			line := lines.Text()
			if line == ": " {
				if beats++; beats == 2 && len(block) == 0 {
					publish(t, f, 1)
				}
			}
			if line != "" && line[0] != ':' {
				block = append(block, line)
			}
			if len(block) >= 3 && beats >= 2 {
				break
			}
		}
		_ = resp.Body.Close()
		first := tt.first
		if tt.lastID == "" && tt.query == "" {
			first = fmt.Sprintf("id: %d", f.feed.Last())
		}
		if len(block) < 3 || block[0] != first || block[1] != "event: session.moved" || !strings.HasPrefix(block[2], `data: {"seq":`) {
			t.Errorf("%s: got %q", name, block)
		}
	}
	for _, headers := range []map[string]string{{"Last-Event-ID": "abc"}, {"Last-Event-ID": "-1"}} {
		if a := f.do(t, "GET", "/events", "", headers); a.status != 400 {
			t.Errorf("%v: %d", headers, a.status)
		}
	}
	if a := f.do(t, "GET", "/events?after=-1", "", nil); a.status != 400 {
		t.Errorf("after=-1: %d", a.status)
	}
}

func TestReadersAreCountedAndLeaveWithTheServer(t *testing.T) {
	t.Parallel()
	f := serve(t, &apiserver.Options{MaxSubscribers: 1, MaxConcurrent: 1})
	publish(t, f, 1)
	seen, left := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer close(left)
		for range f.agent.Events(ctx, 0) {
			close(seen)
		}
	}()
	<-seen
	if a := f.do(t, "GET", "/events", "", nil); a.status != 503 || a.body["error"] != "BUSY" {
		t.Fatalf("a second reader: %d %s", a.status, a.raw)
	}
	if a := f.do(t, "GET", "/sessions", "", nil); a.status != 200 { // a reader holds no slot
		t.Fatalf("a call beside a reader: %d", a.status)
	}
	if err := f.Shutdown(t.Context()); err != nil { // does not wait for readers
		t.Fatal(err)
	}
	cancel()
	<-left
}

func TestFollowingEndsWithAnErrorThatWillNotPass(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	n := 0
	for _, err := range f.client(t, "wrong").Events(t.Context(), 0) {
		if n++; !errors.Is(err, fault.Unauthorized) {
			t.Fatalf("got %v", err)
		}
	}
	if n != 1 {
		t.Fatalf("%d errors", n)
	}
}

func TestAReaderWhoWantsOnlyWhatIsToComeMissesNothingAfterThat(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	publish(t, f, 2)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.base+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+agentToken)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := resp.Header.Get("Last-Event-ID"); got != "2" {
		t.Fatalf("the cursor to begin with is %q", got)
	}
	first := true
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first { // the line breaks before anything happened
			first = false
			w.Header().Set("Last-Event-ID", "2")
			return
		}
		f.ServeHTTP(w, r)
	}))
	defer cut.Close()
	client, err := api.NewClient(cut.URL, secret.New(agentToken), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	publish(t, f, 1)
	cursor := api.Newest
	for e, err := range client.EventsFrom(t.Context(), &cursor) {
		if err != nil || e.Seq != 3 || cursor != 3 {
			t.Fatalf("got %+v, %v; cursor %d", e, err, cursor)
		}
		break
	}
}
