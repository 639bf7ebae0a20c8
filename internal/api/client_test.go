package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

const token = "canary-token-61d2"

func client(t *testing.T, base string, options *api.ClientOptions) *api.Client {
	t.Helper()
	c, err := api.NewClient(base, secret.New(token), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func standIn(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

func TestAClientSaysWhenNobodyListens(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = client(t, base, nil).Health(t.Context())
	if f := fault.Of(err); !errors.Is(err, api.ErrNotRunning) || !strings.Contains(f.Advice(), "tapin up") || !strings.Contains(f.Details(), base) {
		t.Fatalf("got %v (%s)", err, f.Advice())
	}
}

// What a request can say is said, all of it.
func TestAQuestionIsAskedWhole(t *testing.T) {
	t.Parallel()
	var asked string
	c := client(t, standIn(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		_, _ = io.WriteString(w, `{}`)
	}), nil)
	zero := 0
	if _, err := c.Snapshot(t.Context(), "", api.SnapshotQuery{MaxChars: 1_000_000, Interactive: true, Offset: &zero, PartChars: 200, StirMS: 3, StillMS: 4, Tabs: true}); err != nil {
		t.Fatal(err)
	}
	if asked != "interactive=true&max_chars=1000000&offset=0&part_chars=200&still_ms=4&stir_ms=3&tabs=true" {
		t.Error(asked)
	}
	if _, err := c.Screenshot(t.Context(), "", api.ScreenshotQuery{FullPage: true, Format: "jpeg", Quality: 50, Element: api.Element{Role: "button", Name: "Pay & go"}}); err != nil {
		t.Fatal(err)
	}
	if asked != "format=jpeg&full_page=true&name=Pay+%26+go&quality=50&role=button" {
		t.Error(asked)
	}
	if _, err := c.Text(t.Context(), "", api.TextQuery{}); err != nil {
		t.Fatal(err)
	}
	if asked != "" {
		t.Error(asked)
	}
}

func TestARefusalBecomesTheFaultItWas(t *testing.T) {
	t.Parallel()
	base := standIn(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(409)
		_, _ = io.WriteString(w, `{"ok":false,"error":"SESSION_ACTIVE","details":"session ses_1 is active","hint":"stop it","session_id":"ses_1"}`)
	})
	_, err := client(t, base, nil).Start(t.Context(), api.StartRequest{})
	f := fault.Of(err)
	if !errors.Is(err, fault.SessionActive) || f.Details() != "session ses_1 is active" || f.Advice() != "stop it" || len(f.Data) != 1 || f.Data["session_id"] != "ses_1" {
		t.Fatalf("got %+v", f)
	}
}

func TestAnswersThatAreNotOursAreNamed(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := standIn(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	for name, tt := range map[string]struct {
		handle http.HandlerFunc
		code   fault.Code
	}{
		"a page of another program": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, fault.ProviderError},
		"an error of another one":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) }, fault.ProviderError},
		"a redirect":                {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusTemporaryRedirect) }, fault.ProviderError},
		"an endless answer":         {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 5000)) }, fault.PayloadTooLarge},
		"an answer that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}, fault.Busy},
		"a connection that breaks": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client(t, standIn(t, tt.handle), &api.ClientOptions{MaxResponse: 1000}).Health(t.Context())
			if !errors.Is(err, tt.code) || errors.Is(err, api.ErrNotRunning) || strings.Contains(err.Error(), token) {
				t.Fatalf("got %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if elsewhere.Load() != 0 {
			t.Error("the client followed a redirect with its token")
		}
	})
}

func TestACallerThatGivesUpGetsItsOwnError(t *testing.T) {
	t.Parallel()
	base := standIn(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := client(t, base, nil).Health(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if _, err := client(t, base, &api.ClientOptions{Timeout: 20 * time.Millisecond}).Health(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("timed out: %v", err)
	}
}

func TestAnAddressThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "127.0.0.1:3849", "ftp://x", "http://", "http://user:pass@x/", "http://x/?q", ":"} {
		if _, err := api.NewClient(base, secret.New(token), nil); !errors.Is(err, fault.InvalidURL) {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// A connection that is cut in the middle of an event loses nothing.
func TestFollowingGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	var visits atomic.Int32
	base := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		after := r.Header.Get("Last-Event-ID")
		say := func(n int) string {
			return fmt.Sprintf("id: %d\nevent: x.y\ndata: {\"seq\":%d,\"id\":\"a\",\"version\":%d,\"type\":\"x.y\",\"at\":\"2026-01-02T03:04:05Z\"}\n\n", n, n, n)
		}
		switch visits.Add(1) {
		case 1:
			if after != "4" {
				t.Errorf("first visit after %s", after)
			}
			_, _ = io.WriteString(w, ": hello\n\n"+say(5)+strings.TrimSuffix(say(6), "\n"))
		case 2:
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"ok":false,"error":"BUSY","details":"d","hint":"h"}`)
		case 3:
			if after != "5" {
				t.Errorf("third visit after %s", after)
			}
			_, _ = io.WriteString(w, say(6)+"id: 9\nevent: resync\ndata: {\"oldest\":10}\n\n")
		default:
			if after != "9" {
				t.Errorf("last visit after %s", after)
			}
			_, _ = io.WriteString(w, say(10))
		}
	})
	var got []string
	for e, err := range client(t, base, nil).Events(t.Context(), 4) {
		if gap, ok := errors.AsType[*api.ResyncError](err); ok {
			got = append(got, fmt.Sprintf("resync %d", gap.Oldest))
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, fmt.Sprint(e.Seq)); e.Seq == 10 {
			break
		}
	}
	if s := strings.Join(got, ","); s != "5,6,resync 10,10" {
		t.Fatalf("got %s", s)
	}
}
