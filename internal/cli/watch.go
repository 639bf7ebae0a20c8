package cli

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/store"
)

// watchPoll is how soon a sidecar that listens elsewhere is noticed.
const watchPoll = 500 * time.Millisecond

func (a *app) watchCommand() *cobra.Command {
	var all, plain bool
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Follow what happens, live",
		Long: `Shows a live screen: what waits for you and how long it does, the sessions and
who drives them, and what was done lately. q or Ctrl-C ends it, and the terminal
is as it was before.

With --lines, and where there is no terminal, it shows one line for each thing
that happens instead. It goes on over restarts of tapin without losing a line.
With --json each event is one line of JSON as the feed has it.`,
		Example: "  tapin watch\n  tapin watch --lines --all\n  tapin watch --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := a.existingHome()
			if err != nil {
				return err
			}
			if home == nil {
				return a.notRunning()
			}
			defer func() { _ = home.Close() }()
			w := &watch{app: a, home: home, cursor: api.Newest}
			if all {
				w.cursor = 0
			}
			if in, out, ok := a.terminals(); ok && !plain {
				return w.watchLive(cmd.Context(), in, out)
			}
			return w.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "begin with the oldest event that is kept")
	cmd.Flags().BoolVar(&plain, "lines", false, "one line for each event, no screen")
	return cmd
}

// watch follows the feed of whatever sidecar the home has.
type watch struct {
	app    *app
	home   *store.Home
	cursor uint64
	lost   bool // told that nothing is running
	begun  bool // told that it follows

	screen *live         // nil where lines are told
	nudge  chan struct{} // something happened: look again
}

func (w *watch) run(ctx context.Context) error {
	for {
		client, address, err := w.find(ctx)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how watching ends
		}
		if err != nil {
			return err
		}
		err = w.follow(ctx, client, address)
		client.Close()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, fault.Unauthorized): // a new home may have taken the place
			return err
		}
	}
}

// find waits for a sidecar. The first time there must be one.
func (w *watch) find(ctx context.Context) (*api.Client, string, error) {
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	for {
		address, running, err := serving(w.home)
		switch {
		case err != nil:
			return nil, "", err
		case address != "":
			client, err := clientAt(w.home, address)
			return client, address, err
		case !running && !w.begun:
			return nil, "", w.app.notRunning()
		case !running && !w.lost:
			w.lost = true
			w.note("tapin is not running; waiting for it")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, "", ctx.Err()
		}
	}
}

// follow tells what happens until the sidecar is another one.
func (w *watch) follow(ctx context.Context, client *api.Client, address string) error {
	if !w.begun {
		w.note("Watching. Ctrl-C ends it.")
	} else if w.lost {
		w.note("tapin is running again")
	}
	w.begun, w.lost = true, false
	following, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		defer guard.Catch("command line")
		tick := time.NewTicker(watchPoll)
		defer tick.Stop()
		for {
			select {
			case <-following.Done():
				return
			case <-tick.C:
			}
			if now, running, err := serving(w.home); err == nil && (now != "" && now != address || !running) {
				leave()
			}
		}
	}()
	if w.screen != nil {
		w.nudge = make(chan struct{}, 1)
		var looking sync.WaitGroup
		looking.Go(func() {
			defer guard.Catch("command line")
			w.screen.keepLooking(following, client, w.nudge)
		})
		defer looking.Wait()
		defer leave()
	}
	for e, err := range client.EventsFrom(following, &w.cursor) {
		if gap, ok := errors.AsType[*api.ResyncError](err); ok {
			w.gap(gap)
			continue
		}
		if err != nil {
			return err
		}
		if err := w.tell(following, e); err != nil {
			return err
		}
	}
	return nil
}

// gap explains what a resync means to somebody who watches.
func (w *watch) gap(g *api.ResyncError) {
	if w.app.json {
		w.app.printf(`{"type":"resync","data":{"oldest":%d}}`+"\n", g.Oldest)
		return
	}
	w.note("Some events were missed: they are older than what is kept. What is so now: " + w.app.command("status"))
}

func (w *watch) tell(ctx context.Context, e event.Event) error {
	if w.screen != nil {
		w.screen.tell(ctx, e)
		select {
		case w.nudge <- struct{}{}:
		default:
		}
		return nil
	}
	if w.app.json {
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		w.app.printf("%s\n", raw)
		return nil
	}
	p := w.app.paint(w.app.env.Stdout)
	w.app.printf("%s  %s\n", p.dim(e.At.Local().Format("15:04:05")), inWords(e))
	return nil
}

// note is for the person who watches, not for what reads along.
func (w *watch) note(text string) {
	if w.screen != nil {
		// The board says by itself that it follows; it needs to know of the rest.
		if w.lost {
			w.screen.changes <- func(b *board) { b.note, b.seats, b.turns, b.asks = text, nil, nil, nil }
		}
		return
	}
	if !w.app.json {
		w.app.errorf("%s\n", w.app.paint(w.app.env.Stderr).dim(text))
	}
}
