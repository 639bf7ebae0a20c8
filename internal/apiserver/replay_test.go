package apiserver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/testwait"
)

func TestARepeatedStartFindsItsSession(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	key := map[string]string{"Idempotency-Key": "k1"}
	first := f.do(t, "POST", "/session/start", `{"url":"http://a/"}`, key)
	again := f.do(t, "POST", "/session/start", ` { "url" : "http://a/" } `, key)
	if first.status != 200 || again.status != 200 || first.body["session_id"] != again.body["session_id"] || again.body["screenshot"] == nil {
		t.Fatalf("got %s and %s", first.raw, again.raw)
	}
	if first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the repetition is not marked")
	}
	for name, tt := range map[string]struct {
		body    string
		headers map[string]string
		status  int
	}{
		"another body":             {`{"url":"http://b/"}`, key, 400},
		"another key":              {`{"url":"http://a/"}`, map[string]string{"Idempotency-Key": "k2"}, 409},
		"no key":                   {`{"url":"http://a/"}`, nil, 409},
		"the key of another token": {`{"url":"http://a/"}`, map[string]string{"Idempotency-Key": "k1", "Authorization": "Bearer " + ownerToken}, 409},
		"an unreadable key":        {`{"url":"http://a/"}`, map[string]string{"Idempotency-Key": "\u00e9"}, 400},
		"an endless key":           {`{"url":"http://a/"}`, map[string]string{"Idempotency-Key": strings.Repeat("k", 256)}, 400},
	} {
		if a := f.do(t, "POST", "/session/start", tt.body, tt.headers); a.status != tt.status {
			t.Errorf("%s: got %d %s, want %d", name, a.status, a.raw, tt.status)
		}
	}
	f.do(t, "POST", "/session/stop", "", nil)
	over := f.do(t, "POST", "/session/start", `{"url":"http://a/"}`, key)
	if over.status != 404 || over.body["error"] != "NO_SESSION" || over.body["session_id"] != first.body["session_id"] || f.room.started != 1 {
		t.Errorf("after the session's end: %d %s", over.status, over.raw)
	}
}

func TestRepetitionsWaitForTheFirstStart(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.room.block = make(chan struct{})
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			a, err := f.agent.Start(t.Context(), api.StartRequest{IdempotencyKey: "k"})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = a.SessionID
		})
	}
	testwait.For(t, "the starts arrive", func() bool { return f.gauge(t, "tapin_http_in_flight") == 8 })
	close(f.room.block)
	wg.Wait()
	for _, id := range ids {
		if id != "ses_1" || f.room.started != 1 {
			t.Fatalf("got %v, %d starts", ids, f.room.started)
		}
	}
}

func TestAStartGoesOnWhenItsCallerHangsUp(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.room.block = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := f.agent.Start(ctx, api.StartRequest{IdempotencyKey: "k"})
		ended <- err
	}()
	testwait.For(t, "the starts arrive", func() bool { return f.gauge(t, "tapin_http_in_flight") == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(f.room.block)
	a, err := f.agent.Start(t.Context(), api.StartRequest{IdempotencyKey: "k"})
	if err != nil || a.SessionID != "ses_1" || f.room.started != 1 {
		t.Fatalf("got %+v, %v", a, err)
	}
}

func TestAStartThatFailedMayBeRepeated(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.room.fail = fault.New(fault.SessionCreateFailed, "start", "no browser")
	if _, err := f.agent.Start(t.Context(), api.StartRequest{IdempotencyKey: "k"}); !errors.Is(err, fault.SessionCreateFailed) {
		t.Fatal(err)
	}
	if a, err := f.agent.Start(t.Context(), api.StartRequest{IdempotencyKey: "k"}); err != nil || a.SessionID != "ses_1" {
		t.Fatalf("got %+v, %v", a, err)
	}
}
