package liveview

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tapin/internal/link"
	"tapin/internal/page"
	"tapin/internal/site"
)

// canDrive reports whether a viewer's input would be passed on. Called with the
// lock held, as all here.
func (h *hub) canDrive(v *viewer) bool {
	return v.mode == link.Drive && h.status.running()
}

// tabNumber is the number of a tab for as long as the hub lives.
func (h *hub) tabNumber(id string) uint16 {
	n, ok := h.numbers[id]
	if !ok {
		n = uint16(len(h.numbers)) //nolint:gosec // a session has few tabs, and pictures only name them
		h.numbers[id] = n
	}
	return n
}

// stateFor is how things stand, for one viewer.
func (h *hub) stateFor(v *viewer) state {
	s := state{
		T: "state", Driver: "agent", CanDrive: h.canDrive(v), Session: stateSession{h.status.Deadline.UTC()},
		Tabs: []stateTab{}, Questions: []stateQuestion{}, Downloads: []stateDownload{}, Viewers: len(h.viewers),
	}
	if h.status.running() {
		switch h.driver {
		case nil:
			s.Driver = "nobody"
		case v:
			s.Driver = "you"
		default:
			s.Driver = "other"
		}
	}
	s.Layout.Touch = h.status.Look.Mobile
	if h.tabs != nil {
		now := h.tabs.Fitted()
		s.Layout = stateLayout{Phone: now.Phone, Mobile: now.Mobile, Fixed: now.Stubborn, Touch: s.Layout.Touch || now.Phone}
	}
	if o := h.status.Handoff; o != nil {
		s.Handoff = o.state(time.Now())
	}
	for _, g := range h.glances {
		s.Tabs = append(s.Tabs, stateTab{ID: g.ID, Index: h.tabNumber(g.ID), Title: cut(g.Title), Origin: originOf(g.URL), Active: g.Front})
		if g.Front {
			s.front(g, v.mode == link.Drive)
		}
	}
	if v.mode == link.Drive {
		for _, d := range h.files {
			s.Downloads = append(s.Downloads, stateDownload{ID: d.ID, Name: d.Name, Bytes: d.Bytes, State: d.State})
		}
	}
	return s
}

// front is the tab that is seen. Whoever only watches is asked nothing.
func (s *state) front(g page.Glance, asked bool) {
	s.Page = &statePage{Origin: originOf(g.URL), Title: cut(g.Title), Loading: g.Loading, Crashed: g.Crashed, Secure: strings.HasPrefix(g.URL, "https://")}
	if at, err := url.Parse(g.URL); err == nil {
		s.Page.Host = at.Hostname()
	}
	if of, err := site.Of(g.URL); err == nil {
		s.Page.Registrable = site.Display(of)
	}
	if g.Dialog != nil {
		s.Dialog = &stateDialog{ID: strconv.Itoa(g.Dialog.Turn), Kind: g.Dialog.Kind, Message: cut(g.Dialog.Message), Origin: g.Dialog.Origin}
		if asked {
			s.Dialog.Default = cut(g.Dialog.Default)
		}
	}
	for i, q := range g.Questions {
		s.Questions = append(s.Questions, stateQuestion{
			ID: fmt.Sprint(i, q.Kind, q.Name, g.Turns[q.Kind]), Kind: q.Kind, Origin: q.Origin, Name: q.Name, Realm: cut(q.Realm), Multiple: q.Multiple,
		})
	}
}

func (o *Handoff) state(now time.Time) *stateHandoff {
	s := &stateHandoff{
		ID: o.ID, Version: o.Version, Reason: o.Reason, Instruction: o.Instruction, Task: o.Task, Site: o.Site,
		Deadline: o.Deadline.UTC(), Attempts: o.Attempts, Status: o.Status, Parked: o.Parked,
	}
	if len(o.Checked) > 0 {
		s.Verify = &stateVerify{Checked: o.Checked, Held: o.Held}
	}
	if !o.FinishesAt.IsZero() {
		left := max(0, o.FinishesAt.Sub(now)).Milliseconds()
		s.CountdownMS = &left
	}
	return s
}

// originOf is the origin of an address, without anything that may be secret.
func originOf(address string) string {
	if origin, err := site.Origin(address); err == nil {
		return origin
	}
	scheme, _, _ := strings.Cut(address, ":")
	return scheme + ":"
}

// cut keeps what a page made up from filling a phone.
func cut(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
