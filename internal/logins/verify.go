package logins

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// Verify reads an envelope that came from outside, strictly: every member
// known, none twice, every value possible, the integrity right, and nothing in
// it that its origin could not have. INTEGRITY_MISMATCH means the integrity
// and nothing else. Errors never quote a value.
func Verify(raw []byte) (Envelope, error) {
	if err := examine(raw, MaxEnvelope); err != nil {
		return Envelope{}, err
	}
	r := newReader(raw)
	var e Envelope
	var version float64
	err := r.object("", []string{"version", "origin", "capturedAt", "cookies", "integrity"}, func(name string) (err error) {
		switch name {
		case "version":
			version, err = r.whole(name, math.MinInt32, math.MaxInt32)
		case "origin":
			e.Origin, err = r.text(name)
		case "capturedAt":
			var ms float64
			ms, err = r.whole(name, 1, 8.64e15)
			e.CapturedAt = time.UnixMilli(int64(ms)).UTC()
		case "userAgent":
			e.UserAgent, err = r.printable(name, 1, 1024)
		case "viewport":
			e.Viewport, err = r.viewport()
		case "cookies":
			e.Cookies, err = r.cookies()
		case "localStorage":
			e.Local, err = r.storage(name)
		case "sessionStorage":
			e.Session, err = r.storage(name)
		case "httpAuth":
			e.HTTPAuth, err = r.httpAuth()
		case "integrity":
			e.Integrity, err = r.text(name)
		default:
			err = r.unknown(name)
		}
		return err
	})
	if err != nil {
		return Envelope{}, err
	}
	if version != envelopeVersion {
		return Envelope{}, refuse("it is of version %v, and this tapin reads version %d", version, envelopeVersion)
	}
	sum, err := e.integrity()
	if err != nil {
		return Envelope{}, fault.Wrap(fault.InvalidRequest, opVerify, err)
	}
	if subtle.ConstantTimeCompare([]byte(sum), []byte(e.Integrity)) != 1 {
		return Envelope{}, fault.New(fault.IntegrityMismatch, opVerify, "it was changed after it was made")
	}
	host, err := readOrigin(e.Origin)
	if err != nil {
		return Envelope{}, err
	}
	return e, host.allowsAll(e.Cookies)
}

const opVerify = "read the envelope"

func refuse(format string, args ...any) error {
	return fault.New(fault.InvalidRequest, opVerify, format, args...).WithHint("Export it again, and pass it on as it is.")
}

// examine refuses what no reader should be given: too much, what is not JSON,
// and text that is none.
func examine(raw []byte, most int) error {
	switch {
	case len(raw) > most:
		return fault.New(fault.PayloadTooLarge, opVerify, "it is over %d MiB", most>>20)
	case !utf8.Valid(raw):
		return refuse("it is not UTF-8")
	case !json.Valid(raw):
		return refuse("it is not JSON")
	case hasLoneSurrogate(raw):
		return refuse("it holds half a character")
	}
	return nil
}

// hasLoneSurrogate finds escapes that are half of a character. Readers make
// different things of them, so that two would read two envelopes.
func hasLoneSurrogate(raw []byte) bool {
	unit := func(i int) (uint64, bool) {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
		return n, err == nil
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		n, ok := unit(i)
		switch {
		case !ok:
			i++ // another escape, of two characters
		case n >= 0xDC00 && n < 0xE000:
			return true
		case n >= 0xD800 && n < 0xDC00:
			low, ok := unit(i + 6)
			if !ok || low < 0xDC00 || low >= 0xE000 {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

// reader takes JSON that is known to be well-formed apart, one token at a
// time: it goes only where something known is, and no deeper.
type reader struct{ dec *json.Decoder }

func newReader(raw []byte) *reader {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return &reader{dec}
}

func (r *reader) next(what, kind string) (json.Token, error) {
	tok, err := r.dec.Token()
	if err != nil {
		return nil, refuse("%s breaks off", shown(what))
	}
	switch tok.(type) {
	case json.Delim:
		if kind == "an object" && tok == json.Delim('{') || kind == "a list" && tok == json.Delim('[') {
			return tok, nil
		}
	case string:
		if kind == "text" {
			return tok, nil
		}
	case json.Number:
		if kind == "a number" {
			return tok, nil
		}
	case bool:
		if kind == "true or false" {
			return tok, nil
		}
	}
	return nil, refuse("%s must be %s", shown(what), kind)
}

// object reads the members of an object, each once, and wants those required.
func (r *reader) object(what string, required []string, member func(name string) error) error {
	if _, err := r.next(what, "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for r.dec.More() {
		tok, err := r.dec.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			return refuse("%s breaks off", shown(what))
		}
		if seen[name] {
			return refuse("a member of %s is given twice", shown(what))
		}
		if len(seen) >= maxStorageKeys {
			return fault.New(fault.PayloadTooLarge, opVerify, "%s has more than %d members", shown(what), maxStorageKeys)
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	for _, name := range required {
		if !seen[name] {
			return refuse("%s has no %s", shown(what), name)
		}
	}
	_, err := r.dec.Token() // the closing brace
	return err
}

func (r *reader) list(what string, most int, item func(i int) error) error {
	if _, err := r.next(what, "a list"); err != nil {
		return err
	}
	for i := 0; r.dec.More(); i++ {
		if i >= most {
			return fault.New(fault.PayloadTooLarge, opVerify, "%s has more than %d items", shown(what), most)
		}
		if err := item(i); err != nil {
			return err
		}
	}
	_, err := r.dec.Token() // the closing bracket
	return err
}

func (r *reader) text(what string) (string, error) {
	tok, err := r.next(what, "text")
	s, _ := tok.(string)
	return s, err
}

// printable is text of that many bytes without control characters.
func (r *reader) printable(what string, least, most int) (string, error) {
	s, err := r.text(what)
	if err == nil && (len(s) < least || len(s) > most) {
		err = refuse("%s must have %d to %d bytes", shown(what), least, most)
	}
	if err == nil && slices.ContainsFunc([]rune(s), unicode.IsControl) {
		err = refuse("%s holds a control character", shown(what))
	}
	return s, err
}

func (r *reader) boolean(what string) (bool, error) {
	tok, err := r.next(what, "true or false")
	b, _ := tok.(bool)
	return b, err
}

func (r *reader) number(what string, low, high float64) (float64, error) {
	tok, err := r.next(what, "a number")
	if err != nil {
		return 0, err
	}
	n, _ := tok.(json.Number)
	f, err := n.Float64()
	if err != nil || f < low || f > high {
		return 0, refuse("%s is out of range", shown(what))
	}
	return f, nil
}

func (r *reader) whole(what string, low, high float64) (float64, error) {
	f, err := r.number(what, low, high)
	if err == nil && f != math.Trunc(f) {
		err = refuse("%s must be a whole number", shown(what))
	}
	return f, err
}

// unknown refuses a member without naming it: a value may have slipped into
// the place of a name.
func (*reader) unknown(name string) error {
	return refuse("it has a member of %d characters that no envelope has", utf8.RuneCountInString(name))
}

func shown(what string) string {
	if what == "" {
		return "the envelope"
	}
	return what
}

func (r *reader) viewport() (*Viewport, error) {
	v := &Viewport{}
	err := r.object("viewport", []string{"width", "height"}, func(name string) (err error) {
		var n float64
		switch name {
		case "width":
			n, err = r.whole("viewport.width", 1, 10_000)
			v.Width = int(n)
		case "height":
			n, err = r.whole("viewport.height", 1, 10_000)
			v.Height = int(n)
		default:
			err = r.unknown(name)
		}
		return err
	})
	return v, err
}

func (r *reader) httpAuth() (*HTTPAuth, error) {
	a := &HTTPAuth{}
	err := r.object("httpAuth", []string{"username", "password"}, func(name string) (err error) {
		switch name {
		case "username":
			a.Username, err = r.printable("httpAuth.username", 0, 1024)
		case "password":
			var s string
			s, err = r.printable("httpAuth.password", 0, 1024)
			a.Password = secret.New(s)
		default:
			err = r.unknown(name)
		}
		return err
	})
	return a, err
}

func (r *reader) storage(what string) ([]browser.Item, error) {
	items := []browser.Item{}
	err := r.object(what, nil, func(name string) error {
		s, err := r.text("a value of " + what)
		items = append(items, browser.Item{Key: secret.New(name), Value: secret.New(s)})
		return err
	})
	return sortItems(items), err
}
