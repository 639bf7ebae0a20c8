package page

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp/jsonv2"

	"tapin/internal/browser"
	"tapin/internal/secret"
)

// Limits of what is carried. A site that keeps more keeps a cache, not a login.
const (
	maxStateBytes = 50 << 20
	maxKeys       = 10_000  // of one web storage
	maxRows       = 100_000 // of one database
	originWithin  = 5 * time.Second
)

// asker runs a function of the engine in one document.
type asker func(ctx context.Context, fn string, args, result any) error

// parts say which of an origin's parts are read.
type parts struct{ session, databases bool }

// readParts asks a document for what its origin has stored. What it leaves out
// is named by kind and count, never by what it is.
func readParts(ctx context.Context, ask asker, origin string, which parts, budget int) (browser.OriginState, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, originWithin)
	defer cancel()
	var got struct {
		Local     []wireItem     `json:"local"`
		Session   []wireItem     `json:"session"`
		Databases *string        `json:"databases"`
		Skipped   map[string]int `json:"skipped"`
	}
	err := ask(ctx, "stored", map[string]any{
		"session": which.session, "databases": which.databases,
		"maxKeys": maxKeys, "maxChars": budget, "maxRows": maxRows, "within": within(ctx),
	}, &got)
	if err != nil {
		return browser.OriginState{}, nil, err
	}
	st := browser.OriginState{Origin: origin, Local: fromWire(got.Local), Session: fromWire(got.Session)}
	if got.Databases != nil {
		st.Databases = []byte(*got.Databases)
	}
	return st, explainSkipped(origin, got.Skipped), nil
}

// within is how many milliseconds a document may take, so that it can still say
// what it did not manage.
func within(ctx context.Context) int64 {
	deadline, _ := ctx.Deadline()
	return (time.Until(deadline) * 4 / 5).Milliseconds()
}

// stored is what writing did.
type stored struct {
	Keys      int            `json:"keys"`
	Databases int            `json:"databases"`
	Failed    string         `json:"failed"`
	Skipped   map[string]int `json:"skipped"`
}

// writeParts puts an origin's parts in the place of what is there; nil parts are
// left alone.
func writeParts(ctx context.Context, ask asker, st browser.OriginState, strict bool) (stored, error) {
	ctx, cancel := context.WithTimeout(ctx, originWithin)
	defer cancel()
	args := struct {
		Local     []wireItem `json:"local,omitzero"` // nil is not empty
		Session   []wireItem `json:"session,omitzero"`
		Databases *string    `json:"databases"`
		Strict    bool       `json:"strict"`
		Within    int64      `json:"within"`
	}{toWire(st.Local), toWire(st.Session), nil, strict, within(ctx)}
	if st.Databases != nil {
		text := string(st.Databases)
		args.Databases = &text
	}
	var out stored
	if err := ask(ctx, "store", args, &out); err != nil {
		return out, err
	}
	if out.Failed != "" {
		return out, fmt.Errorf("the browser did not take what is stored: %s", reason(out.Failed))
	}
	return out, nil
}

// reason makes a sentence of the engine's short word for why.
func reason(word string) string {
	switch word {
	case "large":
		return "it is too large"
	case "slow":
		return "it did not answer in time"
	case "closed":
		return "the page may not use it"
	case "changed":
		return "it changed meanwhile"
	case "in use":
		return "a page has it open and does not let go"
	case "invalid":
		return "it is not in the form it is kept in"
	case "deep":
		return "it is nested too deeply"
	case "QuotaExceededError":
		return "there is no room for it"
	}
	return word
}

// explainSkipped makes sentences of counts: by origin, part and reason.
func explainSkipped(origin string, skipped map[string]int) []string {
	var out []string
	for what, n := range skipped {
		part, why, _ := strings.Cut(what, " ")
		switch part {
		case "record":
			out = append(out, fmt.Sprintf("%s: %d of IndexedDB's records were left out: %s", origin, n, uncarried(why)))
		case "database":
			out = append(out, fmt.Sprintf("%s: %d databases were left out: %s", origin, n, reason(why)))
		default:
			out = append(out, fmt.Sprintf("%s: %s was left out: %s", origin, part, reason(why)))
		}
	}
	slices.Sort(out)
	return out
}

func uncarried(kind string) string {
	if sentence := reason(kind); sentence != kind {
		return sentence
	}
	return "a " + kind + " cannot leave its browser"
}

// wireItem is an entry on its way: [key, value].
type wireItem [2]wireText

// fromWire sorts by key. A nil list stays nil: not known is not empty.
func fromWire(in []wireItem) []browser.Item {
	if in == nil {
		return nil
	}
	out := make([]browser.Item, len(in))
	for i, each := range in {
		out[i] = browser.Item{Key: secret.Text(each[0]), Value: secret.Text(each[1])}
	}
	slices.SortFunc(out, func(a, b browser.Item) int { return strings.Compare(a.Key.Reveal(), b.Key.Reveal()) })
	return out
}

func toWire(in []browser.Item) []wireItem {
	if in == nil {
		return nil
	}
	out := make([]wireItem, len(in))
	for i, each := range in {
		out[i] = wireItem{wireText(each.Key), wireText(each.Value)}
	}
	return out
}

// wireText is a text of a page on its way. Pages may store half a surrogate
// pair, which neither JSON nor UTF-8 has: it travels as {"w": base64 of its
// UTF-16}, and stands in a Go string as the three bytes UTF-8 would give it.
type wireText secret.Text

// MarshalJSON writes the value: it is on its way to the browser.
func (t wireText) MarshalJSON() ([]byte, error) {
	s := secret.Text(t).Reveal()
	if utf8.ValidString(s) {
		return jsonv2.Marshal(s)
	}
	var raw []byte
	for _, unit := range unitsOf(s) {
		raw = binary.LittleEndian.AppendUint16(raw, unit)
	}
	return jsonv2.Marshal(map[string]string{"w": base64.StdEncoding.EncodeToString(raw)})
}

var errNoText = errors.New("neither a text nor its UTF-16")

// UnmarshalJSON reads both forms.
func (t *wireText) UnmarshalJSON(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if jsonv2.Unmarshal(raw, &s) != nil {
			return errNoText
		}
		*t = wireText(secret.New(s))
		return nil
	}
	var wide struct {
		W string `json:"w"`
	}
	if jsonv2.Unmarshal(raw, &wide) != nil {
		return errNoText
	}
	b, err := base64.StdEncoding.DecodeString(wide.W)
	if err != nil || len(b)%2 != 0 {
		return errNoText
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	*t = wireText(secret.New(textOf(units)))
	return nil
}

// unitsOf is a Go string as UTF-16, a lone surrogate's three bytes as itself.
func unitsOf(s string) []uint16 {
	var out []uint16
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			if i+2 < len(s) && s[i] == 0xED && s[i+1]&0xE0 == 0xA0 && s[i+2]&0xC0 == 0x80 {
				out = append(out, 0xD000|uint16(s[i+1]&0x3F)<<6|uint16(s[i+2]&0x3F))
				i += 3
				continue
			}
		}
		out = utf16.AppendRune(out, r)
		i += size
	}
	return out
}

// textOf is the reverse of unitsOf.
func textOf(units []uint16) string {
	var out []byte
	for i := 0; i < len(units); i++ {
		u := rune(units[i])
		if !utf16.IsSurrogate(u) {
			out = utf8.AppendRune(out, u)
			continue
		}
		if i+1 < len(units) {
			if r := utf16.DecodeRune(u, rune(units[i+1])); r != utf8.RuneError {
				out = utf8.AppendRune(out, r)
				i++
				continue
			}
		}
		out = append(out, 0xED, 0x80|byte(u>>6)&0x3F, 0x80|byte(u)&0x3F) //nolint:gosec // a surrogate has 16 bits, of which the low 12 are kept
	}
	return string(out)
}
