package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// ErrNotRunning says that nobody listens where the sidecar should.
var ErrNotRunning = errors.New("tapin is not running")

// ErrBroken says that the sidecar went away in the middle of a call: whether it
// did what was asked is not known.
var ErrBroken = errors.New("the connection to tapin broke")

// ClientOptions adjust a client; nil means the defaults.
type ClientOptions struct {
	MaxResponse int64         // bytes of an answer; default 64 MiB
	Timeout     time.Duration // of a call whose context has no deadline; default 2 min
	// Dial reaches the sidecar; nil means over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client speaks the contract to one sidecar. It is safe for concurrent use.
// Everywhere an id of "" means the active session.
type Client struct {
	base  string
	token secret.Text
	http  *http.Client
	max   int64
	limit time.Duration
}

// NewClient makes a client of the sidecar at base, such as http://127.0.0.1:3849.
func NewClient(base string, token secret.Text, options *ClientOptions) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fault.New(fault.InvalidURL, "", "the address of the sidecar must look like http://127.0.0.1:3849")
	}
	c := &Client{
		base:  strings.TrimRight(base, "/"),
		token: token,
		max:   64 << 20,
		limit: 2 * time.Minute,
		http: &http.Client{
			// Neither a proxy from the environment nor a redirect may see the token.
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
				DisableCompression:  true,
				IdleConnTimeout:     30 * time.Second,
				MaxIdleConnsPerHost: 8,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if options != nil && options.MaxResponse > 0 {
		c.max = options.MaxResponse
	}
	if options != nil && options.Dial != nil {
		c.http.Transport = &http.Transport{DialContext: options.Dial, DisableCompression: true, IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 8}
	}
	if options != nil && options.Timeout > 0 {
		c.limit = options.Timeout
	}
	return c, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Health asks whether the sidecar serves; it needs no token.
func (c *Client) Health(ctx context.Context) (*Health, error) {
	return call[Health](ctx, c, http.MethodGet, "/health", nil, nil)
}

// OpenAPI is the description of the API.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	body, _, err := c.bytes(ctx, "/openapi.json")
	return body, err
}

// Metrics are the sidecar's figures in the text form of Prometheus.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	body, _, err := c.bytes(ctx, "/metrics")
	return body, err
}

// call sends one request and decodes its answer.
func call[A any](ctx context.Context, c *Client, method, path string, body any, header http.Header) (*A, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	resp, err := c.send(ctx, method, path, body, header)
	if err != nil {
		return nil, err
	}
	raw, err := c.read(resp, method+" "+path)
	if err != nil {
		return nil, err
	}
	answer := new(A)
	if err := json.Unmarshal(raw, answer); err != nil {
		return nil, foreign(method+" "+path, resp.StatusCode)
	}
	return answer, nil
}

// bytes gets an answer that is not JSON of ours, with its content type.
func (c *Client) bytes(ctx context.Context, path string) ([]byte, string, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, "", err
	}
	body, err := c.read(resp, "GET "+path)
	return body, resp.Header.Get("Content-Type"), err
}

func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, set := ctx.Deadline(); set {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.limit)
}

// send returns the answer to a request that the sidecar carried out; its
// refusals come back as faults.
func (c *Client) send(ctx context.Context, method, path string, body any, header http.Header) (*http.Response, error) {
	op := method + " " + path
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fault.New(fault.InvalidRequest, op, "the request cannot be written as JSON")
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, op, "not a request that can be sent")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if !c.token.IsEmpty() {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, op, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	raw, err := c.read(resp, op)
	if err != nil {
		return nil, err
	}
	return nil, refusal(op, resp.StatusCode, raw)
}

func (c *Client) read(resp *http.Response, op string) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	var raw bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= c.max {
		raw.Grow(int(n) + bytes.MinRead) // a picture is read in one go
	}
	if _, err := raw.ReadFrom(io.LimitReader(resp.Body, c.max+1)); err != nil {
		return nil, fault.New(fault.Busy, op, "%w: the answer broke off: %w", ErrBroken, bare(err)).WithHint("%s", lookFirst)
	}
	if int64(raw.Len()) > c.max {
		return nil, fault.New(fault.PayloadTooLarge, op, "the answer is over %d bytes", c.max).
			WithHint("Ask for less, such as the viewport instead of the full page.")
	}
	return raw.Bytes(), nil
}

// unreachable tells apart a sidecar that is not there, a caller that gave up,
// and a connection that broke.
func (c *Client) unreachable(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, ctx.Err())
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fault.New(fault.Busy, "", "%w at %s", ErrNotRunning, c.base).WithHint("Start it with tapin up.")
	}
	return fault.New(fault.Busy, op, "%w: %w", ErrBroken, bare(err)).WithHint("%s", lookFirst)
}

// lookFirst is for who does not know whether it was done.
const lookFirst = "Tapin comes back by itself. It may have done what you asked: look before you ask again."

// bare drops the method and address that net/http wraps around a cause.
func bare(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// refusal turns an error body back into the fault it was made of.
func refusal(op string, status int, raw []byte) error {
	var p Problem
	data := map[string]any{}
	if json.Unmarshal(raw, &p) != nil || json.Unmarshal(raw, &data) != nil || p.Error == "" {
		return foreign(op, status)
	}
	for _, own := range []string{"ok", "error", "details", "hint"} {
		delete(data, own)
	}
	f := &fault.Error{Code: fault.Code(p.Error), Err: errors.New(p.Details), Hint: p.Hint}
	if len(data) > 0 {
		f.Data = data
	}
	return f
}

func foreign(op string, status int) error {
	return fault.New(fault.ProviderError, op, "the answer (status %d) is not tapin's", status).
		WithHint("Another program may be listening there; check listen.control in config.yaml.")
}
