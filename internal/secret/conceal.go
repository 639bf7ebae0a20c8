package secret

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	longWord   = 64 // runes; nobody writes a longer one
	mixedWord  = 20 // runes, from which on a mixture of classes looks like a token
	mixedKinds = 2  // classes that make a mixture
)

// Conceal replaces what may be a secret in a text that people and agents will
// read: words that look like tokens, and the known values wherever they stand.
// ‹hidden:N› says how many characters were there. The same text always gives
// the same result, and concealing it again changes nothing.
func Conceal(text string, known ...Text) string {
	for _, k := range known {
		if v := strings.TrimSpace(k.value); v != "" {
			text = outsideMarks(text, func(part string) string { return replaceWhole(part, v) })
		}
	}
	return outsideMarks(text, func(part string) string { return word.ReplaceAllStringFunc(part, concealWord) })
}

var (
	mark = regexp.MustCompile(`‹hidden:\d+›`)
	word = regexp.MustCompile(`[^\s]+`)
)

// outsideMarks changes a text between what is hidden already.
func outsideMarks(text string, change func(string) string) string {
	var out strings.Builder
	from := 0
	for _, at := range mark.FindAllStringIndex(text, -1) {
		out.WriteString(change(text[from:at[0]]))
		out.WriteString(text[at[0]:at[1]])
		from = at[1]
	}
	out.WriteString(change(text[from:]))
	return out.String()
}

func hidden(n int) string { return fmt.Sprintf("‹hidden:%d›", n) }

func concealWord(w string) string {
	n := utf8.RuneCountInString(w)
	if n > longWord || n >= mixedWord && kinds(w) >= mixedKinds {
		return hidden(n)
	}
	return w
}

// kinds counts the classes of characters in a word: lower case, upper case,
// digits. A capital at the beginning of a part is writing, not a class, and
// marks between parts (an address, a list) are none of their own.
func kinds(w string) int {
	var lower, upper, digit int
	inside := false
	for _, r := range w {
		switch {
		case unicode.IsDigit(r):
			digit = 1
		case unicode.IsUpper(r) && inside:
			upper = 1
		case unicode.IsLetter(r) && !unicode.IsUpper(r):
			lower = 1
		}
		inside = unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	return lower + upper + digit
}

// replaceWhole replaces a value where it does not merely happen to be a part of
// a longer word: the value "a" must not hide every a.
func replaceWhole(text, value string) string {
	var out strings.Builder
	for rest := text; ; {
		i := strings.Index(rest, value)
		if i < 0 {
			out.WriteString(rest)
			return out.String()
		}
		before, _ := utf8.DecodeLastRuneInString(out.String() + rest[:i])
		after, _ := utf8.DecodeRuneInString(rest[i+len(value):])
		out.WriteString(rest[:i])
		if isWordRune(before) || isWordRune(after) {
			_, size := utf8.DecodeRuneInString(rest[i:])
			out.WriteString(rest[i : i+size])
			rest = rest[i+size:]
			continue
		}
		out.WriteString(hidden(utf8.RuneCountInString(value)))
		rest = rest[i+len(value):]
	}
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
