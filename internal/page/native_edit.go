package page

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	// editWithin bounds what one change of a field may take.
	editWithin = 10 * time.Second
	// pasteFrom is the length from which a text is put in whole: nobody types
	// that much between two messages.
	pasteFrom = 40
)

// NativeEdit is what a person did to the stand-in of a field.
type NativeEdit struct {
	ID    string
	Value secret.Text  // what stands in it now
	Base  *secret.Text // what stood in it before; nil replaces whatever the field holds
	Caret int          // behind the last change, in UTF-16 units; -1 means not known
}

// NativeState is what the page made of a change.
type NativeState struct {
	Value     *string `json:"value,omitempty"` // not told of a secret
	Masked    bool    `json:"masked,omitempty"`
	Length    *int    `json:"length,omitempty"`
	Selection []int   `json:"selection,omitempty"`
	Read      int     `json:"read"` // what a report of this number or a lower one says is older
	Same      bool    `json:"same"` // it holds exactly what the stand-in does
	Gone      bool    `json:"gone,omitempty"`
}

// Edit does to a field what a person did to its stand-in, as a person would have
// done it in the page: the caret is put where the change begins, and only the
// difference is erased and typed. It returns what the page made of it.
func (t *Tab) Edit(ctx context.Context, e NativeEdit) (NativeState, error) {
	const op = "edit a field"
	if err := readable(e.Value); err != nil {
		return NativeState{}, fieldFault(op, err)
	}
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	var state NativeState
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		f, id, err := t.byNative(e.ID)
		if err != nil {
			return err
		}
		if t.composing.Swap(false) {
			// The stand-in says how the composition ended.
			if err := t.Compose(ctx, secret.Text{}, 0, 0); err != nil {
				return err
			}
		}
		state, err = t.edit(ctx, f, id, e)
		return err
	})
	return state, fieldFault(op, err)
}

// editPlan is how the engine wants a change to be carried out.
type editPlan struct {
	field
	Erase  bool   `json:"erase"`
	Full   bool   `json:"full"` // a box of one character that has one: the text is for the next
	Insert string `json:"insert"`
}

func (t *Tab) edit(ctx context.Context, f frame, id int, e NativeEdit) (NativeState, error) {
	args := map[string]any{"id": id, "value": e.Value.Reveal(), "caret": e.Caret, "base": nil}
	if e.Base != nil {
		args["base"] = e.Base.Reveal()
	}
	var plan editPlan
	if err := t.call(ctx, f, "nativeEdit", args, &plan); err != nil {
		return NativeState{}, err
	}
	switch {
	case plan.Gone:
		return NativeState{}, goneField()
	case plan.Locked != "":
		return NativeState{}, locked(plan.field)
	case !plan.Focused:
		return NativeState{}, fault.New(fault.ElementNotActionable, "", "the field does not take the focus")
	}
	events, err := t.carryOut(ctx, f, plan)
	if err != nil {
		t.tell(f, "release", releasing{})
		return NativeState{}, err
	}
	var got struct {
		NativeState
		Keys    int `json:"keys"`
		Inserts int `json:"inserts"`
	}
	err = t.call(ctx, f, "nativeSettled", map[string]any{"id": id, "value": e.Value.Reveal()}, &got)
	if err != nil {
		return NativeState{Gone: true}, goneIsFine(err) // the page took it and went on
	}
	if keys, inserts := arrivals(events); !got.Gone && !plan.Boxes && (got.Keys < keys || got.Inserts < inserts) {
		return got.NativeState, fault.New(fault.ElementNotActionable, "", "the page took the focus away while typing, so not all of the text is in the field")
	}
	return got.NativeState, nil
}

// carryOut erases and types, and returns the events that the field must have
// heard of.
func (t *Tab) carryOut(ctx context.Context, f frame, p editPlan) ([]any, error) {
	var events []any
	if p.Erase && p.Insert == "" {
		back := chord{key: named["backspace"]}
		events = back.events()
		return events, t.strike(ctx, events)
	}
	var strokes [][]any
	if long := len([]rune(p.Insert)) >= pasteFrom; long && !p.Boxes {
		strokes = pasted(p.Insert, p.Kind)
	} else {
		strokes = keystrokes(p.Insert, p.Kind)
	}
	if p.Boxes {
		if p.Full {
			if err := t.call(ctx, f, "onward", nil, nil); err != nil {
				return nil, err
			}
		}
		for i, s := range strokes {
			if err := t.strike(ctx, s); err != nil {
				return nil, err
			}
			if i < len(strokes)-1 {
				if err := t.call(ctx, f, "onward", nil, nil); err != nil {
					return nil, goneIsFine(err)
				}
			}
		}
		return nil, nil
	}
	for _, s := range strokes {
		events = append(events, s...)
	}
	return events, t.strike(ctx, events)
}

// pasted puts a long text in by lines.
func pasted(text, kind string) [][]any {
	var out [][]any
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if i > 0 {
			out = append(out, keystrokes("\n", kind)...)
		}
		if line != "" {
			out = append(out, []any{input.InsertTextParams{Text: line}})
		}
	}
	return out
}

// Choose gives a list, a date, a time or a colour its value.
func (t *Tab) Choose(ctx context.Context, id string, values []secret.Text) error {
	const op = "choose"
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	return fieldFault(op, t.unlessDialog(ctx, func(ctx context.Context) error {
		f, el, err := t.byNative(id)
		if err != nil {
			return err
		}
		into, err := t.nativeField(ctx, f, el)
		if err != nil {
			return err
		}
		plain := make([]string, len(values))
		for i, v := range values {
			plain[i] = v.Reveal()
		}
		switch {
		case into.Locked != "":
			return locked(into)
		case into.Way == "choose":
			var got choice
			if err := t.call(ctx, f, "choose", map[string]any{"id": el, "values": plain}, &got); err != nil {
				return err
			}
			return got.fault("")
		case into.Way == "pick" && len(plain) == 1:
			var got verdict
			if err := t.call(ctx, f, "pick", map[string]any{"id": el, "value": plain[0]}, &got); err != nil {
				return err
			}
			return got.fault(fault.InvalidRequest)
		}
		return fault.New(fault.InvalidRequest, "", "a field of kind %s is not chosen from", into.Kind)
	}))
}

// GiveFiles gives files of this machine to a file field. The caller has checked
// that they may leave.
func (t *Tab) GiveFiles(ctx context.Context, id string, files []string) error {
	const op = "give files"
	paths, folder, err := filesToSend(op, files)
	if err != nil {
		return err
	}
	if paths, err = t.carried(ctx, paths, folder); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	return fieldFault(op, t.unlessDialog(ctx, func(ctx context.Context) error {
		f, el, err := t.byNative(id)
		if err != nil {
			return err
		}
		into, err := t.nativeField(ctx, f, el)
		if err != nil {
			return err
		}
		if into.Way != "file" {
			return fault.New(fault.InvalidRequest, "", "a field of kind %s takes no files", into.Kind)
		}
		if err := fits(into, paths, folder); err != nil {
			return err
		}
		object, err := t.remote(ctx, f, el)
		if err != nil {
			return err
		}
		if err := t.setFiles(ctx, f.session, dom.SetFileInputFilesParams{Files: paths, ObjectID: object}); err != nil {
			return err
		}
		t.chosen()
		return nil
	}))
}

// Focus gives a field the focus: by a click, as pages may wait for one.
func (t *Tab) Focus(ctx context.Context, id string) error {
	const op = "enter a field"
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	return fieldFault(op, t.unlessDialog(ctx, func(ctx context.Context) error {
		f, el, err := t.byNative(id)
		if err != nil {
			return err
		}
		var at struct {
			Gone  bool   `json:"gone"`
			Point *Point `json:"point"`
		}
		if err := t.call(ctx, f, "nativePoint", map[string]int{"id": el}, &at); err != nil {
			return err
		}
		if at.Gone {
			return goneField()
		}
		if at.Point == nil {
			return nil
		}
		box, err := t.toTop(ctx, f, rect{X: at.Point.X, Y: at.Point.Y})
		if err != nil {
			return err
		}
		var g glass
		if err := t.callMain(ctx, "glass", nil, &g); err != nil {
			return err
		}
		return t.touch(ctx, Point{X: box.X - (g.X - g.ScrollX), Y: box.Y - (g.Y - g.ScrollY)})
	}))
}

// Blur takes the focus from a field.
func (t *Tab) Blur(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	f, el, err := t.byNative(id)
	if err != nil {
		return err
	}
	return fieldFault("leave a field", t.unlessDialog(ctx, func(ctx context.Context) error {
		return t.call(ctx, f, "nativeBlur", map[string]int{"id": el}, nil)
	}))
}

// Enter presses the Enter key in a field.
func (t *Tab) Enter(ctx context.Context, id string) error {
	if err := t.Focus(ctx, id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	return fieldFault("press Enter", t.finish(ctx, chord{key: named["enter"]}))
}

// Selected is the text that a person would copy; nothing of a secret field.
func (t *Tab) Selected(ctx context.Context) (secret.Text, error) {
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	var text string
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		type told struct {
			Here bool   `json:"here"`
			Text string `json:"text"`
		}
		all := t.frames.list()
		answers := make([]told, len(all))
		errs := t.askEach(ctx, all, func(ctx context.Context, i int) error {
			return t.call(ctx, all[i], "selected", nil, &answers[i])
		})
		for i, got := range answers { // the innermost one comes last
			if errs[i] == nil && got.Here {
				text = got.Text
			}
		}
		return ctx.Err()
	})
	return secret.New(text), fieldFault("copy", err)
}

// byNative finds the document of a field by its name.
func (t *Tab) byNative(id string) (frame, int, error) {
	order, kept, _ := strings.Cut(id, ".")
	number, err := strconv.Atoi(order)
	el, err2 := strconv.Atoi(kept)
	if err != nil || err2 != nil {
		return frame{}, 0, fault.New(fault.InvalidRequest, "", "that is no field")
	}
	if f, ok := t.frames.numbered(number); ok {
		return f, el, nil
	}
	return frame{}, 0, goneField()
}

func (t *Tab) nativeField(ctx context.Context, f frame, id int) (field, error) {
	var into *field
	if err := t.call(ctx, f, "field", map[string]int{"id": id}, &into); err != nil {
		return field{}, err
	}
	if into == nil {
		return field{}, goneField()
	}
	into.frame = f
	return *into, nil
}

func goneField() error {
	return fault.New(fault.ElementNotActionable, "", "that field is no longer there").WithHint("Look at the page again.")
}
