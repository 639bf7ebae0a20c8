package api

import (
	"context"
	"net/http"
	"net/url"
)

// Shot is a picture as bytes.
type Shot struct {
	Bytes    []byte
	MIMEType string
}

// Start opens a session.
func (c *Client) Start(ctx context.Context, req StartRequest) (*StartAnswer, error) {
	var header http.Header
	if req.IdempotencyKey != "" {
		header = http.Header{"Idempotency-Key": {req.IdempotencyKey}}
	}
	return call[StartAnswer](ctx, c, http.MethodPost, "/session/start", req, header)
}

// Stop ends a session.
func (c *Client) Stop(ctx context.Context, id string, req StopRequest) (*StopAnswer, error) {
	return call[StopAnswer](ctx, c, http.MethodPost, at(id, "stop"), req, nil)
}

// Navigate opens an address.
func (c *Client) Navigate(ctx context.Context, id string, req NavigateRequest) (*PageAnswer, error) {
	return call[PageAnswer](ctx, c, http.MethodPost, at(id, "navigate"), req, nil)
}

// Back goes one page back.
func (c *Client) Back(ctx context.Context, id string, req MoveRequest) (*PageAnswer, error) {
	return call[PageAnswer](ctx, c, http.MethodPost, at(id, "back"), req, nil)
}

// Forward goes one page forward.
func (c *Client) Forward(ctx context.Context, id string, req MoveRequest) (*PageAnswer, error) {
	return call[PageAnswer](ctx, c, http.MethodPost, at(id, "forward"), req, nil)
}

// Reload loads the page again.
func (c *Client) Reload(ctx context.Context, id string, req MoveRequest) (*PageAnswer, error) {
	return call[PageAnswer](ctx, c, http.MethodPost, at(id, "reload"), req, nil)
}

// Screenshot photographs the page.
func (c *Client) Screenshot(ctx context.Context, id string, q ScreenshotQuery) (*Shot, error) {
	body, mime, err := c.bytes(ctx, asking(at(id, "screenshot"), q))
	if err != nil {
		return nil, err
	}
	return &Shot{Bytes: body, MIMEType: mime}, nil
}

// Status tells what a session shows; Active is false when there is none.
func (c *Client) Status(ctx context.Context, id string) (*Status, error) {
	return call[Status](ctx, c, http.MethodGet, at(id, "status"), nil, nil)
}

// Sessions lists all sessions.
func (c *Client) Sessions(ctx context.Context) (*Sessions, error) {
	return call[Sessions](ctx, c, http.MethodGet, "/sessions", nil, nil)
}

// at is the path of an operation on a session.
func at(id, operation string) string {
	if id == "" {
		return "/session/" + operation
	}
	return "/sessions/" + url.PathEscape(id) + "/" + operation
}
