package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"sync"
	"time"

	"tapin/internal/store"
)

const (
	journalFolder      = "journal"
	journalPrefix      = "journal-"
	journalSuffix      = ".jsonl"
	defaultJournalDays = 30
)

// Entry is one operation in the journal. It has no room for arguments: what
// was typed, searched or sent never gets here.
type Entry struct {
	At      time.Time
	Who     string         // agent, owner, or the part of tapin that acted by itself
	What    string         // the operation, such as session.click
	Session string         // its id, if there was one
	Origin  string         // of the page, without path
	Counts  map[string]int // how many characters, cookies, keys
	Took    time.Duration
	Outcome string // ok, or the code of the fault
}

// entryJSON is an Entry as it stands in the file.
type entryJSON struct {
	At      time.Time      `json:"at"`
	Who     string         `json:"who"`
	What    string         `json:"what"`
	Session string         `json:"session,omitempty"`
	Origin  string         `json:"origin,omitempty"`
	Counts  map[string]int `json:"counts,omitempty"`
	TookMS  float64        `json:"took_ms"`
	Outcome string         `json:"outcome"`
}

// MarshalJSON writes the duration in milliseconds.
func (e Entry) MarshalJSON() ([]byte, error) {
	took := float64(e.Took.Microseconds()) / 1000
	return json.Marshal(entryJSON{e.At, e.Who, e.What, e.Session, e.Origin, e.Counts, took, e.Outcome})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var j entryJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	took := time.Duration(j.TookMS*1000) * time.Microsecond
	*e = Entry{j.At, j.Who, j.What, j.Session, j.Origin, j.Counts, took, j.Outcome}
	return nil
}

// JournalOptions are the settings of a journal; nil means the defaults.
type JournalOptions struct {
	Days   int // how many days are kept, today included; 0 means 30, less than 0 for ever
	Logger *slog.Logger
}

// Journal keeps one line for each operation, in one file a day (UTC). Several
// processes may write it; it is safe for concurrent use.
type Journal struct {
	home *store.Home
	opts JournalOptions

	mu  sync.Mutex
	day string
	log *store.Log
}

// NewJournal is the journal of a home.
func NewJournal(home *store.Home, opts *JournalOptions) *Journal {
	j := &Journal{home: home}
	if opts != nil {
		j.opts = *opts
	}
	if j.opts.Days == 0 {
		j.opts.Days = defaultJournalDays
	}
	if j.opts.Logger == nil {
		j.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return j
}

// Write adds an entry; a zero At means now. It survives a kill, but is not
// forced to the disk: an operation does not wait for its own account.
func (j *Journal) Write(e Entry) error {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.UTC().Round(0)
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.turnTo(e.At); err != nil {
		return err
	}
	return j.log.Append(line)
}

// Scan calls fn with the entries since then, oldest first.
func (j *Journal) Scan(since time.Time, fn func(Entry) error) error {
	days, err := j.days()
	if err != nil {
		return err
	}
	since = since.UTC()
	for _, day := range days {
		if day < since.Format(time.DateOnly) {
			continue
		}
		err := j.home.ScanLog(journalFile(day), func(line []byte) error {
			var e Entry
			if readable := json.Unmarshal(line, &e) == nil; readable && !e.At.Before(since) {
				return fn(e)
			}
			return nil
		})
		if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
			j.opts.Logger.Warn("a day of the journal cannot be read and is left out", "day", day, "error", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close closes the journal. It may be called more than once.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.log == nil {
		return nil
	}
	log := j.log
	j.log, j.day = nil, ""
	return log.Close()
}

// turnTo opens the file of a day, and lets go of days past retention.
func (j *Journal) turnTo(at time.Time) error {
	day := at.Format(time.DateOnly)
	if j.log != nil && day == j.day {
		return nil
	}
	log, err := j.home.OpenLog(journalFile(day), &store.LogOptions{NoSync: true})
	if err != nil {
		return err
	}
	if j.log != nil {
		_ = j.log.Close() // every line in it was written already
	}
	j.log, j.day = log, day

	if j.opts.Days < 0 {
		return nil
	}
	days, err := j.days()
	if err != nil {
		return err
	}
	oldest := time.Now().UTC().AddDate(0, 0, 1-j.opts.Days).Format(time.DateOnly)
	for _, d := range days {
		if d >= oldest || d == day {
			continue
		}
		if err := j.home.Remove(journalFile(d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.opts.Logger.Warn("could not remove an old journal", "day", d, "err", err)
		}
	}
	return nil
}

// days lists the days there are files for, in order.
func (j *Journal) days() ([]string, error) {
	names, err := j.home.List(journalFolder)
	if err != nil {
		return nil, err
	}
	var days []string
	for _, name := range names {
		day, ok := strings.CutPrefix(name, journalPrefix)
		if !ok {
			continue
		}
		day, ok = strings.CutSuffix(day, journalSuffix)
		if _, err := time.Parse(time.DateOnly, day); ok && err == nil {
			days = append(days, day)
		}
	}
	return days, nil
}

func journalFile(day string) string {
	return path.Join(journalFolder, journalPrefix+day+journalSuffix)
}
