package logins

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"tapin/internal/browser"
	"tapin/internal/fault"
)

// wireEnvelope is an envelope on its way out. Storages are encoded already.
type wireEnvelope struct {
	Version        int             `json:"version"`
	Origin         string          `json:"origin"`
	CapturedAt     int64           `json:"capturedAt"`
	UserAgent      string          `json:"userAgent,omitempty"`
	Viewport       *wireViewport   `json:"viewport,omitempty"`
	Cookies        []wireCookie    `json:"cookies"`
	LocalStorage   json.RawMessage `json:"localStorage,omitempty"`
	SessionStorage json.RawMessage `json:"sessionStorage,omitempty"`
	HTTPAuth       *wireHTTPAuth   `json:"httpAuth,omitempty"`
	Integrity      string          `json:"integrity,omitempty"`
}

type wireViewport struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

type wireHTTPAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// Encode returns the envelope in canonical JSON, with the integrity that its
// content has.
func (e Envelope) Encode() ([]byte, error) {
	sum, err := e.integrity()
	if err != nil {
		return nil, err
	}
	return e.canonical(sum)
}

// integrity is the SHA-256 of the canonical form without the integrity.
func (e Envelope) integrity() (string, error) {
	content, err := e.canonical("")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

func (e Envelope) canonical(integrity string) ([]byte, error) {
	w := wireEnvelope{
		Version: envelopeVersion, Origin: e.Origin, CapturedAt: e.CapturedAt.UnixMilli(), UserAgent: e.UserAgent,
		Cookies: make([]wireCookie, len(e.Cookies)), Integrity: integrity,
	}
	for i, c := range e.Cookies {
		w.Cookies[i] = toWire(c)
	}
	if e.Viewport != nil {
		w.Viewport = &wireViewport{e.Viewport.Width, e.Viewport.Height}
	}
	if e.HTTPAuth != nil {
		w.HTTPAuth = &wireHTTPAuth{e.HTTPAuth.Username, e.HTTPAuth.Password.Reveal()}
	}
	var err error
	if w.LocalStorage, err = encodeStorage(e.Local); err != nil {
		return nil, err
	}
	if w.SessionStorage, err = encodeStorage(e.Session); err != nil {
		return nil, err
	}
	return canonicalJSON(w)
}

func canonicalJSON(v any) ([]byte, error) {
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, errors.New("it cannot be written as JSON") // the cause may quote a value
	}
	out, err := jcs.Transform(plain.Bytes())
	if err != nil {
		return nil, errors.New("it has no canonical form")
	}
	if len(out) > MaxEnvelope {
		return nil, fault.New(fault.PayloadTooLarge, "", "it takes more than %d MiB", MaxEnvelope>>20)
	}
	return out, nil
}

// encodeStorage writes a storage as an object. The canonical writer sorts by
// insertion and compares from the front: given the members backwards, it is
// done with each at once instead of walking past all the others.
func encodeStorage(items []browser.Item) (json.RawMessage, error) {
	if items == nil {
		return nil, nil
	}
	if len(items) > maxStorageKeys {
		return nil, fault.New(fault.PayloadTooLarge, "", "a storage has more than %d keys", maxStorageKeys)
	}
	backwards := sortItems(items)
	slices.Reverse(backwards)
	out := []byte{'{'}
	for i, item := range backwards {
		key, value := item.Key.Reveal(), item.Value.Reveal()
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, fault.New(fault.InvalidRequest, "", "a storage holds what is not text")
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = appendJSON(append(appendJSON(out, key), ':'), value)
	}
	return append(out, '}'), nil
}

func appendJSON(out []byte, s string) []byte {
	encoded, _ := json.Marshal(s) // a string can always be encoded
	return append(out, encoded...)
}

// compareUTF16 compares as RFC 8785 does, by the units of UTF-16. That differs
// from the order of code points where one needs a surrogate: those stand
// before U+E000.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			return cmp.Compare(unitOrder(ra), unitOrder(rb))
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

func unitOrder(r rune) int64 {
	if r >= 0x10000 {
		return 0xD800<<32 + int64(r)
	}
	return int64(r) << 32
}
