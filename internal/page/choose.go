package page

import (
	"context"
	"errors"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// lookAgain is how often a list is asked for a choice that is not there yet:
// many are filled only when another one has been answered.
const lookAgain = 50 * time.Millisecond

// Select chooses from a list by value, label or place (from 0): a native one,
// or one that the page draws. It returns the labels of what is chosen now, or
// none where the page answers with a dialog.
func (t *Tab) Select(ctx context.Context, l Locator, values []string, within time.Duration) ([]string, error) {
	op := "select in " + l.String()
	if len(values) == 0 {
		return nil, fault.New(fault.InvalidRequest, op, "there is nothing to select").WithHint("Give one value or label, or several for a list that takes them.")
	}
	if within <= 0 {
		within = actWithin
	}
	ctx, cancel := fieldTime(ctx, within)
	defer cancel()
	var chosen []string
	var d deed
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		at, err := t.locate(ctx, l, wanted{Enabled: true}, within)
		if err != nil {
			return err
		}
		var list struct {
			Gone   bool   `json:"gone"`
			Native *field `json:"native"`
			Open   bool   `json:"open"`
			Typing bool   `json:"typing"`
		}
		if err := t.call(ctx, at.frame, "chooser", map[string]int{"id": at.id}, &list); err != nil {
			return err
		}
		switch {
		case list.Gone:
			return verdict{Gone: true}.fault("")
		case list.Native == nil:
			chosen, err = t.chooseDrawn(ctx, l, at, values, list.Open, list.Typing, within) // its clicks know dialogs
			return err
		case list.Native.Locked != "":
			return locked(*list.Native)
		}
		list.Native.frame, list.Native.deed = at.frame, &d
		chosen, err = t.chooseNative(ctx, *list.Native, values, within)
		return err
	})
	if d.provoked(err) {
		return nil, nil
	}
	return chosen, fieldFault(op, err)
}

// choice is the engine's answer to what is to be chosen.
type choice struct {
	Gone     bool     `json:"gone"`
	Wrong    string   `json:"wrong"`
	Missing  bool     `json:"missing"`
	Disabled bool     `json:"disabled"`
	At       int      `json:"at"` // which of the values
	Choices  []string `json:"choices"`
	Chosen   []string `json:"chosen"`
	Role     string   `json:"role"` // of a drawn choice, and what is written on it
	Name     string   `json:"name"`
	On       bool     `json:"on"`
}

// fault says what kept the choice from being made, with the value in question
// unless there is none to say.
func (c choice) fault(value string) error {
	if value != "" {
		value = " " + short(value)
	}
	switch {
	case c.Missing:
		f := fault.New(fault.ElementNotFound, "", "the list has no choice%s", value)
		if len(c.Choices) == 0 {
			return f.WithHint("The list is empty.")
		}
		return f.WithHint("It has: %s.", shortTo(strings.Join(c.Choices, ", "), 400))
	case c.Disabled:
		return fault.New(fault.ElementNotActionable, "", "the choice%s is disabled", value)
	}
	return verdict{Gone: c.Gone, Wrong: c.Wrong}.fault(fault.InvalidRequest)
}

// chooseNative sets a select element and waits for choices that are still to come.
func (t *Tab) chooseNative(ctx context.Context, f field, values []string, within time.Duration) ([]string, error) {
	got, err := t.chooseOnce(ctx, f, map[string]any{"id": f.ID, "values": values}, within)
	if err != nil {
		return nil, err
	}
	value := ""
	if got.At < len(values) {
		value = values[got.At]
	}
	return got.Chosen, got.fault(value)
}

// chooseSecret is chooseNative for a form's value, which nobody is told.
func (t *Tab) chooseSecret(ctx context.Context, f field, value secret.Text, within time.Duration) error {
	got, err := t.chooseOnce(ctx, f, map[string]any{"id": f.ID, "values": []string{value.Reveal()}, "several": true}, within)
	if err != nil {
		return err
	}
	return got.fault("")
}

func (t *Tab) chooseOnce(ctx context.Context, f field, args map[string]any, within time.Duration) (choice, error) {
	return t.awaitChoice(ctx, within, func() (choice, error) {
		var got choice
		err := f.deed.do(func() error { return t.call(ctx, f.frame, "choose", args, &got) })
		return got, err
	})
}

// awaitChoice asks until the choice is there or the time is over.
func (t *Tab) awaitChoice(ctx context.Context, within time.Duration, ask func() (choice, error)) (choice, error) {
	if within <= 0 {
		within = actWithin
	}
	for until := time.Now().Add(within); ; {
		got, err := ask()
		if err != nil || !got.Missing || time.Now().After(until) {
			return got, err
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return choice{}, ctx.Err()
		}
	}
}

// typeAfter is how long an open list may take to show a choice before its name
// is typed into a field that filters the list.
const typeAfter = time.Second

// chooseDrawn works a list as a person does: open it, wait for the choices,
// click those meant.
func (t *Tab) chooseDrawn(ctx context.Context, l Locator, at found, values []string, open, typing bool, within time.Duration) ([]string, error) {
	var chosen []string
	for _, value := range values {
		ask := func() (choice, error) {
			var got choice
			err := t.call(ctx, at.frame, "option", map[string]any{"id": at.id, "value": value}, &got)
			return got, err
		}
		got, err := ask()
		if err != nil {
			return chosen, err
		}
		if got.Missing && (!open || len(chosen) > 0) {
			if _, err := t.Click(ctx, l, ClickOptions{Timeout: within}); err != nil {
				return chosen, err
			}
			open = true
		}
		patience := within
		if typing {
			patience = min(within, typeAfter)
		}
		if got, err = t.awaitChoice(ctx, patience, ask); err == nil && got.Missing && typing {
			if _, err = t.Type(ctx, secret.New(value), TypeOptions{Locator: &l, Clear: true, Timeout: within}); err == nil {
				got, err = t.awaitChoice(ctx, within, ask)
			}
		}
		if err == nil {
			err = got.fault(value)
		}
		if err != nil {
			return chosen, err
		}
		if !got.On {
			_, err = t.Click(ctx, Locator{Role: got.Role, Name: got.Name}, ClickOptions{Timeout: within})
		}
		if err != nil && !errors.Is(err, errWorldGone) {
			return chosen, err
		}
		chosen = append(chosen, got.Name)
	}
	return chosen, nil
}
