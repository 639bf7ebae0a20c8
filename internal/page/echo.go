package page

import (
	"context"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/cdp"
)

// Where there is but one document, and nothing that leads elsewhere is clicked, it
// tells by itself that what was to come has come: whoever asked would wait until
// the page has drawn what it made of it.

// coming is what an element hears of a deed that succeeds: one of these events,
// so many times.
type coming struct {
	Types []string `json:"types"`
	Times int      `json:"times"`
}

// echoName is how the engine calls us, in its own world only.
const echoName = "tapinHeard"

// echoWithin is how long an echo is waited for when the deed is done. Then the
// document is asked.
const echoWithin = 8 * time.Millisecond

// echoes are what documents have told, for whoever waits for it.
type echoes struct {
	mu      sync.Mutex
	waiting map[int]chan heard // by the watch
}

// await begins to wait for what a watch tells, until deaf is called.
func (e *echoes) await(got found) (told <-chan heard, deaf func()) {
	if !got.tells {
		return nil, func() {}
	}
	ear := make(chan heard, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting[got.watch] = ear
	return ear, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, got.watch)
	}
}

// listenForEchoes hears what the engine tells in a session's documents.
func (t *Tab) listenForEchoes(s *cdp.Session) {
	t.echoes.waiting = map[int]chan heard{}
	cdp.Listen(s, runtime.BindingCalled, func(e runtime.EventBindingCalled) {
		var told struct {
			Watch int `json:"watch"`
			heard
		}
		if e.Name != echoName || jsonv2.Unmarshal([]byte(e.Payload), &told, jsonv2.AllowInvalidUTF8(true)) != nil {
			return
		}
		t.echoes.mu.Lock()
		defer t.echoes.mu.Unlock()
		select {
		case t.echoes.waiting[told.Watch] <- told.heard:
		default: // nobody waits any more
		}
	})
}

// giveVoice lets the engine tell, in the documents of a session that have it by now.
func giveVoice(ctx context.Context, s *cdp.Session) error {
	return s.Send(ctx, runtime.AddBinding.Method, runtime.AddBindingParams{Name: echoName, ExecutionContextName: worldName})
}
