package console

import (
	"context"
	"slices"
	"strings"
	"time"
)

const (
	// lookEvery finds what nobody tells of: a title, a line in the manifest.
	lookEvery = 2 * time.Second
	// lookPause bounds how often there is a look, however much happens.
	lookPause = 150 * time.Millisecond
	lookLimit = 20 * time.Second

	maxShown   = 50 // of each list
	maxHistory = 20
	maxWords   = 1200 // of one text
)

// poke has the watch look again.
func (d *Door) poke() {
	select {
	case d.poked <- struct{}{}:
	default: // it will
	}
}

// Run looks at the house, for as long as anybody has a console open, until ctx
// ends. It may be called again after it failed.
func (d *Door) Run(ctx context.Context) {
	for {
		d.mu.Lock()
		d.off = ""
		somebody := len(d.sockets) > 0
		watching, cancel := context.WithCancel(ctx)
		d.unwatch = cancel
		d.mu.Unlock()
		if somebody {
			d.watch(watching)
		}
		cancel()
		select {
		case <-d.opened:
		case <-ctx.Done():
			return
		}
	}
}

// Off tells every console, also those that come, that nothing is looked at for
// now, and why: what they show is as it was.
func (d *Door) Off(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = why
	for s := range d.sockets {
		s.tell(d.asOff())
	}
}

// asOff is the last that was seen, with what is wrong above it.
func (d *Door) asOff() State {
	var s State
	if d.now != nil {
		s = *d.now
	}
	s.Troubles = append([]string{d.off}, s.Troubles...)
	return s.bounded()
}

// watch looks at the house and tells every socket, for as long as there is one.
func (d *Door) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		changed := d.deps.House.Changed()
		// Asked after the channel: what came before it is seen here.
		now := d.look(ctx)
		if ctx.Err() != nil {
			return
		}
		d.tell(&now)
		pause := time.NewTimer(lookPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
		select {
		case <-changed:
		case <-d.poked:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look puts together what there is to see.
func (d *Door) look(ctx context.Context) State {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	s := d.deps.House.Look(ctx)
	s.Approvals = nil
	if a := d.deps.Approvals; a != nil {
		var err error
		if s.Approvals, err = a.Pending(ctx); err != nil {
			s.Troubles = append(s.Troubles, "Payments that wait cannot be read.")
		}
		policies, err := a.Policies(ctx)
		if err != nil {
			s.Troubles = append(s.Troubles, "Policies for payments cannot be read.")
		}
		for i := range s.Logins {
			if p, ok := policies[s.Logins[i].Name]; ok {
				s.Logins[i].Policy = &p
			}
		}
	}
	s.Devices = d.Devices(ctx)
	s.Lookups = d.lookups(ctx)
	return s.bounded()
}

// bounded cuts what is longer than anybody reads on a phone. A list that is
// empty is one, for the page.
func (s State) bounded() State {
	s.Handoffs, s.Approvals, s.Sessions = upTo(s.Handoffs, maxShown), upTo(s.Approvals, maxShown), upTo(s.Sessions, maxShown)
	s.Logins, s.Todos, s.Links = upTo(s.Logins, maxShown), upTo(s.Todos, maxShown), upTo(s.Links, maxShown)
	s.Devices, s.History, s.Troubles = upTo(s.Devices, maxShown), upTo(s.History, maxHistory), upTo(s.Troubles, 5)
	for i := range s.Handoffs {
		h := &s.Handoffs[i]
		h.Instruction, h.Task = cut(h.Instruction), cut(h.Task)
	}
	for i := range s.Approvals {
		a := &s.Approvals[i]
		a.Payee, a.Description = cut(a.Payee), cut(a.Description)
	}
	for i := range s.Sessions {
		s.Sessions[i].Title = cut(s.Sessions[i].Title)
	}
	for i := range s.Todos {
		s.Todos[i].Text = cut(s.Todos[i].Text)
	}
	for i := range s.Links {
		s.Links[i].Waiting = upTo(s.Links[i].Waiting, maxShown)
	}
	s.History = boundedPast(s.History)
	return s
}

func boundedPast(items []Past) []Past {
	for i := range items {
		h := &items[i]
		h.Summary, h.Delta = cut(h.Summary), upTo(h.Delta, maxShown)
		for j := range h.Delta {
			h.Delta[j].Change = cut(h.Delta[j].Change)
		}
	}
	return items
}

// upTo is the beginning of a list, and the caller's own: what is cut in it is
// cut for nobody else.
func upTo[T any](list []T, most int) []T {
	return append([]T{}, list[:min(len(list), most)]...)
}

func cut(s string) string {
	if len(s) <= maxWords {
		return s
	}
	return strings.ToValidUTF8(s[:maxWords], "") + "…"
}

// as is the state for one device.
func (s State) as(device string) State {
	var links []string
	s.Devices = slices.Clone(s.Devices)
	for i := range s.Devices {
		if d := &s.Devices[i]; d.ID == device {
			d.ThisDevice, links = true, d.links
		}
		// Whoever is there is seen all the time; the page says so in its own way.
		s.Devices[i].SeenAt = s.Devices[i].SeenAt.Truncate(time.Minute)
	}
	s.Links = slices.Clone(s.Links)
	for i := range s.Links {
		s.Links[i].ThisDevice = slices.Contains(links, s.Links[i].ID)
	}
	return s
}

// tell shows everybody how things stand.
func (d *Door) tell(now *State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = now
	for s := range d.sockets {
		s.tell(*now)
	}
}
