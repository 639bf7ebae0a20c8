package sidecar

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/api"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/insight"
	"tapin/internal/store"
	"tapin/internal/trouble"
)

// openHouse makes the house of the background rooms.
func (s *sidecar) openHouse() {
	guard.MendLeftOut(s.opts.Home)
	s.house = guard.NewHouse(&guard.Options{
		Board: s.board, LeftOut: guard.OpenLeftOut(s.opts.Home.Path(), s.opts.Version),
		Tell: s.tellOfRoom, Logger: s.opts.Logger, Planted: s.opts.Planted,
	})
	guard.ShowIn(s.house)
}

// tellOfRoom puts into the feed what became of a background room.
func (s *sidecar) tellOfRoom(n guard.News, t trouble.Trouble, failures int) {
	if n == guard.GivenUp && t.What == guard.Console {
		s.console.Off(t.Sentence()) // nobody looks any more who could show it
	}
	kinds := map[guard.News]string{guard.Failed: event.RoomFailed, guard.GivenUp: event.RoomGivenUp, guard.Back: event.RoomBack}
	raw, err := json.Marshal(event.RoomNews{Room: t.What, Details: t.What + ": " + t.Details, Hint: t.Hint, Count: failures})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if err := s.pump.Deliver(ctx, event.Event{ID: store.NewID("rom"), Version: 1, Type: kinds[n], At: time.Now(), Data: raw}); err != nil {
		s.opts.Logger.Warn("that a room failed is told later", "room", t.What, "error", err)
	}
}

// troubles is the one list: ours, and the daemon's beside it. Both may have
// found the same file.
func (s *sidecar) troubles() []trouble.Trouble {
	all := s.board.List()
	for _, t := range guard.ReadBoard(s.opts.Home.Path()) {
		known := func(own trouble.Trouble) bool {
			return own.What == t.What && own.State == t.State && own.Details == t.Details
		}
		if !slices.ContainsFunc(all, known) {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b trouble.Trouble) int { return a.Since.Compare(b.Since) })
	return all
}

// counting runs the room of figures: a new one from the file each time.
type counting struct {
	open  func() *insight.Room
	begin func(room string) (begun func())
	house *guard.House

	mu   sync.Mutex
	room *insight.Room
	came chan struct{} // closed when there is a room
}

// openInsight makes the room of figures, and their metrics.
func (s *sidecar) openInsight(registry *prometheus.Registry) {
	count := countEnds(registry)
	s.insight = &counting{house: s.house, begin: s.begin, came: make(chan struct{}), open: func() *insight.Room {
		return insight.New(s.opts.Home, s.feed, counted{s.handoffs, s.approvals}, &insight.Options{
			Keep: s.opts.Config.Retention.Handoffs.Std(), OnEnd: count, Logger: s.opts.Logger,
		})
	}}
}

// Run counts until ctx ends.
func (c *counting) Run(ctx context.Context) {
	begun := c.begin(guard.Figures)
	room := c.open()
	begun()
	c.mu.Lock()
	if c.room == nil {
		close(c.came)
	}
	c.room = room
	c.mu.Unlock()
	room.Run(ctx)
}

// Report sums up days.
func (c *counting) Report(ctx context.Context, days int) (answer api.Analytics, err error) {
	if err := c.house.Off(guard.Figures); err != nil {
		return answer, err
	}
	select {
	case <-c.came:
	case <-ctx.Done():
		return answer, ctx.Err()
	}
	c.mu.Lock()
	room := c.room
	c.mu.Unlock()
	err = c.house.Ask(guard.Figures, func() error {
		answer, err = room.Report(ctx, days)
		return err
	})
	return answer, err
}

// leftOut answers in place of a door that this start leaves out.
func leftOut(name string) http.Handler {
	f := fault.New(fault.Disabled, "", "the %s took tapin down before and is left out", name)
	f.Hint = "tapin logs --crash shows what happened. tapin doctor --fix has the next start try it again."
	body, _ := json.Marshal(map[string]any{"ok": false, "error": f.Code, "details": f.Details(), "hint": f.Advice()})
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(f.Code.Status())
		_, _ = w.Write(body)
	})
}

// begin says that a room begins which a start can do without, and by begun that
// it has: whoever started us knows then what we were at, should we be killed.
func (s *sidecar) begin(room string) (begun func()) {
	if s.opts.OnBegin == nil {
		return func() {}
	}
	s.opts.OnBegin(room, false)
	return func() { s.opts.OnBegin(room, true) }
}

// install has this process report what panics, and survive it where it can.
func (o Options) install() (remove func()) {
	return guard.Install(&guard.Process{
		Reports: &guard.Reports{
			Home: o.Home.Path(), Part: "sidecar", Version: o.Version,
			Names: func() []string { return event.LastNames(o.Home, 50) },
		},
		Logger: o.Logger, Plant: o.Plant,
	})
}
