package console

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/origin"
)

// How a socket ends, where the page should know why.
const (
	closedUnclaimed websocket.StatusCode = 4401 // not signed in, or no longer
	closedCrowded   websocket.StatusCode = 4429 // too many sockets, or too many mistakes
)

const (
	writeWithin = 30 * time.Second
	// aliveEvery finds out who is gone without a word, and who is no longer in.
	aliveEvery = 25 * time.Second
	maxSockets = 48
	maxQueued  = 64 // messages that wait to be sent; whoever is behind further is gone
	perSecond  = 30 // messages of one page
	maxDeeds   = 8  // things of one page that are being done
)

// socket is one open page.
type socket struct {
	door   *Door
	device string
	conn   *websocket.Conn
	cancel context.CancelCauseFunc
	awake  chan struct{} // there may be something to send
	deeds  chan struct{} // one place for each thing that is being done
	rate   *origin.Limit

	mu     sync.Mutex
	queue  [][]byte // to be sent, in order
	state  []byte   // the latest, if it has not been sent
	known  []byte   // what the page knows of the state, without number and time
	states uint64
}

// leave is why a socket ends.
type leave struct {
	code   websocket.StatusCode // 0 means an ordinary end
	reason string               // of the last message
}

func (l leave) Error() string { return "the page leaves: " + l.reason }

// socket lets a device in that is signed in.
func (d *Door) socket(w http.ResponseWriter, r *http.Request) {
	id, renew, own, refused := d.enter(r)
	if refused == nil && renew {
		http.SetCookie(w, d.deps.Visit(r).cookie(own))
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it has been answered
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxMessage * 2) // a little over is answered in words, not by an end
	if refused != nil {
		// A page cannot read the status of a refused handshake.
		_ = conn.Close(closedUnclaimed, string(fault.Of(refused).Code))
		return
	}
	s := &socket{
		door: d, device: id, conn: conn, awake: make(chan struct{}, 1), deeds: make(chan struct{}, maxDeeds), rate: origin.NewLimit(perSecond, time.Second),
	}
	ctx, cancel := context.WithCancelCause(d.ctx)
	defer cancel(nil)
	s.cancel = cancel
	if err := d.join(s); err != nil {
		_ = conn.Close(closedCrowded, string(fault.Of(err).Code))
		return
	}
	defer d.part(s)
	s.run(ctx)
}

// join adds a socket, and has the looking begin if it is the first.
func (d *Door) join(s *socket) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.sockets) >= maxSockets {
		return fault.New(fault.Busy, "", "too many consoles are open")
	}
	d.tasks.Add(1)
	d.sockets[s] = struct{}{}
	select {
	case d.opened <- struct{}{}:
	default: // it will be looked
	}
	switch {
	case d.off != "":
		s.tell(d.asOff())
	case d.now != nil:
		s.tell(*d.now) // at once; what is newer follows
	}
	d.poke()
	return nil
}

// part takes a socket away, and ends the looking with the last.
func (d *Door) part(s *socket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sockets, s)
	if len(d.sockets) == 0 {
		d.now = nil
		if d.unwatch != nil {
			d.unwatch()
		}
	}
	d.tasks.Done()
}

// run serves the socket until one of its sides ends.
func (s *socket) run(ctx context.Context) {
	var tasks sync.WaitGroup
	tasks.Go(func() {
		defer guard.Catch("console", s.fell)
		s.cancel(s.writeAll(ctx))
	})
	tasks.Go(func() {
		defer guard.Catch("console", s.fell)
		s.cancel(s.stayAlive(ctx))
	})
	reading, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	tasks.Go(func() {
		defer guard.Catch("console", s.fell)
		s.cancel(s.read(ctx, reading, &tasks))
	})
	<-ctx.Done()
	// A phone that sleeps does not answer a goodbye. A read that is cut off closes
	// the socket, which CloseNow does not once a goodbye was said.
	defer time.AfterFunc(goodbyeWithin, cut).Stop()
	s.bid(context.Cause(ctx))
	tasks.Wait()
}

// goodbyeWithin is how long the other side has for a goodbye.
const goodbyeWithin = time.Second

// bid says goodbye, where there is something to say.
func (s *socket) bid(cause error) {
	why, ok := errors.AsType[leave](cause)
	if !ok && s.door.ctx.Err() != nil {
		why, ok = leave{reason: "stopped"}, true
	}
	if ok {
		ctx, cancel := context.WithTimeout(context.Background(), goodbyeWithin)
		defer cancel()
		// A page that hears of the end comes back only if it is told to: when
		// tapin stops it is for the page to try again.
		if why.reason == "signed_out" {
			_ = s.write(ctx, encode(end{"end", why.reason}))
		}
		code := why.code
		if code == 0 {
			code = websocket.StatusGoingAway
		}
		_ = s.conn.Close(code, why.reason)
	}
	_ = s.conn.CloseNow()
}

// read takes messages until the socket ends. What is asked for is done beside
// it: some of it takes as long as a browser needs.
func (s *socket) read(ctx, reading context.Context, tasks *sync.WaitGroup) error {
	mistakes := 0
	for {
		// Not under ctx: a read that is cut off closes the socket, and there may be
		// a goodbye to say.
		kind, raw, err := s.conn.Read(reading)
		if err != nil {
			return err
		}
		var m message
		switch {
		case !s.rate.Allow("", time.Now()):
			err = fault.New(fault.RateLimited, "", "that is too much at once")
		case kind != websocket.MessageText:
			err = fault.New(fault.InvalidRequest, "", "that is no message")
		default:
			m, err = parse(raw)
		}
		if err != nil {
			if mistakes++; mistakes > maxMistakes {
				return leave{code: closedCrowded}
			}
			s.say(encode(noteOf(m.Seq, err)))
			continue
		}
		if m.T == "ping" {
			s.say(encode(pong{"pong", m.N}))
			continue
		}
		select {
		case s.deeds <- struct{}{}:
			tasks.Go(func() {
				defer guard.Catch("console")
				defer func() { <-s.deeds }()
				s.carryOut(ctx, m)
			})
		default:
			s.say(encode(noteOf(m.Seq, fault.New(fault.Busy, "", "too much is under way already"))))
		}
	}
}

// stayAlive finds out whether the page is still there, and still let in.
func (s *socket) stayAlive(ctx context.Context) error {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		if !s.door.book.isIn(s.device) {
			return leave{code: closedUnclaimed, reason: "signed_out"}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		limited, cancel := context.WithTimeout(ctx, writeWithin)
		err := s.conn.Ping(limited)
		cancel()
		if err != nil {
			return err
		}
	}
}

// say sends a message after those before it. A page that does not take them is
// given up.
func (s *socket) say(raw []byte) {
	s.mu.Lock()
	s.queue = append(s.queue, raw)
	over := len(s.queue) > maxQueued
	s.mu.Unlock()
	if over {
		s.cancel(errors.New("the page does not take its messages"))
		return
	}
	s.rouse()
}

// tell sends the state, if the page does not know it yet. One that was not sent
// gives way to the newer.
func (s *socket) tell(now State) {
	m := stateMessage{T: "state", State: now.as(s.device)}
	s.mu.Lock()
	defer s.mu.Unlock()
	plain := encode(m)
	if bytes.Equal(plain, s.known) {
		return
	}
	s.known = plain
	s.states++
	m.N, m.Now = s.states, time.Now().UnixMilli()
	s.state = encode(m)
	s.rouse()
}

func (s *socket) rouse() {
	select {
	case s.awake <- struct{}{}:
	default: // it is awake
	}
}

func (s *socket) writeAll(ctx context.Context) error {
	for {
		for _, raw := range s.words() {
			if err := s.write(ctx, raw); err != nil {
				return err
			}
		}
		select {
		case <-s.awake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// words are what is to be sent now: the state first, so that a page that is told
// of something done sees it too.
func (s *socket) words() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.queue
	if s.state != nil {
		out = append([][]byte{s.state}, out...)
	}
	s.queue, s.state = nil, nil
	return out
}

// write is not cut off when the socket ends: that would close it before the
// goodbye is said.
func (s *socket) write(ctx context.Context, raw []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, raw)
}

// fell ends a socket that one of its goroutines cannot go on with: the page
// connects again.
func (s *socket) fell() { s.cancel(errFell) }

var errFell = errors.New("a part of it panicked")
