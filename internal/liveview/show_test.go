package liveview_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/link"
	"tapin/internal/liveview"
)

func TestAPersonSeesTapsAndSeesTheAnswer(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": painted("red")}, nil)
	h.lend("hof_1")
	p := h.enter(ctx, link.Drive)
	hello := p.word("hello", 0, nil)
	if you, _ := hello["you"].(map[string]any); you["mode"] != "drive" || hello["touch"] != false {
		t.Errorf("the greeting is %v", hello)
	}
	p.shows("r")
	f := p.seen()[0]
	first := f.flags&2 != 0
	if f.width != 1280 || f.height != 720 || f.scale != 1 || f.number == 0 || first != (f.number == 1) { // which may have given way to the next
		f.jpeg = nil
		t.Errorf("the first picture says %+v", f)
	}
	s := p.state("a hand-off to do", func(s map[string]any) bool { return s["can_drive"] == true && s["page"] != nil })
	if o := s["handoff"].(map[string]any); o["id"] != "hof_1" || o["instruction"] != "Log in, please." || s["driver"] != "nobody" {
		t.Errorf("the state is %v", s)
	}
	if at := s["page"].(map[string]any); at["origin"] != h.URL || at["host"] != "127.0.0.1" || at["secure"] != false {
		t.Errorf("the page is %v", at)
	}
	p.tap(ctx, "hof_1", 50, 50)
	p.shows("b")
	p.state("you drive", func(s map[string]any) bool { return s["driver"] == "you" })
	if last, watching := h.door.Presence(session); !watching || time.Since(last) > time.Minute { // short: somebody was there just now
		t.Errorf("present: %v %v", last, watching)
	}
	p.until("a sharp still once the page rests", func() bool { return p.frames[len(p.frames)-1].flags&1 != 0 })
	before := len(p.seen())
	h.eval(ctx, `new Promise(r => setTimeout(r, 1500))`)
	if after := len(p.seen()); after != before {
		t.Errorf("%d pictures of a page at rest", after-before)
	}
	// A newcomer sees at once what is there, also while nothing changes.
	other := h.enter(ctx, link.Drive)
	other.shows("b")
	h.over("FINISHED")
	p.word("end", 0, func(m map[string]any) bool { return m["reason"] == "finished" })
	p.state("the agent drives again", func(s map[string]any) bool { return s["driver"] == "agent" && s["can_drive"] == false })
}

func TestNoTapWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": painted("red")}, nil)
	h.disk = make(chan struct{})
	defer close(h.disk)
	h.lend("hof_1")
	p := h.enter(ctx, link.Drive)
	p.shows("r")
	p.tap(ctx, "hof_1", 50, 50)
	p.shows("b")
}

func TestPicturesComeInOrderAndTheLatestWins(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": animated}, nil)
	p := h.enter(ctx, link.Drive)
	p.until("many pictures", func() bool { return len(p.frames) > 40 })
	last := uint32(0)
	for _, f := range p.seen() {
		if f.number <= last {
			t.Fatalf("%d comes after %d", f.number, last)
		}
		last = f.number
	}
	// Who does not acknowledge gets no more than is on its way.
	quiet := h.enter(ctx, link.Drive)
	quiet.mu.Lock()
	quiet.noAcks = true
	begun := len(quiet.frames)
	quiet.mu.Unlock()
	already := len(p.seen())
	p.until("many more pictures", func() bool { return len(p.frames) > already+40 })
	got := quiet.seen()
	if len(got) > begun+9 {
		t.Errorf("%d pictures came although none was acknowledged", len(got)-begun)
	}
	if len(got) == 0 {
		t.Fatal("the quiet one has seen nothing")
	}
	quiet.send(ctx, map[string]any{"t": "ack", "number": got[len(got)-1].number})
	quiet.until("the next picture", func() bool { return len(quiet.frames) > len(got) })
	if next := quiet.seen()[len(got)]; next.number < got[len(got)-1].number+10 {
		t.Errorf("after %d it is shown %d, and not the latest", got[len(got)-1].number, next.number)
	}
}

// narrow is a way that lets 100 kbit/s through.
type narrow struct{ net.Conn }

func (n narrow) Read(b []byte) (int, error) {
	got, err := n.Conn.Read(b[:min(len(b), 1250)])
	time.Sleep(time.Duration(got) * time.Second / 12_500)
	return got, err
}

// narrowly is a viewer who gets 100 kbit a second.
func (h *house) narrowly(ctx context.Context) *phone {
	h.t.Helper()
	l, token := h.mint(link.Drive)
	_, _, cookie := h.claim(ctx, l.ID, token)
	dialer := &net.Dialer{}
	return h.phone(ctx, l.ID, cookie, &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		return narrow{conn}, nil
	}}})
}

func TestASlowViewerSlowsNobodyDown(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": animated}, nil)
	p := h.enter(ctx, link.Drive)
	slow := h.narrowly(ctx)
	slow.until("the slow one sees something", func() bool { return len(slow.frames) > 0 })
	// Counted against each other and not by the clock: what the machine does
	// besides slows both alike.
	fast, behind := len(p.seen()), len(slow.seen())
	p.until("pictures", func() bool { return len(p.frames) >= fast+120 })
	if n := len(slow.seen()) - behind; n > 100 {
		t.Errorf("the slow one was sent %d pictures while the other got 120: they wait for each other", n)
	}
}

func TestTwentyViewersSeeTheSame(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": painted("red")}, nil)
	h.lend("hof_1")
	all := []*phone{h.enter(ctx, link.Drive)}
	for range 19 {
		all = append(all, h.enter(ctx, link.Drive))
	}
	all[0].state("twenty are there", func(s map[string]any) bool { return s["viewers"] == float64(20) })
	all[0].tap(ctx, "hof_1", 50, 50)
	var looks sync.WaitGroup
	for _, p := range all {
		looks.Go(func() { p.shows("b") })
	}
	looks.Wait()
	all[3].state("one drives, the others see that", func(s map[string]any) bool { return s["driver"] == "other" })
	for _, p := range all {
		if n := len(p.seen()); n > 12 {
			t.Errorf("%d pictures of a page that changed once", n)
		}
	}
}

func TestTheViewGoesOnOverANewConnection(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": painted("red")}, nil)
	h.lend("hof_1")
	p := h.enter(ctx, link.Drive)
	p.shows("r")
	tabs, _ := h.Tabs()
	h.swap(nil) // the line is lost
	tabs.Close()
	if err := h.inst.Release(); err != nil {
		t.Fatal(err)
	}
	p.state("no page for now", func(s map[string]any) bool { return s["page"] == nil })
	from := p.heard()
	p.tap(ctx, "hof_1", 50, 50)
	p.word("note", from, func(m map[string]any) bool { return m["code"] == "HANDOFF_NOT_RUNNING" })
	inst, err := h.provider.Reconnect(ctx, h.inst.Ref())
	if err != nil {
		t.Fatal(err)
	}
	h.inst = inst
	h.openTabs(ctx, inst)
	p.state("the page is back", func(s map[string]any) bool { return s["page"] != nil })
	p.tap(ctx, "hof_1", 50, 50)
	p.shows("b")
}

func TestTheStateTellsWhatAPersonMustKnow(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": `<!doctype html><title>first</title>`, "/two": `<!doctype html><title>second</title>`}, nil)
	p := h.enter(ctx, link.Drive)
	p.state("the agent drives", func(s map[string]any) bool { return s["driver"] == "agent" && s["handoff"] == nil })
	p.send(ctx, map[string]any{"t": "do", "a": "takeover"})
	p.state("mine now", func(s map[string]any) bool {
		o, _ := s["handoff"].(map[string]any)
		return o["id"] == "hof_mine" && s["can_drive"] == true
	})
	do := func(a string, more map[string]any) {
		m := map[string]any{"t": "do", "h": "hof_mine", "a": a}
		for k, v := range more {
			m[k] = v
		}
		p.send(ctx, m)
	}
	page := func(s map[string]any) map[string]any { at, _ := s["page"].(map[string]any); return at }
	h.eval(ctx, `void setTimeout(() => { prompt('who?', 'you'); document.title = prompt('who?', 'you') })`)
	asked := func(s map[string]any) map[string]any { d, _ := s["dialog"].(map[string]any); return d }
	first := asked(p.state("a dialog", func(s map[string]any) bool {
		return asked(s)["message"] == "who?" && asked(s)["default"] == "you" && asked(s)["kind"] == "prompt"
	}))["id"]
	do("dialog", map[string]any{"id": first, "accept": false})
	// The next one says the same, and is another: an answer to the first is none to it.
	second := asked(p.state("the same again", func(s map[string]any) bool { return asked(s) != nil && asked(s)["id"] != first }))["id"]
	do("dialog", map[string]any{"id": first, "accept": true, "text": "not me"})
	do("dialog", map[string]any{"accept": true, "text": "nor me"})
	do("dialog", map[string]any{"id": second, "accept": true, "text": "me"})
	p.state("its answer", func(s map[string]any) bool { return s["dialog"] == nil && page(s)["title"] == "me" })
	h.eval(ctx, `void window.open('/two')`)
	s := p.state("a window of its own", func(s map[string]any) bool { return len(s["tabs"].([]any)) == 2 && page(s)["title"] == "second" })
	opener := s["tabs"].([]any)[0].(map[string]any)
	do("tab", map[string]any{"id": opener["id"]})
	p.state("the first tab", func(s map[string]any) bool { return page(s)["title"] == "me" })
	do("reload", nil)
	p.state("the page anew", func(s map[string]any) bool { return page(s)["title"] == "first" && page(s)["loading"] == false })
	do("extend", map[string]any{"minutes": 15})
	do("later", nil)
	do("cancel_countdown", nil)
	do("done", map[string]any{"anyway": true})
	p.word("end", 0, func(m map[string]any) bool { return m["reason"] == "finished" })
	if got, want := h.decisions(), "takeover ses_live, extend hof_mine 15m0s, park hof_mine, finish hof_mine true"; got != want {
		t.Errorf("decided: %s", got)
	}
	h.set(func(s *liveview.Status) { s.Over = true })
	p.word("end", 0, func(m map[string]any) bool { return m["reason"] == "stopped" })
	p.until("the socket's end", func() bool { return p.closed != nil })
}
