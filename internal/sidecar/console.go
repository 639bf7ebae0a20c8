package sidecar

import (
	"context"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/console"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/handoff"
	"tapin/internal/link"
	"tapin/internal/liveview"
	"tapin/internal/logins"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
	"tapin/internal/site"
	"tapin/internal/trouble"
)

// atWork is how long somebody who did something in a page counts as being there.
const atWork = time.Minute

// openConsole makes the owner's inbox on the web.
func (s *sidecar) openConsole(ctx context.Context) {
	s.view = &overview{s: s, stirred: make(chan struct{})}
	s.console = console.New(ctx, console.Deps{
		Home: s.opts.Home, Journal: s.journal, House: s.view,
		Handoffs: wishes{s.handoffs}, Logins: savedLogins{s.logins}, Links: ways{s.links, s.sessions}, Sessions: endings{s.sessions, s.handoffs},
		Approvals: payments{s.approvals}, Lookups: lookups{s.oneshots}, Figures: s.figures,
		Visit: func(r *http.Request) console.Visit {
			origin, address, secure := liveview.Reached(r)
			return console.Visit{Origin: origin, Address: address, Secure: secure}
		},
	}, &console.Options{Logger: s.opts.Logger})
	if _, out := s.house.LeavesOut(guard.Console); out {
		s.console.Off("The console took tapin down before and is left out: it does not show what happens. tapin logs --crash shows the report.")
	}
}

// overview shows all rooms to the console in the words of its own.
type overview struct {
	s *sidecar

	mu      sync.Mutex
	stirred chan struct{} // closed when something was told, then replaced
	slow    slowly
}

// slowly is what is read from the disk, as it was when so much had been told.
type slowly struct {
	told     uint64
	at       time.Time
	state    console.State
	notFirst bool
}

// slowFor is how long what nobody tells of, such as a line that a person wrote
// into the manifest, may go unseen.
const slowFor = 10 * time.Second

// follow has the console hear of all that is told, until ctx ends.
func (o *overview) follow(ctx context.Context) {
	for cursor := o.s.feed.Last(); o.s.feed.Wait(ctx, cursor) == nil; {
		cursor = o.s.feed.Last()
		o.mu.Lock()
		close(o.stirred)
		o.stirred = make(chan struct{})
		o.mu.Unlock()
	}
}

// Changed is closed at the next news.
func (o *overview) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stirred
}

// troublesShown is how many troubles a phone has room for above all else.
const troublesShown = 3

// troubles says what does not work. What was mended by itself is told elsewhere:
// a phone has little room.
func (o *overview) troubles() (all []string) {
	for _, t := range o.s.troubles() {
		switch {
		case t.State == trouble.SetAside:
		case len(all) == troublesShown:
			return append(all, "There is more: run tapin doctor.")
		default:
			all = append(all, t.Sentence())
		}
	}
	return all
}

// Look tells how everything stands.
func (o *overview) Look(ctx context.Context) console.State {
	state := o.fromDisk(ctx)
	state.Troubles = append(state.Troubles, o.troubles()...)
	shown := map[string]string{} // what is shown in a session
	for _, info := range o.s.sessions.List() {
		one := o.session(info)
		shown[info.ID] = one.Host
		state.Sessions = append(state.Sessions, one)
	}
	for _, id := range o.s.sessions.IDs() {
		rec, ok := o.s.handoffs.Current(id)
		if !ok || rec.IsOver() {
			continue
		}
		if shown[id] == "" {
			shown[id] = siteOf(rec)
		}
		_, watched := o.s.presence(id)
		state.Handoffs = append(state.Handoffs, console.Handoff{
			ID: rec.ID, Version: rec.Version, Reason: string(rec.Reason), Instruction: rec.Instruction, Task: rec.Task, Site: siteOf(rec),
			SessionID: id, CreatedAt: rec.CreatedAt, Deadline: rec.Deadline, Attempts: rec.Attempts, Parked: rec.Parked, Watched: watched,
		})
	}
	slices.SortStableFunc(state.Handoffs, func(x, y console.Handoff) int { return x.Deadline.Compare(y.Deadline) })
	links, err := o.s.links.List(ctx)
	if err != nil {
		state.Troubles = append(state.Troubles, "The links cannot be read.")
	}
	for _, l := range links {
		if l.Open && !l.Claimed && len(l.Waiting) == 0 {
			continue // it opens nothing by itself
		}
		state.Links = append(state.Links, console.Link{
			ID: l.ID, SessionID: l.SessionID, Host: shown[l.SessionID], Mode: string(l.Mode),
			CreatedAt: l.CreatedAt, ExpiresAt: l.ExpiresAt, Claimed: l.Claimed, Waiting: l.Waiting,
		})
	}
	return state
}

// session is one open browser. Its pages are the owner's to see, but no picture
// is taken while they are his to drive.
func (o *overview) session(info session.Info) console.Session {
	one := console.Session{
		ID: info.ID, Driver: "agent", StartedAt: info.StartedAt, Deadline: info.Deadline, Provider: info.Provider, Context: info.Context,
	}
	on, err := o.s.sessions.Screen(info.ID)
	if err != nil {
		return one
	}
	sum := fnv.New32a()
	if tabs, _ := on.Tabs(); tabs != nil {
		glances, _ := tabs.Glances()
		for _, g := range glances {
			if !g.Front {
				continue
			}
			one.Title = g.Title
			if at, err := url.Parse(g.URL); err == nil {
				one.Host = at.Hostname()
			}
			if of, err := site.Of(g.URL); err == nil {
				one.Registrable = site.Display(of)
			}
			_, _ = sum.Write([]byte(g.URL + "\n" + g.Title)) // a sum takes everything
		}
	}
	if on.Seen().Handoff != "" {
		one.Driver = "nobody"
		if last, watching := o.s.presence(info.ID); watching || time.Since(last) < atWork {
			one.Driver = "owner"
		}
		return one
	}
	_, _ = sum.Write([]byte(info.LastUsedAt.String()))
	thumb := sum.Sum32()
	one.Thumb = &thumb
	return one
}

// fromDisk is what has to be read: it is read again when something was told, and
// now and then.
func (o *overview) fromDisk(ctx context.Context) console.State {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := o.s.feed.Last()
	if o.slow.notFirst && o.slow.told == told && time.Since(o.slow.at) < slowFor {
		return o.slow.copy()
	}
	state := console.State{}
	var err error
	if state.History, state.MoreHistory, err = o.Past(ctx, ""); err != nil {
		state.Troubles = append(state.Troubles, "The hand-offs of before cannot be read.")
	}
	todos, err := o.s.handoffs.Todos()
	if err != nil {
		state.Troubles = append(state.Troubles, "The to-dos cannot be read.")
	}
	for _, t := range todos {
		state.Todos = append(state.Todos, console.Todo{ID: t.ID, Text: todoText(t), Site: t.Site, CreatedAt: t.CreatedAt})
	}
	saved, err := o.s.logins.List(ctx)
	if err != nil {
		state.Troubles = append(state.Troubles, "The saved logins cannot be read: "+fault.Of(err).Details()+".")
	}
	for _, l := range saved {
		state.Logins = append(state.Logins, loginOf(l))
	}
	o.slow = slowly{told: told, at: time.Now(), state: state, notFirst: true}
	return o.slow.copy()
}

// copy keeps who gets it from changing what is kept.
func (s *slowly) copy() console.State {
	state := s.state
	state.History, state.Todos, state.Logins = slices.Clone(state.History), slices.Clone(state.Todos), slices.Clone(state.Logins)
	state.Troubles = slices.Clone(state.Troubles)
	return state
}

func loginOf(l logins.Info) console.Login {
	one := console.Login{
		Name: l.Name, Domain: l.Domain, LastUsed: l.LastUsed.At, LastVerified: l.LastVerified.At, Freshness: "unverified", Bytes: l.Bytes, InUse: l.InUseBy != "",
	}
	switch {
	case !l.StaleSince.IsZero():
		one.Freshness = "stale"
	case !l.LastVerified.IsZero():
		one.Freshness = "verified"
	}
	return one
}

func todoText(t handoff.Todo) string {
	if t.Task != "" {
		return t.Task
	}
	switch t.Reason {
	case handoff.Login, handoff.SecondFactor:
		return "Sign in"
	case handoff.Captcha:
		return "Solve the check"
	case handoff.Permission:
		return "Decide about a permission"
	}
	return "Help the agent along"
}

// Past tells of hand-offs that are over.
func (o *overview) Past(ctx context.Context, cursor string) (items []console.Past, next string, err error) {
	const wanted = 20
	for {
		found, err := o.s.handoffs.List(ctx, handoff.Filter{Limit: wanted, Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		for _, rec := range found.Handoffs {
			if rec.IsOver() {
				items = append(items, pastOf(rec))
			}
		}
		// A page of it may hold what still runs; half of one is enough to look at.
		if cursor = found.Next; cursor == "" || len(items) >= wanted/2 {
			return items, cursor, nil
		}
	}
}

func pastOf(rec handoff.Record) console.Past {
	one := console.Past{
		ID: rec.ID, Reason: string(rec.Reason), Site: siteOf(rec), Status: string(rec.Status), CreatedAt: rec.CreatedAt,
		FinishedAt: rec.FinishedAt, FinishedBy: string(rec.FinishedBy), Attempts: rec.Attempts, Summary: whatBecame(rec),
	}
	if rec.Verified != nil {
		one.Verified = &rec.Verified.Held
	}
	for _, c := range rec.Delta {
		if c.Change == "changed" {
			one.Delta = append(one.Delta, console.Change{Field: c.Field, Change: changeText(c)})
		}
	}
	return one
}

// whatBecame says in a sentence for the owner how a hand-off ended; the record's
// own words are for the agent.
func whatBecame(rec handoff.Record) string {
	switch {
	case rec.Status == handoff.TimedOut:
		return "Nobody came in time."
	case rec.Status == handoff.Cancelled && rec.FinishedBy == handoff.Owner:
		return "You declined, and the browser was closed."
	case rec.Status == handoff.Cancelled && rec.FinishedBy == handoff.Agent:
		return "The agent called it off."
	case rec.Status == handoff.Cancelled:
		return "The browser was lost."
	case rec.FinishedBy == handoff.Verify:
		return "It was seen to be done, and handed back by itself."
	case rec.FinishedBy == handoff.Agent:
		return "The agent went on by itself."
	}
	return "You handed it back."
}

func changeText(c handoff.Change) string {
	var parts []string
	if c.Before != "" || c.After != "" {
		parts = append(parts, c.Before+" → "+c.After)
	}
	if len(c.Added) > 0 {
		parts = append(parts, "new: "+strings.Join(c.Added, ", "))
	}
	if len(c.Removed) > 0 {
		parts = append(parts, "gone: "+strings.Join(c.Removed, ", "))
	}
	if len(parts) == 0 {
		return "changed"
	}
	return strings.Join(parts, "; ")
}

func siteOf(rec handoff.Record) string {
	if of, err := site.Of(rec.Before.URL); err == nil {
		return site.Display(of)
	}
	return ""
}

// Picture is what a session shows, with secrets masked. Whether a person drives
// is asked before and after: a picture that fell in between is thrown away.
func (o *overview) Picture(ctx context.Context, id string) (page.Image, error) {
	none := fault.New(fault.NotFound, "", "there is no picture of that session now")
	on, err := o.s.sessions.Screen(id)
	if err != nil {
		return page.Image{}, none
	}
	before, _ := o.s.handoffs.Current(id)
	tabs, _ := on.Tabs()
	if on.Seen().Handoff != "" || tabs == nil {
		return page.Image{}, none
	}
	tab, err := tabs.Front(ctx)
	if err != nil {
		return page.Image{}, err
	}
	shot, err := tab.Screenshot(ctx, page.ShotOptions{Format: page.JPEG, Quality: 70, MaskSecrets: true})
	if err != nil {
		return page.Image{}, err
	}
	if after, _ := o.s.handoffs.Current(id); on.Seen().Handoff != "" || after.ID != before.ID {
		return page.Image{}, none
	}
	return shot, nil
}

// wishes are what the owner may decide about hand-offs, for what he was shown.
type wishes struct{ room *handoff.Room }

var _ console.Handoffs = wishes{}

// still refuses what is meant for another version than the one there is.
func (w wishes) still(id string, version int) error {
	rec, err := w.room.Get(id)
	switch {
	case err != nil:
		return err
	case rec.IsOver():
		return fault.New(fault.HandoffNotRunning, "", "that hand-off is over")
	case rec.Version != version:
		return fault.New(fault.InvalidRequest, "", "it has changed since you looked").WithHint("Look again, and decide then.")
	}
	return nil
}

func (w wishes) Finish(ctx context.Context, id string, version int) (over bool, err error) {
	if err := w.still(id, version); err != nil {
		return false, err
	}
	rec, err := w.room.Finish(ctx, handoff.Owner, id, false)
	return rec.IsOver(), err
}

func (w wishes) Cancel(ctx context.Context, id string, version int) error {
	if err := w.still(id, version); err != nil {
		return err
	}
	_, err := w.room.Cancel(ctx, handoff.Owner, id)
	return err
}

func (w wishes) Park(ctx context.Context, id string, version int) error {
	if err := w.still(id, version); err != nil {
		return err
	}
	_, err := w.room.Park(ctx, handoff.Owner, id)
	return err
}

func (w wishes) Resume(ctx context.Context, id string, version int) error {
	if err := w.still(id, version); err != nil {
		return err
	}
	_, err := w.room.Resume(ctx, id)
	return err
}

func (w wishes) Extend(ctx context.Context, id string, more time.Duration) error {
	_, err := w.room.Extend(ctx, handoff.Owner, id, more)
	return err
}

func (w wishes) TodoDone(_ context.Context, id string) error { return w.room.TodoDone(id) }

// savedLogins are what the owner may do about a saved login.
type savedLogins struct{ room *logins.Room }

var _ console.Logins = savedLogins{}

func (s savedLogins) Check(ctx context.Context, name string) (sentence string, works bool, err error) {
	found, err := s.room.Check(ctx, name)
	return found.Reason, found.Result == logins.Valid, err
}

func (s savedLogins) Delete(ctx context.Context, name string) error {
	_, err := s.room.Delete(ctx, name, nil)
	return err
}

// ways are the links that the console makes and ends.
type ways struct {
	links    *link.Room
	sessions *session.Host
}

var _ console.Links = ways{}

// openFor is how long a link of the console lives at most; it ends with its session.
const openFor = 24 * time.Hour

func (w ways) Open(ctx context.Context, id string) (string, secret.Text, error) {
	if _, err := w.sessions.Screen(id); err != nil {
		return "", secret.Text{}, err
	}
	made, token, err := w.links.Mint(ctx, id, link.Drive, time.Now().Add(openFor))
	if err != nil {
		return "", secret.Text{}, err
	}
	return made.ID, secret.New("/live/" + made.ID + "#t=" + token.Reveal()), nil
}

func (w ways) Move(ctx context.Context, id string, number int) error {
	_, err := w.links.Move(ctx, id, number)
	return err
}

func (w ways) Revoke(ctx context.Context, id string) error { return w.links.Revoke(ctx, id) }

// endings end a session as the owner does: with the hand-off that holds it.
type endings struct {
	sessions *session.Host
	handoffs *handoff.Room
}

func (e endings) End(ctx context.Context, id string) error {
	if rec, ok := e.handoffs.Current(id); ok && !rec.IsOver() {
		_, err := e.handoffs.Cancel(ctx, handoff.Owner, rec.ID)
		return err
	}
	_, err := e.sessions.Stop(session.As(ctx, session.Owner), id, nil)
	return err
}

// consoleRoom shows the console to the control listener in the contract's words.
type consoleRoom struct{ *console.Door }

func (c consoleRoom) Devices(ctx context.Context) []api.ConsoleDevice {
	var out []api.ConsoleDevice
	for _, d := range c.Door.Devices(ctx) {
		out = append(out, api.ConsoleDevice{DeviceID: d.ID, Name: d.Name, CreatedAt: d.CreatedAt, SeenAt: d.SeenAt})
	}
	return out
}
