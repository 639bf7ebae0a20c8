package logins

import (
	"context"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/site"
	"tapin/internal/store"
)

// Result is what a check found out.
type Result string

// The results. Unknown is one too: a site that is down says nothing of a login.
const (
	Valid   Result = "valid"
	Expired Result = "expired"
	Unknown Result = "unknown"
)

// Checked is the last check of a login.
type Checked struct {
	At     time.Time `json:"at"`
	Result Result    `json:"result"`
	Reason string    `json:"reason"`
}

// Seen is what a browser with the login saw at the check's address.
type Seen struct {
	URL    string         // where it ended
	Status int            // of the document; 0 if there was none
	Found  bool           // whether the selector or text was visible
	State  *browser.State // the login as the site left it; nil if it could not be read
}

// Checker looks at a site with a login, in a browser of its own that is gone
// afterwards. An error means that nothing was seen. Safe for concurrent use.
type Checker interface {
	Look(ctx context.Context, check Check, state browser.State) (Seen, error)
}

// Judge decides what was seen. Only a page of the site itself, in good order,
// says anything; and to say that a login is over it must have been shown.
func Judge(check Check, seen Seen, failed error) (Result, string) {
	switch {
	case failed != nil:
		return Unknown, "the page could not be looked at"
	case seen.Status == 0:
		return Unknown, "the site sent no page"
	case seen.Status == 401:
		return Expired, "the site asks for a login"
	case seen.Status >= 400:
		return Unknown, "the site answered with an error"
	case !site.Same(check.URL, seen.URL) && seen.Found:
		return Unknown, "what was looked for is on the page of another site"
	case seen.Found:
		return Valid, "what was looked for is there"
	}
	return Expired, "what was looked for is not there"
}

// CheckNow finds out whether a login still works, and notes it. The state as
// the site left it is kept: many sites hand out a new cookie for each use of
// the old one, which is then void.
func (r *Room) CheckNow(ctx context.Context, name string, look Checker) (Checked, error) {
	info, err := r.Get(ctx, name)
	switch {
	case err != nil:
		return Checked{}, err
	case info.Problem != nil:
		return Checked{}, info.Problem
	case info.Check == nil:
		return Checked{}, fault.New(fault.InvalidRequest, "check the login "+name, "nobody has said how").
			WithHint("Add check: {url: …, text: …} to its entry in %s.", r.book.path)
	}
	user := store.NewID("chk")
	r.running(user, true)
	defer r.running(user, false)
	state, found, err := r.Checkout(ctx, name, user)
	if err != nil {
		return Checked{}, err
	}
	defer func() { _ = r.Release(context.WithoutCancel(ctx), name, user) }()
	if !found {
		return Checked{}, fault.New(fault.NotFound, "check the login "+name, "no state of it is saved here").
			WithHint("Log in once with tapin open URL --context %s.", name)
	}
	seen, failed := look.Look(ctx, *info.Check, state)
	out := Checked{At: time.Now().UTC()}
	out.Result, out.Reason = Judge(*info.Check, seen, failed)
	// Also when the caller has left: what the site gave out must not be lost.
	ctx = context.WithoutCancel(ctx)
	if out.Result == Valid && seen.State != nil {
		if _, err := r.Save(ctx, name, user, *seen.State, SaveOptions{}); err != nil {
			return out, err
		}
	}
	field := ""
	if out.Result == Valid {
		field = keyLastVerified
	}
	return out, r.fresh(ctx, name, field, func(rec *record, now time.Time) {
		rec.LastCheck = &out
		switch out.Result {
		case Valid:
			rec.verified(ByCheck, now)
		case Expired:
			rec.stale(FailedCheck, now)
		}
	})
}

// running remembers the checks under way, so that Reconcile leaves them alone.
func (r *Room) running(user string, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on {
		r.checks[user] = true
		return
	}
	delete(r.checks, user)
}

func (r *Room) checking(user string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checks[user]
}
