package session

import (
	"context"
	"slices"
	"sync"

	"tapin/internal/page"
)

// maxTheirs is how many downloads of people a record remembers: as many as a
// browser lists.
const maxTheirs = 100

// begun remembers who began which download, so that what a person loaded is not
// told to the agent once the wheel is back. It is safe for concurrent use.
type begun struct {
	mu sync.Mutex
	by map[string]map[string]bool // session, download: whether it is a person's
}

// know takes over what a record says.
func (b *begun) know(session string, theirs []string) {
	for _, id := range theirs {
		b.note(session, id, true)
	}
}

// note tells whose a download is. The first who is said to have begun it has:
// a browser tells of it again to each that comes.
func (b *begun) note(session, download string, person bool) (theirs, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[string]map[string]bool{}
	}
	of := b.by[session]
	if of == nil {
		of = map[string]bool{}
		b.by[session] = of
	}
	if theirs, ok := of[download]; ok {
		return theirs, false
	}
	of[download] = person
	return person, true
}

func (b *begun) isTheirs(session, download string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[session][download]
}

func (b *begun) forget(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.by, session)
}

// Downloads are the files that pages sent; to the agent only its own. It waits
// for nobody's turn.
func (s *Session) Downloads(ctx context.Context) ([]page.Download, error) {
	if err := s.permit(ctx); err != nil {
		return nil, err
	}
	all := s.view().tabs.Downloads()
	if driverOf(ctx) == Owner {
		return all, nil
	}
	return slices.DeleteFunc(all, func(d page.Download) bool { return s.host.begun.isTheirs(s.ID(), d.ID) }), nil
}

// theirs tells whether a download is a person's: whoever had the wheel last
// when it began has begun it. What is a person's is kept on record.
func (h *Host) theirs(rec *record, of *Session, download string) bool {
	var person bool
	if of != nil {
		person = of.inPersonsHands()
	} else {
		_, _, person = h.holder(rec.ID) // it is being picked up again
	}
	theirs, fresh := h.begun.note(rec.ID, download, person)
	if theirs && fresh {
		h.pass(place{rec: rec, download: download})
	}
	return theirs
}

// inPersonsHands reports whether a person has the wheel, or had it and nobody
// has touched it since: what they asked for may arrive after they said "done".
func (s *Session) inPersonsHands() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.handoff != "" || s.left
}

// touchedByAgent ends what a person left behind.
func (s *Session) touchedByAgent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = false
}

// sawDownload remembers a person's download, so that it is theirs after a
// restart too.
func (h *Host) sawDownload(rec *record, download string) {
	err := h.records.change(context.WithoutCancel(h.life), rec, "", func(r *record) {
		r.Theirs = append(slices.Clone(r.Theirs), download)
		r.Theirs = r.Theirs[max(0, len(r.Theirs)-maxTheirs):]
	})
	if err != nil {
		h.log.Warn("that a download is a person's could not be kept", "error", err)
	}
}
