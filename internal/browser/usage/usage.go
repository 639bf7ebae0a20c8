// Package usage is the account of browsers that cost by the minute.
// It owns one file in the home: what runs now, and what each month came to.
// It must never forget a browser that may still run, nor count one twice.
package usage

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
)

const (
	file = "usage.json"
	// least is what the shortest browser counts for: providers bill a minute.
	least = time.Minute
	// monthsKept bounds the file.
	monthsKept = 24
)

// Browser is one that may still run.
type Browser struct {
	ID       string    `json:"id"`       // our name for it
	Provider string    `json:"provider"` // who bills it
	Remote   string    `json:"remote,omitempty"`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"` // when it ends by itself at the latest
}

// Month is what the browsers of one provider came to.
type Month struct {
	Sessions int   `json:"sessions"`
	Seconds  int64 `json:"seconds"`
}

// account is the file.
type account struct {
	Open   map[string]Browser          `json:"open"`
	Months map[string]map[string]Month `json:"months"` // by 2006-01 and provider
}

func (a *account) note(b Browser) {
	if a.Open == nil {
		a.Open = map[string]Browser{}
	}
	a.Open[b.ID] = b
}

func (a *account) count(month, provider string, seconds int64) {
	if a.Months == nil {
		a.Months = map[string]map[string]Month{}
	}
	if a.Months[month] == nil {
		a.Months[month] = map[string]Month{}
	}
	m := a.Months[month][provider]
	a.Months[month][provider] = Month{m.Sessions + 1, m.Seconds + seconds}
	for len(a.Months) > monthsKept {
		delete(a.Months, slices.Min(slices.Collect(maps.Keys(a.Months))))
	}
}

// Options are the settings of a ledger; nil means the defaults.
type Options struct {
	CapMinutes int // of a calendar month, over all providers; 0 means no limit
	Logger     *slog.Logger
}

// Ledger is the account of one home. A nil ledger keeps none. It is safe for
// concurrent use.
type Ledger struct {
	opts Options
	log  *slog.Logger

	mu   sync.Mutex
	acc  account
	kept *store.Truth[account]
}

// Open reads the account of a home. While it cannot be read no browser is asked
// for: nobody knows what runs already, nor what is left of a cap.
func Open(home *store.Home, opts *Options) *Ledger {
	l := &Ledger{log: slog.New(slog.DiscardHandler)}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.Logger != nil {
		l.log = l.opts.Logger
	}
	l.kept = store.OpenTruth(home, file, &l.acc, func(acc *account) error {
		if acc.Open == nil { // one that was ever written has some, or had
			return errors.New("it is not what tapin wrote")
		}
		return nil
	})
	return l
}

// Ready is nil if the account can be read, and else says why not.
func (l *Ledger) Ready() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.Ready()
}

// Ask notes a browser before it is asked for, and tells how long it may run: a
// cap leaves less, or nothing at all, which is DISABLED. What runs already is
// counted with all that it may come to, so that the cap holds whatever happens.
func (l *Ledger) Ask(id, provider string, wanted time.Duration) (time.Duration, error) {
	if l == nil {
		return wanted, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.kept.Ready(); err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	if l.opts.CapMinutes > 0 {
		left := time.Duration(l.opts.CapMinutes)*time.Minute - l.spent(now)
		if left < least {
			return 0, fault.New(fault.Disabled, "use a billed browser", "the cap of %d minutes for this month is used up or spoken for", l.opts.CapMinutes).
				WithHint("The owner can raise usage.cap_minutes in config.yaml; tapin usage tells what was used. provider: local costs nothing.")
		}
		wanted = min(wanted, left)
	}
	next := l.copy()
	next.note(Browser{ID: id, Provider: provider, Since: now, Until: now.Add(wanted)})
	return wanted, l.write(next)
}

// Begin notes that a browser runs, and under which name.
func (l *Ledger) Begin(id, remote string, since, until time.Time) {
	l.change(id, func(next *account, b Browser) {
		b.Remote = remote
		if !since.IsZero() {
			b.Since = since.UTC()
		}
		if !until.IsZero() {
			b.Until = until.UTC()
		}
		next.note(b)
	})
}

// Drop notes that a browser was never made.
func (l *Ledger) Drop(id string) {
	l.change(id, func(next *account, b Browser) {
		if b.Remote == "" {
			delete(next.Open, id)
		}
	})
}

// End counts a browser that is over, once.
func (l *Ledger) End(id string, at time.Time) {
	l.change(id, func(next *account, b Browser) {
		delete(next.Open, id)
		if at.IsZero() || at.After(b.Until.Add(least)) {
			at = b.Until
		}
		next.count(b.Since.UTC().Format("2006-01"), b.Provider, int64(max(at.Sub(b.Since), least).Round(time.Second)/time.Second))
	})
}

// Running are the browsers of a provider that may still run, by their names; no
// provider means all.
func (l *Ledger) Running(provider string) []Browser {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Browser
	for _, b := range l.acc.Open {
		if provider == "" || b.Provider == provider {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b Browser) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Report is what a month came to so far.
type Report struct {
	Month      string
	CapMinutes int
	Providers  map[string]Month // what is over, and what runs up to now
	Running    []Browser
}

// Minutes are those of all providers, begun ones as whole ones.
func (r Report) Minutes() int {
	var seconds int64
	for _, m := range r.Providers {
		seconds += m.Seconds
	}
	return int((seconds + 59) / 60)
}

// Report tells of the month that a time is in.
func (l *Ledger) Report(at time.Time) Report {
	at = at.UTC()
	out := Report{Month: at.Format("2006-01"), Providers: map[string]Month{}}
	if l == nil {
		return out
	}
	out.CapMinutes, out.Running = l.opts.CapMinutes, l.Running("")
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(out.Providers, l.acc.Months[out.Month])
	for _, b := range out.Running {
		if b.Since.Format("2006-01") != out.Month || b.Remote == "" {
			continue
		}
		m := out.Providers[b.Provider]
		m.Sessions++
		m.Seconds += int64(max(min(at.Sub(b.Since), b.Until.Sub(b.Since)), least) / time.Second)
		out.Providers[b.Provider] = m
	}
	return out
}

// spent is what this month came to and may still come to. Called with the lock held.
func (l *Ledger) spent(now time.Time) time.Duration {
	month := now.Format("2006-01")
	var total time.Duration
	for _, m := range l.acc.Months[month] {
		total += time.Duration(m.Seconds) * time.Second
	}
	for _, b := range l.acc.Open {
		if b.Since.Format("2006-01") == month {
			total += max(b.Until.Sub(b.Since), least)
		}
	}
	return total
}

// change writes the next account. What is on the disk must not be behind: a
// browser that is noted and does not run is found out, the other way round not.
func (l *Ledger) change(id string, apply func(next *account, b Browser)) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.acc.Open[id]
	if !ok {
		return
	}
	next := l.copy()
	apply(&next, b)
	if err := l.write(next); err != nil {
		l.log.Warn("the account of billed browsers could not be written", "browser", id, "error", err)
	}
}

func (l *Ledger) copy() account {
	next := account{Open: maps.Clone(l.acc.Open), Months: maps.Clone(l.acc.Months)}
	for month, providers := range next.Months {
		next.Months[month] = maps.Clone(providers)
	}
	return next
}

func (l *Ledger) write(next account) error {
	if err := l.kept.Write(next); err != nil {
		return err
	}
	l.acc = next
	return nil
}
