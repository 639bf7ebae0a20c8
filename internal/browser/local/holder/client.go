package holder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/guard"
)

var _ cdp.Transport = (*Client)(nil)

// Client speaks to a holder. It is the transport of a cdp connection and
// carries the requests beside it.
type Client struct {
	conn    net.Conn
	in      *bufio.Reader
	last    []byte // the message that Read gave last, whose place the next takes
	welcome welcome

	writeMu sync.Mutex

	mu      sync.Mutex
	nextRef int64
	waiting map[int64]chan reply
	over    error
}

// connectWithin bounds the greeting. A holder does nothing that takes longer.
const connectWithin = 3 * time.Second

// Connect opens the socket of the holder in dir as the client of that epoch.
func Connect(ctx context.Context, dir, mark string, epoch uint64) (*Client, error) {
	socket, release, err := socketPath(dir)
	if err != nil {
		return nil, fault.Wrap(fault.BrowserLost, "connect", err)
	}
	defer release()
	// A stopped holder accepts and never says a word.
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fault.New(fault.BrowserLost, "connect", "the browser's holder does not answer")
	}
	c := &Client{conn: conn, in: bufio.NewReaderSize(conn, 256<<10), waiting: map[int64]chan reply{}}
	stop := context.AfterFunc(ctx, func() {
		defer guard.Catch("holder")
		_ = conn.SetDeadline(time.Unix(1, 0))
	})
	err = c.greet(mark, epoch)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) greet(mark string, epoch uint64) error {
	if err := writeJSONFrame(c.conn, frameHello, hello{Protocol: Protocol, Mark: mark, Epoch: epoch}); err != nil {
		return fault.New(fault.BrowserLost, "connect", "the browser's holder hung up")
	}
	kind, payload, err := readFrame(c.in, nil)
	switch {
	case err != nil:
		return fault.New(fault.BrowserLost, "connect", "the browser's holder hung up")
	case kind == frameRefused:
		var no refused
		_ = json.Unmarshal(payload, &no)
		if no.TakenOver {
			return &fault.Error{Code: fault.BrowserLost, Op: "connect", Err: browser.ErrTakenOver}
		}
		return fault.New(fault.BrowserLost, "connect", "the browser's holder refused: %s", no.Reason)
	case kind != frameWelcome || json.Unmarshal(payload, &c.welcome) != nil:
		return fault.New(fault.BrowserLost, "connect", "the browser's holder speaks another protocol")
	}
	return nil
}

// FirstID is the first protocol id that no earlier client used.
func (c *Client) FirstID() int64 { return c.welcome.NextID }

// PIDs are the holder's process id and the browser's.
func (c *Client) PIDs() (holder, browser int) { return c.welcome.PID, c.welcome.Browser }

// Read returns the next protocol message; the holder's own news come as events.
func (c *Client) Read() ([]byte, error) {
	for {
		kind, payload, err := readFrame(c.in, c.last)
		if cap(payload) <= maxKept {
			c.last = payload
		}
		if err != nil {
			// The holder says why before it hangs up. Without a word it was
			// killed, or it has another client now.
			gone := &cdp.Lost{Cause: "the browser's holder ended the connection"}
			c.fail(gone)
			return nil, gone
		}
		switch kind {
		case frameMessage:
			return payload, nil
		case frameGap:
			return event(browser.EventGap, payload), nil
		case frameBlocked:
			return event(browser.EventBlocked, payload), nil
		case frameFailed:
			return event(browser.EventFailed, payload), nil
		case frameAnswer:
			var a reply
			if json.Unmarshal(payload, &a) == nil {
				c.settle(a)
			}
		case frameLost:
			var l lost
			_ = json.Unmarshal(payload, &l)
			gone := &cdp.Lost{Cause: l.Cause, Ended: true}
			c.fail(gone)
			return nil, gone
		}
	}
}

func event(method string, params []byte) []byte {
	raw := make([]byte, 0, len(params)+len(method)+32)
	raw = append(raw, `{"method":"`...)
	raw = append(raw, method...)
	raw = append(raw, `","params":`...)
	raw = append(raw, params...)
	return append(raw, '}')
}

// Write sends protocol messages.
func (c *Client) Write(_ context.Context, messages ...[]byte) error {
	return c.write(frameMessage, messages...)
}

func (c *Client) write(kind byte, payloads ...[]byte) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
	if err := writeFrames(c.conn, kind, payloads...); err != nil {
		return &cdp.Lost{Cause: "the browser's holder does not take messages"}
	}
	return nil
}

// Close lets go of the holder; the browser lives on.
func (c *Client) Close() error {
	c.fail(&cdp.Lost{Cause: "the connection was closed by tapin"})
	return c.conn.Close()
}

// SetPolicy replaces the network policy; the holder keeps the last good one.
func (c *Client) SetPolicy(ctx context.Context, p egress.Policy) error {
	_, err := c.request(ctx, request{Op: opPolicy, Policy: &p})
	return err
}

// KeepUntil moves the time at which browser and holder end by themselves.
func (c *Client) KeepUntil(ctx context.Context, t time.Time) error {
	_, err := c.request(ctx, request{Op: opKeepUntil, KeepUntil: t})
	return err
}

// End ends the browser and returns when no process and no folder is left.
func (c *Client) End(ctx context.Context) error {
	_, err := c.request(ctx, request{Op: opEnd})
	return err
}

// OpenLane makes a guarded way to the network for one context of the browser.
func (c *Client) OpenLane(ctx context.Context) (Lane, error) {
	got, err := c.request(ctx, request{Op: opLane})
	if err == nil && got.Lane == nil {
		err = errors.New("the browser's holder knows no lanes")
	}
	if err != nil {
		return Lane{}, err
	}
	return *got.Lane, nil
}

// CloseLane ends a lane and every connection on it. One that is gone is no error.
func (c *Client) CloseLane(ctx context.Context, id string) error {
	_, err := c.request(ctx, request{Op: opCloseLane, Lane: id})
	return err
}

func (c *Client) request(ctx context.Context, req request) (reply, error) {
	answered := make(chan reply, 1)
	c.mu.Lock()
	if c.over != nil {
		c.mu.Unlock()
		return reply{}, c.over
	}
	c.nextRef++
	req.Ref = c.nextRef
	c.waiting[req.Ref] = answered
	c.mu.Unlock()
	payload, err := json.Marshal(req)
	if err == nil {
		err = c.write(frameRequest, payload)
	}
	if err == nil {
		select {
		case got, ok := <-answered:
			return got, c.verdict(got, ok)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	c.mu.Lock()
	delete(c.waiting, req.Ref)
	c.mu.Unlock()
	return reply{}, err
}

// verdict is what an answer says; without one the holder is gone.
func (c *Client) verdict(got reply, answered bool) error {
	if !answered {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.over
	}
	if got.Error != "" {
		return errors.New(got.Error)
	}
	return nil
}

func (c *Client) settle(a reply) {
	c.mu.Lock()
	ch := c.waiting[a.Ref]
	delete(c.waiting, a.Ref)
	c.mu.Unlock()
	if ch != nil {
		ch <- a
	}
}

// fail ends every request that waits.
func (c *Client) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = cause
	}
	for ref, ch := range c.waiting {
		close(ch)
		delete(c.waiting, ref)
	}
}
