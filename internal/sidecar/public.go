package sidecar

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/link"
	"tapin/internal/liveview"
	"tapin/web"
)

// received is the folder of the home for the files that people send to pages.
const received = "received"

// firstPersons are the user numbers from which on systems give them to people;
// those below are of accounts that nobody signs in with.
var firstPersons = map[string]int{"linux": 1000, "darwin": 500}

// SameUser reports whether an agent may run as the user that tapin runs as: then
// it can read what tapin can, and a token would be no secret from it.
func SameUser(uid int) bool { return uid == 0 || uid >= firstPersons[runtime.GOOS] }

// listen opens a listener, or says which setting to change.
func listen(key, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fault.New(fault.Busy, "start the sidecar", "%s cannot be listened on", address).
			WithHint("Another program uses the port. Set %s to another one; tapin doctor tells more.", key)
	}
	return listener, nil
}

// openLinks opens the links and where they lead.
func (s *sidecar) openLinks(public string) {
	s.links = link.New(s.opts.Home, &link.Options{Pump: s.pump})
	s.address = link.NewAddress(s.opts.Home, "http://"+reachable(public), &link.AddressOptions{
		Configured: s.opts.Config.PublicURL, Tunnelled: s.opts.Config.Tunnel != config.TunnelNone, Pump: s.pump,
	})
}

// openDoor makes the door that people come in by.
func (s *sidecar) openDoor(changes *changes, keys credentials) {
	console := http.Handler(s.console)
	if s.house.Without(guard.Console) {
		console = leftOut(guard.Console)
	}
	s.door = liveview.New(liveview.Deps{
		Links: s.links, Screens: screens{s.sessions, s.handoffs, changes}, Handoffs: decisions{s.handoffs},
		Pages: web.Pages, Uploads: filepath.Join(s.opts.Home.Path(), received),
	}, &liveview.Options{
		SameUser: SameUser(os.Getuid()), WatchOnLAN: s.opts.Config.LAN == config.LANWatch,
		MiniApp: s.miniApp(keys), Reach: s.prober.Answer, Logger: s.opts.Logger,
		Console: console, Owner: s.console.Lets,
	})
}

// followNames has the door answer to the names under which people come, as they
// become known.
func (s *sidecar) followNames(ctx context.Context) {
	known := map[string]func(){}
	for {
		names, changed := s.address.Names()
		for _, name := range names {
			if known[name] == nil {
				known[name] = s.door.Allow(name)
			}
		}
		for name, forget := range known {
			if !slices.Contains(names, name) {
				forget()
				delete(known, name)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// forgetSession takes from people what they had of a session that is over.
func (s *sidecar) forgetSession(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if err := s.links.RevokeOf(ctx, id); err != nil {
		s.opts.Logger.Warn("the links into a session that is over could not be ended", "session", id, "error", err)
	}
	if err := s.door.Forget(id); err != nil {
		s.opts.Logger.Warn("what was sent to a session could not be removed", "session", id, "error", err)
	}
}

// sweepViews forgets what an earlier sidecar had for sessions that are over.
func (s *sidecar) sweepViews(ctx context.Context) {
	live := s.sessions.IDs()
	if err := s.links.Sweep(ctx, func(id string) bool { return slices.Contains(live, id) }); err != nil {
		s.opts.Logger.Warn("old links could not be ended", "error", err)
	}
	if err := (guests{s.owners, s.links}).sweep(ctx); err != nil {
		s.opts.Logger.Warn("links of people who are no owners could not be ended", "error", err)
	}
	if err := s.door.Sweep(live); err != nil {
		s.opts.Logger.Warn("old uploads could not be removed", "error", err)
	}
	s.address.Recover(ctx)
}

// presence is what session and live view know of the person at a page: when
// they last did something, and whether they look at it now.
func (s *sidecar) presence(id string) (last time.Time, watching bool) {
	last, watching = s.door.Presence(id)
	if used := s.sessions.Presence(id); used.After(last) {
		last = used
	}
	return last, watching
}
