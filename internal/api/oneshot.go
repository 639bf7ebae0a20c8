package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// OneShot is what both one-shot tools take. The sandbox of the seed's callers
// and its owner's token mean nothing here: the bearer decides.
type OneShot struct {
	URL       string    `json:"url" required:"true" max:"8192" doc:"The address of the page: http or https."`
	Viewport  *Viewport `json:"viewport,omitempty" doc:"The size of the page; 390 by 844 for a screenshot and 1280 by 720 for an extract without it."`
	Mobile    *bool     `json:"mobile,omitempty" doc:"Behave as a phone does; true for a screenshot and false for an extract without it."`
	TimeoutMS int       `json:"timeout_ms,omitempty" min:"1000" max:"90000" doc:"For everything, retries included; 90,000 without it."`

	SandboxID  string `json:"sandbox_id,omitempty" max:"256" doc:"Accepted and ignored."`
	OwnerToken string `json:"owner_token,omitempty" max:"4096" doc:"Accepted and ignored: the bearer decides."`
}

// BrowserScreenshotRequest is the body of POST /browser/screenshot.
type BrowserScreenshotRequest struct {
	OneShot
	FullPage bool `json:"full_page,omitempty" doc:"The whole page instead of the viewport."`
}

// BrowserScreenshot is a picture of a page that was opened for it alone.
type BrowserScreenshot struct {
	Title       string          `json:"title"`
	FinalURL    string          `json:"final_url" doc:"Where the address led."`
	StatusCode  int             `json:"status_code" doc:"Of the response the page came with; 0 when it is not known."`
	MIMEType    string          `json:"mime_type" doc:"What the picture is: image/png, or image/jpeg when that was too large."`
	Truncated   bool            `json:"truncated" doc:"The picture was over 1,500,000 bytes as PNG, and is a JPEG of lower quality."`
	Retries     int             `json:"retries" doc:"How many times it was tried again."`
	Blocked     []BlockedTarget `json:"blocked,omitempty" doc:"Parts of the page that the network guard refused."`
	ImageBase64 string          `json:"image_base64"`
}

// BrowserExtractRequest is the body of POST /browser/extract.
type BrowserExtractRequest struct {
	OneShot
	ExtractRequest
}

// BrowserExtract is what an instruction found on a page that was opened for it alone.
type BrowserExtract struct {
	Extracted
	Retries int             `json:"retries" doc:"How many times it was tried again."`
	Blocked []BlockedTarget `json:"blocked,omitempty" doc:"Parts of the page that the network guard refused."`
}

// BlockedTarget is a request of a page that the network guard refused.
type BlockedTarget struct {
	Error string `json:"error" doc:"BLOCKED_TARGET."`
	Rule  string `json:"rule" doc:"The rule that refused it, such as loopback or private."`
	Host  string `json:"host"`
}

// BrowserIntentRequest is the body of POST /browser/intent.
type BrowserIntentRequest struct {
	Prompt string `json:"prompt" required:"true" max:"200000" doc:"What a person asked for."`
}

// BrowserIntent is whether a prompt wants the browser.
type BrowserIntent struct {
	Browser bool   `json:"browser"`
	Tool    string `json:"tool,omitempty" enum:"sandbox_browser_screenshot,sandbox_browser_extract" doc:"The one that fits best; missing when both would do."`
	URL     string `json:"url,omitempty" doc:"The first address in the prompt."`
	Hint    string `json:"hint,omitempty" doc:"To be added to the prompt."`
}

// BrowserCards is the answer of GET /browser/cards.
type BrowserCards struct {
	Cards []BrowserCard `json:"cards"`
}

// BrowserCard is one one-shot call and what came of it, as it is shown.
type BrowserCard struct {
	CardID      string    `json:"card_id"`
	Kind        string    `json:"kind" enum:"screenshot,extract"`
	At          time.Time `json:"at"`
	URL         string    `json:"url" doc:"As it was asked for."`
	Title       string    `json:"title,omitempty"`
	FinalURL    string    `json:"final_url,omitempty"`
	StatusCode  int       `json:"status_code,omitempty"`
	MIMEType    string    `json:"mime_type,omitempty"`
	ImageBase64 string    `json:"image_base64,omitempty"`
	Content     any       `json:"content,omitempty"`
	Truncated   bool      `json:"truncated,omitempty"`
	Retries     int       `json:"retries,omitempty"`

	Error *CardError `json:"error,omitempty" doc:"Why there is nothing to show."`
}

// CardError is a failure for people.
type CardError struct {
	Code    string `json:"code"`
	Message string `json:"message" doc:"A calm sentence."`
}

// BrowserScreenshot photographs the page at an address.
func (c *Client) BrowserScreenshot(ctx context.Context, req BrowserScreenshotRequest) (*BrowserScreenshot, error) {
	return call[BrowserScreenshot](ctx, c, http.MethodPost, "/browser/screenshot", req, nil)
}

// BrowserExtract reads out a part of the page at an address. The content is a
// string, or else a json.RawMessage.
func (c *Client) BrowserExtract(ctx context.Context, req BrowserExtractRequest) (*BrowserExtract, error) {
	type answer struct {
		BrowserExtract
		Content json.RawMessage `json:"content"` // as it was written: rows and fields keep their order
	}
	got, err := call[answer](ctx, c, http.MethodPost, "/browser/extract", req, nil)
	if err != nil {
		return nil, err
	}
	got.BrowserExtract.Content = textOrRaw(got.Content)
	return &got.BrowserExtract, nil
}

// BrowserIntent asks whether a prompt wants the browser.
func (c *Client) BrowserIntent(ctx context.Context, prompt string) (*BrowserIntent, error) {
	return call[BrowserIntent](ctx, c, http.MethodPost, "/browser/intent", BrowserIntentRequest{Prompt: prompt}, nil)
}

// BrowserCards are the last one-shot calls, the newest first.
func (c *Client) BrowserCards(ctx context.Context) (*BrowserCards, error) {
	return call[BrowserCards](ctx, c, http.MethodGet, "/browser/cards", nil, nil)
}

// BrowserRetry makes the call of a card once more.
func (c *Client) BrowserRetry(ctx context.Context, card string) (*BrowserCard, error) {
	return call[BrowserCard](ctx, c, http.MethodPost, "/browser/cards/"+card+"/retry", nil, nil)
}

// textOrRaw is a JSON text as a string, and anything else as it was written.
func textOrRaw(raw json.RawMessage) any {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return raw
}
