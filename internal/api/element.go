package api

import (
	"strings"

	"tapin/internal/fault"
)

// Element names an element of the page in exactly one way.
type Element struct {
	Selector string `json:"selector,omitempty" max:"4096" doc:"A CSS selector; it also finds what is in shadow roots and frames."`
	Ref      string `json:"ref,omitempty" max:"64" doc:"A ref from a snapshot."`
	Label    string `json:"label,omitempty" max:"1024" doc:"The label of a field, as a person reads it."`
	Role     string `json:"role,omitempty" max:"64" doc:"An accessible role such as button; name narrows it down."`
	Name     string `json:"name,omitempty" max:"1024" doc:"The accessible name that goes with role."`
	TestID   string `json:"test_id,omitempty" max:"256" doc:"The value of a data-testid attribute."`
	XPath    string `json:"xpath,omitempty" max:"4096" doc:"An XPath expression."`
}

// Target names an element in any way there is, also by what it says or where it is.
type Target struct {
	Element
	Text string   `json:"text,omitempty" max:"1024" doc:"What the element says; whitespace and case do not matter."`
	X    *float64 `json:"x,omitempty" doc:"A point of the viewport in CSS pixels, with y."`
	Y    *float64 `json:"y,omitempty" doc:"A point of the viewport in CSS pixels, with x."`
}

// ways are the spellings of an element that were given.
func (e Element) ways() []string {
	var given []string
	for _, way := range []struct{ name, value string }{
		{"selector", e.Selector}, {"ref", e.Ref}, {"label", e.Label}, {"role", e.Role}, {"test_id", e.TestID}, {"xpath", e.XPath},
	} {
		if way.value != "" {
			given = append(given, way.name)
		}
	}
	return given
}

const (
	elementWays = "selector, ref, label, role with name, test_id, xpath"
	targetWays  = "selector, text, ref, label, role with name, test_id, xpath, x with y"
)

// Given reports whether anything of an element was named.
func (e Element) Given() bool { return e != Element{} }

// Check refuses an element that is named in no way, or in more than one.
func (e Element) Check() error { return e.check(e.ways(), elementWays) }

func (e Element) check(given []string, known string) error {
	switch {
	case e.Name != "" && e.Role == "":
		return invalid("name goes with role, and there is none").With("field", "role")
	case len(given) == 0:
		return invalid("no element is named").WithHint("Name it in one way: %s.", known)
	case len(given) > 1:
		return invalid("the element is named in %d ways: %s", len(given), strings.Join(given, ", ")).
			WithHint("Keep one of them; the ways are %s.", known)
	}
	return nil
}

// Given reports whether anything of a target was named.
func (t Target) Given() bool { return t != Target{} }

// Check refuses a target that is named in no way, or in more than one.
func (t Target) Check() error {
	given := t.ways()
	if t.Text != "" {
		given = append(given, "text")
	}
	if (t.X == nil) != (t.Y == nil) {
		return invalid("x and y go together, and one of them is missing").With("field", "x")
	}
	if t.X != nil {
		given = append(given, "x and y")
	}
	return t.check(given, targetWays)
}

// within puts the place of a part of a body in front of what is wrong with it.
func within(place string, err error) error {
	if err == nil {
		return nil
	}
	f := fault.Of(err)
	told := invalid("%s: %s", place, f.Details())
	told.Hint, told.Data = f.Hint, f.Data
	return told
}
