package apiserver_test

import (
	"context"
	"encoding/json"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
)

// deed is an action that reached the session, with what it was told.
type deed struct {
	name string
	args []any
}

// done notes an action and answers as the test wants.
func (b *tab) done(name string, args ...any) (session.Did, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deeds = append(b.deeds, deed{name, args})
	if b.failure != nil {
		return session.Did{}, b.failure
	}
	return session.Did{URL: b.url, Title: "T", Took: 12 * time.Millisecond, Dialog: b.dialog, Moved: b.moved}, nil
}

func (b *tab) Click(_ context.Context, at page.Locator, o page.ClickOptions) (page.Clicked, session.Did, error) {
	did, err := b.done("click", at, o)
	return page.Clicked{Strategy: "S2_CSS", Effect: "confirmed"}, did, err
}

func (b *tab) Hover(_ context.Context, at page.Locator, within time.Duration) (page.Clicked, session.Did, error) {
	did, err := b.done("hover", at, within)
	return page.Clicked{Strategy: "S1_AX", Effect: "unknown"}, did, err
}

func (b *tab) Drag(_ context.Context, from, to page.Locator, within time.Duration) (page.Clicked, session.Did, error) {
	did, err := b.done("drag", from, to, within)
	return page.Clicked{Strategy: "S3_CDP_COORD", Effect: "none"}, did, err
}

func (b *tab) Scroll(_ context.Context, o page.ScrollOptions) (session.Did, error) {
	return b.done("scroll", o)
}

func (b *tab) WaitFor(_ context.Context, o page.WaitOptions) (session.Did, error) {
	return b.done("wait", o)
}

func (b *tab) Type(ctx context.Context, text secret.Text, o page.TypeOptions) (page.Typed, session.Did, error) {
	if text.Reveal() == "block" {
		b.blocked <- struct{}{}
		select {
		case <-b.release:
		case <-ctx.Done():
			return page.Typed{}, session.Did{}, ctx.Err()
		}
	}
	did, err := b.done("type", text.Reveal(), o)
	return page.Typed{Characters: len(text.Reveal()), Field: "password"}, did, err
}

func (b *tab) Fill(_ context.Context, fields []session.Field, within time.Duration) ([]page.Filled, session.Did, error) {
	args := []any{within}
	var filled []page.Filled
	for i, f := range fields {
		args = append(args, f.Locator, f.Value.Reveal())
		filled = append(filled, page.Filled{Field: "text", OK: i == 0})
	}
	did, err := b.done("fill", args...)
	return filled, did, err
}

func (b *tab) Press(_ context.Context, key string) (session.Did, error) { return b.done("press", key) }

func (b *tab) Select(_ context.Context, at page.Locator, values []string, within time.Duration) ([]string, session.Did, error) {
	did, err := b.done("select", at, values, within)
	return values, did, err
}

func (b *tab) Upload(_ context.Context, at *page.Locator, files []string, within time.Duration) (session.Did, error) {
	return b.done("upload", at, files, within)
}

func (b *tab) Snapshot(_ context.Context, o page.SnapshotOptions) (page.Snapshot, error) {
	_, err := b.done("snapshot", o)
	return page.Snapshot{Text: "- button \"Go\" [ref=e1]", Truncated: true, URL: b.url, Title: "T", Tabs: []string{"t1"}}, err
}

func (b *tab) Text(_ context.Context, most int) (string, bool, error) {
	_, err := b.done("text", most)
	return "hello <world>", false, err
}

func (b *tab) Extract(_ context.Context, o page.ExtractOptions) (page.Extract, error) {
	_, err := b.done("extract", o)
	return page.Extract{
		Content: json.RawMessage(`[{"2":"<b>","1":"x"}]`), Kind: page.KindTable, Note: "n", Truncated: true, URL: b.url, Title: "T", Status: 200,
	}, err
}

func (b *tab) Downloads(context.Context) ([]page.Download, error) {
	return []page.Download{{ID: "d1", Name: "a.pdf", URL: "http://a/a.pdf", Bytes: 3, Total: 3, State: "completed", Path: "/home/x/a.pdf"}}, nil
}

func (b *tab) Tabs(ctx context.Context) ([]session.Tab, error) {
	now, err := b.Status(ctx)
	return now.Tabs, err
}

func (b *tab) Answer(_ context.Context, accept bool, text secret.Text) (session.Did, error) {
	return b.done("dialog", accept, text.Reveal())
}

func (b *tab) Permission(_ context.Context, origin, name string, grant bool) (session.Did, error) {
	return b.done("permission", origin, name, grant)
}

func (b *tab) Authenticate(_ context.Context, username string, password secret.Text) (session.Did, error) {
	return b.done("auth", username, password.Reveal())
}

func (b *tab) Switch(_ context.Context, id string) (session.Did, error) { return b.done("switch", id) }

func (b *tab) CloseTab(_ context.Context, id string) (session.Did, error) { return b.done("close", id) }

// exhausted is what the page answers when no step of the ladder moved an element.
func exhausted() error {
	return fault.New(fault.ElementNotActionable, "click", "covered by div#overlay").
		With("success", false).With("outcome", "exhausted").With("strategies_tried", []string{"S1_AX", "S2_CSS"}).
		With("hitl_required", true).With("suggested_next", []any{map[string]any{
		"tool": "oc_handoff_start", "arguments": map[string]any{"reason": "manual_recovery", "instruction": "Click it."}, "why": "w",
	}})
}
