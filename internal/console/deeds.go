package console

import (
	"context"
	"slices"
	"time"

	"tapin/internal/fault"
)

const (
	// deedWithin bounds what the owner asked for: the slowest is a browser that
	// opens a site to see whether a login still works.
	deedWithin = 2 * time.Minute
	// unusedFor is when a link that was made and never opened is forgotten for
	// another: a page that is just loading still wants it.
	unusedFor = time.Minute
)

// carryOut does what a page asks for, and answers it.
func (s *socket) carryOut(ctx context.Context, m message) {
	// Signed out while this was on its way: it is not the owner's word any more.
	if !s.door.book.isIn(s.device) {
		s.cancel(leave{code: closedUnclaimed, reason: "signed_out"})
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deedWithin)
	defer cancel()
	said, err := s.do(ctx, m)
	s.door.poke()
	if err != nil {
		s.say(encode(noteOf(m.Seq, err)))
		return
	}
	s.say(encode(noteMessage{T: "note", Seq: m.Seq, OK: true, Text: said}))
}

// do is the list of what can be done, each with what is said when it is.
func (s *socket) do(ctx context.Context, m message) (said string, err error) {
	d := s.door.deps
	switch m.A {
	case "open":
		return "", s.open(ctx, m.ID)
	case "history":
		return "", s.history(ctx, m.Before)
	case "figures":
		return "", s.figures(ctx, m.Days)
	case "done":
		return s.finish(ctx, m)
	case "abort":
		return "The agent is told that you declined.", d.Handoffs.Cancel(ctx, m.ID, m.Version)
	case "later":
		return "Kept for later.", d.Handoffs.Park(ctx, m.ID, m.Version)
	case "resume":
		return "The browser is open again.", d.Handoffs.Resume(ctx, m.ID, m.Version)
	case "extend":
		if m.Minutes < 1 || m.Minutes > 240 {
			return "", fault.New(fault.InvalidRequest, "", "that is not a time to add")
		}
		return "There is more time now.", d.Handoffs.Extend(ctx, m.ID, time.Duration(m.Minutes)*time.Minute)
	case "todo_done":
		return "Off the list.", d.Handoffs.TodoDone(ctx, m.ID)
	case "check_login":
		return s.check(ctx, m.ID)
	case "delete_login":
		return "The login is deleted.", d.Logins.Delete(ctx, m.ID)
	case "move":
		if m.Number < 10 || m.Number > 99 {
			return "", fault.New(fault.InvalidRequest, "", "the number has two digits")
		}
		return "That device is in now.", d.Links.Move(ctx, m.ID, m.Number)
	case "revoke":
		return "The link is dead.", d.Links.Revoke(ctx, m.ID)
	case "end_session":
		return "The browser is closed.", d.Sessions.End(ctx, m.ID)
	case "sign_out":
		return "That device is signed out.", s.door.SignOut(ctx, m.ID)
	case "look_again":
		return s.door.lookAgain(ctx, m.ID)
	case "approve", "deny", "policy_confirm", "policy_deny":
		return s.decide(ctx, m)
	}
	return "", fault.New(fault.InvalidRequest, "", "there is nothing of that name to be done")
}

func (s *socket) finish(ctx context.Context, m message) (string, error) {
	over, err := s.door.deps.Handoffs.Finish(ctx, m.ID, m.Version)
	if err == nil && !over {
		return "", fault.New(fault.InvalidRequest, "", "the page does not look done yet, so it stays with you").
			WithHint("Open it and see; there you can hand it back anyway.")
	}
	return "Handed back to the agent.", err
}

func (s *socket) check(ctx context.Context, name string) (string, error) {
	sentence, works, err := s.door.deps.Logins.Check(ctx, name)
	switch {
	case err != nil:
		return "", err
	case works:
		return "It works: " + sentence, nil
	}
	return sentence, nil
}

func (s *socket) decide(ctx context.Context, m message) (string, error) {
	a := s.door.deps.Approvals
	if a == nil {
		return "", fault.New(fault.Disabled, "", "this tapin asks about no payments")
	}
	switch m.A {
	case "approve":
		return "Approved, once.", a.Decide(ctx, m.ID, true, m.Amount, m.Currency)
	case "deny":
		return "Denied.", a.Decide(ctx, m.ID, false, "", "")
	case "policy_confirm":
		return "The agent may do that by itself now.", a.DecidePolicy(ctx, m.ID, m.Proposal, true)
	}
	return "It stays with you.", a.DecidePolicy(ctx, m.ID, m.Proposal, false)
}

// open makes a link for this device and sends the page there. The device is the
// first to claim it, so that it needs no number.
func (s *socket) open(ctx context.Context, session string) error {
	s.door.mu.Lock()
	var known []Link
	if s.door.now != nil {
		known = s.door.now.Links
	}
	s.door.mu.Unlock()
	path, err := s.door.book.open(ctx, s.device, session, func(id string) bool {
		i := slices.IndexFunc(known, func(l Link) bool { return l.ID == id })
		return i >= 0 && !known[i].Claimed && time.Since(known[i].CreatedAt) > unusedFor
	})
	if err != nil {
		return err
	}
	s.say(encode(openMessage{"open", session, path.Reveal()}))
	return nil
}

func (s *socket) history(ctx context.Context, before string) error {
	items, next, err := s.door.deps.House.Past(ctx, before)
	if err != nil {
		return err
	}
	s.say(encode(historyMessage{"history", boundedPast(upTo(items, maxHistory)), next}))
	return nil
}

func (s *socket) figures(ctx context.Context, days int) error {
	if s.door.deps.Figures == nil {
		return fault.New(fault.Disabled, "", "this tapin keeps no figures")
	}
	told, err := s.door.deps.Figures.Analytics(ctx, days)
	if err != nil {
		return err
	}
	s.say(encode(figuresMessage{"figures", told}))
	return nil
}
