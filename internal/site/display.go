package site

import (
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Display is the site as a person should see it: in its own script if it
// cannot be mistaken for another site, else in the xn-- form.
func Display(s Site) string {
	labels := strings.Split(string(s), ".")
	for i, label := range labels {
		if !strings.HasPrefix(label, "xn--") {
			continue
		}
		shown, err := idna.Lookup.ToUnicode(label)
		if err != nil || shown == "" || !safe(shown) {
			return string(s)
		}
		labels[i] = shown
	}
	return strings.Join(labels, ".")
}

// Forms are the ways in which a site may stand in a text: in ASCII, and in its
// own script, whether or not that is how it would be shown.
func Forms(s Site) []string {
	shown, err := idna.Punycode.ToUnicode(string(s))
	if err != nil || shown == "" || shown == string(s) {
		return []string{string(s)}
	}
	return []string{string(s), shown}
}

// writing is a way of writing that a label may be in as a whole.
type writing struct {
	scripts []*unicode.RangeTable
	// lookalikes are its letters that pass for Latin ones. A label of nothing
	// else is not shown: it would read as another site's name.
	lookalikes string
}

// writings are the ones we can judge. A label in any other, or in a mixture,
// is shown in the xn-- form.
var writings = []writing{
	{scripts: []*unicode.RangeTable{commonLatin}},
	{scripts: []*unicode.RangeTable{unicode.Cyrillic}, lookalikes: "асԁеһіјӏорԛѕԝхуъьҽпгѵѡѐёїӑӓӗӧўӱ"},
	{scripts: []*unicode.RangeTable{unicode.Greek}, lookalikes: "αγεηικνορτυχωάέήίόύώϊϋΐΰ"},
	{scripts: []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, longVowel}},
	{scripts: []*unicode.RangeTable{unicode.Han, unicode.Bopomofo}},
	{scripts: []*unicode.RangeTable{unicode.Han, unicode.Hangul}},
	{scripts: []*unicode.RangeTable{unicode.Arabic}},
	{scripts: []*unicode.RangeTable{unicode.Hebrew}},
	{scripts: []*unicode.RangeTable{unicode.Devanagari}},
	{scripts: []*unicode.RangeTable{unicode.Thai}},
}

// commonLatin is Latin as European languages write it, without the letters
// that pass for others (dotless i, kra, long s).
var commonLatin = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 'a', Hi: 'z', Stride: 1},
	{Lo: 0xdf, Hi: 0xf6, Stride: 1}, {Lo: 0xf8, Hi: 0x130, Stride: 1},
	{Lo: 0x132, Hi: 0x137, Stride: 1}, {Lo: 0x139, Hi: 0x148, Stride: 1}, {Lo: 0x14a, Hi: 0x17e, Stride: 1},
}}

// longVowel is the mark of Katakana that Unicode counts to no script.
var longVowel = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x30fc, Hi: 0x30fc, Stride: 1}}}

// safe reports whether a label is written in one way, and not to deceive.
func safe(label string) bool {
	for _, w := range writings {
		if w.has(label) {
			return w.lookalikes == "" || !consistsOf(label, w.lookalikes)
		}
	}
	return false
}

func (w writing) has(label string) bool {
	for _, r := range label {
		if !neutral(r) && !unicode.In(r, w.scripts...) {
			return false
		}
	}
	return true
}

func consistsOf(label, letters string) bool {
	for _, r := range label {
		if !neutral(r) && !strings.ContainsRune(letters, r) {
			return false
		}
	}
	return true
}

// neutral characters belong to every way of writing.
func neutral(r rune) bool { return r == '-' || '0' <= r && r <= '9' }
