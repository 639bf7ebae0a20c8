package insight

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tapin/internal/store"
)

const (
	file        = "figures.json"
	bookVersion = 1
	// sitesADay bounds the file: beyond it sites are counted together.
	sitesADay = 100

	noSite     = "(none)"
	otherSites = "(others)"
)

// book is the file: how far records were counted, and what they came to. What it
// holds is usable as it comes out of a file: a map that is not in there is nil.
type book struct {
	Version  int `json:"version"`
	Handoffs struct {
		Place uint64   `json:"place"` // everything up to here is counted, but for what is open
		Open  []string `json:"open,omitempty"`
	} `json:"handoffs"`
	Payments struct {
		Last   string   `json:"last,omitempty"`
		Recent []string `json:"recent,omitempty"` // counted although they come after last
		Open   []string `json:"open,omitempty"`
	} `json:"payments"`
	Days map[string]*day `json:"days"` // by 2006-01-02, when it was asked for
}

// day is what came of everything that was asked for on it.
type day struct {
	Cells     []cell         `json:"cells,omitempty"`
	Takeovers int            `json:"takeovers,omitempty"`
	Payments  map[string]int `json:"payments,omitempty"` // by what became of them
	Paid      map[string]sum `json:"paid,omitempty"`     // by currency
	Perhaps   map[string]sum `json:"perhaps,omitempty"`
}

// cell is what one reason came to on one site.
type cell struct {
	Site   string         `json:"site"`
	Reason string         `json:"reason"`
	Ends   map[string]int `json:"ends"`
	Human  spread         `json:"human,omitempty"` // until a person was there
	Done   spread         `json:"done,omitempty"`  // until it was unblocked
}

// sum is money of one currency, in its smallest unit.
type sum struct {
	Minor    int64 `json:"minor"`
	Payments int   `json:"payments"`
}

// What can become of a payment.
const (
	byOwner       = "by_owner"
	byPolicy      = "by_policy"
	denied        = "denied"
	unanswered    = "unanswered"
	allowedUnpaid = "allowed_unpaid"
)

// readBook reads the file. One that cannot be used is made anew: all that is in
// it stands in the records too. last is the number of the newest record: figures
// that have read beyond it are of another list.
func readBook(home *store.Home, last uint64) book {
	if b, ok := store.Derived(home, file, func(b *book) error {
		if b.Handoffs.Place > last {
			return fmt.Errorf("it counts %d hand-offs, and there were %d", b.Handoffs.Place, last)
		}
		return b.check()
	}); ok {
		return b
	}
	return book{Version: bookVersion}
}

// check refuses what this program cannot have written.
func (b *book) check() error {
	if b.Version != bookVersion {
		return fmt.Errorf("it has version %d, not %d", b.Version, bookVersion)
	}
	for name, d := range b.Days {
		if _, err := time.Parse(time.DateOnly, name); err != nil || d == nil {
			return errors.New("it has a day that is none")
		}
		for _, c := range d.Cells {
			if c.Site == "" || c.Reason == "" || len(c.Ends) == 0 {
				return errors.New("it counts what is nothing")
			}
		}
	}
	return nil
}

func (b *book) day(at time.Time) *day {
	if b.Days == nil {
		b.Days = map[string]*day{}
	}
	name := at.UTC().Format(time.DateOnly)
	if b.Days[name] == nil {
		b.Days[name] = &day{}
	}
	return b.Days[name]
}

// forget drops the days before one.
func (b *book) forget(before time.Time) (some bool) {
	oldest := before.UTC().Format(time.DateOnly)
	for name := range b.Days {
		if name < oldest {
			delete(b.Days, name)
			some = true
		}
	}
	return some
}

// count adds a hand-off that is over.
func (b *book) count(h Handoff) {
	d := b.day(h.Created)
	if h.Takeover {
		d.Takeovers++
		return
	}
	c := d.cell(h.Site, h.Reason)
	if c.Ends == nil {
		c.Ends = map[string]int{}
	}
	c.Ends[h.End]++
	if h.Called && !h.Met.IsZero() {
		c.Human.add(h.Met.Sub(h.Created))
	}
	if h.End == Unblocked {
		c.Done.add(h.Ended.Sub(h.Created))
	}
}

// cell is where a site's hand-offs for a reason are counted, until the next one is made.
func (d *day) cell(site, reason string) *cell {
	if site == "" {
		site = noSite
	}
	sites := map[string]bool{}
	for i, c := range d.Cells {
		if c.Site == site && c.Reason == reason {
			return &d.Cells[i]
		}
		sites[c.Site] = true
	}
	if site != otherSites && !sites[site] && len(sites) >= sitesADay {
		return d.cell(otherSites, reason)
	}
	d.Cells = append(d.Cells, cell{Site: site, Reason: reason})
	return &d.Cells[len(d.Cells)-1]
}

// countPayment adds a payment that is over.
func (b *book) countPayment(p Payment) {
	d := b.day(p.Created)
	if d.Payments == nil {
		d.Payments = map[string]int{}
	}
	switch {
	case p.Denied:
		d.Payments[denied]++
	case p.Approved == "":
		d.Payments[unanswered]++
	case p.Approved == "policy":
		d.Payments[byPolicy]++
	default:
		d.Payments[byOwner]++
	}
	switch {
	case p.Paid:
		d.Paid = add(d.Paid, p)
	case p.Perhaps:
		d.Perhaps = add(d.Perhaps, p)
	case p.Approved != "" && !p.Denied:
		d.Payments[allowedUnpaid]++
	}
}

func add(sums map[string]sum, p Payment) map[string]sum {
	if sums == nil {
		sums = map[string]sum{}
	}
	s := sums[string(p.Sum.Currency)]
	sums[string(p.Sum.Currency)] = sum{s.Minor + p.Sum.Minor, s.Payments + 1}
	return sums
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
