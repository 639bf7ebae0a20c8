package mcpserver

import (
	"regexp"
	"strings"

	"tapin/internal/api"
	"tapin/internal/fault"
)

// session names another session than the active one. It is not offered: one
// session is the rule, and whoever has several knows their ids.
type session struct {
	SessionID string `json:"session_id,omitempty" max:"128" hidden:"true"`
}

// patience is how long an action may wait for its element.
type patience struct {
	TimeoutMS int `json:"timeout_ms,omitempty" min:"1" max:"50000" hidden:"true"`
}

func (p patience) wait() api.Patience { return api.Patience{TimeoutMS: p.TimeoutMS} }

// element names an element, but for what it says: some tools have a text of
// their own.
type element struct {
	Target  string `json:"target,omitempty" max:"4096" doc:"A ref such as e12 from the last answer (best), or a CSS selector."`
	Label   string `json:"label,omitempty" max:"1024" doc:"The label of the field, instead of target."`
	Element string `json:"element,omitempty" max:"4096" hidden:"true"` // words for people; the page is not asked about them
	Role    string `json:"role,omitempty" max:"64" hidden:"true"`
	Name    string `json:"name,omitempty" max:"1024" hidden:"true"`
	TestID  string `json:"test_id,omitempty" max:"256" hidden:"true"`
	XPath   string `json:"xpath,omitempty" max:"4096" hidden:"true"`
}

// refWords is how a ref is written, also with what other tools put around it.
var refWords = regexp.MustCompile(`^\[?(?:aria-)?(?:ref=)?((?:f\d+)?e\d+)\]?$`)

// element is what the sidecar calls it.
func (e element) element() api.Element {
	out := api.Element{Label: e.Label, Role: e.Role, TestID: e.TestID, XPath: e.XPath}
	if e.Role != "" {
		out.Name = e.Name
	}
	if m := refWords.FindStringSubmatch(strings.TrimSpace(e.Target)); m != nil {
		out.Ref = m[1]
	} else {
		out.Selector = e.Target
	}
	return out
}

// one is the element, named in exactly one way.
func (e element) one() (api.Element, error) {
	out := e.element()
	if !out.Given() {
		return out, unnamed()
	}
	return out, named(out.Check())
}

func unnamed() error {
	return fault.New(fault.InvalidRequest, "", "no element is named").
		WithHint("Give target: a ref from the last answer or browser_snapshot, or a CSS selector.")
}

// spot names an element or a place to point at.
type spot struct {
	element
	Text string   `json:"text,omitempty" max:"1024" doc:"What the element says, instead of target."`
	X    *float64 `json:"x,omitempty" doc:"A point of the viewport, with y; only where there is no ref."`
	Y    *float64 `json:"y,omitempty"`
}

// one is the target, named in exactly one way.
func (s spot) one() (api.Target, error) {
	out := api.Target{Element: s.element.element(), Text: s.Text, X: s.X, Y: s.Y}
	if !out.Given() {
		return out, unnamed()
	}
	return out, named(out.Check())
}

// blind leaves the picture out of an action's answer: whoever wants one asks.
func blind() api.Look {
	no := false
	return api.Look{Screenshot: &no}
}

// outlined is blind, and asks for what the page has become at once.
func outlined() api.Look {
	look, q := blind(), whole(0, 0)
	look.Outline = &q
	return look
}
