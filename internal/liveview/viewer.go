package liveview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/link"
	"tapin/internal/origin"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// How a socket ends, where the page should know why.
const (
	closedUnclaimed websocket.StatusCode = 4401 // no credential, or a wrong one
	closedWaiting   websocket.StatusCode = 4409 // the owner has not moved the link here
	closedOver      websocket.StatusCode = 4410 // the link or its session is over
	closedCrowded   websocket.StatusCode = 4429 // too many viewers, or too many mistakes
)

const (
	// writeWithin is what the slowest way may need for one message.
	writeWithin = 30 * time.Second
	// pingEvery finds out who is gone without a word, and keeps tunnels open.
	pingEvery = 20 * time.Second
	// authWithin is how long a socket may be open without a credential.
	authWithin = 5 * time.Second
	maxQueued  = 256 // messages that wait to be sent; whoever is behind further is gone
	maxInput   = 512 // things a person did that wait to be done
	perSecond  = 500 // messages of one page
)

// viewer is one page that shows the session.
type viewer struct {
	hub    *hub
	id     string
	link   link.Link
	device secret.Text
	mode   link.Mode
	conn   *websocket.Conn
	awake  chan struct{} // there may be something to send
	input  chan message
	cancel context.CancelCauseFunc
	rate   *origin.Limit

	// Under the hub's lock.
	hidden  bool
	pace    pace
	drawn   float64
	wish    *wish       // the layout that it would have; nil is not known
	came    int         // in the order of the viewers
	painted time.Time   // when the last picture was sent
	late    *time.Timer // wakes who left out a picture that no other followed

	mu     sync.Mutex
	queue  [][]byte // to be sent, in order
	state  []byte   // the latest, if it has not been sent
	known  []byte   // what the page knows of the state, without its number
	states uint64
	fields []byte
	shown  uint32 // the last picture that was sent
}

// Why a socket ends.
type leave struct {
	code   websocket.StatusCode
	reason string // of the last message
}

func (l leave) Error() string { return "the viewer leaves: " + l.reason }

// socket lets a device in that has claimed the link.
func (d *Door) socket(w http.ResponseWriter, r *http.Request) {
	at, id := visitOf(r), r.PathValue("link")
	conn, err := websocket.Accept(roomy{w}, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it has been answered
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxText + 1)
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.sockets.Add(1)
	d.mu.Unlock()
	defer d.sockets.Done()

	l, device, err := d.identify(r, conn, id)
	if err != nil {
		f := fault.Of(err)
		code, reason := closedOver, string(f.Code)
		switch f.Code {
		case fault.Unauthorized:
			code = closedUnclaimed
		case fault.LinkClaimed:
			// A page that was loaded again has no other way to know its number.
			code, reason = closedWaiting, fmt.Sprint(f.Data["number"])
		}
		_ = conn.Close(code, reason)
		return
	}
	v := &viewer{
		id: store.NewID("vwr"), link: l, device: device, mode: at.mode(l), conn: conn,
		awake: make(chan struct{}, 1), input: make(chan message, maxInput), rate: origin.NewLimit(perSecond, time.Second),
	}
	ctx, cancel := context.WithCancelCause(d.ctx)
	defer cancel(nil)
	v.cancel = cancel
	v.late = time.AfterFunc(onlookEvery, func() {
		defer guard.Catch("live view")
		v.rouse()
	})
	defer v.late.Stop()
	switch err := d.join(v); {
	case errors.Is(err, fault.Busy):
		_ = conn.Close(closedCrowded, "BUSY")
		return
	case err != nil:
		_ = v.write(ctx, encode(end{"end", "stopped"}))
		_ = conn.Close(closedOver, "NO_SESSION")
		return
	}
	defer d.part(v)
	v.run(ctx)
}

// identify finds out whose socket it is: by its cookie, or by what it says first.
func (d *Door) identify(r *http.Request, conn *websocket.Conn, id string) (link.Link, secret.Text, error) {
	device, err := deviceOf(r, id)
	if err == nil {
		l, err := d.deps.Links.Enter(r.Context(), id, device)
		return l, device, err
	}
	if d.opts.MiniApp == nil {
		return link.Link{}, secret.Text{}, err
	}
	said, ok := hearAuth(r.Context(), conn)
	if !ok || said.Bearer.IsEmpty() {
		return link.Link{}, secret.Text{}, err
	}
	l, err := d.enterBy(r.Context(), id, said.Bearer)
	return l, said.Bearer, err
}

// hearAuth waits for the first message of a page without a cookie. A page that
// says nothing in time is told so like any other: a read that is cut off would
// end the socket without a word, and the page would only try again.
func hearAuth(ctx context.Context, conn *websocket.Conn) (*auth, bool) {
	late := time.AfterFunc(authWithin, func() {
		defer guard.Catch("live view")
		_ = conn.Close(closedUnclaimed, string(fault.Unauthorized))
	})
	defer late.Stop()
	_, raw, err := conn.Read(context.WithoutCancel(ctx))
	if err != nil {
		return nil, false
	}
	m, err := parse(raw)
	said, ok := m.part.(*auth)
	return said, ok && err == nil
}

// join brings a viewer to the hub of its session.
func (d *Door) join(v *viewer) error {
	screen, err := d.deps.Screens.Screen(v.link.SessionID)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.hubs[v.link.SessionID]
	if h == nil || h.ctx.Err() != nil {
		h = newHub(d, v.link.SessionID, screen)
		d.hubs[v.link.SessionID] = h
		d.sockets.Go(func() {
			defer guard.Catch("live view")
			h.run()
		})
	}
	v.hub = h
	return h.admit(v)
}

// part takes a viewer from its hub, and ends one that nobody is at.
func (d *Door) part(v *viewer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.hub.dismiss(v) {
		v.hub.stop()
		if d.hubs[v.hub.session] == v.hub {
			delete(d.hubs, v.hub.session)
		}
	}
}

// admit greets a viewer with all there is to know at once.
func (h *hub) admit(v *viewer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.viewers) >= maxViewers {
		return fault.New(fault.Busy, "", "too many people look at this browser")
	}
	look := h.status.Look
	v.say(encode(hello{
		T: "hello", V: 1, You: you{v.id, string(v.mode)}, Touch: look.Mobile,
		Look: helloLook{look.Width, look.Height, look.Scale, look.Mobile},
	}))
	h.outdate()
	h.arrivals++
	v.came = h.arrivals
	h.viewers[v] = struct{}{}
	v.tell(h.stateFor(v))
	if h.fields != nil && h.canDrive(v) {
		v.place(h.fields)
	}
	v.rouse()
	h.cover()
	h.ack(h.count) // the cast may have stood still while nobody looked
	h.changed()
	return nil
}

// dismiss reports whether that was the last viewer.
func (h *hub) dismiss(v *viewer) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.viewers, v)
	if h.driver == v {
		h.driver = nil
	}
	h.changed()
	return len(h.viewers) == 0
}

// finish ends the socket of every viewer, because the session is over.
func (h *hub) finish(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.viewers {
		v.cancel(leave{closedOver, reason})
	}
}

// run serves the socket until one of its sides ends.
func (v *viewer) run(ctx context.Context) {
	var tasks sync.WaitGroup
	tasks.Go(func() {
		defer guard.Catch("live view", v.fell)
		v.cancel(v.writeAll(ctx))
	})
	tasks.Go(func() {
		defer guard.Catch("live view", v.fell)
		v.cancel(v.watchLink(ctx))
	})
	tasks.Go(func() {
		defer guard.Catch("live view", v.fell)
		v.cancel(v.stayAlive(ctx))
	})
	tasks.Go(func() {
		defer guard.Catch("live view", v.fell)
		v.act(ctx)
	})
	reading, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	tasks.Go(func() {
		defer guard.Catch("live view", v.fell)
		v.cancel(v.read(reading))
	})
	<-ctx.Done()
	// A phone that sleeps does not answer a goodbye. A read that is cut off closes
	// the socket, which CloseNow does not once a goodbye was said.
	defer time.AfterFunc(goodbyeWithin, cut).Stop()
	v.bid(context.Cause(ctx))
	tasks.Wait()
}

// goodbyeWithin is how long the other side has for a goodbye.
const goodbyeWithin = time.Second

// bid says goodbye, where there is something to say.
func (v *viewer) bid(cause error) {
	if why, ok := errors.AsType[leave](cause); ok {
		ctx, cancel := context.WithTimeout(context.Background(), goodbyeWithin)
		defer cancel()
		for _, raw := range v.words() {
			_ = v.write(ctx, raw)
		}
		if why.reason != "" {
			_ = v.write(ctx, encode(end{"end", why.reason}))
		}
		_ = v.conn.Close(why.code, why.reason)
	}
	_ = v.conn.CloseNow()
}

// read takes messages until the socket ends. What sets the pace is dealt with at
// once; what a person did waits its turn.
func (v *viewer) read(reading context.Context) error {
	mistakes := 0
	for {
		// Not under ctx: a read that is cut off closes the socket, and there may be
		// a goodbye to say.
		kind, raw, err := v.conn.Read(reading)
		if err != nil {
			return err
		}
		var m message
		if !v.rate.Allow("", time.Now()) {
			err = fault.New(fault.RateLimited, "", "that is too much at once")
		} else if kind != websocket.MessageText {
			err = fault.New(fault.InvalidRequest, "", "that is no message")
		} else {
			m, err = parse(raw)
		}
		if err != nil {
			if mistakes++; mistakes > maxMistakes {
				return leave{closedCrowded, ""}
			}
			v.say(encode(noteOf(err)))
			continue
		}
		v.hear(m)
	}
}

func (v *viewer) hear(m message) {
	switch part := m.part.(type) {
	case *ack:
		v.hub.drew(v, *part)
	case *view:
		v.hub.looks(v, *part)
	case *ping:
		v.say(encode(pong{"pong", part.N, time.Now().UnixMilli()}))
	case *auth: // it is in already
	default:
		select {
		case v.input <- m:
		default:
			v.say(encode(noteOf(fault.New(fault.Busy, "", "the browser cannot keep up"))))
		}
	}
}

// looks takes note of how a page shows the picture.
func (h *hub) looks(v *viewer, w view) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := v.hidden
	h.outdate()
	v.hidden = w.Hidden
	if w.W > 0 && w.W < 1<<15 && w.DPR > 0 && w.DPR <= 8 && w.Zoom >= 0 && w.Zoom <= 20 {
		v.drawn = w.W * w.DPR * max(w.Zoom, 1)
	}
	if o, ok := wishOf(w); ok && (v.wish == nil || *v.wish != o) {
		v.wish = &o
		h.refit()
	}
	if was != v.hidden {
		h.cover()
		h.ack(h.count)
		v.rouse()
		h.changed()
	}
}

// watchLink ends the socket when the link is no longer this device's.
func (v *viewer) watchLink(ctx context.Context) error {
	links := v.hub.door.deps.Links
	expires := time.NewTimer(time.Until(v.link.ExpiresAt))
	defer expires.Stop()
	for {
		changed := links.Changed(v.link.ID)
		// Asked after the channel: what came before it is seen here.
		if err := v.stillIn(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		select {
		case <-changed:
		case <-expires.C:
			return leave{closedOver, "expired"}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (v *viewer) stillIn(ctx context.Context) error {
	links := v.hub.door.deps.Links
	if _, err := links.Enter(ctx, v.link.ID, v.device); err == nil {
		return nil
	}
	if _, err := links.Get(ctx, v.link.ID); err == nil {
		return leave{closedOver, "moved"}
	}
	return v.lost()
}

// lost is why a link is no more.
func (v *viewer) lost() error {
	_, err := v.hub.door.deps.Screens.Screen(v.link.SessionID)
	switch {
	case err != nil:
		return leave{closedOver, "stopped"} // it ended with its session
	case time.Now().Before(v.link.ExpiresAt):
		return leave{closedOver, "revoked"}
	}
	return leave{closedOver, "expired"}
}

func (v *viewer) stayAlive(ctx context.Context) error {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		began := time.Now()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin) // as in writeAll
		err := v.conn.Ping(limited)
		cancel()
		if err != nil {
			return err
		}
		v.hub.mu.Lock()
		v.pace.pinged(time.Since(began))
		v.hub.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fell ends a viewer that one of its goroutines cannot go on with: the phone
// connects again.
func (v *viewer) fell() { v.cancel(errFell) }

var errFell = errors.New("a part of it panicked")
