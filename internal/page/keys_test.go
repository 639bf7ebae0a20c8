package page

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"
	"github.com/google/go-cmp/cmp"

	"tapin/internal/fault"
)

// told writes events as a page hears of them: v is down, ^ is up.
func told(events []any) string {
	var out []string
	for _, e := range events {
		switch e := e.(type) {
		case input.InsertTextParams:
			out = append(out, "insert:"+e.Text)
		case input.DispatchKeyEventParams:
			word := "v" + e.Key
			if e.Type == input.DispatchKeyEventTypeKeyUp {
				word = "^" + e.Key
			}
			for bit, name := range map[int64]string{altBit: "A", ctrlBit: "C", metaBit: "M", shiftBit: "S"} {
				if e.Modifiers == bit {
					word += "/" + name
				}
			}
			if e.Text != "" {
				word += "=" + strings.ReplaceAll(e.Text, "\r", "⏎")
			}
			if len(e.Commands) > 0 {
				word += "!" + strings.Join(e.Commands, "!")
			}
			out = append(out, word)
		}
	}
	return strings.Join(out, " ")
}

func TestCombinationsArePressedInOrder(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Enter":           "vEnter=⏎ ^Enter",
		"return":          "vEnter=⏎ ^Enter",
		"Tab":             "vTab ^Tab",
		"Shift+Tab":       "vShift/S vTab/S ^Tab/S ^Shift",
		"Control+A":       "vControl/C va/C!selectAll ^a/C ^Control",
		"ctrl+a":          "vControl/C va/C!selectAll ^a/C ^Control",
		"Cmd+C":           "vMeta/M vc/M!copy ^c/M ^Meta",
		"Meta+v":          "vMeta/M vv/M!paste ^v/M ^Meta",
		"Control+Shift+z": "vControl/C vShift vZ!redo ^Z ^Shift/C ^Control",
		"Alt+ArrowLeft":   "vAlt/A vArrowLeft/A ^ArrowLeft/A ^Alt",
		"ArrowDown":       "vArrowDown ^ArrowDown",
		"F5":              "vF5 ^F5",
		"Esc":             "vEscape ^Escape",
		" ":               "v =  ^ ",
		"Space":           "v =  ^ ",
		"a":               "va=a ^a",
		"A":               "vA/S=A ^A/S",
		"Shift+a":         "vShift/S vA/S=A ^A/S ^Shift",
		"Shift+1":         "vShift/S v!/S=! ^!/S ^Shift",
		"!":               "v!/S=! ^!/S",
		"+":               "v+/S=+ ^+/S",
		"Control++":       "vControl/C v+/C ^+/C ^Control",
		"Numpad7":         "v7=7 ^7",
		"KeyQ":            "vq=q ^q",
		"Shift":           "vShift/S ^Shift",
		"Control+Control": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := parseChord(name)
			if want == "" {
				if !errors.Is(err, fault.InvalidRequest) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, told(c.events())); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestUnknownKeysSayWhatWasMeant(t *testing.T) {
	t.Parallel()
	for name, hint := range map[string]string{
		"Entre":          "Did you mean Enter?",
		"ArowDown":       "Did you mean ArrowDown?",
		"Contrl+A":       "Did you mean Control?",
		"Spce":           "Did you mean Space?",
		"":               "Use the names of KeyboardEvent.key, such as Enter, Tab, ArrowDown or Control+A.",
		"Control+":       "Use the names of KeyboardEvent.key, such as Enter, Tab, ArrowDown or Control+A.",
		"é":              "Use the names of KeyboardEvent.key, such as Enter, Tab, ArrowDown or Control+A.",
		"Enter+a":        "Hold Control, Alt, Shift or Meta, and press one other key.",
		"please press a": "Use the names of KeyboardEvent.key, such as Enter, Tab, ArrowDown or Control+A.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseChord(name)
			if !errors.Is(err, fault.InvalidRequest) || fault.Of(err).Advice() != hint {
				t.Fatalf("got %v, hint %q", err, fault.Of(err).Advice())
			}
		})
	}
}

func TestEveryPrintableCharacterHasItsKey(t *testing.T) {
	t.Parallel()
	for r := rune(' '); r <= '~'; r++ {
		k, ok := characters[r]
		if !ok || k.text != string(r) || k.code == "" || k.vk == 0 {
			t.Errorf("%q has the key %+v", r, k)
		}
		if other := shifted(unshifted(k)); r != ' ' && unshifted(other) != unshifted(k) {
			t.Errorf("%q does not come back from Shift: %+v", r, other)
		}
	}
	for name, k := range named {
		if k.code == "" || k.vk == 0 || name != strings.ToLower(name) {
			t.Errorf("the key %q is %+v", name, k)
		}
	}
	for alias, name := range aliases {
		if _, ok := named[name]; !ok {
			t.Errorf("%q stands for %q, which is no key", alias, name)
		}
	}
}

func TestTextBecomesKeysAndNeverTheEnterKey(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, kind, want string }{
		"letters have keys":            {"aB", "text", "va=a ^a vB/S=B ^B/S"},
		"others come whole":            {"é日本👩‍👩‍👧", "text", "insert:é日本👩‍👩‍👧"},
		"mixed keep their order":       {"a–1", "text", "va=a ^a insert:– v1=1 ^1"},
		"one line has no line breaks":  {"a\r\nb\n", "password", "va=a ^a vb=b ^b"},
		"text areas have them":         {"a\nb", kindTextarea, "va=a ^a insert:\n vb=b ^b"},
		"editors have soft ones":       {"\n", kindEditable, "vShift/S vEnter/S=⏎ ^Enter/S ^Shift"},
		"a tab is a character, no key": {"\t", "text", "insert:\t"},
		"nothing is nothing":           {"", "text", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []any
			for _, s := range keystrokes(tt.text, tt.kind) {
				all = append(all, s...)
			}
			if diff := cmp.Diff(tt.want, told(all)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func FuzzPress(f *testing.F) {
	for _, seed := range []string{"Enter", "Control+A", "Shift++", "+", "++", "", " ", "é", "Ctrl+Shift+Alt+Meta+F12", "Numpad0", "a+b+c", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, err := parseChord(name)
		if err != nil {
			if !errors.Is(err, fault.InvalidRequest) {
				t.Fatalf("%q gave %v", name, err)
			}
			if utf8.RuneCountInString(err.Error()) > 400 {
				t.Fatalf("an error of %d characters", utf8.RuneCountInString(err.Error()))
			}
			return
		}
		// Whatever goes down comes up again, the last first.
		var down []string
		for _, e := range c.events() {
			k := e.(input.DispatchKeyEventParams)
			if k.Type != input.DispatchKeyEventTypeKeyUp {
				down = append(down, k.Code)
				continue
			}
			if len(down) == 0 || down[len(down)-1] != k.Code {
				t.Fatalf("%q releases %s while %v is held", name, k.Code, down)
			}
			down = down[:len(down)-1]
		}
		if len(down) != 0 {
			t.Fatalf("%q leaves %v held", name, down)
		}
	})
}

func FuzzKeystrokes(f *testing.F) {
	f.Add("Pa55 wörd\n", kindTextarea)
	f.Add("👍🏽\r\n", kindEditable)
	f.Fuzz(func(t *testing.T, text, kind string) {
		if !utf8.ValidString(text) {
			return
		}
		var typed strings.Builder
		for _, s := range keystrokes(text, kind) {
			for _, e := range s {
				switch e := e.(type) {
				case input.InsertTextParams:
					typed.WriteString(e.Text)
				case input.DispatchKeyEventParams:
					typed.WriteString(strings.ReplaceAll(e.Text, "\r", "\n"))
				}
			}
		}
		want := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
		if kind != kindTextarea && kind != kindEditable {
			want = strings.ReplaceAll(want, "\n", "")
		}
		if typed.String() != want {
			t.Fatalf("%q became %q", want, typed.String())
		}
	})
}
