// Package holder is the small process under each local browser, and the client
// to it. It owns the browser's pipe, its process tree and its guarded proxy, so
// that pages and their connections outlive the sidecar. It must never act on a
// page by itself, and never let a fenced or foreign client through.
package holder

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"tapin/internal/egress"
)

// Protocol is the version of what is spoken on the socket. It is counted apart
// from the program's: a new sidecar finds holders of the old one.
const Protocol = 1

// maxFrame bounds one frame; a full-page screenshot fits.
const maxFrame = 256 << 20

// The kinds of frame. Upper case goes to the holder, lower case to the client;
// a protocol message goes both ways.
const (
	frameMessage byte = 'M' // one protocol message
	frameHello   byte = 'H' // hello
	frameRequest byte = 'R' // request
	frameWelcome byte = 'w' // welcome
	frameRefused byte = 'x' // refused
	frameAnswer  byte = 'a' // answer to a request
	frameGap     byte = 'g' // browser.Gap: the end of the replay
	frameBlocked byte = 'b' // egress.Block
	frameFailed  byte = 'f' // egress.Failure
	frameLost    byte = 'l' // lost: the browser is gone
)

// Config is what a holder is started with, on its standard input: nothing of it
// may be seen in a process list.
type Config struct {
	Protocol  int           `json:"protocol"`
	Mark      string        `json:"mark"` // who it belongs to
	Dir       string        `json:"dir"`  // its own folder: profile, socket, lock
	Chromium  string        `json:"chromium"`
	Args      []string      `json:"args"`
	Env       []string      `json:"env"`
	Policy    egress.Policy `json:"policy"`
	Upstream  string        `json:"upstream,omitempty"` // revealed: this travels on a pipe between two processes of ours
	KeepUntil time.Time     `json:"keep_until"`
}

// ready is the holder's one line on standard output.
type ready struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

type hello struct {
	Protocol int    `json:"protocol"`
	Mark     string `json:"mark"`
	Epoch    uint64 `json:"epoch"`
}

type welcome struct {
	Protocol int   `json:"protocol"`
	NextID   int64 `json:"next_id"` // protocol ids from here on are free
	PID      int   `json:"pid"`
	Browser  int   `json:"browser_pid"`
}

type refused struct {
	Reason    string `json:"reason"`
	TakenOver bool   `json:"taken_over,omitempty"` // a later epoch was here
}

// The operations a client may request.
const (
	opPolicy    = "policy"
	opKeepUntil = "keep_until"
	opEnd       = "end"
	opLane      = "lane"
	opCloseLane = "close_lane"
)

type request struct {
	Ref       int64          `json:"ref"`
	Op        string         `json:"op"`
	Policy    *egress.Policy `json:"policy,omitempty"`
	KeepUntil time.Time      `json:"keep_until,omitzero"`
	Lane      string         `json:"lane,omitempty"`
}

type reply struct {
	Ref   int64  `json:"ref"`
	Error string `json:"error,omitempty"`
	Lane  *Lane  `json:"lane,omitempty"`
}

// Lane is a guarded way to the network of its own, for one of several contexts
// of a browser. What the guard refuses on it carries its ID.
type Lane struct {
	ID    string `json:"id"`
	Proxy string `json:"proxy"` // the address that the browser is told
}

type lost struct {
	Cause string `json:"cause"`
}

// writeFrames writes heads and payloads in one system call, without copying the payloads.
func writeFrames(w net.Conn, kind byte, payloads ...[]byte) error {
	buffers := make(net.Buffers, 0, 2*len(payloads))
	for _, payload := range payloads {
		head := headOf(kind, payload)
		buffers = append(buffers, head[:], payload)
	}
	_, err := buffers.WriteTo(w)
	return err
}

// headOf is what stands in front of a payload: its kind, and how long it is.
func headOf(kind byte, payload []byte) [5]byte {
	head := [5]byte{kind}
	binary.BigEndian.PutUint32(head[1:], uint32(len(payload))) //nolint:gosec // bounded by maxFrame when read, and by memory here
	return head
}

func writeJSONFrame(w net.Conn, kind byte, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFrames(w, kind, payload)
}

// readFrame reads into the buffer if what comes fits, and into a new one if not.
func readFrame(r *bufio.Reader, into []byte) (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is over the limit", size)
	}
	payload = into[:0]
	if int(size) > cap(into) {
		payload = make([]byte, size)
	}
	payload = payload[:size]
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, err
	}
	return head[0], payload, nil
}

// messages reads what the browser says, one message after the other.
type messages struct {
	r    *bufio.Reader
	long []byte // the last one that was longer than the reader's buffer
}

// next is valid until the one after it.
func (m *messages) next() ([]byte, error) {
	raw, err := m.r.ReadSlice(0)
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimSuffix(raw, delimiter[:]), err
	}
	if cap(m.long) > maxKept {
		m.long = nil
	}
	m.long = m.long[:0]
	for ; errors.Is(err, bufio.ErrBufferFull); raw, err = m.r.ReadSlice(0) {
		m.long = append(m.long, raw...)
	}
	m.long = append(m.long, raw...)
	return bytes.TrimSuffix(m.long, delimiter[:]), err
}

// maxKept is the longest buffer that is kept for the next message.
const maxKept = 1 << 20
