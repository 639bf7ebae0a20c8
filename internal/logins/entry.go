package logins

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"tapin/internal/site"
)

// Entry is what the manifest says of a login.
type Entry struct {
	Name                 string
	BrowserbaseContextID string
	Provider             string // local, browserbase or cdp; empty means the configured one
	Domain               string
	Notes                string
	LastUsed             Moment
	LastVerified         Moment
	Policy               *Policy
	Check                *Check

	// Problem is what is wrong with it, with line and column. An entry with a
	// problem is not used; the others are.
	Problem error
}

// Moment is a time as a person wrote it: a day, or exactly.
type Moment struct {
	At  time.Time
	Day bool // only the day is known
}

// IsZero reports whether there is none.
func (m Moment) IsZero() bool { return m.At.IsZero() }

func (m Moment) String() string {
	switch {
	case m.IsZero():
		return ""
	case m.Day:
		return m.At.UTC().Format(time.DateOnly)
	}
	return m.At.UTC().Format(time.RFC3339)
}

// Policy is the standing approval of payments that the owner has written down.
// Whether it is in force is decided elsewhere: the owner has to confirm it.
type Policy struct {
	MaxAmount     string // major units, such as 142.50
	AutoApprove   bool
	Currency      string // ISO; without it nothing is approved by itself
	MonthlyBudget string
	Expires       Moment
}

// Check tells how to find out whether a login still works: open URL, and see
// that Selector or Text is there.
type Check struct {
	URL      string
	Selector string
	Text     string
}

// The keys of the manifest.
const (
	keyContexts     = "contexts"
	keyBrowserbase  = "browserbase_context_id"
	keyLastUsed     = "last_used"
	keyLastVerified = "last_verified"
	keyDomain       = "domain"
	keyNotes        = "notes"
	keyProvider     = "provider"
	keyPolicy       = "payment_approval"
	keyCheck        = "check"
)

var (
	amountForm   = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,4})?$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
	providers    = []string{"local", "browserbase", "cdp"}
)

// entries reads the logins of a manifest in their order. It fails if the file
// as a whole cannot be understood.
func (d *document) entries() ([]Entry, error) {
	if d.root != nil && !isMap(d.root) {
		return nil, d.brokenAt(d.root, "the file must hold lines of key: value")
	}
	if l, ok := d.leaves[keyContexts]; ok && l.kind != kindMap && l.kind != kindNull {
		return nil, d.broken(l.line, l.column, "contexts must hold logins by their names")
	}
	if pair, _, _, err := d.find([]string{keyContexts}); err == nil && pair != nil {
		if _, list := bare(pair.Value).(*ast.SequenceNode); list {
			return nil, d.brokenAt(pair.Value, "contexts must hold logins by their names, not a list")
		}
	}
	names := d.children(keyContexts)
	for _, name := range names {
		if other := clashing(name, names); other != "" {
			l := d.first(keyContexts, name)
			return nil, d.broken(l.line, l.column, fmt.Sprintf("the logins %q and %q differ in upper and lower case alone", name, other))
		}
	}
	var out []Entry
	for _, name := range names {
		out = append(out, d.entry(name))
	}
	return out, nil
}

// first is the first value at or under a path.
func (d *document) first(path ...string) leaf {
	if l, ok := d.leaves[key(path...)]; ok {
		return l
	}
	for _, child := range d.children(path...) {
		return d.first(within(path, child)...)
	}
	return leaf{}
}

func (d *document) entry(name string) Entry {
	r := &entryReader{document: d, path: []string{keyContexts, name}}
	e := Entry{Name: name}
	if CheckName(name) != nil {
		r.problem(d.first(r.path...), "that cannot be the name of a login; use letters, digits, dots, dashes and underscores")
	}
	if l, ok := d.leaves[key(r.path...)]; ok && l.kind != kindMap && l.kind != kindNull {
		r.problem(l, "a login must hold lines of key: value")
	}
	e.BrowserbaseContextID = r.text(keyBrowserbase)
	e.Provider = r.checked(keyProvider, func(s string) bool { return slices.Contains(providers, s) }, "must be local, browserbase or cdp")
	e.Domain = r.checked(keyDomain, func(s string) bool { _, err := site.Of(s); return err == nil }, "must be a domain such as chase.com")
	e.Notes = r.text(keyNotes)
	e.LastUsed = r.moment(keyLastUsed)
	e.LastVerified = r.moment(keyLastVerified)
	e.Policy = r.policy()
	e.Check = r.check()
	e.Problem = r.err
	return e
}

// entryReader reads the known keys of an entry strictly and keeps the first
// problem. Unknown keys are somebody else's.
type entryReader struct {
	*document
	path []string
	err  error
}

func (r *entryReader) problem(at leaf, format string, args ...any) {
	if r.err == nil {
		r.err = r.broken(at.line, at.column, fmt.Sprintf(format, args...))
	}
}

func (r *entryReader) leaf(names ...string) (leaf, bool) {
	path := append(slices.Clone(r.path), names...)
	l, ok := r.leaves[key(path...)]
	if !ok && r.has(key(path...)) {
		r.problem(r.first(path...), "%s must be a single value", names[len(names)-1])
	}
	if ok && (l.kind == kindMap || l.kind == kindList) {
		r.problem(l, "%s must be a single value", names[len(names)-1])
		return leaf{}, false
	}
	return l, ok && l.kind != kindNull
}

// text is a value of words. A number is words too: a person who writes 123 as
// an id has not thought of YAML's types.
func (r *entryReader) text(names ...string) string {
	l, _ := r.leaf(names...)
	return l.text
}

func (r *entryReader) checked(name string, valid func(string) bool, must string) string {
	l, ok := r.leaf(name)
	if ok && !valid(l.text) {
		r.problem(l, "%s %s", name, must)
	}
	return l.text
}

func (r *entryReader) moment(names ...string) Moment {
	l, ok := r.leaf(names...)
	if !ok {
		return Moment{}
	}
	if day, err := time.Parse(time.DateOnly, l.text); err == nil {
		return Moment{day, true}
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05"} {
		if at, err := time.Parse(form, l.text); err == nil {
			return Moment{at.UTC(), false}
		}
	}
	r.problem(l, "%s must be a day such as 2026-02-06, or a time such as 2026-02-06T12:30:00Z", names[len(names)-1])
	return Moment{}
}

func (r *entryReader) policy() *Policy {
	if !r.section(keyPolicy) {
		return nil
	}
	p := &Policy{MaxAmount: r.amount("max_amount"), MonthlyBudget: r.amount("monthly_budget"), Expires: r.moment(keyPolicy, "expires")}
	if l, ok := r.leaf(keyPolicy, "auto_approve"); ok {
		if l.kind != kindBool {
			r.problem(l, "auto_approve must be true or false")
		}
		p.AutoApprove = l.text == "true"
	}
	if l, ok := r.leaf(keyPolicy, "currency"); ok {
		if !currencyForm.MatchString(l.text) {
			r.problem(l, "currency must be three letters such as USD")
		}
		p.Currency = l.text
	}
	return p
}

func (r *entryReader) amount(name string) string {
	l, ok := r.leaf(keyPolicy, name)
	if ok && (!amountForm.MatchString(l.text) || l.kind == kindBool) {
		r.problem(l, "%s must be an amount such as 200 or 142.50", name)
	}
	return l.text
}

func (r *entryReader) check() *Check {
	if !r.section(keyCheck) {
		return nil
	}
	c := &Check{URL: r.text(keyCheck, "url"), Selector: r.text(keyCheck, "selector"), Text: r.text(keyCheck, "text")}
	at := r.first(append(slices.Clone(r.path), keyCheck)...)
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		r.problem(at, "check.url must be an address such as https://chase.com/account")
	}
	if (c.Selector == "") == (c.Text == "") {
		r.problem(at, "check needs a selector or a text, one of them")
	}
	return c
}

// section reports whether something is written under a key that holds others.
func (r *entryReader) section(name string) bool {
	path := within(r.path, name)
	if l, ok := r.leaves[key(path...)]; ok {
		if l.kind != kindMap && l.kind != kindNull {
			r.problem(l, "%s must hold lines of key: value", name)
		}
		return false
	}
	return r.has(key(path...))
}
