// Package taskrun keeps runs: what an agent set out to do, how far it came, and
// the evidence for it. It owns the run records and the rule that one piece of
// evidence counts once. It must never lose a pointer that it has acknowledged,
// nor keep a text that may hold a secret.
package taskrun

import (
	"slices"
	"strings"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// Status is where a run stands. The last three are final.
type Status string

// The states of a run.
const (
	Running   Status = "RUNNING"
	NeedsHelp Status = "NEEDS_HELP"
	Completed Status = "COMPLETED"
	Failed    Status = "FAILED"
	Cancelled Status = "CANCELLED"
)

// Statuses lists all states.
func Statuses() []Status { return []Status{Running, NeedsHelp, Completed, Failed, Cancelled} }

// Ends lists the states that end a run.
func Ends() []Status { return []Status{Completed, Failed, Cancelled} }

const (
	maxGoal     = 2 << 10
	maxNote     = 2 << 10
	maxKind     = 64
	maxRef      = 512
	maxSummary  = 1 << 10
	maxNotes    = 100 // the newest are kept
	maxEvidence = 500
)

// Evidence is a pointer to something that was done.
type Evidence struct {
	Kind    string    `json:"kind"`
	Ref     string    `json:"ref"`
	Summary string    `json:"summary,omitempty"`
	At      time.Time `json:"at"`
}

// Note is a word of the agent on how far it came.
type Note struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Record is one run as it stands in meta.json.
type Record struct {
	ID         string       `json:"run_id"`
	Version    int          `json:"version"`
	Status     Status       `json:"status"`
	Goal       string       `json:"goal"`
	Notes      []Note       `json:"notes,omitempty"`
	Help       string       `json:"help,omitempty"` // what is needed, while it is
	Summary    string       `json:"summary,omitempty"`
	Evidence   []Evidence   `json:"evidence"`
	CreatedAt  time.Time    `json:"created_at"`
	UpdatedAt  time.Time    `json:"updated_at"`
	FinishedAt time.Time    `json:"finished_at,omitzero"`
	Outbox     event.Outbox `json:"outbox,omitempty"`
}

// IsOver reports whether the run has ended. Evidence can still come.
func (r Record) IsOver() bool { return slices.Contains(Ends(), r.Status) }

// happening is what can happen to a run.
type happening struct {
	kind string // one of those below
	at   time.Time
	text string // a note, what help is needed, or the summary
	end  Status
	what Evidence
}

const (
	starts   = "started"
	updates  = "updated"
	asks     = "needs_help"
	ends     = "completed"
	provides = "evidence"
)

// next decides what becomes of a run. Nothing changed and no error means that
// it was so already.
func next(r Record, e happening) (Record, bool, error) {
	r.Notes, r.Evidence, r.Outbox = slices.Clone(r.Notes), slices.Clone(r.Evidence), slices.Clone(r.Outbox)
	switch e.kind {
	case provides:
		same := func(have Evidence) bool { return have.Kind == e.what.Kind && have.Ref == e.what.Ref }
		if slices.ContainsFunc(r.Evidence, same) {
			return r, false, nil
		}
		if len(r.Evidence) >= maxEvidence {
			return r, false, fault.New(fault.PayloadTooLarge, "add evidence to "+r.ID, "it has %d pieces already", maxEvidence).
				WithHint("Start another run for what follows.")
		}
		r.Evidence = append(r.Evidence, e.what)
	case ends:
		if r.Status == e.end {
			return r, false, nil // the first result stands
		}
		if r.IsOver() {
			return r, false, over(r)
		}
		r.Status, r.Summary, r.Help, r.FinishedAt = e.end, e.text, "", e.at
	case updates, asks:
		if r.IsOver() {
			return r, false, over(r)
		}
		r.Status, r.Help = Running, ""
		if e.kind == asks {
			r.Status, r.Help = NeedsHelp, e.text
		} else if e.text != "" {
			r.Notes = append(r.Notes, Note{Text: e.text, At: e.at})
			r.Notes = r.Notes[max(0, len(r.Notes)-maxNotes):]
		}
	}
	r.UpdatedAt = e.at
	r.Version++
	return r, true, nil
}

func over(r Record) error {
	return fault.New(fault.InvalidRequest, "change "+r.ID, "the run is %s", r.Status).With("run_id", r.ID).With("status", string(r.Status)).
		WithHint("Start another one with POST /task-run/start.")
}

// text is a text after the secret rules; one that is too long is refused.
func text(field, s string, most int) (string, error) {
	if len(s) > most {
		return "", fault.New(fault.InvalidRequest, "", "%s is over %d bytes", field, most).With("field", field)
	}
	return secret.Conceal(strings.TrimSpace(s)), nil
}
