package page

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	// hiddenMark stands where a hidden value stood.
	hiddenMark = "‹hidden›"

	// maxHidden bounds what is remembered: more than a session signs in to.
	maxHidden = 64

	// leastHidden is the shortest value that is looked for in texts. A shorter
	// one would tear holes into every page; its field is masked all the same.
	leastHidden = 4
)

// Hidden remembers what was typed into pages without the agent's knowledge, so
// that nothing read from them later tells. It outlives the connection to a
// browser, not the process. It is safe for concurrent use.
type Hidden struct {
	mu     sync.Mutex
	any    bool
	values []secret.Text
	forms  *strings.Replacer
}

// NewHidden remembers nothing yet. before says that an earlier process hid
// something in this browser: what it was is gone, but pictures stay masked.
func NewHidden(before bool) *Hidden { return &Hidden{any: before} }

// add remembers a value from before it is typed.
func (h *Hidden) add(value secret.Text) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.any = true
	for _, known := range h.values {
		if known.Equal(value) {
			return
		}
	}
	if utf8.RuneCountInString(value.Reveal()) < leastHidden {
		return
	}
	if len(h.values) == maxHidden {
		h.values = h.values[1:]
	}
	h.values = append(h.values, value)
	var pairs []string
	for _, v := range h.values {
		// As itself, as a form that is sent by its address has it, and as JSON has it.
		quoted, _ := json.Marshal(v.Reveal()) // a text always encodes
		for _, form := range []string{v.Reveal(), url.QueryEscape(v.Reveal()), url.PathEscape(v.Reveal()), string(quoted[1 : len(quoted)-1])} {
			pairs = append(pairs, form, hiddenMark)
		}
	}
	h.forms = strings.NewReplacer(pairs...)
}

// Keep remembers a value that is about to be typed for somebody.
func (h *Hidden) Keep(value secret.Text) { h.add(value) }

// Mark notes that a page may hold something that nobody here knows: a person
// was at it.
func (h *Hidden) Mark() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.any = true
}

// given reports whether anything was ever hidden here.
func (h *Hidden) given() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.any
}

// Frameworks write what stands in a field into its value attribute, where a
// selector could ask for it letter by letter. These are all the ways to name
// that attribute, also an escaped one.
var (
	valueInCSS   = regexp.MustCompile(`(?i)\[[^\]]*(value|\\)`)
	valueInXPath = regexp.MustCompile(`(?i)@\s*(\*|value)|attribute\s*::`)
)

// allow refuses a locator that could ask what is hidden.
func (h *Hidden) allow(op string, l Locator) error {
	if !valueInCSS.MatchString(l.CSS) && !valueInXPath.MatchString(l.XPath) || !h.given() {
		return nil
	}
	return fault.New(fault.Forbidden, op, "an element cannot be found by its value in a browser that was given a credential").
		WithHint("Name it by its label, role or ref.")
}

// conceal takes what is hidden out of a text from a page.
func (h *Hidden) conceal(text string) string {
	h.mu.Lock()
	forms := h.forms
	h.mu.Unlock()
	if forms == nil {
		return text
	}
	return forms.Replace(text)
}
