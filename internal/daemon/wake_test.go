package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// callFunc is somebody at the other end.
type callFunc func(wake) (time.Duration, error)

func (f callFunc) call(_ context.Context, w wake) (time.Duration, error) { return f(w) }

func testWaker(t *testing.T, home *store.Home, via caller) *waker {
	t.Helper()
	d := newDaemon(Options{Home: home})
	w, err := newWaker(home, config.OnResume{}, slog.New(slog.DiscardHandler), d.leave)
	if err != nil {
		t.Fatal(err)
	}
	w.via = via
	return w
}

func ended(t *testing.T, id string) event.Event {
	t.Helper()
	data, err := json.Marshal(event.HandoffEnded{HandoffID: id, SessionID: "ses_1", Status: "TIMED_OUT"})
	if err != nil {
		t.Fatal(err)
	}
	return event.Event{Seq: 1, ID: id, Version: 3, Type: event.HandoffTimedOut, Data: data}
}

func TestAWakeIsTriedWithLongerAndLongerPausesAndGivenUpAfterADay(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		w := testWaker(t, home, callFunc(func(k wake) (time.Duration, error) {
			if k.ID != "hof_1-3" || k.Tries != len(at) {
				t.Errorf("woke %+v after %d tries", k, len(at))
			}
			at = append(at, time.Since(began))
			if len(at) == 3 {
				return 30 * time.Second, errors.New("later, please")
			}
			return 0, errors.New("nobody is there")
		}))
		if err := w.note(ended(t, "hof_1")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Hour)
		defer cancel()
		w.run(ctx)

		s := time.Second
		want := []time.Duration{0, 2 * s, 6 * s, 36 * s, 52 * s, 84 * s, 148 * s, 276 * s, 532 * s, 1044 * s, 1644 * s}
		if diff := cmp.Diff(want, at[:len(want)]); diff != "" {
			t.Error(diff)
		}
		if last := at[len(at)-1]; last < 23*time.Hour || last > wakeFor {
			t.Errorf("the last try was after %v", last)
		}
		letter, err := home.Read("letters/hof_1-3-1.json")
		var e event.Event
		var trouble event.Trouble
		if err != nil || json.Unmarshal(letter, &e) != nil || json.Unmarshal(e.Data, &trouble) != nil {
			t.Fatalf("the owner was told %s, %v", letter, err)
		}
		if e.Type != event.WakeFailed || trouble.HandoffID != "hof_1" || trouble.WakeID != "hof_1-3" || trouble.Count != len(at) {
			t.Errorf("the owner was told %+v %+v", e, trouble)
		}
	})
	if names, err := home.List(wakeFolder); err != nil || len(names) > 0 {
		t.Fatalf("left %v, %v", names, err)
	}
}

func TestATryThatSucceedsIsTheLast(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w := testWaker(t, home, callFunc(func(wake) (time.Duration, error) {
			if calls++; calls < 3 {
				return 0, errors.New("not yet")
			}
			return 0, nil
		}))
		if err := errors.Join(w.note(ended(t, "hof_1")), w.note(ended(t, "hof_1"))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
		defer cancel()
		w.run(ctx)
		if calls != 3 {
			t.Fatalf("called %d times", calls)
		}
	})
}

func TestOneThatDoesNotAnswerKeepsNobodyElseWaiting(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var woken []string
		w := testWaker(t, home, callFunc(func(k wake) (time.Duration, error) {
			if k.HandoffID == "hof_0" {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			woken = append(woken, k.HandoffID)
			return 0, nil
		}))
		for _, id := range []string{"hof_0", "hof_1"} {
			if err := w.note(ended(t, id)); err != nil {
				t.Fatal(err)
			}
		}
		w.run(ctx)
		if diff := cmp.Diff([]string{"hof_1"}, woken); diff != "" {
			t.Fatal(diff)
		}
	})
	if names, err := home.List(wakeFolder); err != nil || len(names) != 1 {
		t.Fatalf("the one under way is to stay for the next daemon: %v, %v", names, err)
	}
}

func TestACommandThatFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		argv  []string
		tries int
		limit time.Duration
		final bool
		says  string
	}{
		"is tried again":                       {[]string{"/bin/sh", "-c", "exit 7"}, 0, time.Minute, false, "exit status 7"},
		"five times":                           {[]string{"/bin/sh", "-c", "exit 7"}, commandTries - 1, time.Minute, true, "exit status 7"},
		"because there is none says so":        {[]string{"/nonexistent/program"}, 0, time.Minute, false, "cannot be started"},
		"to end has been woken and is not":     {[]string{"/bin/sh", "-c", "sleep 100 & wait"}, 0, 100 * time.Millisecond, true, "had not ended after"},
		"is told by its code and not by words": {[]string{"/bin/sh", "-c", "echo hunter2 >&2; exit 1"}, 0, time.Minute, false, "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &command{argv: tt.argv, home: t.TempDir(), limit: tt.limit}
			_, err := c.call(t.Context(), wake{ID: "hof_1-3", Tries: tt.tries})
			if err == nil || errors.Is(err, errFinal) != tt.final || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestAWebhookThatFails(t *testing.T) {
	t.Parallel()
	const canary = "canary-in-the-address"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	hook := func(status int, header ...string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		return server.URL + "/" + canary
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	untrusted := httptest.NewTLSServer(nil)
	t.Cleanup(untrusted.Close)
	for name, tt := range map[string]struct {
		url   string
		again time.Duration
		says  string
	}{
		"is tried again":                     {hook(500), 0, "the answer was 500"},
		"says when it wants to hear again":   {hook(429, "Retry-After", "120"), 2 * time.Minute, "429"},
		"redirects and is not followed":      {hook(307, "Location", elsewhere.URL), 0, "307"},
		"is not there":                       {closed.URL + "/" + canary, 0, "refused"},
		"is nobody we trust":                 {untrusted.URL + "/" + canary, 0, "certificate"},
		"is in the clear on another machine": {"http://192.0.2.1/" + canary, 0, "not on this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newWebhook(secret.New(tt.url), secret.New("key"))
			defer h.http.CloseIdleConnections()
			again, err := h.call(t.Context(), wake{ID: "hof_1-3"})
			if err == nil || again != tt.again || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), canary) {
				t.Fatalf("got %v, %v", again, err)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, " 7 ": 7 * time.Second, "-1": 0, "soon": 0, "1e9": 0, "99999999999999999999": 0,
		"Sun, 01 Mar 2026 12:01:00 GMT": time.Minute, "Sun, 01 Mar 2026 11:00:00 GMT": 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "5", "-1", "Sun, 01 Mar 2026 12:01:00 GMT", strconv.FormatUint(1<<32, 10)} {
		f.Add(seed)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		if retryAfter(value, now) < 0 {
			t.Fatal("less than nothing")
		}
	})
}

func TestTheWebhooksKeyIsMadeOnceAndForThisUserAlone(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	first, err := webhookKey(home)
	if err != nil {
		t.Fatal(err)
	}
	again, err := webhookKey(home)
	if err != nil || !again.Equal(first) || len(first.Reveal()) < 50 {
		t.Fatalf("another key the second time, or a short one (%v)", err)
	}
	file := filepath.Join(home.Path(), WebhookKeyFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // what is under test
		t.Fatal(err)
	}
	if _, err := webhookKey(home); !errors.Is(err, fault.Forbidden) {
		t.Fatalf("open to others: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := home.Write(WebhookKeyFile, []byte("short\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := webhookKey(home); !errors.Is(err, fault.Unreadable) {
		t.Fatalf("too short: %v", err)
	}
}

func TestEventsThatWereNeverReadAreSaidToBe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		via    caller
		seen   uint64
		oldest uint64
		told   bool
	}{
		"when somebody is to be woken":  {callFunc(nil), 5, 900, true},
		"not when nobody is":            {nil, 5, 900, false},
		"not when there never were any": {callFunc(nil), 0, 1, false},
		"also when the cursor was lost": {callFunc(nil), 0, 900, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := openHome(t)
			if err := testWaker(t, home, tt.via).missed(tt.seen, &api.ResyncError{Oldest: tt.oldest}); err != nil {
				t.Fatal(err)
			}
			names, err := home.List("letters")
			if err != nil || (len(names) == 1) != tt.told {
				t.Fatalf("told %v, %v", names, err)
			}
		})
	}
}

func TestWhatAWakeKnowsOfItsHandOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event event.Event
		want  *event.HandoffEnded // nil means that nobody is woken
	}{
		"all of it": {
			event.Event{ID: "hof_1", Version: 2, Type: event.HandoffFinished, Data: json.RawMessage(`{"handoff_id":"hof_1","session_id":"ses_1","run_id":"run_1","status":"FINISHED","more":1}`)},
			&event.HandoffEnded{HandoffID: "hof_1", SessionID: "ses_1", RunID: "run_1", Status: "FINISHED"},
		},
		"its name and no more": {
			event.Event{ID: "hof_1", Version: 2, Type: event.HandoffTimedOut},
			&event.HandoffEnded{HandoffID: "hof_1", Status: "TIMED_OUT"},
		},
		"nothing that can be read":   {event.Event{ID: "hof_1", Version: 2, Type: event.HandoffFinished, Data: json.RawMessage(`[]`)}, nil},
		"a name that is no file's":   {event.Event{ID: "../hof_1", Version: 2, Type: event.HandoffFinished}, nil},
		"a name that hides its file": {event.Event{ID: ".hof_1", Version: 2, Type: event.HandoffFinished}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := openHome(t)
			w := testWaker(t, home, callFunc(nil))
			if err := w.note(tt.event); err != nil {
				t.Fatal(err)
			}
			due, _ := w.due(time.Now())
			if (len(due) == 1) != (tt.want != nil) {
				t.Fatalf("due %+v", due)
			}
			if tt.want != nil {
				if diff := cmp.Diff(*tt.want, due[0].HandoffEnded); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

func TestAnAgentThatEndedItsHandoffItselfIsNotWoken(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]int{"agent": 0, "owner": 1, "time": 1, "verify": 1, "": 1} {
		home := openHome(t)
		w := testWaker(t, home, callFunc(func(wake) (time.Duration, error) { return 0, nil }))
		data, err := json.Marshal(event.HandoffEnded{HandoffID: "hof_1", Status: "CANCELLED", FinishedBy: by})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.note(event.Event{Seq: 1, ID: "hof_1", Version: 3, Type: event.HandoffCancelled, Data: data}); err != nil {
			t.Fatal(err)
		}
		if got, err := home.List(wakeFolder); err != nil || len(got) != want {
			t.Errorf("ended by %q: %v, %v", by, got, err)
		}
	}
}
