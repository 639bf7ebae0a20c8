package cdp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"go.uber.org/goleak"

	"tapin/internal/cdp"
	"tapin/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is a transport whose other end is the test.
type wire struct {
	toUs   chan []byte
	sent   chan call
	closed chan struct{}
	once   sync.Once
	writes atomic.Int64
	fail   error
}

type call struct {
	ID      int64           `json:"id"`
	Method  string          `json:"method"`
	Session string          `json:"sessionId"`
	Params  json.RawMessage `json:"params"`
}

func newWire() *wire {
	return &wire{toUs: make(chan []byte, 1024), sent: make(chan call, 1024), closed: make(chan struct{})}
}

func (w *wire) Read() ([]byte, error) {
	select {
	case raw, ok := <-w.toUs:
		if !ok {
			return nil, w.fail
		}
		return raw, nil
	case <-w.closed:
		return nil, io.EOF
	}
}

func (w *wire) Write(_ context.Context, messages ...[]byte) error {
	w.writes.Add(1)
	for _, raw := range messages {
		var c call
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		select {
		case <-w.closed:
			return io.ErrClosedPipe
		default:
			w.sent <- c
		}
	}
	return nil
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (w *wire) say(format string, args ...any) { w.toUs <- fmt.Appendf(nil, format, args...) }

func (w *wire) hangUp(cause error) {
	w.fail = cause
	close(w.toUs)
}

// ping makes sure that what was said before has arrived: its answer comes after it.
func (w *wire) ping(t *testing.T, c *cdp.Conn) {
	t.Helper()
	go func() { q := <-w.sent; w.say(`{"id":%d,"result":{}}`, q.ID) }()
	if err := c.Root().Call(t.Context(), "X.ping", nil, nil); err != nil {
		t.Fatal(err)
	}
}

func TestCallsGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, &cdp.Options{FirstID: 100})
	defer func() { _ = c.Close() }()
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			var got struct{ Echo int }
			if err := c.Session("s").Call(t.Context(), "X.echo", map[string]int{"n": i}, &got); err != nil || got.Echo != i {
				t.Errorf("call %d got %d, %v", i, got.Echo, err)
			}
		})
	}
	var asked []call
	for range 20 {
		asked = append(asked, <-w.sent)
	}
	slices.Reverse(asked)
	for _, q := range asked {
		if q.ID < 100 || q.Session != "s" {
			t.Errorf("the call went out as %+v", q)
		}
		var p struct{ N int }
		_ = json.Unmarshal(q.Params, &p)
		w.say(`{"id":%d,"result":{"Echo":%d},"sessionId":"s"}`, q.ID, p.N)
	}
	calls.Wait()
}

func TestSeveralOfOneKindGoOutInOneGo(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, &cdp.Options{FirstID: 7})
	defer func() { _ = c.Close() }()
	go func() {
		var last call
		for n := range 3 {
			last = <-w.sent
			if want := fmt.Sprintf(`{"n":%d}`, n); string(last.Params) != want {
				t.Errorf("%s went out in place of %s", last.Params, want)
			}
		}
		w.say(`{"id":%d,"error":{"code":1,"message":"of the first"}}`, last.ID-2)
		w.say(`{"id":%d,"result":{}}`, last.ID)
	}()
	err := c.Root().CallAll(t.Context(), "X.y", map[string]int{"n": 0}, map[string]int{"n": 1}, map[string]int{"n": 2})
	if err != nil || w.writes.Load() != 1 {
		t.Fatalf("got %v, in %d writes", err, w.writes.Load())
	}
}

func TestAnAnswerNobodyWaitsForIsDropped(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, nil)
	defer func() { _ = c.Close() }()
	w.say(`{"id":77,"result":{}}`) // of an earlier client
	w.ping(t, c)
}

func TestTheBrowsersRefusalIsAnError(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, nil)
	defer func() { _ = c.Close() }()
	go func() {
		q := <-w.sent
		w.say(`{"id":%d,"error":{"code":-32000,"message":"No such thing","data":"canary"}}`, q.ID)
	}()
	err := c.Root().Call(t.Context(), "X.y", nil, nil)
	refusal, ok := errors.AsType[*cdp.Error](err)
	if !ok || refusal.Code != -32000 || err.Error() != "X.y: No such thing (-32000)" {
		t.Fatalf("got %v", err)
	}
}

func TestEveryCallHasADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		c := cdp.New(w, nil)
		defer func() { _ = c.Close() }()
		began := time.Now()
		err := c.Root().Call(context.Background(), "X.hangs", nil, nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 30*time.Second {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
		if _, lost := cdp.IsLost(err); lost {
			t.Fatal("a late answer was taken for a lost connection")
		}
		if c.Err() != nil {
			t.Fatal("a late answer ended the connection")
		}
	})
}

func TestALostConnectionIsToldAtOnceWithItsCause(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cause error
		want  string
	}{
		"the other end closes":              {io.EOF, "the other end closed it"},
		"a transport's own cause":           {&cdp.Lost{Cause: "the browser ended (signal: killed)"}, "signal: killed"},
		"a cause that may hold the address": {errors.New("dial wss://host/?apiKey=canary: boom"), "the other end broke it off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire()
			c := cdp.New(w, nil)
			defer func() { _ = c.Close() }()
			failed := make(chan error, 3)
			for range 3 {
				go func() { failed <- c.Root().Call(t.Context(), "X.y", nil, nil) }()
				<-w.sent
			}
			w.hangUp(tt.cause)
			for range 3 {
				err := <-failed
				lost, ok := cdp.IsLost(err)
				if !ok || !strings.Contains(lost.Cause, tt.want) || !errors.Is(err, fault.BrowserLost) || strings.Contains(err.Error(), "canary") {
					t.Fatalf("a call in flight got %v", err)
				}
			}
			<-c.Done()
			if err := c.Root().Call(t.Context(), "X.y", nil, nil); !errors.Is(err, fault.BrowserLost) {
				t.Fatalf("a later call got %v", err)
			}
		})
	}
}

func TestACancelledCallIsNotALostConnection(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, nil)
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-w.sent; cancel() }()
	err := c.Root().Call(ctx, "X.y", nil, nil)
	if _, lost := cdp.IsLost(err); lost || !errors.Is(err, context.Canceled) || c.Err() != nil {
		t.Fatalf("got %v, the connection %v", err, c.Err())
	}
}

func TestEventsWaitForDispatchAndKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, nil)
	defer func() { _ = c.Close() }()
	for i := range 50 {
		w.say(`{"method":"X.%s","params":{"n":%d},"sessionId":"s"}`, []string{"a", "b"}[i%2], i)
	}
	w.ping(t, c) // answers do not wait for handlers
	var seen []string
	for _, method := range []string{"X.a", "X.b"} {
		c.Session("s").On(method, func(raw jsonv2.Value) { seen = append(seen, string(raw)) })
	}
	c.Dispatch()
	if err := c.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, raw := range seen {
		if raw != fmt.Sprintf(`{"n":%d}`, i) {
			t.Fatalf("event %d is %s", i, raw)
		}
	}
	if len(seen) != 50 {
		t.Fatalf("%d of 50 events came", len(seen))
	}
}

func TestASessionExistsBeforeItsFirstEventAndEndsWithItsTarget(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, nil)
	defer func() { _ = c.Close() }()
	var order []string
	c.Root().On("Target.attachedToTarget", func(jsonv2.Value) {
		order = append(order, "attached to "+string(c.Session("s1").Target().TargetID))
		c.Session("s1").On("X.first", func(jsonv2.Value) { order = append(order, "first") })
	})
	w.say(`{"method":"Target.attachedToTarget","params":{"sessionId":"s1","targetInfo":{"targetId":"t1","type":"page","title":"","url":"","attached":true,"canAccessOpener":false},"waitingForDebugger":false}}`)
	w.say(`{"method":"X.first","params":{},"sessionId":"s1"}`)
	c.Dispatch()
	w.ping(t, c)
	if err := c.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ", "); got != "attached to t1, first" {
		t.Fatalf("the order was %q", got)
	}
	s := c.Session("s1")
	events, cancel := s.Subscribe("X.more")
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- s.Call(t.Context(), "X.y", nil, nil) }()
	<-w.sent
	w.say(`{"method":"Target.detachedFromTarget","params":{"sessionId":"s1"}}`)
	if err := <-failed; !errors.Is(err, cdp.ErrDetached) {
		t.Fatalf("a call into a closed page got %v", err)
	}
	<-s.Ended()
	if _, open := <-events; open {
		t.Fatal("the subscription outlived its session")
	}
}

func TestAConsumerThatFallsBehindLosesTheConnectionLoudly(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, &cdp.Options{QueuedEvents: 10})
	defer func() { _ = c.Close() }()
	for range 11 {
		w.say(`{"method":"X.a","params":{}}`)
	}
	<-c.Done()
	if lost, ok := cdp.IsLost(c.Err()); !ok || !strings.Contains(lost.Cause, "faster than they were handled") {
		t.Fatalf("got %v", c.Err())
	}
}

func TestOfPicturesOnlyTheLatestWait(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, &cdp.Options{QueuedEvents: 4})
	defer func() { _ = c.Close() }()
	for i := range 100 {
		w.say(`{"method":"Page.screencastFrame","params":{"n":%d,"sessionId":7},"sessionId":"s"}`, i)
	}
	w.say(`{"method":"X.after","params":{},"sessionId":"s"}`)
	// The 97 that gave way are acknowledged for the handlers that never see them.
	for range 97 {
		if q := <-w.sent; q.Method != "Page.screencastFrameAck" || q.Session != "s" || string(q.Params) != `{"sessionId":7}` {
			t.Fatalf("the acknowledgement is %+v", q)
		}
	}
	w.ping(t, c)
	var seen []string
	for _, m := range []string{"Page.screencastFrame", "X.after"} {
		c.Session("s").On(m, func(raw jsonv2.Value) { seen = append(seen, m+string(raw)) })
	}
	c.Dispatch()
	if err := c.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, " "); got != `Page.screencastFrame{"n":97,"sessionId":7} Page.screencastFrame{"n":98,"sessionId":7} Page.screencastFrame{"n":99,"sessionId":7} X.after{}` {
		t.Fatalf("the handlers saw %s", got)
	}
}

func TestTheRecipeKeepsTheLatestOfEachKindAndEveryScript(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, nil)
	defer func() { _ = c.Close() }()
	go func() {
		for q := range w.sent {
			if q.Method == "X.unknown" {
				w.say(`{"id":%d,"error":{"code":-32601,"message":"not found"}}`, q.ID)
			} else {
				w.say(`{"id":%d,"result":{}}`, q.ID)
			}
		}
	}()
	defer close(w.sent)
	script := func(s string) cdp.Step {
		return cdp.Step{Method: "Page.addScriptToEvaluateOnNewDocument", Params: map[string]string{"source": s}}
	}
	size := func(n int) cdp.Step {
		return cdp.Step{Method: "Emulation.setDeviceMetricsOverride", Params: map[string]int{"width": n}}
	}
	s := c.Session("s")
	if err := s.Setup(t.Context(), size(1), script("a"), script("b"), cdp.Step{Method: "Runtime.runIfWaitingForDebugger"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Setup(t.Context(), size(2), script("a"), cdp.Step{Method: "X.unknown"}); err == nil {
		t.Fatal("a refused step was taken for done")
	}
	var got []string
	for _, st := range s.Recipe().Steps() {
		got = append(got, fmt.Sprint(st.Method, st.Params))
	}
	want := []string{
		"Emulation.setDeviceMetricsOverridemap[width:2]",
		"Page.addScriptToEvaluateOnNewDocumentmap[source:a]",
		"Page.addScriptToEvaluateOnNewDocumentmap[source:b]",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the recipe is\n%s", strings.Join(got, "\n"))
	}
}

func TestWhatIsNoMessageEndsTheConnection(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := cdp.New(w, nil)
	defer func() { _ = c.Close() }()
	w.say(`canary: not json`)
	<-c.Done()
	if _, ok := cdp.IsLost(c.Err()); !ok || strings.Contains(c.Err().Error(), "canary") {
		t.Fatalf("got %v", c.Err())
	}
}
