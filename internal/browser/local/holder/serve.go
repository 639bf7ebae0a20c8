package holder

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"tapin/internal/browser"
	"tapin/internal/egress"
	"tapin/internal/guard"
)

func (h *holder) accept() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.clients.Go(func() {
			defer guard.Catch("holder")
			h.serve(conn)
		})
	}
}

// serve is the life of one client's connection.
func (h *holder) serve(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 64<<10)
	_ = conn.SetDeadline(time.Now().Add(helloWithin))
	kind, payload, err := readFrame(r, nil)
	var greeting hello
	if err != nil || kind != frameHello || json.Unmarshal(payload, &greeting) != nil {
		_ = conn.Close()
		return
	}
	c, no := h.admit(conn, greeting)
	if c == nil {
		_ = writeJSONFrame(conn, frameRefused, no)
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	go func() {
		defer guard.Catch("holder")
		c.out.run()
	}()
	for {
		kind, payload, err := readFrame(r, nil)
		if err != nil {
			break
		}
		if !h.fromClient(c, kind, payload) {
			break
		}
	}
	h.mu.Lock()
	h.drop(c)
	h.mu.Unlock()
}

// admit makes the connection the one client, if it may be: the mark says whose
// browser this is, and a lower epoch is a sidecar that another one has followed.
// Welcome and replay are queued before anything new can be.
func (h *holder) admit(conn net.Conn, g hello) (*client, refused) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case g.Protocol < 1:
		return nil, refused{Reason: "the protocol is not spoken here"}
	case g.Mark != h.cfg.Mark:
		return nil, refused{Reason: "this browser belongs to another"}
	case h.over:
		return nil, refused{Reason: "the browser has ended"}
	case g.Epoch < h.epoch:
		return nil, refused{Reason: browser.ErrTakenOver.Error(), TakenOver: true}
	}
	if h.client != nil {
		h.drop(h.client)
	}
	c := &client{conn: conn, out: newOutbox(conn), done: make(chan struct{})}
	first := h.epoch == 0
	h.epoch, h.client = g.Epoch, c

	hi, _ := json.Marshal(welcome{Protocol: min(g.Protocol, Protocol), NextID: h.table.maxID + 1, PID: os.Getpid(), Browser: h.browser.pid()})
	c.out.push(frameWelcome, hi)
	if !first {
		for _, raw := range h.table.replay() {
			c.out.push(frameMessage, raw)
		}
		h.table.replayed()
	}
	gap := browser.Gap{Missed: h.missed, Blocks: h.blocks}
	if !first {
		gap.AwayMS = time.Since(h.leftAt).Milliseconds()
	}
	end, _ := json.Marshal(gap)
	c.out.push(frameGap, end)
	return c, refused{}
}

// fromClient carries out what a client sent; false ends the connection. Only
// the current client is heard: a fenced one may still have bytes in the socket.
func (h *holder) fromClient(c *client, kind byte, payload []byte) bool {
	switch kind {
	case frameMessage:
		if !h.note(c, payload) {
			return false
		}
		return h.browser.write(payload, c.done, c.fenced) == nil
	case frameRequest:
		var req request
		if json.Unmarshal(payload, &req) != nil {
			return false
		}
		return h.request(c, req)
	}
	return false
}

// note updates the table by a command; false means that the client was fenced.
func (h *holder) note(c *client, raw []byte) bool {
	id, method := look(raw)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.client != c {
		return false
	}
	h.table.maxID = max(h.table.maxID, id)
	if watched[method] {
		var e envelope
		if json.Unmarshal(raw, &e) == nil {
			h.table.fromClient(&e)
		}
	}
	return true
}

func (h *holder) request(c *client, req request) bool {
	send := func(a reply, err error) {
		a.Ref = req.Ref
		if err != nil {
			a.Error = err.Error()
		}
		payload, _ := json.Marshal(a)
		c.out.push(frameAnswer, payload)
	}
	answer := func(err error) { send(reply{}, err) }
	h.mu.Lock()
	if h.client != c {
		h.mu.Unlock()
		return false
	}
	var set *egress.Policy
	switch req.Op {
	case opPolicy:
		set = req.Policy
	case opKeepUntil:
		if !req.KeepUntil.IsZero() {
			h.keepUntil = req.KeepUntil
		}
	case opEnd:
		h.enders = append(h.enders, func() { answer(nil) })
	}
	h.mu.Unlock()

	switch {
	case set != nil:
		answer(h.setPolicy(c, *set))
	case req.Op == opKeepUntil && req.KeepUntil.IsZero():
		answer(errors.New("a time is missing")) // for ever is not offered
	case req.Op == opKeepUntil:
		answer(nil)
	case req.Op == opEnd:
		// Answered when nothing is left, not when it begins.
		h.endOnce.Do(func() { close(h.ended) })
	case req.Op == opLane:
		made, err := h.lanes.another()
		send(reply{Lane: made}, err)
	case req.Op == opCloseLane:
		// Its connections take a moment to end; other requests do not wait.
		h.clients.Go(func() {
			defer guard.Catch("holder")
			h.lanes.shut(req.Lane)
			answer(nil)
		})
	default:
		answer(fmt.Errorf("the request %q cannot be understood", req.Op))
	}
	return true
}

// setPolicy puts a policy into force, unless its sender was fenced meanwhile.
// The guard may report a block while it does, so the holder's lock is not held.
func (h *holder) setPolicy(c *client, p egress.Policy) error {
	h.policyMu.Lock()
	defer h.policyMu.Unlock()
	if c.fenced() {
		return errors.New("another sidecar has taken over")
	}
	return h.lanes.setPolicy(p)
}

// fenced reports whether the client's time is over.
func (c *client) fenced() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
