package cdp

import (
	"slices"
	"sync"

	"github.com/chromedp/cdproto/cdp/jsonv2"
)

// Step is a command that gives a session a lasting property.
type Step struct {
	Method string
	Params any
}

// Recipe is the list of commands that brought a session into its state, in
// order. Where there is no holder, a reconnect gets a new session, on which
// Setup(recipe.Steps()...) is run. The zero value is empty; it is safe for
// concurrent use.
type Recipe struct {
	mu    sync.Mutex
	steps []Step
}

// Steps are the commands, in the order in which they were first needed.
func (r *Recipe) Steps() []Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.steps)
}

// record adds a step. One of the same kind takes the place of the older one: a
// second viewport replaces the first, a second script is one more script.
func (r *Recipe) record(st Step) {
	if passing[st.Method] {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.steps, func(old Step) bool {
		return old.Method == st.Method && (!cumulative[st.Method] || sameParams(old, st))
	})
	if at >= 0 {
		r.steps[at] = st
		return
	}
	r.steps = append(r.steps, st)
}

// passing are commands that may stand among the steps of a setup but leave
// nothing behind.
var passing = map[string]bool{"Runtime.runIfWaitingForDebugger": true}

// cumulative are commands of which each call adds something.
var cumulative = map[string]bool{
	"Page.addScriptToEvaluateOnNewDocument": true,
	"Runtime.addBinding":                    true,
}

func sameParams(a, b Step) bool {
	x, errX := jsonv2.Marshal(a.Params)
	y, errY := jsonv2.Marshal(b.Params)
	return errX == nil && errY == nil && string(x) == string(y)
}
