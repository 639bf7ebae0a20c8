package liveview

import (
	"time"

	"tapin/internal/page"
)

// pace is what a viewer's acknowledgements tell of the way to it. It is not
// safe for concurrent use.
type pace struct {
	flights []flight      // sent and not acknowledged, oldest first
	least   time.Duration // the shortest way there and back so far; 0 means not known
	bytesPS float64       // how much goes through in a second; 0 means not known
	mean    float64       // of the sizes of pictures
}

type flight struct {
	number uint32
	bytes  int
	at     time.Time
}

const (
	// smoothly is the weight of a new measurement.
	smoothly = 0.3
	// judged is the size from which a picture tells something of the way's width.
	judged = 4 << 10
)

func (p *pace) sent(number uint32, bytes int, now time.Time) {
	p.flights = append(p.flights, flight{number, bytes, now})
	if p.mean == 0 {
		p.mean = float64(bytes)
	}
	p.mean += smoothly * (float64(bytes) - p.mean)
}

// acked takes a picture, and all before it, as drawn.
func (p *pace) acked(number uint32, now time.Time) {
	bytes, last := 0, flight{}
	n := 0
	for ; n < len(p.flights) && int32(number-p.flights[n].number) >= 0; n++ { //nolint:gosec // numbers may wrap
		last = p.flights[n]
		bytes += last.bytes
	}
	if n == 0 {
		return
	}
	took := max(now.Sub(last.at), time.Millisecond/10)
	p.flights = p.flights[n:]
	if took < p.least {
		p.least = took
	}
	if bytes < judged {
		return
	}
	through := float64(last.bytes) / max(took-p.least, time.Millisecond).Seconds()
	if p.bytesPS == 0 {
		p.bytesPS = through
	}
	p.bytesPS += smoothly * (through - p.bytesPS)
}

// pinged takes in how long the way there and back is for something that has no
// size. Without it a long way could not be told from a narrow one.
func (p *pace) pinged(took time.Duration) {
	if p.least == 0 || took < p.least {
		p.least = took
	}
}

// transfer is how long a usual picture takes on the wire alone.
func (p *pace) transfer() time.Duration {
	if p.bytesPS == 0 {
		return 0
	}
	return time.Duration(p.mean / p.bytesPS * float64(time.Second))
}

// frameTime is what a picture takes at least, however wide the way is: a screen
// shows sixty a second.
const frameTime = time.Second / 60

// window is how many pictures may be on their way at once: enough to fill a
// long way, never so many that old ones queue before a narrow place.
func (p *pace) window() int {
	switch took := p.transfer(); {
	case took == 0: // nothing is known yet
		return min(2+int(p.least/(2*frameTime)), 8)
	case took > 150*time.Millisecond:
		return 1
	default:
		took = max(took, frameTime)
		return min(max(2, 1+int((p.least+took-1)/took)), 8)
	}
}

// room is how many more may set off.
func (p *pace) room() int { return p.window() - len(p.flights) }

// outlasts reports whether the way takes more pictures than the browser sends
// without having been told that one was drawn; one more may wait to be sent. What is
// painted beyond that is replaced by something newer before anybody sees it.
func (p *pace) outlasts() bool { return len(p.flights)+page.FramesInFlight <= p.window()+1 }

// grade is how good the moving picture is.
type grade struct {
	quality int
	scale   float64 // of the size it is drawn at
}

// grades are from the best to what goes through anything. A better one is taken of
// what rests, see still: while something moves it is not seen, and comes later.
var grades = []grade{{65, 1}, {50, 1}, {40, 0.75}, {30, 0.6}, {22, 0.45}}

// Steps in quality: down as soon as pictures take long, up only when the way has
// been wide for a while, as each step costs a picture.
const (
	tooLong   = 70 * time.Millisecond // fourteen pictures a second
	shortOnly = 25 * time.Millisecond
	downAfter = 700 * time.Millisecond
	upAfter   = 4 * time.Second
)

// regrade is the grade for what was measured, since the last change.
func (p *pace) regrade(now int, since time.Duration) int {
	switch took := p.transfer(); {
	case took > tooLong && since >= downAfter && now < len(grades)-1:
		return now + 1
	case took > 0 && took < shortOnly && since >= upAfter && now > 0:
		return now - 1
	}
	return now
}

// forget drops what was measured about sizes, because they are others now.
func (p *pace) forget() { p.mean = 0 }

// options are what the cast is asked for: never more than is drawn, and in
// steps, so that a turned phone or a zoom does not begin it anew all the time.
func options(look page.Look, drawn float64, g int) page.CastOptions {
	width, height := float64(look.Width), float64(look.Height)
	if width <= 0 || height <= 0 {
		width, height = 1280, 720
	}
	most := width * min(max(look.Scale, 1), 1.5)
	if drawn > 0 {
		most = min(most, drawn)
	}
	const step = 64
	most = max(step*3, float64(int(most*grades[g].scale+step-1)/step*step))
	return page.CastOptions{MaxWidth: int(most), MaxHeight: int(most * height / width), Quality: grades[g].quality}
}
