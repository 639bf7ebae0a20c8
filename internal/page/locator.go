package page

import "time"

// Locator says which element is meant, in one way. X and Y are a point of the
// viewport in CSS pixels.
type Locator struct {
	CSS    string   `json:"css,omitempty"`
	Text   string   `json:"text,omitempty"` // visible text: whitespace and case do not matter, exact before partial
	Label  string   `json:"label,omitempty"`
	Role   string   `json:"role,omitempty"` // with Name, its accessible name
	Name   string   `json:"name,omitempty"`
	TestID string   `json:"test_id,omitempty"`
	XPath  string   `json:"xpath,omitempty"`
	Ref    string   `json:"ref,omitempty"` // from a snapshot
	X      *float64 `json:"x,omitempty"`
	Y      *float64 `json:"y,omitempty"`
}

// actWithin is how long an action waits for its element unless told otherwise.
const actWithin = 10 * time.Second
