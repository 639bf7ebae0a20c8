package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Click clicks an element.
func (c *Client) Click(ctx context.Context, id string, req ClickRequest) (*ClickAnswer, error) {
	return call[ClickAnswer](ctx, c, http.MethodPost, at(id, "click"), req, nil)
}

// Hover moves the pointer over an element.
func (c *Client) Hover(ctx context.Context, id string, req HoverRequest) (*HoverAnswer, error) {
	return call[HoverAnswer](ctx, c, http.MethodPost, at(id, "hover"), req, nil)
}

// Drag drags an element.
func (c *Client) Drag(ctx context.Context, id string, req DragRequest) (*DragAnswer, error) {
	return call[DragAnswer](ctx, c, http.MethodPost, at(id, "drag"), req, nil)
}

// Type types a text.
func (c *Client) Type(ctx context.Context, id string, req TypeRequest) (*TypeAnswer, error) {
	var header http.Header
	if req.IdempotencyKey != "" {
		header = http.Header{"Idempotency-Key": {req.IdempotencyKey}}
	}
	// The body of this one request is where the text goes on in the clear.
	body := struct {
		TypeRequest
		Text string `json:"text"`
	}{req, req.Text.Reveal()}
	return call[TypeAnswer](ctx, c, http.MethodPost, at(id, "type"), body, header)
}

// Fill fills the fields of a form.
func (c *Client) Fill(ctx context.Context, id string, req FillRequest) (*FillAnswer, error) {
	type field struct {
		FieldValue
		Value *string `json:"value,omitempty"`
	}
	body := struct {
		FillRequest
		Fields []field `json:"fields"`
	}{FillRequest: req}
	for _, f := range req.Fields {
		revealed := field{FieldValue: f}
		if f.Value != nil {
			value := f.Value.Reveal()
			revealed.Value = &value
		}
		body.Fields = append(body.Fields, revealed)
	}
	return call[FillAnswer](ctx, c, http.MethodPost, at(id, "fill"), body, nil)
}

// Press presses a key or a combination.
func (c *Client) Press(ctx context.Context, id string, req PressRequest) (*Acted, error) {
	return call[Acted](ctx, c, http.MethodPost, at(id, "press"), req, nil)
}

// Select chooses options of a list.
func (c *Client) Select(ctx context.Context, id string, req SelectRequest) (*SelectAnswer, error) {
	return call[SelectAnswer](ctx, c, http.MethodPost, at(id, "select"), req, nil)
}

// Upload gives files to a field.
func (c *Client) Upload(ctx context.Context, id string, req UploadRequest) (*UploadAnswer, error) {
	return call[UploadAnswer](ctx, c, http.MethodPost, at(id, "upload"), req, nil)
}

// Scroll scrolls the page, or an element into view.
func (c *Client) Scroll(ctx context.Context, id string, req ScrollRequest) (*Acted, error) {
	return call[Acted](ctx, c, http.MethodPost, at(id, "scroll"), req, nil)
}

// Wait waits until the page is as asked for. Without a deadline of the caller's
// it has the time of the request and some to answer.
func (c *Client) Wait(ctx context.Context, id string, req WaitRequest) (*Acted, error) {
	if _, set := ctx.Deadline(); !set {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit+time.Duration(req.TimeoutMS)*time.Millisecond)
		defer cancel()
	}
	return call[Acted](ctx, c, http.MethodPost, at(id, "wait"), req, nil)
}

// Dialog answers the dialog that is open.
func (c *Client) Dialog(ctx context.Context, id string, req DialogRequest) (*Acted, error) {
	body := struct {
		DialogRequest
		Text string `json:"text,omitempty"`
	}{req, req.Text.Reveal()}
	return call[Acted](ctx, c, http.MethodPost, at(id, "dialog"), body, nil)
}

// Permission answers what a page asks the person at the browser for.
func (c *Client) Permission(ctx context.Context, id string, req PermissionRequest) (*Acted, error) {
	return call[Acted](ctx, c, http.MethodPost, at(id, "permission"), req, nil)
}

// Auth answers a site that asks for a name and a password before its page.
func (c *Client) Auth(ctx context.Context, id string, req AuthRequest) (*Acted, error) {
	body := struct {
		AuthRequest
		Password string `json:"password"`
	}{req, req.Password.Reveal()}
	return call[Acted](ctx, c, http.MethodPost, at(id, "auth"), body, nil)
}

// Downloads lists the files that pages sent.
func (c *Client) Downloads(ctx context.Context, id string) (*Downloads, error) {
	return call[Downloads](ctx, c, http.MethodGet, at(id, "downloads"), nil, nil)
}

// Tabs lists the tabs, the one in front last.
func (c *Client) Tabs(ctx context.Context, id string) (*TabsAnswer, error) {
	return call[TabsAnswer](ctx, c, http.MethodGet, at(id, "tabs"), nil, nil)
}

// Tab brings a tab to the front or closes it.
func (c *Client) Tab(ctx context.Context, id string, req TabRequest) (*Acted, error) {
	return call[Acted](ctx, c, http.MethodPost, at(id, "tab"), req, nil)
}

// Snapshot is the page as an outline with refs.
func (c *Client) Snapshot(ctx context.Context, id string, q SnapshotQuery) (*SnapshotAnswer, error) {
	return call[SnapshotAnswer](ctx, c, http.MethodGet, asking(at(id, "snapshot"), q), nil, nil)
}

// Text is what the page says.
func (c *Client) Text(ctx context.Context, id string, q TextQuery) (*TextAnswer, error) {
	return call[TextAnswer](ctx, c, http.MethodGet, asking(at(id, "text"), q), nil, nil)
}

// Extract reads out what an instruction names. The content is a string, or else
// a json.RawMessage.
func (c *Client) Extract(ctx context.Context, id string, req ExtractRequest) (*ExtractAnswer, error) {
	type answer struct {
		ExtractAnswer
		Content json.RawMessage `json:"content"` // as it was written: rows and fields keep their order
	}
	got, err := call[answer](ctx, c, http.MethodPost, at(id, "extract"), req, nil)
	if err != nil {
		return nil, err
	}
	got.ExtractAnswer.Content = textOrRaw(got.Content)
	return &got.ExtractAnswer, nil
}

// asking puts behind a path all that a request says. Nothing is spelt out here, so that
// what a request has one day is not forgotten.
func asking(path string, request any) string {
	raw, _ := json.Marshal(request) // plain fields: neither can fail
	words := json.NewDecoder(bytes.NewReader(raw))
	words.UseNumber()
	said := map[string]any{}
	_ = words.Decode(&said)
	values := url.Values{}
	for name, value := range said {
		values.Set(name, fmt.Sprint(value))
	}
	return query(path, values)
}

func query(path string, values url.Values) string {
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
