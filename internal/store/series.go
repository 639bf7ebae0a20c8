package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"tapin/internal/fault"
)

// seriesSegment is how many entries one file of a series holds. A page of the
// series costs a file or two, however long it has become.
const seriesSegment = 256

// Entry is one place of a series.
type Entry struct {
	Seq uint64    `json:"n"` // from 1, in the order of arrival
	ID  string    `json:"id"`
	At  time.Time `json:"at"`
}

// Series is a durable list of ids that grows at its end and is forgotten from
// its beginning. Neither an entry nor a page of it costs more when there are
// many. One process at a time appends to it; within that it is safe for
// concurrent use.
type Series struct {
	home   *Home
	folder string
	size   uint64 // entries in a file

	mu    sync.Mutex
	first uint64 // the oldest segment there is
	last  uint64 // the highest number ever given
	log   *Log   // of the newest segment; nil until something is appended
	name  string // of log
}

// OpenSeries opens the series kept in folder. It looks at the newest file only.
func (h *Home) OpenSeries(folder string) (*Series, error) {
	return h.openSeries(folder, seriesSegment)
}

func (h *Home) openSeries(folder string, size uint64) (*Series, error) {
	s := &Series{home: h, folder: folder, size: size}
	names, err := h.List(folder)
	if err != nil {
		return nil, err
	}
	newest, some := uint64(0), false
	for _, name := range names { // sorted, as their numbers are
		segment, ok := segmentOf(name)
		if !ok {
			continue
		}
		if !some {
			s.first = segment
		}
		newest, some = segment, true
	}
	if !some {
		return s, nil
	}
	s.last, err = s.newestIn(newest)
	if errors.Is(err, fault.Unreadable) {
		// What was given in it is not known, so it is taken for full.
		s.last, err = (newest+1)*s.size, nil
	}
	return s, err
}

// Last is the highest number ever given, as far as is known.
func (s *Series) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// newestIn is the number of the last entry in a file, or of the one before its first.
// Whoever opens a series waits for this, so only that line is looked at.
func (s *Series) newestIn(segment uint64) (uint64, error) {
	lines, err := s.home.Read(s.file(segment))
	if err != nil {
		return 0, err
	}
	if len(lines) == 0 {
		return segment * s.size, nil // killed before its first line
	}
	lines, _, whole := cutLast(lines) // what is not a whole line was never written
	for whole {
		var line []byte
		lines, line, whole = cutLast(lines)
		if e, ok := s.entry(line, segment); ok {
			return e.Seq, nil
		}
	}
	// It has lost lines, and with them the knowledge which numbers were given.
	return 0, s.home.Unreadable(s.file(segment), errors.New("no line of it is what tapin wrote"))
}

// cutLast cuts off the last line.
func cutLast(lines []byte) (before, last []byte, found bool) {
	at := bytes.LastIndexByte(lines, '\n')
	return lines[:max(at, 0)], lines[at+1:], at >= 0
}

// Append adds an entry. When it returns nil the entry survives a power cut.
func (s *Series) Append(id string, at time.Time) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Entry{Seq: s.last + 1, ID: id, At: at.UTC().Round(0)}
	line, err := json.Marshal(e)
	if err != nil {
		return Entry{}, fmt.Errorf("list %s: %w", id, err)
	}
	if err := s.turn(s.file(s.segmentWith(e.Seq))); err != nil {
		return Entry{}, err
	}
	if err := s.log.Append(line); err != nil {
		return Entry{}, err
	}
	s.last = e.Seq
	return e, nil
}

// Before returns up to limit entries with a lower number than seq, the newest
// first; a seq of 0 means from the newest on.
func (s *Series) Before(seq uint64, limit int) ([]Entry, error) {
	s.mu.Lock()
	last, first := s.last, s.first
	s.mu.Unlock()
	if seq == 0 || seq > last {
		seq = last + 1
	}
	var found []Entry
	for segment := s.segmentWith(max(seq, 2) - 1); seq > 1 && len(found) < limit; segment-- {
		var part []Entry
		if err := s.scan(segment, func(e Entry) {
			if e.Seq < seq {
				part = append(part, e)
			}
		}); err != nil {
			return nil, err
		}
		for i := len(part) - 1; i >= 0 && len(found) < limit; i-- {
			found = append(found, part[i])
		}
		if segment <= first {
			break
		}
	}
	return found, nil
}

// After returns up to limit entries with a higher number than seq, the oldest
// first.
func (s *Series) After(seq uint64, limit int) ([]Entry, error) {
	s.mu.Lock()
	last, first := s.last, s.first
	s.mu.Unlock()
	var found []Entry
	for segment := max(s.segmentWith(seq+1), first); seq < last && segment <= s.segmentWith(last) && len(found) < limit; segment++ {
		if err := s.scan(segment, func(e Entry) {
			if e.Seq > seq && e.Seq <= last && len(found) < limit {
				found = append(found, e)
			}
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Oldest returns the entries of the oldest file, and whether there is a newer
// one, so that DropOldest would drop it.
func (s *Series) Oldest() (entries []Entry, droppable bool, err error) {
	s.mu.Lock()
	segment, last := s.first, s.last
	s.mu.Unlock()
	err = s.scan(segment, func(e Entry) { entries = append(entries, e) })
	// One that cannot be read, or not all of it, stays for somebody to look at.
	whole := uint64(len(entries)) == s.size
	return entries, last > (segment+1)*s.size && whole, err
}

// DropOldest forgets the oldest file. The newest stays: numbers are never
// given twice.
func (s *Series) DropOldest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last <= (s.first+1)*s.size {
		return nil
	}
	if err := s.home.RemoveAll(s.file(s.first)); err != nil {
		return err
	}
	s.first++
	return nil
}

// Close lets go of the file. It may be called more than once.
func (s *Series) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil {
		return nil
	}
	log := s.log
	s.log, s.name = nil, ""
	return log.Close()
}

// turn has the log of that name open for the next line.
func (s *Series) turn(name string) error {
	if s.log != nil && s.name == name {
		return nil
	}
	log, err := s.home.OpenLog(name, nil)
	if err != nil {
		return err
	}
	if s.log != nil {
		_ = s.log.Close() // every line of it is on the disk
	}
	s.log, s.name = log, name
	return nil
}

func (s *Series) scan(segment uint64, fn func(Entry)) error {
	err := s.home.ScanLog(s.file(segment), func(line []byte) error {
		if e, ok := s.entry(line, segment); ok {
			fn(e)
		}
		return nil
	})
	if errors.Is(err, fault.Unreadable) {
		return nil // the home tells of it; what the other files list is listed
	}
	return err
}

// entry is what a line of a file says, if that belongs there.
func (s *Series) entry(line []byte, segment uint64) (e Entry, ok bool) {
	err := json.Unmarshal(line, &e)
	return e, err == nil && e.ID != "" && s.segmentWith(e.Seq) == segment
}

func (s *Series) file(segment uint64) string {
	return path.Join(s.folder, fmt.Sprintf("%012d.jsonl", segment))
}

// segmentWith is the file that holds a number.
func (s *Series) segmentWith(seq uint64) uint64 { return (max(seq, 1) - 1) / s.size }

func segmentOf(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".jsonl")
	if !ok || len(digits) != 12 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}
