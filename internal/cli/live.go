package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"tapin/internal/api"
	"tapin/internal/event"
	"tapin/internal/guard"
)

const (
	lookEvery = 2 * time.Second        // what nobody tells of is found this late
	drawEvery = 250 * time.Millisecond // also how soon another size is noticed
	tellSoon  = 60 * time.Millisecond  // news within this are drawn together
)

// What a terminal is told: to keep what is on it aside, and to bring it back.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	beginFrame  = "\x1b[?2026h" // terminals that know it show a frame as a whole
	endFrame    = "\x1b[?2026l"
)

// live is watch as a screen. Its board has one owner: the loop of show.
type live struct {
	app   *app
	out   io.Writer
	size  func() (columns, rows int)
	board board
	ink   paint
	shown []string // the rows on the screen
	width int

	changes chan func(*board)
}

// terminals are the two ends of a terminal that a screen needs; not ok where
// there is none, and then lines are told instead.
func (a *app) terminals() (in, out *os.File, ok bool) {
	in, isIn := a.env.Stdin.(*os.File)
	out, isOut := a.env.Stdout.(*os.File)
	ok = isIn && isOut && a.someoneAsks() && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && a.getenv("TERM") != "dumb"
	return in, out, ok
}

// watchLive shows the screen until q, Ctrl-C or a signal, and leaves the
// terminal as it was.
func (w *watch) watchLive(ctx context.Context, in, out *os.File) error {
	// Whoever has nothing to watch should read why, and not a screen that goes.
	if _, running, err := serving(w.home); err != nil || !running {
		if err == nil {
			err = w.app.notRunning()
		}
		return err
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return w.run(ctx) // a terminal that cannot do it
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	_, _ = io.WriteString(out, enterScreen)
	defer func() {
		_, _ = io.WriteString(out, leaveScreen)
		_ = term.Restore(int(in.Fd()), before)
	}()
	l := &live{app: w.app, out: out, ink: w.app.paint(out), changes: make(chan func(*board), 64)}
	l.size = func() (int, int) {
		columns, rows, err := term.GetSize(int(out.Fd()))
		if err != nil || columns <= 0 || rows <= 0 {
			return 80, 24
		}
		return columns, rows
	}
	l.board.program = w.app.program
	w.screen = l
	go func() {
		defer guard.Catch("command line")
		awaitQuit(in, leave)
	}()
	return l.show(ctx, w)
}

// awaitQuit reads keys: q, Ctrl-C and Ctrl-D end it. In raw mode the terminal
// sends no signal by itself.
func awaitQuit(in io.Reader, leave func()) {
	key := make([]byte, 64)
	for {
		n, err := in.Read(key)
		if err != nil || strings.ContainsAny(string(key[:n]), "qQ\x03\x04") {
			leave()
			return
		}
	}
}

// show draws until ctx ends.
func (l *live) show(ctx context.Context, w *watch) error {
	ended := make(chan error, 1)
	var others sync.WaitGroup
	others.Go(func() {
		defer guard.Catch("command line")
		ended <- w.run(ctx)
	})
	defer others.Wait()
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	l.draw(time.Now())
	for {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			for { // whoever still has something to say must not wait for it
				select {
				case err := <-ended:
					return err
				case <-l.changes:
				}
			}
		case change := <-l.changes:
			change(&l.board)
			l.settle()
		case <-tick.C:
		}
		l.draw(time.Now())
	}
}

// settle takes in what comes right behind a change, so that it is one frame.
func (l *live) settle() {
	timer := time.NewTimer(tellSoon)
	defer timer.Stop()
	for {
		select {
		case change := <-l.changes:
			change(&l.board)
		case <-timer.C:
			return
		}
	}
}

// draw writes the rows that are not on the screen already, in one piece.
func (l *live) draw(now time.Time) {
	columns, rows := l.size()
	var out strings.Builder
	if columns != l.width || rows != len(l.shown) {
		out.WriteString("\x1b[2J")
		l.width, l.shown = columns, make([]string, rows)
	}
	for i, row := range l.board.draw(columns, rows, now, l.ink) {
		if row != l.shown[i] {
			fmt.Fprintf(&out, "\x1b[%d;1H%s\x1b[K", i+1, row)
			l.shown[i] = row
		}
	}
	if out.Len() > 0 {
		_, _ = io.WriteString(l.out, beginFrame+out.String()+endFrame)
	}
}

// change has something done to the board, unless nobody looks any more.
func (l *live) change(ctx context.Context, fn func(*board)) {
	select {
	case l.changes <- fn:
	case <-ctx.Done():
	}
}

// keepLooking asks the sidecar what is so, again and again, until ctx ends.
func (l *live) keepLooking(ctx context.Context, c *api.Client, nudge <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		l.look(ctx, c)
		select {
		case <-ctx.Done():
			return
		case <-nudge:
		case <-tick.C:
		}
	}
}

// look asks once. What cannot be asked now stays as it was on the screen.
func (l *live) look(ctx context.Context, c *api.Client) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if h, err := c.Health(ctx); err == nil {
		l.change(ctx, func(b *board) { b.version, b.note = clean(h.Version), "" })
	}
	if open, err := c.Sessions(ctx); err == nil {
		seats := make([]seat, 0, len(open.Sessions))
		for _, s := range open.Sessions {
			at := seat{SessionInfo: s}
			if status, err := c.Status(ctx, s.SessionID); err == nil {
				at.status = *status
			}
			seats = append(seats, at)
		}
		l.change(ctx, func(b *board) { b.seats = seats })
	}
	if turns, err := c.Handoffs(ctx, api.HandoffsQuery{Status: "RUNNING"}); err == nil {
		l.change(ctx, func(b *board) { b.turns = turns.Handoffs })
	}
	if asks, err := c.Approvals(ctx, api.ApprovalsQuery{Status: "pending"}); err == nil {
		l.change(ctx, func(b *board) { b.asks = asks.Approvals })
	}
	if todos, err := c.Todos(ctx); err == nil {
		l.change(ctx, func(b *board) { b.todos = len(todos.Todos) })
	}
	if done, err := c.Journal(ctx, api.JournalQuery{Recent: 50}); err == nil {
		l.change(ctx, func(b *board) { b.journal(done.Entries) })
	}
}

// entryInWords is a line of the journal as the screen says it.
func entryInWords(e api.JournalEntry) happening {
	text := strings.NewReplacer("_", " ", ".", " ").Replace(strings.TrimPrefix(clean(e.What), "session."))
	if text == "start" || text == "stop" {
		text += " a session"
	}
	if e.Origin != "" {
		text += " on " + bare(clean(e.Origin))
	}
	if e.Outcome != "ok" {
		text += ": " + clean(e.Outcome)
	} else {
		text += ", " + took(e.TookMS)
	}
	return happening{at: e.At, who: clean(e.Who), text: text, bad: e.Outcome != "ok"}
}

// tell puts an event on the screen.
func (l *live) tell(ctx context.Context, e event.Event) {
	text := inWords(e)
	l.change(ctx, func(b *board) { b.happened(happening{at: e.At, who: "tapin", text: text}) })
}
