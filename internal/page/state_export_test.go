package page

import "tapin/internal/secret"

// FaultAt makes ReplaceOrigin fail, or anything else happen, at its steps.
func (t *Tabs) FaultAt(fn func(step string) error) { t.state.faultAt = fn }

// The forms of text on its way to and from a page.
var (
	UnitsOf = unitsOf
	TextOf  = textOf
)

// DecodeText reads a text as a page sends it.
func DecodeText(raw []byte) (string, error) {
	var text wireText
	err := text.UnmarshalJSON(raw)
	return secret.Text(text).Reveal(), err
}

// EncodeText writes a text as a page gets it.
func EncodeText(text string) ([]byte, error) { return wireText(secret.New(text)).MarshalJSON() }
