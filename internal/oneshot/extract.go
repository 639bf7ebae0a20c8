package oneshot

import (
	"context"

	"tapin/internal/fault"
	"tapin/internal/page"
)

// desk is the standard look of an extract: sites say more to a wide window.
var desk = page.Look{Width: 1280, Height: 720, Scale: 1}

// ExtractCall asks for what an instruction names; without one, for the text.
type ExtractCall struct {
	Call
	Instruction string
	Most        int // characters; 0 means 20,000
}

// Extract is what an instruction found at an address.
type Extract struct {
	Seen
	Content   any // a string; a json.RawMessage when the kind is a table or JSON
	Kind      page.Kind
	Truncated bool
	Note      string
}

// Extract reads out a part of the page at an address.
func (r *Room) Extract(ctx context.Context, c ExtractCall) (Extract, error) {
	look, err := r.lookOf(c.Call, desk)
	if err != nil {
		return Extract{}, err
	}
	if !r.disabled {
		// What cannot be understood costs no page.
		if err := page.CheckInstruction(c.Instruction); err != nil {
			return Extract{}, fault.Wrap(fault.InvalidRequest, "extract", err)
		}
	}
	var got Extract
	got.Seen, err = r.visit(ctx, "extract", c.Call, look, func(ctx context.Context, tab *page.Tab) error {
		read, err := tab.Extract(ctx, page.ExtractOptions{Instruction: c.Instruction, Most: c.Most})
		got = Extract{Content: read.Content, Kind: read.Kind, Truncated: read.Truncated, Note: read.Note}
		return err
	})
	if err != nil {
		got = Extract{}
	}
	r.cards.add(Card{Kind: "extract", URL: c.URL, Extract: &got, Err: err, extract: &c})
	return got, err
}
