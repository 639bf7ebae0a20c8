package event

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Filter chooses entries of the journal; what is empty chooses all.
type Filter struct {
	Since   time.Time
	Who     string
	What    string // an operation, or what its name begins with up to a dot: session
	Session string
	Outcome string // ok, a code, or "failed" for everything but ok
}

func (f Filter) matches(e Entry) bool {
	switch {
	case e.At.Before(f.Since),
		f.Who != "" && e.Who != f.Who,
		f.What != "" && e.What != f.What && !strings.HasPrefix(e.What, strings.TrimSuffix(f.What, ".")+"."),
		f.Session != "" && e.Session != f.Session:
		return false
	case f.Outcome == "failed":
		return e.Outcome != "ok"
	}
	return f.Outcome == "" || e.Outcome == f.Outcome
}

// Recent returns the newest n entries that the filter chooses, oldest first,
// and whether there are more.
func (j *Journal) Recent(f Filter, n int) (entries []Entry, more bool, err error) {
	days, err := j.days()
	if err != nil {
		return nil, false, err
	}
	for _, day := range slices.Backward(days) {
		if day < f.Since.UTC().Format(time.DateOnly) {
			break
		}
		var ofDay []Entry
		err := j.home.ScanLog(journalFile(day), func(line []byte) error {
			var e Entry
			if json.Unmarshal(line, &e) == nil && f.matches(e) {
				ofDay = append(ofDay, e)
			}
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		entries = append(ofDay, entries...)
		if len(entries) > n {
			return entries[len(entries)-n:], true, nil
		}
	}
	return entries, false, nil
}

// Summary is what the journal says in figures.
type Summary struct {
	Entries  int
	Failed   int
	Sessions int
	First    time.Time
	Last     time.Time
	ByWhat   []Tally // the most frequent first
	ByWho    []Tally
	Outcomes []Tally
}

// Tally counts the entries of one name.
type Tally struct {
	Name   string
	Count  int
	Failed int
	Took   time.Duration // all of them together
}

// Summarize counts the entries that the filter chooses.
func (j *Journal) Summarize(f Filter) (Summary, error) {
	var s Summary
	what, who, outcomes, sessions := tallies{}, tallies{}, tallies{}, map[string]bool{}
	err := j.Scan(f.Since, func(e Entry) error {
		if !f.matches(e) {
			return nil
		}
		if s.Entries == 0 {
			s.First = e.At
		}
		s.Entries, s.Last = s.Entries+1, e.At
		if e.Outcome != "ok" {
			s.Failed++
		}
		if e.Session != "" {
			sessions[e.Session] = true
		}
		what.add(e.What, e)
		who.add(e.Who, e)
		outcomes.add(e.Outcome, e)
		return nil
	})
	s.Sessions, s.ByWhat, s.ByWho, s.Outcomes = len(sessions), what.sorted(), who.sorted(), outcomes.sorted()
	return s, err
}

type tallies map[string]*Tally

func (t tallies) add(name string, e Entry) {
	if t[name] == nil {
		t[name] = &Tally{Name: name}
	}
	t[name].Count++
	t[name].Took += e.Took
	if e.Outcome != "ok" {
		t[name].Failed++
	}
}

func (t tallies) sorted() []Tally {
	all := make([]Tally, 0, len(t))
	for _, one := range t {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
	})
	return all
}
