package page

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"

	proto "github.com/chromedp/cdproto/cdp"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/money"
)

// Intent is something that is about to be done and would pay, as we read it
// from the page: neither the caller nor the page is asked what it means.
type Intent struct {
	Kind   string   // click, key, drag or dialog
	Label  string   // what the button says
	Why    []string // what else speaks for it
	Sure   bool     // the button alone says it
	Frame  string   // the origin of the document it is in
	Totals Totals
	// Look reads the page again, with names to look for; nil where it stands still.
	Look func(ctx context.Context, names []string) (Totals, error)
}

// Guarding is what goes with actions of somebody who may not pay unasked.
type Guarding struct {
	// Patterns are the owner's own, for what buttons say that take money.
	Patterns []string
	// Permit is asked before anything is done that would pay; nil lets it
	// happen, once. It is called at most once for an action.
	Permit func(context.Context, Intent) error
	// Unasked is asked about what would pay beside what was meant, such as a
	// form that sends itself when its last digit is typed. No approval goes with
	// it; nil refuses.
	Unasked func(context.Context, Intent) error
	// Sent hears that what was permitted has been done to the page, and where, so
	// that whoever comes after a crash can look; nil means nobody asks.
	Sent func(ctx context.Context, at Trace)
	// Settled hears what became of what was permitted: confirmed, none or
	// unknown. It is called once for each permission; nil means nobody asks.
	Settled func(ctx context.Context, effect string)

	fingers bool // what is done is done with one
}

// Trace is the document in which something was permitted.
type Trace struct {
	Tab      string `json:"tab"`
	Document string `json:"document"`
}

type guardKey struct{}

// Guarded says that what is done under the context must not pay unasked. It
// belongs to the action and not to the tab: a person may drive the same one.
func Guarded(ctx context.Context, g Guarding) context.Context {
	if g.Unasked == nil {
		g.Unasked = func(_ context.Context, i Intent) error {
			return fault.New(fault.ApprovalRequired, i.Kind, "%q looks like a final payment", shortTo(i.Label, 64))
		}
	}
	return context.WithValue(ctx, guardKey{}, &g)
}

func guardOf(ctx context.Context) *Guarding {
	g, _ := ctx.Value(guardKey{}).(*Guarding)
	return g
}

// byFinger has the guard stop fingers too. It does not otherwise: each change of that
// has the browser work out anew where a page may be touched, and a mouse touches nothing.
func byFinger(ctx context.Context) context.Context {
	g := guardOf(ctx)
	if g == nil {
		return ctx
	}
	own := *g
	own.fingers = true
	return context.WithValue(ctx, guardKey{}, &own)
}

func (g *Guarding) rules() payRules { return payRules{Patterns: g.Patterns, Fingers: g.fingers} }

// verdict of the engine about one element.
type payVerdict struct {
	Here  bool     `json:"here"`
	Frame bool     `json:"frame"` // it is a frame's owner: the inside decides
	Focus string   `json:"focus"` // where nothing is judged: "here", or "deeper", in a frame
	Pays  bool     `json:"pays"`
	Sure  bool     `json:"sure"`
	Label string   `json:"label"`
	Why   []string `json:"why"`
	Mark  string   `json:"mark"`

	Changed bool        `json:"changed"` // another than what was permitted
	Armed   bool        `json:"armed"`   // it pays nothing, and the gate is closed behind it
	Late    *payVerdict `json:"late"`    // what the page did about the last deed, when that was over, and was stopped
}

type payRules struct {
	Patterns []string `json:"patterns,omitempty"`
	Card     bool     `json:"card,omitempty"` // another frame has fields for a card
	Sum      bool     `json:"sum,omitempty"`  // or shows a total
	Fingers  bool     `json:"fingers,omitempty"`
}

// payAsk is what the engine is asked about: an element, or a key where the focus is.
type payAsk struct {
	payRules
	ID  int       `json:"id,omitzero"`
	Key string    `json:"key,omitempty"`
	Arm *payRules `json:"arm,omitempty"` // close the gate at once, if it pays nothing
}

// judging is the question that goes with the search for what is to be clicked.
func judging(ctx context.Context) *payAsk {
	g := guardOf(ctx)
	if g == nil {
		return nil
	}
	rules := g.rules()
	return &payAsk{payRules: rules, Arm: &rules}
}

// gateReport is what a document says when its gate is opened.
type gateReport struct {
	Refused *payVerdict `json:"refused"`
	Used    bool        `json:"used"`
}

// passage is one guarded action on its way through the gate.
type passage struct {
	guard *Guarding
	kind  string
	rules payRules
	deaf  map[proto.FrameID]bool // documents that did not answer
	hangs bool                   // one of them may do so later
	armed []frame
	told  *gateReport // of the one that is armed, and was opened with another question
	at    frame       // what was judged is in this document; zero where nothing was
	paid  bool        // the permission was given, and with it the one try
	heard bool        // the page took it, or went away with it
	mark  string      // what was permitted
	id    int         // the element, where there is one
	trace Trace
}

// pass judges an action and closes the gate for it. done must be called after
// the deed and says what the gate stopped. Without a guard nothing is judged.
func (t *Tab) pass(ctx context.Context, kind string, where []frame, ask payAsk) (*passage, error) {
	g := guardOf(ctx)
	if g == nil {
		return nil, nil //nolint:nilnil // no guard is no passage, and every method knows
	}
	p := t.newPassage(g, kind, ask.ID)
	p.look(ctx, t, where)
	ask.payRules = p.rules
	if len(where) == 1 && t.frames.alone(where[0]) {
		ask.Arm = &p.rules // there is no other document whose gate is to be closed
	}
	var verdict payVerdict
	focus := ""
	for _, f := range where {
		if len(where) > 1 && p.deaf[f.id] {
			continue
		}
		var v payVerdict
		if err := t.call(ctx, f, "payIntent", ask, &v); err != nil {
			if errors.Is(err, errWorldGone) && len(where) > 1 {
				continue
			}
			return nil, err
		}
		if v.Here {
			verdict, p.at = v, f
		}
		if v.Here || v.Frame {
			break
		}
		focus = cmp.Or(v.Focus, focus) // parents come first
	}
	if p.hangs && !verdict.Here && focus == "deeper" {
		// The frame takes in later what is done now, when its gate is open.
		return nil, hangingFrame(kind)
	}
	return p, p.enter(ctx, t, verdict)
}

// passFound is pass for an element that was judged when it was found.
func (t *Tab) passFound(ctx context.Context, kind string, got found) (*passage, error) {
	g := guardOf(ctx)
	if g == nil || got.pay == nil {
		return t.pass(ctx, kind, []frame{got.frame}, payAsk{ID: got.id})
	}
	p := t.newPassage(g, kind, got.id)
	if got.pay.Here {
		p.at = got.frame
	}
	return p, p.enter(ctx, t, *got.pay)
}

func (t *Tab) newPassage(g *Guarding, kind string, id int) *passage {
	return &passage{guard: g, kind: kind, id: id, rules: g.rules(), trace: Trace{t.ID(), string(t.life.now().loader)}}
}

// enter has what was judged permitted, and closes the gate behind it.
func (p *passage) enter(ctx context.Context, t *Tab, verdict payVerdict) error {
	if verdict.Late != nil {
		if err := p.unasked(ctx, t, *verdict.Late, p.at); err != nil {
			return err
		}
	}
	if err := p.permit(ctx, t, verdict, p.at); err != nil {
		return err
	}
	if verdict.Armed {
		p.armed = []frame{p.at}
		return nil
	}
	if err := p.arm(ctx, t, verdict.Mark); err != nil {
		p.settle(ctx, None)
		return err
	}
	return nil
}

// aside does what is not meant to pay, such as typing, behind the closed gate:
// a point may lie on a button, and a form may send itself after the last digit.
// An approval is not used up for it. closed is the document whose gate was closed
// before, where that is the only one.
func (t *Tab) aside(ctx context.Context, kind string, closed []frame, fn func(*passage) error) error {
	g := guardOf(ctx)
	if g == nil {
		return fn(nil)
	}
	p := &passage{guard: g, kind: kind, rules: g.rules(), armed: closed}
	if len(closed) == 0 {
		p.look(ctx, t, nil)
		if err := p.arm(ctx, t, ""); err != nil {
			return err
		}
	}
	err := fn(p)
	refused, at := p.disarm(ctx, t)
	if refused == nil {
		return err
	}
	if failed := p.unasked(ctx, t, *refused, at); failed != nil {
		return failed
	}
	return err // it was stopped all the same, and the button may be clicked
}

// unasked tells the guard of what was stopped and that nobody had asked for.
func (p *passage) unasked(ctx context.Context, t *Tab, v payVerdict, at frame) error {
	intent, err := p.intent(ctx, t, v, at)
	if err != nil {
		return err
	}
	return p.guard.Unasked(ctx, intent)
}

// look asks the other documents what they know: the fields for a card are often
// in a frame of their own.
func (p *passage) look(ctx context.Context, t *Tab, where []frame) {
	all := t.frames.list()
	if len(all) < 2 {
		return
	}
	p.deaf = map[proto.FrameID]bool{}
	var mu sync.Mutex
	var wg guard.Group
	for _, f := range all {
		if len(where) == 1 && f.id == where[0].id {
			continue
		}
		wg.Run(func() {
			limited, cancel := t.patient(ctx, f)
			defer cancel()
			var e struct{ Card, Sum bool }
			err := t.call(limited, f, "payEvidence", nil, &e)
			mu.Lock()
			defer mu.Unlock()
			if err != nil { // it goes away, or hangs, and shows nothing
				p.deaf[f.id] = f.id != t.frames.main
				p.hangs = p.hangs || errors.Is(err, context.DeadlineExceeded)
				return
			}
			p.rules.Card, p.rules.Sum = p.rules.Card || e.Card, p.rules.Sum || e.Sum
		})
	}
	wg.Wait()
}

// permit asks the guard about what pays.
func (p *passage) permit(ctx context.Context, t *Tab, v payVerdict, f frame) error {
	if !v.Pays {
		return nil
	}
	intent, err := p.intent(ctx, t, v, f)
	if err != nil {
		return err
	}
	if err := p.guard.Permit(ctx, intent); err != nil {
		return err
	}
	p.paid, p.at, p.mark = true, f, v.Mark
	return nil
}

// intent is what would pay, with what the page says around it.
func (p *passage) intent(ctx context.Context, t *Tab, v payVerdict, f frame) (Intent, error) {
	totals, err := t.Totals(ctx, nil)
	if err != nil {
		return Intent{}, fault.Wrap(fault.ApprovalRequired, p.kind, err)
	}
	intent := Intent{Kind: p.kind, Label: shortTo(v.Label, 120), Why: v.Why, Sure: v.Sure, Frame: totals.Origin, Totals: totals, Look: t.Totals}
	if f.id != t.frames.main {
		var at struct {
			Origin string `json:"origin"`
		}
		if t.call(ctx, f, "place", nil, &at) == nil {
			intent.Frame = at.Origin
		}
	}
	return intent, nil
}

// arm closes the gate in every document, as the page may bring another one
// under the hand. Only where it was judged does the permission count.
func (p *passage) arm(ctx context.Context, t *Tab, mark string) error {
	all := t.frames.list()
	failed := make([]error, len(all))
	var wg guard.Group
	for i, f := range all {
		args := map[string]any{"rules": p.rules, "beside": p.paid && f.id != p.at.id}
		if p.paid && f.id == p.at.id {
			args["permit"] = mark
		}
		if p.deaf[f.id] && f.id != p.at.id {
			failed[i] = errWorldGone // nothing that is done now arrives there
			continue
		}
		wg.Run(func() { failed[i] = t.call(ctx, f, "payArm", args, nil) })
	}
	wg.Wait()
	p.armed = nil
	for i, f := range all {
		switch {
		case failed[i] == nil:
			p.armed = append(p.armed, f)
		case f.id == p.at.id, !errors.Is(failed[i], errWorldGone), len(all) == 1:
			return failed[i]
		}
	}
	return nil
}

// opens reports whether the document may open its gate with the next question
// that it is asked: it is the only one that has closed it.
func (p *passage) opens(in frame) bool {
	return p != nil && len(p.armed) == 1 && p.armed[0].id == in.id
}

// neverClosed notes that the document has not closed its gate after all.
func (p *passage) neverClosed() {
	if p != nil {
		p.armed = nil
	}
}

// opened takes what the document said with its answer.
func (p *passage) opened(told *gateReport) {
	if p != nil {
		p.told = told
	}
}

// disarm opens the gate again, and says what it stopped and in which document.
func (p *passage) disarm(ctx context.Context, t *Tab) (*payVerdict, frame) {
	if p.told != nil && len(p.armed) == 1 {
		told, in := p.told, p.armed[0]
		p.told, p.armed, p.heard = nil, nil, p.heard || told.Used
		return told.Refused, in
	}
	if t.Dialog() != nil {
		return nil, frame{} // a page behind its dialog opens the gate by itself
	}
	armed := p.armed
	p.armed = nil
	stopped := make([]*payVerdict, len(armed))
	var mu sync.Mutex
	var wg guard.Group
	for i, f := range armed {
		wg.Run(func() {
			var got gateReport
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), frameWithin)
			defer cancel()
			err := t.call(limited, f, "payDisarm", nil, &got)
			stopped[i] = got.Refused
			// Another document: what was asked of the old one has happened.
			gone := errors.Is(err, errWorldGone) && (f.id == p.at.id || f.id == t.frames.main)
			mu.Lock()
			defer mu.Unlock()
			p.heard = p.heard || got.Used || gone
		})
	}
	wg.Wait()
	for i, f := range armed {
		if stopped[i] != nil {
			return stopped[i], f
		}
	}
	return nil, frame{}
}

// over opens the gate again. What it stopped did not happen: it comes back as
// a fault, or, where nobody was asked before, is asked about now; then the
// action may be done once more.
func (p *passage) over(ctx context.Context, t *Tab) (again bool, err error) {
	if p == nil {
		return false, nil
	}
	refused, at := p.disarm(ctx, t)
	if refused == nil {
		return false, nil
	}
	if p.paid || refused.Changed {
		return false, fault.New(fault.ApprovalRequired, p.kind, "the page changed after it was looked at; nothing was clicked").
			WithHint("Look at the page again, and ask for a new approval: this one is used up.")
	}
	p.at = at
	if err := p.permit(ctx, t, *refused, at); err != nil {
		return false, err
	}
	return true, p.arm(ctx, t, refused.Mark)
}

// pays reports whether this action was permitted to pay: then it is tried once
// and not again, whatever becomes of it.
func (p *passage) pays() bool { return p != nil && p.paid }

// sending tells when a permitted action has been done: before it is known what
// became of it, as that takes longer.
func (p *passage) sending(act func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := act(ctx)
		if err == nil && p.pays() && p.guard.Sent != nil {
			p.guard.Sent(context.WithoutCancel(ctx), p.trace)
		}
		return err
	}
}

// asksToPay are the words of a dialog that asks for money; a sum must be in it.
var asksToPay = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:pay|payment|purchase|buy|order|charge[ds]?|transfer|send|donate|subscribe|confirm|bill)\b|zahl|kauf|bestell|überweis|pay(?:er|ez)|achat|virement|pag[ao]|compr|acquist|bonifico|betal|kop|支払|購入|注文|送金|支付|付款|购买|转账`)
})

// permitDialog guards the yes to a dialog that asks for money. The page stands
// still behind it, so that the dialog is all there is to read.
func (t *Tab) permitDialog(ctx context.Context, d *Dialog) (*passage, error) {
	g := guardOf(ctx)
	if g == nil || !asksToPay().MatchString(d.Message) {
		return nil, nil //nolint:nilnil // no guard is no passage
	}
	found := money.Find(d.Message)
	if len(found) == 0 {
		return nil, nil //nolint:nilnil // nor is there one without money
	}
	totals := Totals{Origin: d.Origin, Decision: TotalAmbiguous}
	if a, certain := found[0].In(""); len(found) == 1 && !found[0].Vague {
		totals.Decision, totals.Total, totals.Certain, totals.Label = TotalRead, a, certain, "the dialog"
		totals.Seen = []Candidate{{Amount: a, Label: "the dialog"}}
	}
	if err := g.Permit(ctx, Intent{Kind: "dialog", Label: shortTo(strings.TrimSpace(d.Message), 120), Why: []string{"a dialog with a sum"}, Sure: true, Frame: d.Origin, Totals: totals}); err != nil {
		return nil, err
	}
	return &passage{guard: g, paid: true}, nil
}
