package page

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"

	"tapin/internal/fault"
)

// The browser's bits for the keys that are held down.
const (
	altBit   = 1
	ctrlBit  = 2
	metaBit  = 4
	shiftBit = 8
)

// key is one key of a keyboard with the US layout.
type key struct {
	key, code string
	vk        int64  // the Windows virtual key code, which old pages read as keyCode
	location  int64  // 1 left, 2 right, 3 keypad
	text      string // what it types
}

// chord is a key and what is held down while it is pressed.
type chord struct {
	held []key
	bits int64
	key  key
}

// Press presses a key or a combination such as Control+A in whatever has the focus.
func (t *Tab) Press(ctx context.Context, name string) error {
	const op = "press a key"
	c, err := parseChord(name)
	if err != nil {
		return err
	}
	ctx, cancel := fieldTime(ctx, 0)
	defer cancel()
	return fieldFault(op, t.strikeGuarded(ctx, c))
}

// strikeGuarded presses what may work a button or send a form: Enter and the
// space bar by themselves, any other as the shortcut that a page makes of it.
func (t *Tab) strikeGuarded(ctx context.Context, c chord) error {
	if guardOf(ctx) == nil || t.Dialog() != nil {
		return t.finish(ctx, c)
	}
	var gate *passage
	err := t.unlessDialog(ctx, func(ctx context.Context) (err error) {
		gate, err = t.pass(ctx, "key", t.frames.list(), payAsk{Key: c.key.key})
		return err
	})
	if err != nil {
		return err
	}
	strike := gate.sending(func(ctx context.Context) error { return t.finish(ctx, c) })
	err = strike(ctx)
	again, stopped := gate.over(ctx, t)
	if stopped == nil && again {
		err = strike(ctx)
		_, stopped = gate.over(ctx, t)
	}
	switch {
	case stopped != nil:
		gate.settle(ctx, None)
		return stopped
	case gate.pays() && err == nil && (gate.heard || t.Dialog() != nil):
		gate.settle(ctx, gate.concluded(ctx, t, Confirmed))
	default:
		gate.settle(ctx, Unknown)
	}
	return err
}

// parseChord reads "Shift+Tab", "a", "Ctrl++", " ". Names of keys may be
// written in any case; a letter is the letter that it is.
func parseChord(name string) (chord, error) {
	const op = "press a key"
	parts := splitChord(name)
	var c chord
	for _, part := range parts[:len(parts)-1] {
		held, bit := modifier(part)
		if bit == 0 {
			if _, known := findKey(part); known {
				return chord{}, fault.New(fault.InvalidRequest, op, "%q cannot be held down", short(part)).
					WithHint("Hold Control, Alt, Shift or Meta, and press one other key.")
			}
			return chord{}, unknownKey(part)
		}
		if c.bits&bit == 0 {
			c.held, c.bits = append(c.held, held), c.bits|bit
		}
	}
	last := parts[len(parts)-1]
	k, known := findKey(last)
	if !known {
		return chord{}, unknownKey(last)
	}
	if _, bit := modifier(last); bit != 0 {
		if c.bits&bit != 0 {
			return chord{}, fault.New(fault.InvalidRequest, op, "%q holds a key down and presses it too", short(name))
		}
		c.key, c.bits = k, c.bits|bit
		return c, nil
	}
	c.key = c.layer(k)
	return c, nil
}

// layer is what the key means with the modifiers held. Control+A is written
// with a capital and means the key, not the capital letter.
func (c *chord) layer(k key) key {
	switch {
	case c.bits&shiftBit != 0:
		return shifted(k)
	case c.bits == 0:
		if plain := unshifted(k); plain != k {
			c.bits |= shiftBit // a capital comes from a keyboard with Shift held
		}
		return k
	case len(k.text) == 1 && k.text[0] >= 'A' && k.text[0] <= 'Z':
		return unshifted(k)
	}
	return k
}

// splitChord takes the combination apart at its plus signs; one that stands at
// the end is the key itself.
func splitChord(name string) []string {
	if rest, ok := strings.CutSuffix(name, "+"); ok {
		switch before, plus := strings.CutSuffix(rest, "+"); {
		case rest == "":
			return []string{"+"}
		case plus && before != "":
			return append(strings.Split(before, "+"), "+")
		}
	}
	return strings.Split(name, "+")
}

// events are the presses and releases of the whole combination, in order.
func (c *chord) events() []any {
	var out []any
	var bits int64
	for _, k := range c.held {
		_, bit := modifier(k.key)
		bits |= bit
		out = append(out, k.down(bits, nil))
	}
	out = append(out, c.key.down(c.bits, c.commands()), c.key.up(c.bits))
	for i := len(c.held) - 1; i >= 0; i-- {
		_, bit := modifier(c.held[i].key)
		bits &^= bit
		out = append(out, c.held[i].up(bits))
	}
	return out
}

// commands are what the combination does in a field. A desktop's key bindings
// give them to a browser with a window; without one they have to be said.
func (c *chord) commands() []string {
	if c.bits&(ctrlBit|metaBit) == 0 || c.bits&altBit != 0 {
		return nil
	}
	with := editing
	if c.bits&shiftBit != 0 {
		with = editingWithShift
	}
	if name, ok := with[c.key.code]; ok {
		return []string{name}
	}
	return nil
}

// down is the press. One that types is a keyDown, which makes the character's
// own event too; with Control or Alt held nothing is typed.
func (k key) down(bits int64, commands []string) any {
	p := k.event(input.DispatchKeyEventTypeRawKeyDown, bits)
	if k.text != "" && bits&(ctrlBit|altBit|metaBit) == 0 {
		p.Type, p.Text, p.UnmodifiedText = input.DispatchKeyEventTypeKeyDown, k.text, k.text
	}
	p.Commands = commands
	return p
}

func (k key) up(bits int64) any {
	if _, bit := modifier(k.key); bit != 0 {
		bits &^= bit
	}
	return k.event(input.DispatchKeyEventTypeKeyUp, bits)
}

func (k key) event(kind input.DispatchKeyEventType, bits int64) input.DispatchKeyEventParams {
	p := input.DispatchKeyEventParams{
		Type: kind, Modifiers: bits, Key: k.key, Code: k.code,
		WindowsVirtualKeyCode: k.vk, NativeVirtualKeyCode: k.vk, Location: k.location,
	}
	if k.location == keypad {
		yes := true
		p.IsKeypad, p.Location = &yes, 0 // the browser derives it
	}
	return p
}

// inFlight is how many events are sent before one of them is waited for: the
// browser keeps their order by itself, and a long text need not queue up in it.
const inFlight = 512

// strike sends events for the keyboard in their order, without waiting for each.
// A page that goes away because of one of them has taken it.
func (t *Tab) strike(ctx context.Context, events []any) error {
	for i, e := range events {
		method := input.DispatchKeyEvent.Method
		if _, ok := e.(input.InsertTextParams); ok {
			method = input.InsertText.Method
		}
		if i%inFlight != inFlight-1 && i != len(events)-1 {
			if err := t.session.Send(ctx, method, e); err != nil {
				return err
			}
			continue
		}
		if err := worldError(t.session.Call(ctx, method, e, nil)); err != nil {
			if errors.Is(err, errWorldGone) {
				return nil
			}
			return err
		}
	}
	return nil
}

// finish presses what a page may answer with a dialog: then it has been pressed,
// and the dialog is there for everybody to see.
func (t *Tab) finish(ctx context.Context, c chord) error {
	sent := false
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		sent = true
		return t.strike(ctx, c.events())
	})
	if sent && errors.Is(err, fault.DialogOpen) {
		return nil
	}
	return err
}

// keystrokes are the events that type a text: a key for each character that has
// one, the others as an input method gives them, whole runs at a time, because
// an emoji may be many characters. A line break is never the Enter key: that
// sends forms and chats. Fields of one line have none.
func keystrokes(text, kind string) [][]any {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var out [][]any
	var run strings.Builder
	flush := func() {
		if run.Len() > 0 {
			out = append(out, []any{input.InsertTextParams{Text: run.String()}})
			run.Reset()
		}
	}
	for _, r := range text {
		k, typed := characters[r]
		switch {
		case r == '\n' || r == '\r':
			flush()
			switch kind {
			case kindTextarea:
				out = append(out, []any{input.InsertTextParams{Text: "\n"}})
			case kindEditable:
				enter := chord{held: []key{named["shift"]}, bits: shiftBit, key: named["enter"]}
				out = append(out, enter.events())
			}
		case !typed:
			run.WriteRune(r)
		default:
			flush()
			var bits int64
			if unshifted(k) != k {
				bits = shiftBit
			}
			out = append(out, []any{k.down(bits, nil), k.up(bits)})
		}
	}
	flush()
	return out
}

// findKey is the key of that name, or that types that one character.
func findKey(name string) (key, bool) {
	if r, size := utf8.DecodeRuneInString(name); size == len(name) && size > 0 {
		k, ok := characters[r]
		return k, ok
	}
	name = strings.ToLower(name)
	if meant, ok := aliases[name]; ok {
		name = meant
	}
	k, ok := named[name]
	return k, ok
}

// modifier is the key that is held down for that name, and its bit; 0 means none.
func modifier(name string) (key, int64) {
	k, ok := findKey(name)
	if !ok {
		return key{}, 0
	}
	switch k.key {
	case "Alt":
		return k, altBit
	case "Control":
		return k, ctrlBit
	case "Meta":
		return k, metaBit
	case "Shift":
		return k, shiftBit
	}
	return key{}, 0
}

func unknownKey(name string) error {
	f := fault.New(fault.InvalidRequest, "press a key", "there is no key %q", short(name))
	if near := nearest(strings.ToLower(name)); near != "" {
		return f.WithHint("Did you mean %s?", near)
	}
	return f.WithHint("Use the names of KeyboardEvent.key, such as Enter, Tab, ArrowDown or Control+A.")
}

// nearest is the key whose name takes the fewest edits, if there are few.
func nearest(name string) string {
	if len(name) > 24 {
		return ""
	}
	best, found := 3, ""
	for _, candidate := range slices.Sorted(maps.Keys(named)) {
		if d := edits(name, candidate); d < best && d < len(candidate)-1 {
			best, found = d, named[candidate].key
		}
	}
	if found == " " {
		return "Space"
	}
	return found
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// short keeps what a caller sent short enough to say back.
func short(s string) string { return shortTo(s, 40) }

func shortTo(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
