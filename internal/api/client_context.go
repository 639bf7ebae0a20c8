package api

import (
	"context"
	"net/http"
	"net/url"
)

// Contexts lists the saved logins.
func (c *Client) Contexts(ctx context.Context) (*Contexts, error) {
	return call[Contexts](ctx, c, http.MethodGet, "/contexts", nil, nil)
}

// Context tells about one saved login.
func (c *Client) Context(ctx context.Context, name string) (*Context, error) {
	return call[Context](ctx, c, http.MethodGet, contextPath(name, ""), nil, nil)
}

// DeleteContext deletes a saved login.
func (c *Client) DeleteContext(ctx context.Context, name string) (*DeletedContext, error) {
	return call[DeletedContext](ctx, c, http.MethodDelete, contextPath(name, ""), nil, nil)
}

// RenameContext gives a saved login another name.
func (c *Client) RenameContext(ctx context.Context, name string, req RenameRequest) (*RenameAnswer, error) {
	return call[RenameAnswer](ctx, c, http.MethodPost, contextPath(name, "/rename"), req, nil)
}

// CheckContext finds out whether a saved login still works.
func (c *Client) CheckContext(ctx context.Context, name string) (*CheckAnswer, error) {
	return call[CheckAnswer](ctx, c, http.MethodPost, contextPath(name, "/check"), CheckRequest{}, nil)
}

// ExportContext puts a saved login into an envelope; without a name, that of
// the live session.
func (c *Client) ExportContext(ctx context.Context, name string, req ExportRequest) (*ExportAnswer, error) {
	body := struct {
		ExportRequest
		Passphrase string `json:"passphrase,omitempty"`
	}{req, req.Passphrase.Reveal()}
	return call[ExportAnswer](ctx, c, http.MethodPost, livePath(name, "/export"), body, nil)
}

// ImportContext takes an envelope into a saved login; without a name, into the
// live session.
func (c *Client) ImportContext(ctx context.Context, name string, req ImportRequest) (*ImportAnswer, error) {
	body := struct {
		ImportRequest
		Passphrase string `json:"passphrase,omitempty"`
	}{req, req.Passphrase.Reveal()}
	return call[ImportAnswer](ctx, c, http.MethodPost, livePath(name, "/import"), body, nil)
}

func contextPath(name, operation string) string {
	return "/contexts/" + url.PathEscape(name) + operation
}

func livePath(name, operation string) string {
	if name == "" {
		return "/context" + operation
	}
	return contextPath(name, operation)
}
