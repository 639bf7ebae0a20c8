package liveview

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"tapin/internal/link"
)

// rouse has the writer look for something to send.
func (v *viewer) rouse() {
	select {
	case v.awake <- struct{}{}:
	default: // it is awake
	}
}

// say sends a message after those before it. A page that does not take them is
// given up.
func (v *viewer) say(raw []byte) {
	v.mu.Lock()
	v.queue = append(v.queue, raw)
	over := len(v.queue) > maxQueued
	v.mu.Unlock()
	if over {
		v.cancel(errors.New("the page does not take its messages"))
		return
	}
	v.rouse()
}

// tell sends the state, if the page does not know it yet. One that was not sent
// gives way to the newer.
func (v *viewer) tell(s state) {
	v.mu.Lock()
	defer v.mu.Unlock()
	plain := encode(s)
	if bytes.Equal(plain, v.known) {
		return
	}
	v.known = plain
	v.states++
	s.N, s.Now = v.states, time.Now().UnixMilli()
	v.state = encode(s)
	v.rouse()
}

// place sends where the fields lie; an older report gives way.
func (v *viewer) place(raw []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fields = raw
	v.rouse()
}

// writeAll sends what there is: words first, then the latest picture, if the
// page has drawn enough of those before.
func (v *viewer) writeAll(ctx context.Context) error {
	// What is begun is not cut off by the end: that would close the socket, and
	// there may be a goodbye to say.
	whole := context.WithoutCancel(ctx)
	for {
		for _, raw := range v.words() {
			if err := v.write(whole, raw); err != nil {
				return err
			}
		}
		if p := v.nextPicture(); p != nil {
			if err := v.paint(whole, p); err != nil {
				return err
			}
			v.hub.sent(v)
			continue
		}
		select {
		case <-v.awake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (v *viewer) words() [][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := v.queue
	v.queue = nil
	for _, latest := range []*[]byte{&v.state, &v.fields} {
		if *latest != nil {
			out = append(out, *latest)
			*latest = nil
		}
	}
	return out
}

// Among several who look, those who do not drive get at most 33 pictures a second: of
// a page that moves all the time, every second one. The slack is what the next has to come.
const (
	onlookEvery = 30 * time.Millisecond
	onlookSlack = 12 * time.Millisecond
)

// onlooks reports whether a viewer is one of several, and not the one who drives.
// Called with the lock held.
func (h *hub) onlooks(v *viewer) bool { return len(h.viewers) > 1 && h.driver != v }

// nextPicture is the one that is to be sent now, if there is one: the latest, unless
// the way takes those before it too. They come in twos where the machine is busy.
func (v *viewer) nextPicture() *picture {
	h := v.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	p, now, room := h.last, time.Now(), v.pace.room()
	if v.mode == link.Watch {
		p = h.covered
	}
	if p == nil || p.number == v.shown || v.hidden || room <= 0 {
		return nil
	}
	if wait := onlookEvery - now.Sub(v.painted); wait > 0 && h.onlooks(v) {
		// The next one is usually there before that.
		v.late.Reset(wait + onlookSlack)
		return nil
	}
	v.late.Stop()
	if behind := int(p.number - v.shown); v.shown != 0 && v.mode != link.Watch && !h.onlooks(v) {
		p = h.recent[max(0, len(h.recent)-min(behind, room))]
	}
	v.shown, v.painted = p.number, now
	v.pace.sent(p.number, len(p.JPEG), now)
	return p
}

func (v *viewer) write(ctx context.Context, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return v.conn.Write(ctx, websocket.MessageText, raw)
}

// roomy gives a socket room for a usual picture: what does not fit goes out in two
// parts, each with the whole way through the system for itself, for every viewer.
type roomy struct{ http.ResponseWriter }

const room = 32 << 10

func (w roomy) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, streams, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		keepShort(conn)
		streams.Writer = bufio.NewWriterSize(conn, room)
	}
	return conn, streams, err
}

// messages are where pictures are put behind their headers. To copy one costs
// less than what a socket makes of two parts: a frame for each, and one more for
// the end, which is a packet of its own.
var messages = sync.Pool{New: func() any { return new([]byte) }}

// A picture that takes a narrow way long goes in parts, so that words can go in
// between: an answer to what a person types, and that somebody is there.
const (
	partBytes = 16 << 10
	// longWay is from when on a picture is one that takes long.
	longWay = 250 * time.Millisecond
	// unmeasured is how large a picture may be before anything is known of the way.
	unmeasured = 3 * partBytes
)

// paint sends a picture in the bytes that the browser made.
func (v *viewer) paint(ctx context.Context, p *picture) error {
	head := p.header(time.Now())
	rest := p.JPEG
	if v.isLong(len(rest)) {
		head[1] |= flagMore
		rest = rest[:partBytes]
	}
	if err := v.send(ctx, head[:], rest); err != nil || head[1]&flagMore == 0 {
		return err
	}
	for at := partBytes; at < len(p.JPEG); at += partBytes {
		for _, raw := range v.words() {
			if err := v.write(ctx, raw); err != nil {
				return err
			}
		}
		end := min(at+partBytes, len(p.JPEG))
		last := byte(0)
		if end == len(p.JPEG) {
			last = 1
		}
		if err := v.send(ctx, []byte{2, last}, p.JPEG[at:end]); err != nil {
			return err
		}
	}
	return nil
}

// isLong reports whether a picture of that size would keep the way busy for long.
func (v *viewer) isLong(bytes int) bool {
	v.hub.mu.Lock()
	defer v.hub.mu.Unlock()
	if v.pace.bytesPS == 0 {
		return bytes > unmeasured
	}
	return bytes > partBytes && float64(bytes)/v.pace.bytesPS > longWay.Seconds()
}

func (v *viewer) send(ctx context.Context, head, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	message := messages.Get().(*[]byte)
	defer messages.Put(message)
	*message = append(append((*message)[:0], head...), body...)
	return v.conn.Write(ctx, websocket.MessageBinary, *message)
}
