// Package secret holds the one type for values that must never be printed.
// It owns the rule that a secret is a Text from the byte it enters to the byte
// it leaves. It must never offer a way to print, log or encode a value that is
// not an explicit call of Reveal.
package secret

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// mask is what every printer, encoder and logger sees.
const mask = "•••"

// Text is a value that does not print. The zero value is the empty secret.
type Text struct{ value string }

// New makes a secret of s.
func New(s string) Text { return Text{value: s} }

// Reveal returns the value, for the one call that must send it on.
func (t Text) Reveal() string { return t.value }

// IsEmpty reports whether there is no value.
func (t Text) IsEmpty() bool { return t.value == "" }

// Equal compares in a time that does not tell how much of the value matched.
func (t Text) Equal(other Text) bool {
	return subtle.ConstantTimeCompare([]byte(t.value), []byte(other.value)) == 1
}

// String masks the value.
func (Text) String() string { return mask }

// Format masks the value for every verb and flag, also %#v and %x.
func (Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// LogValue masks the value in structured logs.
func (Text) LogValue() slog.Value { return slog.StringValue(mask) }

// MarshalText masks the value in JSON, YAML and everything else built on it.
func (Text) MarshalText() ([]byte, error) { return []byte(mask), nil }

// UnmarshalText takes a value in: reading a secret is fine, writing one is not.
func (t *Text) UnmarshalText(b []byte) error {
	t.value = string(b)
	return nil
}
