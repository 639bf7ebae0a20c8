package api

import (
	"context"
	"net/http"
	"net/url"
)

// MintLink makes a link into a session. Only its answer has the token.
func (c *Client) MintLink(ctx context.Context, req LinkRequest) (*MintedLink, error) {
	return call[MintedLink](ctx, c, http.MethodPost, "/links", req, nil)
}

// Links lists the links that live.
func (c *Client) Links(ctx context.Context) (*Links, error) {
	return call[Links](ctx, c, http.MethodGet, "/links", nil, nil)
}

// MoveLink gives a link to the device that shows the number.
func (c *Client) MoveLink(ctx context.Context, id string, number int) (*Link, error) {
	return call[Link](ctx, c, http.MethodPost, linkAt(id)+"/move", MoveLinkRequest{Number: number}, nil)
}

// RevokeLink ends a link. Ending one that is over is no error.
func (c *Client) RevokeLink(ctx context.Context, id string) (*RevokedLink, error) {
	return call[RevokedLink](ctx, c, http.MethodDelete, linkAt(id), nil, nil)
}

// Public tells where people reach the live view.
func (c *Client) Public(ctx context.Context) (*Public, error) {
	return call[Public](ctx, c, http.MethodGet, "/public", nil, nil)
}

// SetPublicURL tells the sidecar under which address a tunnel makes it
// reachable; "" says that there is none any more. One that the owner has
// configured stays what links begin with.
func (c *Client) SetPublicURL(ctx context.Context, address string) (*Public, error) {
	return call[Public](ctx, c, http.MethodPut, "/public", PublicRequest{URL: address}, nil)
}

func linkAt(id string) string { return "/links/" + url.PathEscape(id) }
