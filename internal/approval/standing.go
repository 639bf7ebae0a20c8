package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/money"
	"tapin/internal/site"
	"tapin/internal/store"
)

// keep writes the ledger, and tells what is in its outbox.
func (r *Room) keep(ctx context.Context, book ledger) error {
	book.Version++
	if err := r.kept.Write(book); err != nil {
		return err
	}
	r.book = book
	close(r.changed)
	r.changed = make(chan struct{})
	if len(book.Outbox) > 0 && r.deps.Pump.Deliver(ctx, book.Outbox...) == nil {
		told := book.clone()
		told.Outbox = nil
		if err := r.kept.Write(told); err == nil {
			r.book = told
		}
	}
	return nil
}

// PolicyNews is what the feed tells of a policy.
type PolicyNews struct {
	ProposalID string   `json:"proposal_id"`
	From       string   `json:"from"`
	Policy     Standing `json:"policy"`
	Sentence   string   `json:"sentence"`
}

func (l *ledger) tell(what string, p Proposal, version int) {
	data, err := json.Marshal(PolicyNews{p.ID, p.From, p.Policy, p.Policy.Sentence()})
	if err != nil {
		return
	}
	l.Outbox = append(l.Outbox, event.Event{ID: p.ID, Version: version, Type: what, At: wallClock(), Data: data})
}

// Answer is what the owner hears when speaking about policies.
type Answer struct {
	Understood bool // false: the sentence was about something else
	Sentence   string
	Proposal   *Proposal // to be confirmed by a button
}

// Say takes a sentence of the owner's. What narrows is done at once; what
// widens is read back and waits for a confirmation.
func (r *Room) Say(ctx context.Context, text string) (Answer, error) {
	now := wallClock().In(r.opts.Location)
	wish, ok, err := money.ParseWish(text, now)
	if unclear, is := errors.AsType[*money.Unclear](err); is {
		return Answer{Understood: true, Sentence: unclear.Ask}, nil
	}
	if err != nil || !ok {
		return Answer{}, err
	}
	switch wish.Kind {
	case money.Tell:
		return Answer{Understood: true, Sentence: r.Sentence()}, nil
	case money.Stop:
		return r.stop(ctx, wish.Site)
	}
	standing := Standing{Max: SumOf(wish.Max), Expires: wish.Until.UTC(), Zone: r.opts.Location.String()}
	if wish.Until.IsZero() {
		standing.Expires = time.Time{}
	}
	if !wish.Monthly.IsZero() {
		monthly := SumOf(wish.Monthly)
		standing.Monthly = &monthly
	}
	if standing.Login, standing.Site, err = r.whose(ctx, wish.Site); err != nil {
		return Answer{Understood: true, Sentence: fault.Of(err).Details()}, nil
	}
	p, err := r.Propose(ctx, standing, fromWords)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Understood: true, Sentence: "Approve by myself from now on — " + p.Policy.Sentence() + "?", Proposal: &p}, nil
}

// whose finds the login and the site that a name stands for.
func (r *Room) whose(ctx context.Context, name string) (login, domain string, err error) {
	written, err := r.deps.Policies.List(ctx)
	if err != nil {
		return "", "", err
	}
	for _, w := range written {
		if strings.EqualFold(w.Login, name) || w.Domain != "" && site.Same(w.Domain, name) {
			at, err := site.Of(w.Domain)
			if w.Domain == "" || err != nil {
				return "", "", fault.New(fault.InvalidRequest, "", "the login %s has no domain; say the site, such as %s.com", w.Login, w.Login)
			}
			if w.Noticed && !site.Same(w.Domain, name) {
				// An agent led there, and may have led elsewhere than its owner thinks.
				return "", "", fault.New(fault.InvalidRequest, "", "I only saw the login %s used at %s; if that is right, say it with the site: %s", w.Login, w.Domain, at)
			}
			return w.Login, string(at), nil
		}
	}
	if at, err := site.Of(name); err == nil && (strings.Contains(name, ".") || name == "localhost") {
		return "", string(at), nil
	}
	return "", "", fault.New(fault.NotFound, "", "I know no login %q; say the site, such as %s.com", clip(name), strings.ReplaceAll(clip(name), " ", ""))
}

// Propose keeps a policy until the owner confirms it. An agent may not even
// propose: doors ask who speaks.
func (r *Room) Propose(ctx context.Context, s Standing, from string) (Proposal, error) {
	if most := s.Max.Money(); most.Minor <= 0 {
		return Proposal{}, fault.New(fault.InvalidRequest, "propose a policy", "a policy needs a maximum and its currency").With("field", "max_amount")
	}
	if s.Zone == "" {
		s.Zone = r.opts.Location.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.propose(ctx, s, from)
}

func (r *Room) propose(ctx context.Context, s Standing, from string) (Proposal, error) {
	p := Proposal{ID: store.NewID("prp"), Policy: s, From: from, CreatedAt: wallClock()}
	book := r.book.clone()
	book.tidy(p.CreatedAt)
	book.Proposals = append(slices.DeleteFunc(book.Proposals, func(o Proposal) bool { return o.Policy.Site == s.Site && o.Policy.Login == s.Login }), p)
	book.tell("policy.proposed", p, 1)
	return p, r.keep(ctx, book)
}

// Confirm puts a proposal into force: into the manifest, where people see it,
// and then into the book that counts. A kill in between leaves it pending.
func (r *Room) Confirm(ctx context.Context, id string) (s Standing, err error) {
	began := time.Now()
	defer func() { r.journal(began, string(Owner), "policy.confirm", Record{}, err) }()
	ctx = context.WithoutCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.book.Proposals, func(p Proposal) bool { return p.ID == id })
	if i < 0 {
		return Standing{}, fault.New(fault.NotFound, "", "there is no proposal %q", clip(id)).WithHint("Say the sentence again.")
	}
	p := r.book.Proposals[i]
	s = p.Policy
	s.ConfirmedAt = wallClock()
	if !s.Expires.IsZero() && !s.Expires.After(s.ConfirmedAt) {
		return Standing{}, fault.New(fault.InvalidRequest, "confirm a policy", "it would be over already")
	}
	if s.Login != "" {
		if err := r.deps.Policies.Put(ctx, s.Login, &s); err != nil {
			return Standing{}, err
		}
	}
	book := r.book.clone()
	book.Proposals = slices.Delete(book.Proposals, i, i+1)
	book.put(s)
	book.tell("policy.confirmed", p, 2)
	return s, r.keep(ctx, book)
}

// Reject takes a proposal back. One from the manifest is taken out there too,
// so that nobody reads what is not so.
func (r *Room) Reject(ctx context.Context, id string) (err error) {
	began := time.Now()
	defer func() { r.journal(began, string(Owner), "policy.reject", Record{}, err) }()
	ctx = context.WithoutCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.book.Proposals, func(p Proposal) bool { return p.ID == id })
	if i < 0 {
		return fault.New(fault.NotFound, "", "there is no proposal %q", clip(id))
	}
	p := r.book.Proposals[i]
	book := r.book.clone()
	book.Proposals = slices.Delete(book.Proposals, i, i+1)
	if p.From == fromManifest {
		if s, ok := r.book.of(p.Policy.Site); ok && s.Login == p.Policy.Login {
			err = r.deps.Policies.Put(ctx, s.Login, &s) // as it was confirmed
		} else {
			err = r.deps.Policies.Put(ctx, p.Policy.Login, nil)
		}
		if err != nil && !errors.Is(err, fault.NotFound) {
			return err
		}
	}
	book.tell("policy.rejected", p, 2)
	return r.keep(ctx, book)
}

// stop ends policies at once: to be asked more often needs no second thought.
// The book comes first, as it is what counts.
func (r *Room) stop(ctx context.Context, name string) (Answer, error) {
	ctx = context.WithoutCancel(ctx)
	written, err := r.deps.Policies.List(ctx)
	if err != nil {
		r.log.Warn("the manifest cannot be read", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	isMeant := func(login, domain string) bool {
		return name == "" || strings.EqualFold(login, name) || domain != "" && (strings.EqualFold(domain, name) || site.Same(domain, name))
	}
	began := time.Now()
	book := r.book.clone()
	var ended []string
	book.Policies = slices.DeleteFunc(book.Policies, func(s Standing) bool {
		if isMeant(s.Login, s.Site) {
			ended = append(ended, s.Sentence())
			return true
		}
		return false
	})
	book.Proposals = slices.DeleteFunc(book.Proposals, func(p Proposal) bool { return isMeant(p.Policy.Login, p.Policy.Site) })
	err = r.keep(ctx, book)
	r.journal(began, string(Owner), "policy.stop", Record{}, err)
	if err != nil {
		return Answer{}, err
	}
	for _, w := range written {
		if w.Policy != nil && isMeant(w.Login, w.Domain) {
			if err := r.deps.Policies.Put(ctx, w.Login, nil); err != nil {
				return Answer{}, err
			}
		}
	}
	if len(ended) == 0 {
		return Answer{Understood: true, Sentence: "I approve nothing by myself there. I always ask."}, nil
	}
	return Answer{Understood: true, Sentence: "From now on I ask again. Ended — " + strings.Join(ended, "; ") + "."}, nil
}

// Stop ends the policy of a login or a site; "" ends all.
func (r *Room) Stop(ctx context.Context, name string) (Answer, error) { return r.stop(ctx, name) }

// InForce are the policies that count, and the proposals that do not yet.
func (r *Room) InForce(ctx context.Context) ([]Standing, []Proposal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notice(ctx)
	return slices.Clone(r.book.Policies), slices.Clone(r.book.Proposals)
}

// Left is what a policy may still spend this month; false where it has no budget.
func (r *Room) Left(s Standing) (money.Amount, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Monthly == nil {
		return money.Amount{}, false
	}
	return s.budget().Less(r.book.spent(s, s.month(wallClock()))), true
}

// Sentence tells the owner what is approved without asking.
func (r *Room) Sentence() string {
	if err := r.Ready(); err != nil {
		return "I cannot tell: " + fault.Of(err).Details() + ". I ask before every payment."
	}
	policies, proposals := r.InForce(context.Background())
	now := wallClock()
	var lines []string
	for _, s := range policies {
		line := s.Sentence()
		if left, ok := r.Left(s); ok {
			line += fmt.Sprintf(" (%s left this month)", left)
		}
		switch {
		case !s.Expires.IsZero() && !now.Before(s.Expires):
			line += " — over, I ask again"
		case r.stale(context.Background(), s) != "":
			line += " — changed in the manifest and not in force until you confirm it"
		}
		lines = append(lines, "• "+line)
	}
	for _, p := range proposals {
		lines = append(lines, "• waiting for your yes: "+p.Policy.Sentence())
	}
	if len(lines) == 0 {
		return "Nothing. I ask before every payment."
	}
	return "By myself I approve:\n" + strings.Join(lines, "\n")
}

// notice makes proposals of policies that somebody wrote into the manifest.
func (r *Room) notice(ctx context.Context) {
	if r.kept.Ready() != nil {
		return // what is known already is not known now
	}
	written, err := r.deps.Policies.List(ctx)
	if err != nil {
		r.log.Warn("the manifest cannot be read for policies", "error", err)
		return
	}
	for _, w := range written {
		if w.Policy == nil || w.Domain == "" {
			continue
		}
		at, err := site.Of(w.Domain)
		if err != nil {
			continue
		}
		s := *w.Policy
		s.Login, s.Site, s.Zone = w.Login, string(at), r.opts.Location.String()
		known := slices.ContainsFunc(r.book.Policies, func(o Standing) bool { return o.Login == s.Login && allowsSame(s, o) }) ||
			slices.ContainsFunc(r.book.Proposals, func(p Proposal) bool { return p.Policy.same(s) })
		if known || s.Max.Money().Minor <= 0 {
			continue
		}
		if _, err := r.propose(ctx, s, fromManifest); err != nil {
			r.log.Warn("a policy in the manifest could not be proposed", "login", w.Login, "error", err)
		}
	}
}

// Clear says that a button of a site is no payment; "" means all of its buttons.
func (r *Room) Clear(ctx context.Context, where, label string) (err error) {
	began := time.Now()
	defer func() { r.journal(began, string(Owner), "guard.clear", Record{}, err) }()
	at, err := site.Of(where)
	if err != nil {
		return fault.New(fault.InvalidRequest, "clear a site", "that is no site").With("field", "site")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	book := r.book.clone()
	label = strings.ToLower(strings.Join(strings.Fields(label), " "))
	if book.clears(string(at), label) {
		return nil
	}
	book.Cleared = append(book.Cleared, Cleared{string(at), label, wallClock()})
	return r.keep(context.WithoutCancel(ctx), book)
}

// Unclear has a site guarded again.
func (r *Room) Unclear(ctx context.Context, where string) error {
	at, err := site.Of(where)
	if err != nil {
		return fault.New(fault.InvalidRequest, "guard a site again", "that is no site").With("field", "site")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	book := r.book.clone()
	book.Cleared = slices.DeleteFunc(book.Cleared, func(c Cleared) bool { return c.Site == string(at) })
	return r.keep(context.WithoutCancel(ctx), book)
}

// ClearedOnes are the buttons that the owner has cleared.
func (r *Room) ClearedOnes() []Cleared {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.book.Cleared)
}

// Set is a policy that the owner sets where nobody else can: it is confirmed
// as it is said.
func (r *Room) Set(ctx context.Context, login string, s Standing) (Standing, error) {
	var err error
	if s.Login, s.Site, err = r.whose(ctx, login); err != nil {
		return Standing{}, err
	}
	p, err := r.Propose(ctx, s, fromDoor)
	if err != nil {
		return Standing{}, err
	}
	return r.Confirm(ctx, p.ID)
}
