package cdp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"tapin/internal/guard"
	"tapin/internal/secret"
)

// maxMessage bounds one message: a full-page screenshot fits, a runaway peer does not.
const maxMessage = 256 << 20

// pingEvery finds out about a stopped browser or a dead path; Chromium and the
// providers answer pings.
const pingEvery = 5 * time.Second

// Dial opens a WebSocket to a CDP endpoint. Address and headers may carry a
// key, so that no error repeats them.
func Dial(ctx context.Context, endpoint secret.Text, header http.Header) (Transport, error) {
	client := &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
	}, CheckRedirect: stay}
	ws, resp, err := websocket.Dial(ctx, endpoint.Reveal(), &websocket.DialOptions{
		HTTPClient: client,
		HTTPHeader: header,
		// Frames are JPEG in base64: compressing them costs more than it saves.
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, &Refused{Status: resp.StatusCode}
		}
		return nil, &Lost{Cause: describe(err)}
	}
	ws.SetReadLimit(maxMessage)
	readCtx, cancel := context.WithCancelCause(context.Background())
	t := &wsTransport{ws: ws, client: client, ctx: readCtx, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer guard.Catch("CDP")
		t.watch()
	}()
	return t, nil
}

// stay keeps a key from following a redirect to somebody else.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Refused is the endpoint's answer when it does not open a WebSocket.
type Refused struct{ Status int }

func (r *Refused) Error() string {
	return "the endpoint answered " + strconv.Itoa(r.Status) + " " + http.StatusText(r.Status)
}

type wsTransport struct {
	ws     *websocket.Conn
	client *http.Client
	ctx    context.Context //nolint:containedctx // the lifetime of the socket: coder/websocket ends reads by context
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// watch pings; a peer that does not answer is as gone as one that hung up.
func (t *wsTransport) watch() {
	defer close(t.done)
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-tick.C:
			ctx, cancel := context.WithTimeout(t.ctx, 2*pingEvery)
			err := t.ws.Ping(ctx)
			cancel()
			if err != nil {
				t.cancel(&Lost{Cause: "the browser stopped answering"})
				return
			}
		}
	}
}

func (t *wsTransport) Read() ([]byte, error) {
	_, raw, err := t.ws.Read(t.ctx)
	if err != nil {
		return nil, t.cause(err)
	}
	return raw, nil
}

func (t *wsTransport) Write(ctx context.Context, messages ...[]byte) error {
	// A write cut off half way ends the socket, so the caller's context must not
	// decide: the socket's lifetime and a limit of its own do.
	if ctx.Err() != nil {
		return ctx.Err()
	}
	wctx, cancel := context.WithTimeout(t.ctx, 30*time.Second)
	defer cancel()
	for _, message := range messages {
		if err := t.ws.Write(wctx, websocket.MessageText, message); err != nil {
			return t.cause(err)
		}
	}
	return nil
}

func (t *wsTransport) cause(err error) error {
	if lost, ok := errors.AsType[*Lost](context.Cause(t.ctx)); ok {
		return lost
	}
	return &Lost{Cause: describe(err)}
}

func (t *wsTransport) Close() error {
	t.cancel(errClosed)
	_ = t.ws.CloseNow()
	<-t.done
	t.client.CloseIdleConnections()
	return nil
}

// describe says what kind of failure it was, in words that hold nothing of the address.
func describe(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsTimeout {
			return "the name lookup timed out"
		}
		return "the endpoint's name cannot be resolved"
	}
	if code := websocket.CloseStatus(err); code != -1 {
		return "the endpoint closed it (" + code.String() + ")"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if urlErr, ok := errors.AsType[*url.Error](err); ok && urlErr.Timeout() {
		return "timed out"
	}
	switch {
	case errors.Is(err, errClosed):
		return errClosed.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timed out"
	case errors.Is(err, context.Canceled):
		return "given up"
	case errors.Is(err, net.ErrClosed):
		return "the socket is closed"
	}
	return "the other end broke it off"
}
