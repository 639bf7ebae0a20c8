package page

import (
	"fmt"
	"strings"
)

// keypad is the location of the keys of the number block.
const keypad = 3

// named are the keys by their lower-case names; characters by what they type.
// Both are the US layout and never change.
var (
	named      = namedKeys()
	characters = characterKeys()

	withShift, withoutShift = layers()
)

// editing are the commands of Control (or Meta) with a key, by its code.
var editing = map[string]string{
	"KeyA": "selectAll", "KeyC": "copy", "KeyV": "paste", "KeyX": "cut", "KeyZ": "undo", "KeyY": "redo",
}

var editingWithShift = map[string]string{"KeyZ": "redo", "KeyV": "pasteAndMatchStyle"}

// aliases are what people call keys too.
var aliases = map[string]string{
	"ctrl": "control", "controlormeta": "control", "cmd": "meta", "command": "meta", "super": "meta", "win": "meta", "windows": "meta",
	"option": "alt", "opt": "alt", "esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "back": "backspace",
	"pgup": "pageup", "pgdn": "pagedown", "pgdown": "pagedown", "up": "arrowup", "down": "arrowdown", "left": "arrowleft", "right": "arrowright",
	"spacebar": "space", "plus": "equalshifted", "minus": "hyphen", "caps": "capslock", "menu": "contextmenu",
	"controlleft": "control", "shiftleft": "shift", "altleft": "alt", "metaleft": "meta",
}

// letters, digits and marks of the layout: the key's code, then what it types
// without and with Shift, then its virtual key code.
var marks = []struct {
	code           string
	plain, shifted rune
	vk             int64
}{
	{"Digit1", '1', '!', '1'}, {"Digit2", '2', '@', '2'}, {"Digit3", '3', '#', '3'}, {"Digit4", '4', '$', '4'}, {"Digit5", '5', '%', '5'},
	{"Digit6", '6', '^', '6'}, {"Digit7", '7', '&', '7'}, {"Digit8", '8', '*', '8'}, {"Digit9", '9', '(', '9'}, {"Digit0", '0', ')', '0'},
	{"Backquote", '`', '~', 192}, {"Minus", '-', '_', 189}, {"Equal", '=', '+', 187}, {"BracketLeft", '[', '{', 219}, {"BracketRight", ']', '}', 221},
	{"Backslash", '\\', '|', 220}, {"Semicolon", ';', ':', 186}, {"Quote", '\'', '"', 222}, {"Comma", ',', '<', 188}, {"Period", '.', '>', 190}, {"Slash", '/', '?', 191},
}

func characterKeys() map[rune]key {
	out := map[rune]key{' ': {key: " ", code: "Space", vk: 32, text: " "}}
	put := func(r rune, code string, vk int64) {
		out[r] = key{key: string(r), code: code, vk: vk, text: string(r)}
	}
	for r := 'a'; r <= 'z'; r++ {
		upper := r - 'a' + 'A'
		code := "Key" + string(upper)
		put(r, code, int64(upper))
		put(upper, code, int64(upper))
	}
	for _, m := range marks {
		put(m.plain, m.code, m.vk)
		put(m.shifted, m.code, m.vk)
	}
	return out
}

func namedKeys() map[string]key {
	out := map[string]key{}
	put := func(k key) { out[strings.ToLower(k.key)] = k }
	for _, k := range []key{
		{key: "Enter", code: "Enter", vk: 13, text: "\r"},
		{key: "Tab", code: "Tab", vk: 9},
		{key: "Escape", code: "Escape", vk: 27},
		{key: "Backspace", code: "Backspace", vk: 8},
		{key: "Delete", code: "Delete", vk: 46},
		{key: "Insert", code: "Insert", vk: 45},
		{key: "Home", code: "Home", vk: 36},
		{key: "End", code: "End", vk: 35},
		{key: "PageUp", code: "PageUp", vk: 33},
		{key: "PageDown", code: "PageDown", vk: 34},
		{key: "ArrowLeft", code: "ArrowLeft", vk: 37},
		{key: "ArrowUp", code: "ArrowUp", vk: 38},
		{key: "ArrowRight", code: "ArrowRight", vk: 39},
		{key: "ArrowDown", code: "ArrowDown", vk: 40},
		{key: "Shift", code: "ShiftLeft", vk: 16, location: 1},
		{key: "Control", code: "ControlLeft", vk: 17, location: 1},
		{key: "Alt", code: "AltLeft", vk: 18, location: 1},
		{key: "Meta", code: "MetaLeft", vk: 91, location: 1},
		{key: "AltGraph", code: "AltRight", vk: 225, location: 2},
		{key: "CapsLock", code: "CapsLock", vk: 20},
		{key: "NumLock", code: "NumLock", vk: 144},
		{key: "ScrollLock", code: "ScrollLock", vk: 145},
		{key: "Pause", code: "Pause", vk: 19},
		{key: "PrintScreen", code: "PrintScreen", vk: 44},
		{key: "ContextMenu", code: "ContextMenu", vk: 93},
		{key: "Clear", code: "NumLock", vk: 12},
		{key: "Help", code: "Help", vk: 47},
		{key: "BrowserBack", code: "BrowserBack", vk: 166},
		{key: "BrowserForward", code: "BrowserForward", vk: 167},
		{key: "BrowserRefresh", code: "BrowserRefresh", vk: 168},
		{key: "AudioVolumeMute", code: "AudioVolumeMute", vk: 173},
		{key: "AudioVolumeDown", code: "AudioVolumeDown", vk: 174},
		{key: "AudioVolumeUp", code: "AudioVolumeUp", vk: 175},
		{key: "MediaTrackNext", code: "MediaTrackNext", vk: 176},
		{key: "MediaTrackPrevious", code: "MediaTrackPrevious", vk: 177},
		{key: "MediaStop", code: "MediaStop", vk: 178},
		{key: "MediaPlayPause", code: "MediaPlayPause", vk: 179},
	} {
		put(k)
	}
	for n := int64(1); n <= 24; n++ {
		name := fmt.Sprintf("F%d", n)
		put(key{key: name, code: name, vk: 111 + n})
	}
	// By code as well: what a key is called on the keyboard, whatever it types.
	for r, k := range characterKeys() {
		if plain := unshifted(k); plain == k && r != ' ' {
			out[strings.ToLower(k.code)] = k
		}
	}
	out["space"] = key{key: " ", code: "Space", vk: 32, text: " "}
	out["hyphen"] = key{key: "-", code: "Minus", vk: 189, text: "-"}
	out["equalshifted"] = key{key: "+", code: "Equal", vk: 187, text: "+"}
	for name, right := range map[string]key{
		"shiftright":   {key: "Shift", code: "ShiftRight", vk: 16, location: 2},
		"controlright": {key: "Control", code: "ControlRight", vk: 17, location: 2},
		"altright":     {key: "Alt", code: "AltRight", vk: 18, location: 2},
		"metaright":    {key: "Meta", code: "MetaRight", vk: 92, location: 2},
	} {
		out[name] = right
	}
	numberBlock(out)
	return out
}

func numberBlock(out map[string]key) {
	for n := range int64(10) {
		digit := fmt.Sprint(n)
		out["numpad"+digit] = key{key: digit, code: "Numpad" + digit, vk: 96 + n, location: keypad, text: digit}
	}
	for _, k := range []key{
		{key: "*", code: "NumpadMultiply", vk: 106, text: "*"},
		{key: "+", code: "NumpadAdd", vk: 107, text: "+"},
		{key: "-", code: "NumpadSubtract", vk: 109, text: "-"},
		{key: ".", code: "NumpadDecimal", vk: 110, text: "."},
		{key: "/", code: "NumpadDivide", vk: 111, text: "/"},
		{key: "Enter", code: "NumpadEnter", vk: 13, text: "\r"},
	} {
		k.location = keypad
		out[strings.ToLower(k.code)] = k
	}
}

// shifted is the same key with Shift held.
func shifted(k key) key { return k.typing(withShift[k.text]) }

// unshifted is the same key without Shift.
func unshifted(k key) key { return k.typing(withoutShift[k.text]) }

// typing is the key on its other layer; those of the number block and those
// that type nothing have one only.
func (k key) typing(text string) key {
	if text != "" && k.location != keypad {
		k.key, k.text = text, text
	}
	return k
}

func layers() (up, down map[string]string) {
	up, down = map[string]string{}, map[string]string{}
	pair := func(plain, shift rune) { up[string(plain)], down[string(shift)] = string(shift), string(plain) }
	for r := 'a'; r <= 'z'; r++ {
		pair(r, r-'a'+'A')
	}
	for _, m := range marks {
		pair(m.plain, m.shifted)
	}
	return up, down
}
