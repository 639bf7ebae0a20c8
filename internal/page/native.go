package page

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/guard"
)

// Native tells where the fields of the tab in front lie, so that a viewer's own
// controls can stand over them.
type Native struct {
	Tab    string        `json:"tab"`
	Number uint64        `json:"n"`
	Title  string        `json:"-"`
	Focus  string        `json:"focus,omitempty"` // the field that has the focus
	Asked  *NativeAsked  `json:"ask,omitempty"`   // the field whose own picker a person wanted to see
	Fields []NativeField `json:"fields"`
}

// NativeAsked counts how often a picker was asked for, as it may be the same one.
type NativeAsked struct {
	ID     string `json:"id"`
	Number int    `json:"n"`
}

// NativeField is one field. Of a masked one the value is not told, only its
// length. The box is in CSS pixels of the page's window, as those of Pointer are.
type NativeField struct {
	ID           string         `json:"id"`
	Kind         string         `json:"kind"`
	X            float64        `json:"x"`
	Y            float64        `json:"y"`
	Width        float64        `json:"w"`
	Height       float64        `json:"h"`
	Value        *string        `json:"value,omitempty"`
	Masked       bool           `json:"masked,omitempty"`
	Length       *int           `json:"length,omitempty"` // where there is no value
	Read         int            `json:"read"`             // counts the reports of its document; see NativeState
	Label        string         `json:"label,omitempty"`
	Placeholder  string         `json:"placeholder,omitempty"`
	MaxLength    int            `json:"maxlength,omitempty"`
	InputMode    string         `json:"inputmode,omitempty"`
	Autocomplete string         `json:"autocomplete,omitempty"`
	EnterKeyHint string         `json:"enterkeyhint,omitempty"`
	Pattern      string         `json:"pattern,omitempty"`
	Multiple     bool           `json:"multiple,omitempty"`
	Accept       string         `json:"accept,omitempty"`
	Options      []NativeOption `json:"options,omitempty"`
	Disabled     bool           `json:"disabled,omitempty"`
	ReadOnly     bool           `json:"readonly,omitempty"`
	Selection    []int          `json:"selection,omitempty"`
	Font         NativeFont     `json:"font"`
	Box          *NativeBox     `json:"box,omitempty"`  // the field with its labels
	Part         *NativeBox     `json:"part,omitempty"` // what it is filled in with
	Step         string         `json:"step,omitempty"`
	Min          string         `json:"min,omitempty"`
	Max          string         `json:"max,omitempty"`
}

// NativeBox is a part of a page that is to be seen as one. Fields that are filled in
// together name the same.
type NativeBox struct {
	ID     string  `json:"id,omitempty"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"w"`
	Height float64 `json:"h"`
}

// moved is the box where its frame lies in the window.
func (b *NativeBox) moved(f frame, x, y, scale float64) *NativeBox {
	if b == nil {
		return nil
	}
	at := rect{b.X, b.Y, b.Width, b.Height}.moved(x, y, scale)
	out := &NativeBox{X: at.X, Y: at.Y, Width: at.Width, Height: at.Height}
	if b.ID != "" {
		out.ID = nativeID(f, b.ID)
	}
	return out
}

// NativeOption is a choice of a list.
type NativeOption struct {
	Value    string `json:"v"`
	Label    string `json:"label"`
	Group    string `json:"group,omitempty"`
	Disabled bool   `json:"disabled,omitempty"`
	Selected bool   `json:"selected,omitempty"`
}

// NativeFont is how a field writes.
type NativeFont struct {
	Size   float64   `json:"size"`
	Family string    `json:"family"`
	Weight string    `json:"weight"`
	Color  string    `json:"color"`
	Align  string    `json:"align"`
	Pad    []float64 `json:"pad"` // top, right, bottom, left
}

const (
	// nativeWait is how long the engine keeps a question for changes before it
	// says that there are none; nobody who asks again within 10 s stops its work.
	nativeWait = 25 * time.Second
	// pokeEvery bounds how often a page that paints all the time is looked at.
	pokeEvery = 100 * time.Millisecond
	// pokeAfter leaves what was painted the time to get to whoever looks, first.
	pokeAfter = 10 * time.Millisecond
)

// inDocument is what the engine of one document answers; ids are its own.
type inDocument struct {
	Number int           `json:"n"`
	Doc    string        `json:"doc"` // whose number that is
	Idle   bool          `json:"idle"`
	Title  string        `json:"title"`
	Focus  string        `json:"focus"`
	Here   bool          `json:"here"` // the focus is in this document, and not in a frame of it
	Asked  *NativeAsked  `json:"ask"`
	Opaque int           `json:"opaque"` // elements that may hide fields
	DX     float64       `json:"dx"`     // how far fingers moved what they zoomed into
	DY     float64       `json:"dy"`
	Holes  []frameHole   `json:"holes"`
	Fields []NativeField `json:"fields"`
}

// frameHole is where a document draws the frame of that number.
type frameHole struct {
	Frame int `json:"frame"`
	hole
}

// NativeWatch reports the fields of whatever tab is in front. There is one at a
// time for a browser. It is safe for concurrent use.
type NativeWatch struct {
	tabs *Tabs
	show func(Native)
	stop context.CancelFunc
	wake chan struct{} // something else may be in front

	mu      sync.Mutex
	on      *Tab
	last    Native
	told    bool
	reports map[proto.FrameID]*inDocument
	poked   time.Time
	late    *time.Timer
}

// Native begins to report the fields of the tab in front, at once and whenever
// they change; a watch that was under way ends. show is called for one report
// after the other and must be quick.
func (t *Tabs) Native(show func(Native)) *NativeWatch {
	ctx, stop := context.WithCancel(t.ctx)
	w := &NativeWatch{tabs: t, show: show, stop: stop, wake: make(chan struct{}, 1)}
	t.mu.Lock()
	old := t.native
	t.native = w
	t.mu.Unlock()
	if old != nil {
		old.Close()
	}
	t.watch(func(context.Context) { w.run(ctx) })
	return w
}

// Close ends the watch, and the engine's work for it. It must not be called by
// show.
func (w *NativeWatch) Close() {
	w.stop()
	w.mu.Lock()
	w.on = nil // nothing is shown from here on
	if w.late != nil {
		w.late.Stop()
	}
	w.mu.Unlock()
	w.tabs.mu.Lock()
	defer w.tabs.mu.Unlock()
	if w.tabs.native == w {
		w.tabs.native = nil
	}
}

// Poke says that the tab has painted something: the one event that tells of
// every change that can be seen, also those that no script is told of.
func (w *NativeWatch) Poke(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.on == nil || w.late != nil {
		return
	}
	w.late = time.AfterFunc(max(pokeEvery-time.Since(w.poked), pokeAfter), func() {
		defer guard.Catch("page")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.late = nil
		w.poke(ctx)
	})
}

func (w *NativeWatch) poke(ctx context.Context) {
	w.poked = time.Now()
	if w.on == nil || w.on.Dialog() != nil {
		return
	}
	for _, f := range w.on.frames.list() {
		if f.world != 0 {
			_ = f.session.Send(ctx, runtime.CallFunctionOn.Method, runtime.CallFunctionOnParams{
				FunctionDeclaration: "function() { globalThis.tapin.nativePoke?.() }", ExecutionContextID: f.world,
			})
		}
	}
}

// nativeFollow lets the watch follow to the tab that is in front now.
func (t *Tabs) nativeFollow() {
	t.mu.Lock()
	w := t.native
	t.mu.Unlock()
	if w == nil {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default: // it is awake already
	}
}

// run follows the tab in front until the watch ends.
func (w *NativeWatch) run(ctx context.Context) {
	for ctx.Err() == nil {
		tab, err := w.tabs.Front(ctx)
		if err != nil {
			// There is none that answers; a change of tabs or a little time may help.
			select {
			case <-w.wake:
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		if w.begin(ctx, tab) {
			w.follow(ctx, tab)
		}
	}
}

func (w *NativeWatch) begin(ctx context.Context, tab *Tab) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	w.on, w.reports = tab, map[proto.FrameID]*inDocument{}
	return true
}

// follow listens in each document of a tab, until another tab is in front.
func (w *NativeWatch) follow(ctx context.Context, tab *Tab) {
	inTab, leave := context.WithCancel(ctx)
	var ears sync.WaitGroup
	defer ears.Wait()
	defer leave()
	listening := map[proto.FrameID]context.CancelFunc{}
	for {
		changed := tab.frames.changed.next()
		now := tab.frames.list()
		for id, deaf := range listening {
			if !slices.ContainsFunc(now, func(f frame) bool { return f.id == id }) {
				deaf()
				delete(listening, id)
				w.put(tab, id, nil)
			}
		}
		for _, f := range now {
			if listening[f.id] != nil {
				continue
			}
			inFrame, deaf := context.WithCancel(inTab)
			listening[f.id] = deaf
			ears.Go(func() {
				defer guard.Catch("page")
				w.listen(inFrame, tab, f.id)
			})
		}
		select {
		case <-changed:
		case <-tab.session.Ended():
			return
		case <-ctx.Done():
			return
		case <-w.wake:
			if w.tabs.front() != tab {
				return
			}
		}
	}
}

// listen asks one frame again and again for its next change. The engine does
// the waiting.
func (w *NativeWatch) listen(ctx context.Context, tab *Tab, id proto.FrameID) {
	var last inDocument
	for ctx.Err() == nil {
		changed := tab.frames.changed.next()
		f, ok := tab.frames.get(id)
		if !ok {
			return
		}
		got, err := w.next(ctx, tab, f, last)
		if err != nil {
			// Another document comes, or the page is busy, in a dialog or crashed.
			last = inDocument{}
			w.put(tab, id, nil)
			select {
			case <-changed:
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if got.Idle {
			continue
		}
		if got.Doc != last.Doc && last.Opaque > 0 || got.Opaque > last.Opaque {
			// Once for each that is new: what a closed root hides is handed in.
			_ = tab.adoptClosed(ctx)
		}
		last = got
		w.put(tab, id, &got)
	}
	// The document goes on; what we had running in it does not.
	if f, ok := tab.frames.get(id); ok && f.world != 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = f.session.Send(ctx, runtime.CallFunctionOn.Method, runtime.CallFunctionOnParams{
			FunctionDeclaration: "function() { globalThis.tapin.nativeStop?.() }", ExecutionContextID: f.world,
		})
	}
}

func (w *NativeWatch) next(ctx context.Context, tab *Tab, f frame, last inDocument) (inDocument, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*nativeWait)
	defer cancel()
	if parent, ok := tab.frames.get(f.parent); ok && !tab.refs.knows(f, parent) {
		if err := tab.seat(ctx, f); err != nil {
			return inDocument{}, err
		}
		// Only now the parent knows which frame it draws there.
		if err := tab.call(ctx, parent, "nativePoke", nil, nil); err != nil {
			return inDocument{}, err
		}
	}
	var got inDocument
	err := tab.call(ctx, f, "nativeNext", map[string]any{"since": last.Number, "of": last.Doc, "wait": nativeWait.Milliseconds()}, &got)
	return got, err
}

// put takes in what a document said, and reports if that makes a difference.
func (w *NativeWatch) put(tab *Tab, id proto.FrameID, said *inDocument) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.on != tab {
		return
	}
	if said == nil {
		delete(w.reports, id)
	} else {
		w.reports[id] = said
	}
	now := w.compose(tab)
	now.Number = w.last.Number
	if w.told && reflect.DeepEqual(now, w.last) {
		return
	}
	if w.reports[tab.frames.main] == nil {
		return // between two documents; what comes next replaces it all
	}
	w.tabs.entitle(tab, now.Title)
	now.Number++
	w.last, w.told = now, true
	w.show(now)
}

// compose lays the fields of all documents into the window.
func (w *NativeWatch) compose(tab *Tab) Native {
	out := Native{Tab: tab.ID(), Fields: []NativeField{}}
	asked := 0
	type place struct {
		x, y, scale float64
		window      rect // what of it can be seen
	}
	places := map[proto.FrameID]place{}
	for _, f := range tab.frames.list() { // parents first
		said := w.reports[f.id]
		if said == nil {
			continue
		}
		at := place{x: -said.DX, y: -said.DY, scale: 1, window: rect{-farthest, -farthest, 2 * farthest, 2 * farthest}}
		if f.id == tab.frames.main {
			out.Title = said.Title
		} else {
			outer, ok := places[f.parent]
			if !ok {
				continue
			}
			i := slices.IndexFunc(w.reports[f.parent].Holes, func(h frameHole) bool { return h.Frame == f.order })
			if i < 0 {
				continue // it is not to be seen
			}
			h := w.reports[f.parent].Holes[i]
			at = place{x: outer.x + h.X*outer.scale, y: outer.y + h.Y*outer.scale, scale: outer.scale * h.Scale}
			at.window = rect{at.x, at.y, h.Width * outer.scale, h.Height * outer.scale}.within(outer.window)
		}
		places[f.id] = at
		for _, field := range said.Fields {
			box := rect{field.X, field.Y, field.Width, field.Height}.moved(at.x, at.y, at.scale)
			field.X, field.Y, field.Width, field.Height = box.X, box.Y, box.Width, box.Height
			field.Box, field.Part = field.Box.moved(f, at.x, at.y, at.scale), field.Part.moved(f, at.x, at.y, at.scale)
			mine := said.Here && field.ID == said.Focus
			if seen := box.within(at.window); !mine && (seen.Width < 2 || seen.Height < 2) {
				continue
			}
			if mine {
				out.Focus = nativeID(f, field.ID) // the innermost one, as parents come first
			}
			field.ID, field.Read = nativeID(f, field.ID), said.Number
			out.Fields = append(out.Fields, field)
		}
		if a := said.Asked; a != nil {
			asked += a.Number
			out.Asked = &NativeAsked{ID: nativeID(f, a.ID)}
		}
	}
	if out.Asked != nil {
		out.Asked.Number = asked
	}
	return out
}

// nativeID names a field across the documents of a tab. The second half means
// nothing in any other document.
func nativeID(f frame, id string) string { return fmt.Sprintf("%d.%s", f.order, id) }
