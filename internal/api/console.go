package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"tapin/internal/secret"
)

// ConsoleSignIn is an address at which one device signs in to the console. The
// token in it is told this once.
type ConsoleSignIn struct {
	OpenURL   secret.Text `json:"open_url"`
	ExpiresAt time.Time   `json:"expires_at"`
}

// ConsoleDevice is one that is signed in to the console.
type ConsoleDevice struct {
	DeviceID  string    `json:"device_id"`
	Name      string    `json:"name" doc:"What its browser says of itself, in our words."`
	CreatedAt time.Time `json:"created_at"`
	SeenAt    time.Time `json:"seen_at" doc:"To the hour, but for those that are there now."`
}

// ConsoleDevices lists them, the one last seen first.
type ConsoleDevices struct {
	Devices []ConsoleDevice `json:"devices"`
}

// SignedOutDevice is the answer of DELETE /console/devices/{id}.
type SignedOutDevice struct {
	DeviceID  string `json:"device_id"`
	SignedOut bool   `json:"signed_out"`
}

// ConsoleSignIn makes a sign-in to the console. Only its answer has the token.
func (c *Client) ConsoleSignIn(ctx context.Context) (*ConsoleSignIn, error) {
	return call[ConsoleSignIn](ctx, c, http.MethodPost, "/console/sign-in", Nothing{}, nil)
}

// ConsoleDevices lists the devices that are signed in to the console.
func (c *Client) ConsoleDevices(ctx context.Context) (*ConsoleDevices, error) {
	return call[ConsoleDevices](ctx, c, http.MethodGet, "/console/devices", nil, nil)
}

// SignOutDevice ends a device's sign-in, what it has open and the links it made.
func (c *Client) SignOutDevice(ctx context.Context, id string) (*SignedOutDevice, error) {
	return call[SignedOutDevice](ctx, c, http.MethodDelete, "/console/devices/"+url.PathEscape(id), nil, nil)
}
