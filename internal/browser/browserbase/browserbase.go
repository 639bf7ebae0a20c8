// Package browserbase makes browsers at Browserbase, which runs them elsewhere and bills them by the minute.
// It owns the calls of its API, the mark by which our sessions are told from others, and the account of what they cost.
// It must never make a second session for one wish, touch one without our mark, leave one running that nobody uses, or let a key into an error or a log.
package browserbase

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/usage"
	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// Name is the provider's name.
const Name = "browserbase"

const (
	answerWithin = 30 * time.Second // one answer; making a browser takes some seconds
	dialWithin   = 20 * time.Second
	// releaseWithin is how long a release may take to be seen.
	releaseWithin = 30 * time.Second

	minTimeout  = time.Minute
	maxTimeout  = 6 * time.Hour
	freeTimeout = 15 * time.Minute // the longest of the free plan
	// noKeepAliveFor is how long we remember that the plan does not keep sessions
	// alive before we ask again: the owner may have changed the plan.
	noKeepAliveFor = time.Hour
)

var (
	_ browser.Provider = (*Provider)(nil)
	_ browser.Special  = (*Provider)(nil)
	_ browser.Keeper   = (*Provider)(nil)
)

// Options are the settings of the provider; nil means the defaults.
type Options struct {
	Region        string
	BlockAds      bool
	SolveCaptchas bool
	Record        bool // have every session recorded and logged there
	// Spare is added to the time a browser is made for, because it cannot be
	// moved later: a hand-off that begins late must not run out of browser.
	Spare  time.Duration
	Ledger *usage.Ledger // what was used; nil keeps no account
	Logger *slog.Logger

	// AnswerWithin bounds one answer of the API; 0 means 30 s.
	AnswerWithin time.Duration
}

// Provider makes browsers at Browserbase.
type Provider struct {
	mark string
	opts Options
	rest *rest
	log  *slog.Logger

	life  context.Context //nolint:containedctx // that of what looks for lost sessions
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu          sync.Mutex
	making      map[string]bool // by Spec.ID: under way, or in use
	doubts      map[string]bool // whose making was not answered, looked for later
	noKeepAlive time.Time       // when we were told so
}

// New makes a provider for an account. The mark names this tapin among all that
// may use the same account.
func New(mark string, account func(context.Context) (Account, error), opts *Options) *Provider {
	p := &Provider{mark: mark, making: map[string]bool{}, doubts: map[string]bool{}}
	if opts != nil {
		p.opts = *opts
	}
	if p.opts.AnswerWithin <= 0 {
		p.opts.AnswerWithin = answerWithin
	}
	p.log = p.opts.Logger
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.rest = newREST(account, p.opts.AnswerWithin)
	p.life, p.stop = context.WithCancel(context.Background())
	return p
}

// Close ends what the provider does by itself. Browsers live on.
func (p *Provider) Close() error {
	p.stop()
	p.tasks.Wait()
	p.rest.http.CloseIdleConnections()
	return nil
}

// Name is "browserbase".
func (p *Provider) Name() string { return Name }

// Traits say that it is billed and can record.
func (p *Provider) Traits() browser.Traits { return browser.Traits{Billed: true, Records: true} }

// Reconnect goes on with a session that Create made. The way in is read anew
// each time: its key ages out before the session does.
func (p *Provider) Reconnect(ctx context.Context, ref browser.Ref) (browser.Instance, error) {
	const op = "reconnect to Browserbase"
	s, err := p.find(ctx, ref)
	if err != nil {
		return nil, blame(op, fault.BrowserLost, err)
	}
	p.hold(ref.ID)
	inst, err := p.connect(ctx, ref.ID, s)
	if err != nil {
		return nil, blame(op, fault.BrowserLost, err)
	}
	return inst, nil
}

// errGone says that a session is over.
var errGone = fault.New(fault.BrowserLost, "", "the session at Browserbase is over")

// find is the session of a ref as it is now, if it is ours and runs.
func (p *Provider) find(ctx context.Context, ref browser.Ref) (remote, error) {
	id := ref.Remote
	if id == "" {
		running, err := p.named(ctx, ref.ID)
		if err != nil {
			return remote{}, err
		}
		if len(running) == 0 {
			return remote{}, errGone
		}
		id = running[0].ID
	}
	s, err := p.retrieve(ctx, id)
	if refusedWith(err, http.StatusNotFound) || err == nil && (!s.runs() || !p.ours(s) || s.browser() != ref.ID) {
		return remote{}, errGone
	}
	return s, err
}

func (p *Provider) retrieve(ctx context.Context, id string) (s remote, err error) {
	err = p.rest.ask(ctx, http.MethodGet, escape("/v1/sessions/%s", id), nil, &s)
	return s, err
}

// ours tells our sessions from those of others in the same account.
func (p *Provider) ours(s remote) bool { return s.text(markKey) == p.mark && s.browser() != "" }

// named are the running sessions of one browser of ours, the oldest first. There
// may be more than one where a wish was carried out twice.
func (p *Provider) named(ctx context.Context, id string) ([]remote, error) {
	all, err := p.list(ctx, "", browserKey, id)
	return slices.DeleteFunc(oldestFirst(all), func(s remote) bool { return s.browser() != id }), err
}

// list asks for sessions by a part of our mark. What comes back is held against
// the whole of it: nobody else's is ever taken for ours.
func (p *Provider) list(ctx context.Context, status, key, value string) ([]remote, error) {
	query := url.Values{"q": {"user_metadata['" + key + "']:'" + value + "'"}}
	if status != "" {
		query.Set("status", status)
	}
	var all []remote
	if err := p.rest.ask(ctx, http.MethodGet, "/v1/sessions?"+query.Encode(), nil, &all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s remote) bool { return !p.ours(s) }), nil
}

// Own returns all running sessions with our mark, also those that no record
// names any more. It settles the account of those that have ended.
func (p *Provider) Own(ctx context.Context, _ []browser.Ref) ([]browser.Ref, error) {
	var all []remote
	for _, status := range []string{statusPending, statusRunning} {
		some, err := p.list(ctx, status, markKey, p.mark)
		if err != nil {
			return nil, blame("look for our sessions at Browserbase", fault.ProviderError, err)
		}
		all = append(all, some...)
	}
	var own []browser.Ref
	for _, s := range oldestFirst(all) {
		ref := browser.Ref{Provider: Name, ID: s.browser(), Remote: s.ID}
		if !slices.Contains(own, ref) { // it may have begun to run in between
			own = append(own, ref)
		}
	}
	p.settle(ctx, own)
	return own, nil
}

// End releases a session of ours, and whatever else was made for the same wish,
// and makes sure of it.
func (p *Provider) End(ctx context.Context, ref browser.Ref) error {
	const op = "end a session at Browserbase"
	running, err := p.named(ctx, ref.ID)
	if err == nil && p.inDoubt(ref.ID) && len(running) == 0 {
		// Whoever looks for it does so for some time to come.
		return nil
	}
	var failed error
	for _, s := range running {
		failed = errors.Join(failed, p.release(ctx, s.ID))
	}
	if ref.Remote != "" && !slices.ContainsFunc(running, func(s remote) bool { return s.ID == ref.Remote }) {
		// A list may be behind; the session itself is not.
		if s, alone := p.retrieve(ctx, ref.Remote); refusedWith(alone, http.StatusNotFound) {
			p.ended(ref.ID, time.Now())
		} else if alone != nil {
			failed = errors.Join(failed, alone)
		} else if p.ours(s) && s.browser() == ref.ID {
			failed = errors.Join(failed, p.release(ctx, s.ID))
		}
	}
	if err = errors.Join(err, failed); err == nil {
		p.let(ref.ID)
	}
	return blame(op, fault.ProviderError, err)
}

// errStillRuns says that a release was asked for and has not happened yet.
var errStillRuns = errors.New("the session has not ended yet")

// release ends a session and waits until it is over: what is not seen to be over
// is still being paid for. Asking again is no harm.
func (p *Provider) release(ctx context.Context, id string) error {
	account, err := p.rest.who(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, releaseWithin)
	defer cancel()
	body := release{ProjectID: account.Project, Status: requestRelease}
	err = p.rest.ask(ctx, http.MethodPost, escape("/v1/sessions/%s", id), body, nil)
	if refusedWith(err, http.StatusNotFound) {
		return nil
	}
	// Whatever was answered, how the session is now decides.
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		s, looked := p.retrieve(ctx, id)
		switch {
		case refusedWith(looked, http.StatusNotFound):
			return nil
		case looked != nil:
			return errors.Join(err, looked)
		case !s.runs():
			p.ended(s.browser(), s.EndedAt)
			return nil
		case err != nil:
			return err
		}
		if wait(ctx, pause) != nil {
			return errStillRuns
		}
	}
}

// connect opens the way into a session that runs.
func (p *Provider) connect(ctx context.Context, id string, s remote) (*instance, error) {
	account, err := p.rest.who(ctx)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(s.ConnectURL.Reveal())
	if err != nil || u.Host == "" || u.Scheme != "wss" && (u.Scheme != "ws" || !isHTTP(account.BaseURL)) {
		return nil, errors.New("no way into the session is named")
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	transport, err := cdp.Dial(ctx, s.ConnectURL, nil)
	if err != nil {
		return nil, err
	}
	return &instance{
		provider: p, conn: cdp.New(transport, nil), session: s,
		ref: browser.Ref{Provider: Name, ID: id, Remote: s.ID},
	}, nil
}

func isHTTP(base string) bool {
	u, err := url.Parse(base)
	return err == nil && u.Scheme == "http"
}

// hold and let say which browsers are in use by this process.
func (p *Provider) hold(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making[id] = true
}

func (p *Provider) let(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.making, id)
}

func (p *Provider) held(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.making[id]
}

// liveView is Browserbase's own view of a tab, or of the browser where the tab
// is not listed yet.
func (p *Provider) liveView(ctx context.Context, id, tab string) (secret.Text, error) {
	var v views
	if err := p.rest.ask(ctx, http.MethodGet, escape("/v1/sessions/%s/debug", id), nil, &v); err != nil {
		return secret.Text{}, blame("read Browserbase's live view", fault.ProviderError, err)
	}
	for _, each := range v.Pages {
		if each.ID == tab && !each.Fullscreen.IsEmpty() {
			return each.Fullscreen, nil
		}
	}
	return v.Fullscreen, nil
}
