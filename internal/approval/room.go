package approval

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/money"
	"tapin/internal/page"
	"tapin/internal/site"
	"tapin/internal/store"
)

const (
	folder         = "approvals"
	defaultTimeout = 30 * time.Minute
	defaultGrant   = 10 * time.Minute
	retryAfter     = 5 * time.Second
)

// Seen is what a session's page showed.
type Seen struct {
	SessionID  string
	Generation int
	Totals     page.Totals
	Crop       *page.Image // where the total stands
}

// Totals reads the page of a session; "" means the active one. The names are
// looked for on the page.
type Totals interface {
	Read(ctx context.Context, session string, names []string) (Seen, error)
}

// Written is a policy as the manifest has it. It may have been written by hand.
type Written struct {
	Login   string
	Domain  string
	Policy  *Standing // nil where there is none, or one that approves nothing
	Noticed bool      // the domain is where a browser was, and not the owner's word
}

// Policies is the manifest in which people see what is approved by itself. It
// is where a policy is written down, and never by itself a reason to pay.
type Policies interface {
	List(ctx context.Context) ([]Written, error)
	Put(ctx context.Context, login string, p *Standing) error
}

// Sealer seals pictures at rest.
type Sealer interface {
	Seal(name, origin string, plain []byte) ([]byte, error)
	Open(name, origin string, sealed []byte) ([]byte, error)
}

// Options are the settings of a room; nil and zero values mean the defaults.
type Options struct {
	Timeout  time.Duration  // how long an answer is waited for; default 30 min
	Grant    time.Duration  // how long a yes may be used; default 10 min
	Location *time.Location // of the owner; default UTC
	Keep     time.Duration  // how long what is over is kept; 0 means for ever
	Warn     bool           // payments without a grant are noted and let through
	Count    func(what string)
	// WentOn looks after a crash whether the page in which a payment was sent has
	// gone on; nil means that nobody can.
	WentOn func(ctx context.Context, session string, generation int, from page.Trace) bool
	Logger *slog.Logger
}

// Deps is what a room works with. All are required.
type Deps struct {
	Home     *store.Home
	Pump     *event.Pump
	Schedule *event.Schedule
	Journal  *event.Journal
	Totals   Totals
	Policies Policies
	Sealer   Sealer
}

// Room has the approvals of this sidecar. It is safe for concurrent use.
type Room struct {
	deps  Deps
	opts  Options
	log   *slog.Logger
	index *event.Index

	mu      sync.Mutex // held through a change: payments are few, and order is everything
	open    map[string]*Record
	unborn  []string // begun by a process that was killed before their first write
	book    ledger   // empty while its file cannot be read: then nothing is approved without asking
	kept    *store.Truth[ledger]
	changed chan struct{} // closed when anything changes, then replaced
}

// New opens the room and reads what is not over.
func New(deps Deps, opts *Options) (*Room, error) {
	r := &Room{deps: deps, index: event.NewIndex(deps.Home, folder+"/open"), open: map[string]*Record{}, changed: make(chan struct{})}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Timeout <= 0 {
		r.opts.Timeout = defaultTimeout
	}
	if r.opts.Grant <= 0 {
		r.opts.Grant = defaultGrant
	}
	if r.opts.Location == nil {
		r.opts.Location = time.UTC
	}
	if r.opts.Count == nil {
		r.opts.Count = func(string) {}
	}
	if r.log = r.opts.Logger; r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.kept = store.OpenTruth(deps.Home, policiesFile, &r.book, func(book *ledger) error {
		if book.Version < 1 {
			return errors.New("it has no version")
		}
		return nil
	})
	ids, err := r.index.List()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		var rec Record
		switch err := deps.Home.ReadRecord(file(id), &rec, store.Of(&rec.ID, id)); {
		case errors.Is(err, fs.ErrNotExist):
			r.unborn = append(r.unborn, id)
		case err != nil:
			r.log.Error("an approval cannot be read and grants nothing", "approval", id, "error", err)
		default:
			r.open[id] = &rec
		}
	}
	return r, nil
}

// Ready is nil if it is known what is approved without asking, and else says why not.
func (r *Room) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept.Ready()
}

func file(id string) string { return folder + "/" + id + ".json" }
func cropFile(id string) string {
	return folder + "/" + id + ".crop"
}

// Request is what an agent asks for.
type Request struct {
	Site        string
	Payee       string
	Amount      money.Amount
	Description string
	SessionID   string // "" means the active one
}

const maxText = 200

func (q Request) check() error {
	refuse := func(field, format string, args ...any) error {
		return fault.New(fault.InvalidRequest, "request an approval", format, args...).With("field", field)
	}
	switch {
	case strings.TrimSpace(q.Payee) == "" || len(q.Payee) > maxText:
		return refuse("payee", "say who is paid, in at most %d bytes", maxText)
	case len(q.Description) > 5*maxText:
		return refuse("description", "the description is over %d bytes", 5*maxText)
	case q.Amount.Currency == "":
		return refuse("currency", "say the currency")
	}
	if _, err := site.Of(q.Site); err != nil {
		return refuse("site", "say the site as a domain, such as verizon.com")
	}
	return nil
}

// Request asks for a payment. The page is read before anybody is asked, and a
// policy answers only what it says without a doubt.
func (r *Room) Request(ctx context.Context, q Request) (rec Record, err error) {
	began := time.Now()
	defer func() { r.journal(began, "agent", "approval.request", rec, err) }()
	if err := q.check(); err != nil {
		return Record{}, err
	}
	seen, err := r.deps.Totals.Read(ctx, q.SessionID, []string{q.Payee})
	if err != nil {
		return Record{}, err
	}
	ctx = context.WithoutCancel(ctx)
	now := wallClock()
	rec = Record{
		ID: store.NewID("apr"), Status: Pending, SessionID: seen.SessionID, Generation: seen.Generation,
		Site: q.Site, Payee: q.Payee, Claim: SumOf(q.Amount), Description: q.Description,
		Reading: readingOf(seen.Totals, q), CreatedAt: now, Deadline: now.Add(r.opts.Timeout),
	}
	rec.Differs = differences(rec)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.index.Add(rec.ID); err != nil {
		return Record{}, err
	}
	_ = r.kept.Ready() // it may have been mended; while it is not, everything is asked
	standing, why := r.policyFor(ctx, rec, now)
	if standing != nil {
		return r.autoApprove(ctx, rec, *standing, now)
	}
	r.log.Debug("a payment is asked about", "approval", rec.ID, "why", why)
	r.keepCrop(&rec, seen.Crop)
	rec = prepare(rec, []tell{tellRequested})
	if err := r.deps.Home.WriteJSON(file(rec.ID), rec); err != nil {
		_ = r.index.Remove(rec.ID)
		return Record{}, err
	}
	r.opts.Count("requested")
	return r.admit(ctx, rec), nil
}

// admit takes an approval into memory. What it returns is a copy: the one in
// memory changes under its timer.
func (r *Room) admit(ctx context.Context, rec Record) Record {
	live := &rec
	r.open[rec.ID] = live
	r.settle(ctx, live)
	return *live
}

// autoApprove takes the sum out of the budget first, and then approves: a kill
// in between costs a part of the budget until the next start, never a payment.
func (r *Room) autoApprove(ctx context.Context, rec Record, s Standing, now time.Time) (Record, error) {
	book := r.book.clone()
	book.tidy(now)
	book.Spendings = append(book.Spendings, Spending{rec.ID, s.Site, *rec.Reading.Total, s.month(now), now})
	if err := r.keep(ctx, book); err != nil {
		return Record{}, err
	}
	rec, news, err := next(rec, decision{by: Policy, yes: true, sum: rec.Reading.Total, policy: s.Site, now: now, grant: r.opts.Grant})
	if err == nil {
		rec = prepare(rec, append([]tell{tellRequested}, news...))
		err = r.deps.Home.WriteJSON(file(rec.ID), rec)
	}
	if err != nil {
		_ = r.index.Remove(rec.ID)
		return Record{}, errors.Join(err, r.refund(ctx, rec.ID))
	}
	r.opts.Count("requested")
	r.opts.Count("approved_by_policy")
	return r.admit(ctx, rec), nil
}

// policyFor is the policy that approves this by itself, or why there is none.
func (r *Room) policyFor(ctx context.Context, rec Record, now time.Time) (*Standing, string) {
	at, err := site.Of(rec.Reading.Origin)
	if err != nil {
		return nil, "the page is of no site"
	}
	s, ok := r.book.of(string(at))
	switch {
	case !ok:
		return nil, "there is no policy for " + string(at)
	case len(rec.Differs) > 0:
		return nil, rec.Differs[0]
	case !strings.HasPrefix(rec.Reading.Origin, "https://") && !isLoopback(rec.Reading.Origin):
		return nil, "the page is not encrypted"
	}
	if why := unfit(rec.Reading); why != "" {
		return nil, why
	}
	if why := r.stale(ctx, s); why != "" {
		return nil, why
	}
	if why := r.book.allows(s, rec.Reading.Total.Money(), now); why != "" {
		return nil, why
	}
	return &s, ""
}

// stale says why a confirmed policy is not what the manifest shows any more:
// whoever changed it there, it is not in force before the owner says so.
func (r *Room) stale(ctx context.Context, s Standing) string {
	if s.Login == "" {
		return ""
	}
	written, err := r.deps.Policies.List(ctx)
	if err != nil {
		return "the manifest cannot be read"
	}
	for _, w := range written {
		if w.Login == s.Login && w.Policy != nil && allowsSame(*w.Policy, s) {
			return ""
		}
	}
	return "the policy in the manifest is not the one that was confirmed"
}

func allowsSame(written, confirmed Standing) bool {
	written.Site, written.Login = confirmed.Site, confirmed.Login
	return written.same(confirmed)
}

// Decide is the owner's answer. sum is what the owner names, nil for a plain
// yes. Only a door that knows it speaks to the owner may call it.
func (r *Room) Decide(ctx context.Context, id string, yes bool, sum *Sum) (rec Record, err error) {
	began := time.Now()
	defer func() { r.journal(began, string(Owner), "approval.decide", rec, err) }()
	r.mu.Lock()
	defer r.mu.Unlock()
	live, err := r.find(id)
	if err != nil {
		return Record{}, err
	}
	rec, err = r.apply(context.WithoutCancel(ctx), live, decision{by: Owner, yes: yes, sum: sum, now: wallClock(), grant: r.opts.Grant})
	if err == nil {
		r.opts.Count(map[bool]string{true: "approved_by_owner", false: "denied"}[yes])
	}
	return rec, err
}

// apply lets something happen to an approval: decided, written, told.
func (r *Room) apply(ctx context.Context, rec *Record, e Event) (Record, error) {
	defer guard.Vital("approval record")
	before := rec.Status
	changed, news, err := next(*rec, e)
	if err != nil {
		return *rec, err
	}
	if len(news) == 0 && changed.Status == before {
		return changed, nil
	}
	changed = prepare(changed, news)
	if err := r.deps.Home.WriteJSON(file(rec.ID), changed); err != nil {
		return *rec, err
	}
	*rec = changed
	if rec.PolicySite != "" && (rec.Status == Expired || rec.Status == Denied) {
		if err := r.refund(ctx, rec.ID); err != nil {
			r.log.Warn("a part of a budget is given back later", "approval", rec.ID, "error", err)
		}
	}
	r.settle(ctx, rec)
	return *rec, nil
}

// refund gives back what an approval took out of a budget and never used.
func (r *Room) refund(ctx context.Context, id string) error {
	book := r.book.clone()
	for i, s := range book.Spendings {
		if s.Approval == id {
			book.Spendings = append(book.Spendings[:i], book.Spendings[i+1:]...)
			return r.keep(ctx, book)
		}
	}
	return nil
}

// prepare puts news into a record, to be written with it.
func prepare(rec Record, news []tell) Record {
	for _, n := range news {
		rec.Version++
		rec.Book.Outbox = append(rec.Book.Outbox, event.Event{ID: rec.ID, Version: rec.Version, Type: string(n), At: wallClock(), Data: newsOf(rec)})
	}
	if len(news) == 0 {
		rec.Version++
	}
	return rec
}

// settle tells what is in the outbox, sets the timer, and forgets what is over.
func (r *Room) settle(ctx context.Context, rec *Record) {
	close(r.changed)
	r.changed = make(chan struct{})
	timer := "approval/" + rec.ID
	if len(rec.Book.Outbox) > 0 {
		err := r.deps.Pump.Deliver(ctx, rec.Book.Outbox...)
		if err == nil {
			told := *rec
			told.Book.Outbox = nil
			if err = r.deps.Home.WriteJSON(file(rec.ID), told); err == nil {
				*rec = told
			}
		}
		if err != nil {
			r.log.Warn("an approval is told later", "approval", rec.ID, "error", err)
			r.deps.Schedule.Set(timer+"/tell", wallClock().Add(retryAfter), func(ctx context.Context) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.settle(ctx, rec)
			})
			return
		}
	}
	switch {
	case rec.Status == Pending || rec.Status == Approved:
		r.deps.Schedule.Set(timer, rec.Deadline, func(ctx context.Context) { r.lapse(ctx, rec) })
	case rec.IsOver():
		r.deps.Schedule.Cancel(timer)
		r.dropCrop(rec.ID)
		if err := r.index.Remove(rec.ID); err == nil {
			delete(r.open, rec.ID)
		}
	}
}

func (r *Room) lapse(ctx context.Context, rec *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.apply(ctx, rec, lapse{wallClock()}); err != nil {
		r.log.Error("an approval that is out of time could not be ended yet", "approval", rec.ID, "error", err)
		r.deps.Schedule.Set("approval/"+rec.ID, wallClock().Add(retryAfter), func(ctx context.Context) { r.lapse(ctx, rec) })
	}
}

// News is what the feed tells of an approval.
type News struct {
	Record
	Photo    bool   `json:"photo"`    // a crop waits at GET /approval/{id}/photo
	Question string `json:"question"` // for the owner
	Notice   string `json:"notice,omitempty"`
}

func newsOf(rec Record) json.RawMessage {
	question := rec.Question()
	for _, d := range rec.Differs {
		question += "\n⚠ " + d
	}
	n := News{Record: rec, Photo: rec.Book.HasCrop, Question: question, Notice: rec.Notice()}
	n.Book = bookkeeper{}
	data, err := json.Marshal(n)
	if err != nil {
		return nil // texts, numbers and times always encode
	}
	return data
}

func (r *Room) journal(began time.Time, who, what string, rec Record, err error) {
	outcome := "ok"
	if err != nil {
		outcome = string(fault.Of(err).Code)
	}
	if err := r.deps.Journal.Write(event.Entry{
		At: began, Who: who, What: what, Session: rec.SessionID, Origin: rec.Reading.Origin, Took: time.Since(began), Outcome: outcome,
	}); err != nil {
		r.log.Warn("the journal could not be written", "error", err)
	}
}

func wallClock() time.Time { return time.Now().UTC().Round(0) }
