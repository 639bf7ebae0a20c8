package page

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/cdp"
)

// worldName names the isolated world that our engine lives in. A page sees
// neither the world nor anything in it.
const worldName = "tapin"

// errWorldGone means that the document went away while it was being asked: what
// was asked may or may not have been done.
var errWorldGone = errors.New("the page moved on meanwhile")

// errUnequipped means that the function asked for was not there, so that nothing
// was done: the document is another than the one that the engine was sent to.
var errUnequipped = errors.New("the page moved on before it was asked")

// The engine is the files of engine/, in the order of their names. Each is
// idempotent, as a document may get it twice. All of it takes a browser longer to
// read than a small page to load, so it comes in parts, each with the first
// question that needs it.
type part int

const (
	core  part = iota // what must be there from the first moment
	eyes              // what tells of a page
	hands             // everything
)

var engine = [...]func() string{
	core: sync.OnceValue(func() string {
		return fmt.Sprintf("(globalThis.tapin ??= {}).word ??= %q;%s tapin.part ??= 0", arrivalWord(), readEngine("engine/0-*.js"))
	}),
	eyes:  sync.OnceValue(func() string { return after(core, readEngine("engine/[12]-*.js")) }),
	hands: sync.OnceValue(func() string { return after(eyes, readEngine("engine/[3-9]-*.js")) }),
}

// after has a part run only where the one before it is all there is: what was
// there may have gone with a document that is gone.
func after(before part, source string) string {
	return fmt.Sprintf("if (globalThis.tapin?.part === %d) { %s tapin.part = %d }", before, source, before+1)
}

// needs is the part in which a function is; those that are not here are in the last.
var needs = map[string]part{"here": core, "agent": core, "refusal": core, "outline": eyes, "settle": eyes, "text": eyes}

// unasked is how long a document that has loaded is left alone before it gets
// everything without being asked anything: an agent thinks longer, and finds it
// there. A document that takes its time to load gets it at last all the same.
const (
	unasked       = 200 * time.Millisecond
	unaskedAtLast = 2 * time.Second
)

//go:embed engine/*.js
var engineFiles embed.FS

func readEngine(pattern string) string {
	names, err := fs.Glob(engineFiles, pattern)
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var source strings.Builder
	for _, name := range names {
		raw, err := engineFiles.ReadFile(name)
		if err != nil {
			panic(err) // it was just listed
		}
		source.Write(raw)
		source.WriteByte(';') // or the next file's parenthesis would call this one's result
	}
	return source.String()
}

// thrown is an error of the engine itself.
type thrown struct{ text string }

func (e *thrown) Error() string { return "the page's engine failed: " + e.text }

// install is the step that puts the engine's core into every document of a
// session, also those that are there already.
func install() cdp.Step {
	now := true
	return cdp.Step{Method: cdppage.AddScriptToEvaluateOnNewDocument.Method, Params: cdppage.AddScriptToEvaluateOnNewDocumentParams{
		Source: engine[core](), WorldName: worldName, RunImmediately: &now,
	}}
}

// callMain runs a function that changes nothing in the main frame, again where
// the document went away meanwhile.
func (t *Tab) callMain(ctx context.Context, fn string, args, result any) error {
	for tries := 0; ; tries++ {
		main, ok := t.frames.get(t.frames.main)
		if !ok {
			return errWorldGone
		}
		if err := t.call(ctx, main, fn, args, result); !anew(ctx, tries, err) {
			return err
		}
	}
}

// betweenWorlds is how long a document that went away is given to be followed by
// another, from the second time on: one that never gets our world is not asked
// without a pause until the caller has enough.
const betweenWorlds = 10 * time.Millisecond

// anew tells what changes nothing to be tried again, as the document went away
// meanwhile.
func anew(ctx context.Context, tries int, err error) bool {
	return errors.Is(err, errWorldGone) && ctx.Err() == nil && (tries == 0 || rest(ctx, betweenWorlds) == nil)
}

// call runs a function of the engine in a frame and decodes what it returns. A
// world that was gone before the call is looked for again; one that goes away
// during it is errWorldGone, because asking twice may do twice.
func (t *Tab) call(ctx context.Context, f frame, fn string, args, result any) error {
	if t.hasCrashed() {
		return crashFault()
	}
	for tries := 0; ; tries++ {
		if f.world == 0 {
			world, err := t.enterWorld(ctx, f)
			if err != nil {
				return worldError(err)
			}
			f.world = world
		}
		if err := t.equip(ctx, f, partOf(fn)); err != nil {
			return worldError(err)
		}
		err := callIn(ctx, f, fn, args, result)
		refused, ok := errors.AsType[*cdp.Error](err)
		if tries > 1 || !errors.Is(err, errUnequipped) && (!ok || !strings.Contains(refused.Message, "Cannot find context")) {
			return worldError(err)
		}
		t.frames.learn(f, 0)
		if f, ok = t.frames.get(f.id); !ok {
			return errWorldGone
		}
	}
}

func partOf(fn string) part {
	if p, ok := needs[fn]; ok {
		return p
	}
	return hands
}

// equip puts into a document what it does not have yet of the engine, up to a
// part. Nobody waits for that: what is asked next is answered after it.
func (t *Tab) equip(ctx context.Context, f frame, upTo part) error {
	if upTo == core {
		return nil
	}
	t.equipping.Lock()
	defer t.equipping.Unlock()
	for next := t.frames.equipment(f) + 1; next <= upTo; next++ {
		if err := f.session.Send(ctx, runtime.Evaluate.Method, runtime.EvaluateParams{Expression: engine[next](), ContextID: f.world}); err != nil {
			return err
		}
		if next == hands {
			if err := giveVoice(ctx, f.session); err != nil {
				return err
			}
		}
		t.frames.equipped(f, next)
	}
	return nil
}

// equipMain does so for the main document, before anybody asks.
func (t *Tab) equipMain(ctx context.Context) {
	main, ok := t.frames.get(t.frames.main)
	if ok && main.world == 0 {
		main.world, _ = t.enterWorld(ctx, main)
	}
	if ok && main.world != 0 {
		_ = t.equip(ctx, main, hands) // who needs it tries again
	}
}

// enterWorld finds out which world of a new document is ours. Who comes while
// somebody is at it already waits for the same answer.
func (t *Tab) enterWorld(ctx context.Context, f frame) (runtime.ExecutionContextID, error) {
	for {
		asked, first := t.frames.entering(f)
		if first {
			got, err := proto.Call(ctx, f.session, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: f.id, WorldName: worldName})
			t.frames.entered(f, asked, got.ExecutionContextID)
			return got.ExecutionContextID, err
		}
		select {
		case <-asked:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		now, ok := t.frames.get(f.id)
		if !ok || now.session != f.session {
			return 0, errWorldGone
		}
		if now.world != 0 {
			return now.world, nil
		}
		// Whoever was at it failed, or gave up.
	}
}

// callOf is the call of a function of the engine in our world of a frame.
func callOf(f frame, fn string, args any) (runtime.CallFunctionOnParams, error) {
	if args == nil {
		args = struct{}{}
	}
	raw, err := jsonv2.Marshal(args)
	yes := true
	return runtime.CallFunctionOnParams{
		FunctionDeclaration: `function(args) {
			const asked = globalThis.tapin?.` + fn + `
			if (!asked) throw Error("unequipped")
			return asked(args)
		}`,
		ExecutionContextID: f.world, AwaitPromise: &yes, ReturnByValue: &yes,
		Arguments: []*runtime.CallArgument{{Value: raw}},
	}, err
}

// tell calls a function and does not wait for what comes of it. Where our world
// is known it is on its way on return, in front of whatever is sent next: a page
// that a dialog holds up does both in that order.
func (t *Tab) tell(f frame, fn string, args any) {
	if now, ok := t.frames.get(f.id); ok && now.session == f.session && t.frames.equipment(now) >= partOf(fn) {
		call, err := callOf(now, fn, args)
		ctx, cancel := context.WithTimeout(context.Background(), setupWithin)
		defer cancel()
		if err == nil && now.session.Send(ctx, runtime.CallFunctionOn.Method, call) == nil {
			return
		}
	}
	t.tabs.start(func(ctx context.Context) { _ = t.call(ctx, f, fn, args, nil) })
}

func callIn(ctx context.Context, f frame, fn string, args, result any) error {
	call, err := callOf(f, fn, args)
	if err != nil {
		return err
	}
	var got struct {
		Result struct {
			Value jsonv2.Value `json:"value"`
		} `json:"result"`
		ExceptionDetails *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := f.session.Call(ctx, runtime.CallFunctionOn.Method, call, &got); err != nil {
		return err
	}
	if e := got.ExceptionDetails; e != nil {
		first, _, _ := strings.Cut(e.Exception.Description, "\n")
		if first == "Error: unequipped" {
			return errUnequipped
		}
		return &thrown{text: fn + ": " + first}
	}
	if result == nil || len(got.Result.Value) == 0 {
		return nil
	}
	if jsonv2.Unmarshal(got.Result.Value, result, jsonv2.AllowInvalidUTF8(true)) != nil {
		return fmt.Errorf("%s: the page's engine answered in an unexpected shape", fn)
	}
	return nil
}

// worldError tells documents that went away from everything else.
func worldError(err error) error {
	if errors.Is(err, cdp.ErrDetached) || errors.Is(err, errUnequipped) {
		return errWorldGone
	}
	if refused, ok := errors.AsType[*cdp.Error](err); ok {
		for _, gone := range []string{"Execution context was destroyed", "navigated or closed", "Cannot find context", "No frame for given id", "Could not find frame", "Frame was detached"} {
			if strings.Contains(refused.Message, gone) {
				return errWorldGone
			}
		}
	}
	return err
}
