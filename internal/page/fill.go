package page

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// Field is one field of a form and what is to stand in it.
type Field struct {
	Locator Locator
	Value   secret.Text
	// Only is the site that the value belongs to; "" means anywhere. Such a value
	// is typed where the field's document and every page around it are of that
	// site and cannot be listened to, and else nowhere.
	Only string
	// Hidden masks the field from now on, and takes the value out of whatever is
	// read from this browser. It needs Only.
	Hidden bool
}

// Filled says of one field whether it was filled. Field is how it was named.
type Filled struct {
	Field string `json:"field"`
	OK    bool   `json:"ok"`
}

// Fill gives many fields their values, each in the way of its kind: texts are
// typed over what is there, pickers are set, boxes are ticked, lists chosen
// from. The first field that fails ends it; those before it stay filled. A
// dialog with which the page answers the last one is no failure.
func (t *Tab) Fill(ctx context.Context, fields []Field, within time.Duration) ([]Filled, error) {
	out := make([]Filled, 0, len(fields))
	for i, f := range fields {
		name := f.Locator.String()
		sure, err := t.fillOne(ctx, f, within)
		out = append(out, Filled{Field: name, OK: sure})
		if err != nil && errors.Is(err, errProvoked) && i == len(fields)-1 {
			return out, nil
		}
		if err != nil {
			return out, fieldFault("fill "+name, err)
		}
	}
	return out, nil
}

// fillOne reports whether the field has its value for sure. A page that answers
// with a dialog has taken a choice; of a text it may have taken only a part.
func (t *Tab) fillOne(ctx context.Context, want Field, within time.Duration) (sure bool, err error) {
	if err := readable(want.Value); err != nil {
		return false, err
	}
	if want.Hidden && want.Only == "" {
		return false, fault.New(fault.InvalidRequest, "", "what is hidden has to belong to a site")
	}
	ctx, cancel := fieldTime(ctx, within)
	defer cancel()
	var f field
	var d deed
	err = t.unlessDialog(ctx, func(ctx context.Context) error {
		f = field{Way: "type", deed: &d}
		if done, err := t.putAtOnce(ctx, f, want); done || err != nil {
			return err
		}
		var err error
		if f, err = t.fieldAt(ctx, want.Locator, within); err != nil {
			return err
		}
		f.deed = &d
		return t.aside(ctx, "fill", nil, func(gate *passage) error {
			f.gate = gate
			if want.Only != "" {
				return t.entrust(ctx, f, want)
			}
			return t.give(ctx, f, want, within)
		})
	})
	if d.provoked(err) {
		return f.Way != "type", fmt.Errorf("%w: %w", errProvoked, err)
	}
	return err == nil, err
}

// give sets one field in the way of its kind.
func (t *Tab) give(ctx context.Context, f field, want Field, within time.Duration) error {
	switch f.Way {
	case "type":
		return t.write(ctx, f, want.Value)
	case "pick":
		var got verdict
		err := f.deed.do(func() error {
			return t.call(ctx, f.frame, "pick", map[string]any{"id": f.ID, "value": want.Value.Reveal()}, &got)
		})
		if err != nil {
			return err
		}
		return got.fault(fault.InvalidRequest)
	case "tick":
		return f.deed.do(func() error { return t.tick(ctx, f, want) })
	case "choose":
		return t.chooseSecret(ctx, f, want.Value, within)
	case "file":
		return fault.New(fault.InvalidRequest, "", "a field for files cannot be filled with text").WithHint("Use upload.")
	}
	return fault.New(fault.ElementNotActionable, "", "a field of kind %s takes no value", f.Kind)
}

// verdict is the engine's answer to a value: what is wrong with it, in words
// that do not hold it.
type verdict struct {
	Gone  bool   `json:"gone"`
	Wrong string `json:"wrong"`
}

func (v verdict) fault(code fault.Code) error {
	switch {
	case v.Gone:
		return fault.New(fault.ElementNotActionable, "", "the field went away meanwhile")
	case v.Wrong != "":
		return fault.New(code, "", "the value does not fit the field: %s", v.Wrong)
	}
	return nil
}

// tick makes a check box or radio button as wanted: with a real click where
// there is something to click, through its label or whatever draws it otherwise.
func (t *Tab) tick(ctx context.Context, f field, want Field) error {
	var target struct {
		verdict
		ID int `json:"id"`
	}
	err := t.call(ctx, f.frame, "tickable", map[string]any{"id": f.ID, "value": want.Value.Reveal()}, &target)
	if err != nil {
		return err
	}
	if err := target.fault(fault.InvalidRequest); err != nil || target.ID == 0 {
		return err
	}
	before, err := t.ticked(ctx, f.frame, target.ID)
	if err != nil {
		return err
	}
	if target.ID == f.ID {
		at, err := t.locate(ctx, want.Locator, wanted{Visible: true, Stable: true, Enabled: true, Hit: true}, tickWithin)
		switch {
		case err == nil:
			if err := t.touch(ctx, at.point); err != nil {
				return err
			}
			if now, err := t.ticked(ctx, f.frame, target.ID); err != nil || now != before {
				return goneIsFine(err)
			}
		case !errors.Is(err, fault.ElementNotActionable):
			return err
		}
	}
	var got verdict
	if err := t.call(ctx, f.frame, "tick", map[string]int{"id": target.ID}, &got); err != nil {
		return goneIsFine(err)
	}
	if err := got.fault(fault.ElementNotActionable); err != nil {
		return err
	}
	if now, err := t.ticked(ctx, f.frame, target.ID); err != nil || now != before {
		return goneIsFine(err)
	}
	return fault.New(fault.ElementNotActionable, "", "the page put it back as it was")
}

// tickWithin is how long a box is waited for to become one that can be clicked
// before the click goes to it directly.
const tickWithin = time.Second

// goneIsFine is for what comes after the deed: a page that moves on has taken it.
func goneIsFine(err error) error {
	if errors.Is(err, errWorldGone) {
		return nil
	}
	return err
}

func (t *Tab) ticked(ctx context.Context, in frame, id int) (bool, error) {
	var got struct {
		On bool `json:"on"`
	}
	err := t.call(ctx, in, "ticked", map[string]int{"id": id}, &got)
	return got.On, err
}
