// Package chat is the conversation with the owner: what their words mean, and
// how tapin says things to them. It owns the grammar and the wording, both as
// pure functions. It must never guess between two things that a word could
// answer, take a text to be typed for anything else, or quote a page.
package chat

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"tapin/internal/secret"
)

// Kind is what the owner wants.
type Kind string

// What can be wanted. Those down to Resume are about a hand-off, Yes and No
// about an approval, the rest about nothing in particular.
const (
	Type       Kind = "type"
	Screenshot Kind = "screenshot"
	Done       Kind = "done"
	Anyway     Kind = "anyway" // done, although its conditions do not hold
	Abort      Kind = "abort"
	Later      Kind = "later"
	Extend     Kind = "extend"
	Resume     Kind = "resume"

	Yes Kind = "yes"
	No  Kind = "no"

	Device Kind = "device" // move the live view to the device with a number
	Sites  Kind = "sites"
	Retry  Kind = "retry"
	Policy Kind = "policy" // a sentence about what may be paid without asking
	Help   Kind = "help"
	Pair   Kind = "pair" // /start with a code
	Plain  Kind = "chat" // ordinary words, for the agent

	// What came of a word that could not be followed.
	Ask    Kind = "ask"    // it could answer several things
	Late   Kind = "late"   // a text to be typed, and nothing to type it into
	Over   Kind = "over"   // what it answers is over
	Unsure Kind = "unsure" // it looks like a text to be typed, and is none
)

// Wish is what a message says, before it is known what it is about.
type Wish struct {
	Kinds  []Kind        // what it may mean; more than one for "go ahead"
	Text   secret.Text   // of Type: exactly what is to be typed
	Number int           // of Device
	More   time.Duration // of Extend
	Code   secret.Text   // of Pair
}

// phrases are the words that mean something, after smooth.
var phrases = map[string][]Kind{
	"screenshot":   {Screenshot},
	"done":         {Done},
	"all yours":    {Done},
	"okay try now": {Done},
	"ok try now":   {Done},
	"try now":      {Done},
	"go ahead":     {Done, Yes},
	"done anyway":  {Anyway},
	"abort":        {Abort},
	"cancel":       {Abort},
	"later":        {Later},
	"resume":       {Resume},
	"yes":          {Yes},
	"approve":      {Yes},
	"no":           {No},
	"deny":         {No},
	"sites":        {Sites},
	"retry":        {Retry},
	"help":         {Help},

	"what sites do i have saved": {Sites},
}

const (
	// More is how much "+15" gives.
	More     = 15 * time.Minute
	mostMore = 4 * time.Hour
)

var (
	typeForm   = regexp.MustCompile(`(?is)^\s*type\s?[:：] ?(.*)$`)
	almostType = regexp.MustCompile(`(?is)^\s*type\s+\S`)
	moreForm   = regexp.MustCompile(`^\+ ?(\d{1,3})( ?(m|min|mins|minutes))?$`)
	deviceForm = regexp.MustCompile(`^(?:move to )?device (\d\d)$`)
	startForm  = regexp.MustCompile(`^\s*/start(?:@\w+)?(?:\s+(\S{1,64}))?\s*$`)
)

// Read tells what a message may mean. Only a text after "type:" is to be typed,
// and of that every character: one space after the colon belongs to the colon.
func Read(text string) Wish {
	if m := startForm.FindStringSubmatch(text); m != nil {
		if m[1] == "" {
			return Wish{Kinds: []Kind{Help}}
		}
		return Wish{Kinds: []Kind{Pair}, Code: secret.New(m[1])}
	}
	if m := typeForm.FindStringSubmatch(text); m != nil {
		return Wish{Kinds: []Kind{Type}, Text: secret.New(m[1])}
	}
	said := smooth(text)
	if kinds := phrases[said]; kinds != nil {
		return Wish{Kinds: slices.Clone(kinds)}
	}
	if m := moreForm.FindStringSubmatch(said); m != nil {
		n, _ := strconv.Atoi(m[1]) // digits
		if more := time.Duration(n) * time.Minute; more > 0 && more <= mostMore {
			return Wish{Kinds: []Kind{Extend}, More: more}
		}
	}
	if m := deviceForm.FindStringSubmatch(said); m != nil {
		n, _ := strconv.Atoi(m[1]) // digits
		return Wish{Kinds: []Kind{Device}, Number: n}
	}
	if almostType.MatchString(text) {
		return Wish{Kinds: []Kind{Unsure}}
	}
	return Wish{Kinds: []Kind{Plain}}
}

// smooth takes off what phones and people put around a word: capitals, spaces,
// punctuation, the slash of a command and the name of the bot after it.
func smooth(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > 64 {
		return "" // no phrase is that long
	}
	if rest, ok := strings.CutPrefix(text, "/"); ok {
		text, _, _ = strings.Cut(rest, "@")
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '+':
			return r
		case unicode.IsPunct(r):
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// Item is something that waits for the owner's word.
type Item struct {
	ID     string `json:"id"`
	Label  string `json:"label,omitempty"` // how it is told from the others
	Parked bool   `json:"parked,omitempty"`
}

// Pending is what waits for the owner's word in one chat.
type Pending struct {
	Handoffs  []Item
	Approvals []Item
	Reply     string // what the message replies to: the id of an item, or of one that is over
}

// Decision is what a message means, here and now.
type Decision struct {
	Kind   Kind          `json:"kind"`
	Target string        `json:"target,omitempty"`
	Number int           `json:"number,omitempty"`
	More   time.Duration `json:"more,omitempty"`
	Of     Kind          `json:"of,omitempty"`    // of Ask: what was meant
	Which  []Item        `json:"which,omitempty"` // of Ask: between these
}

// Decide tells what a wish means while these things wait. A word that could
// answer two of them answers none: it is asked which. A reply decides.
func Decide(w Wish, p Pending) Decision {
	if len(w.Kinds) == 0 {
		return Decision{Kind: Plain}
	}
	switch kind := w.Kinds[0]; kind {
	case Sites, Retry, Help, Pair, Policy, Plain, Device:
		return Decision{Kind: kind, Number: w.Number}
	case Unsure:
		if len(p.Handoffs) == 0 {
			return Decision{Kind: Plain}
		}
		return Decision{Kind: Unsure}
	}
	var found []Decision
	var which []Item
	for _, kind := range w.Kinds {
		for _, item := range answerable(kind, p) {
			found = append(found, Decision{Kind: kind, Target: item.ID, More: w.More})
			which = append(which, item)
		}
	}
	first := w.Kinds[0]
	switch {
	case len(found) == 1:
		return found[0]
	case len(found) > 1:
		return Decision{Kind: Ask, Of: first, Which: which, More: w.More}
	case first == Type:
		return Decision{Kind: Late}
	case p.Reply != "":
		return Decision{Kind: Over, Target: p.Reply}
	}
	return Decision{Kind: Plain}
}

// answerable are the items that a kind of word can be about.
func answerable(kind Kind, p Pending) []Item {
	items := p.Handoffs
	if kind == Yes || kind == No {
		items = p.Approvals
	}
	var out []Item
	for _, item := range items {
		switch {
		case p.Reply != "" && item.ID != p.Reply:
		case kind == Resume && !item.Parked, kind == Later && item.Parked:
		case item.Parked && (kind == Type || kind == Screenshot):
		default:
			out = append(out, item)
		}
	}
	return out
}
