package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
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

	mu       sync.Mutex
	segments []uint64 // the files there are, the oldest first
	last     uint64   // the highest number ever given
	log      *Log     // of the newest segment; nil until something is appended
	name     string   // of log
}

const (
	// lastSegment is the last that a name has room for and a reader of JSON can
	// tell from its neighbours. What claims to come later is not of the series.
	lastSegment = 1 << 40 / seriesSegment
	// farSegment is how far a file without an entry may lie beyond the one before.
	farSegment = 1 << 10
)

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
	for _, name := range names { // sorted, as their numbers are
		if segment, ok := segmentOf(name); ok && segment <= lastSegment {
			s.segments = append(s.segments, segment)
		} else if ok {
			h.log.Warn("left out what is not of the list", "file", path.Join(folder, name))
		}
	}
	for n := len(s.segments); n > 0; n = len(s.segments) {
		newest := s.segments[n-1]
		last, some, err := s.newestIn(newest)
		if errors.Is(err, fault.Unreadable) {
			// What was given in it is not known, so it is taken for full.
			last, err = (newest+1)*s.size, nil
		}
		if err != nil {
			return nil, err
		}
		if n > 1 && !some && newest-s.segments[n-2] > farSegment {
			h.log.Warn("left out what is not of the list", "file", s.file(newest))
			s.segments = s.segments[:n-1]
			continue
		}
		s.last = last
		break
	}
	return s, nil
}

// Last is the highest number ever given, as far as is known.
func (s *Series) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// newestIn is the highest number that was given in a file, or that before its
// first, and whether it has an entry at all. Whoever opens a series waits for
// this, so that only the newest file is looked at.
func (s *Series) newestIn(segment uint64) (last uint64, some bool, err error) {
	name := s.file(segment)
	last = segment * s.size
	lines := 0
	err = s.home.scanAll(name, func(line []byte) {
		lines++
		if e, ok := s.entry(line, segment); ok {
			last, some = max(last, e.Seq), true
			return
		}
		last = max(last, s.lostIn(line, segment))
	})
	if err != nil {
		return 0, false, err
	}
	if lost, foreign := s.home.foreignEnd(name); foreign {
		last = max(last, s.lostIn(lost, segment))
	}
	for _, aside := range s.home.asideOf(name) { // an end that was cut off is kept there
		if err := s.home.scanAll(aside, func(line []byte) { last = max(last, s.lostIn(line, segment)) }); err != nil {
			continue // nothing more can be known of it
		}
		if lost, foreign := s.home.foreignEnd(aside); foreign {
			last = max(last, s.lostIn(lost, segment))
		}
	}
	if lines > 0 && last == segment*s.size {
		// It has lost lines, and with them the knowledge which numbers were given.
		return 0, false, s.home.Unreadable(name, errors.New("no line of it is what tapin wrote"))
	}
	return last, some, nil
}

var entryNumber = regexp.MustCompile(`"n":(\d{1,19}),"id":"`)

// lostIn is the highest number of the entries that a damaged line still shows.
func (s *Series) lostIn(line []byte, segment uint64) (last uint64) {
	for _, found := range entryNumber.FindAllSubmatch(line, -1) {
		if n, err := strconv.ParseUint(string(found[1]), 10, 64); err == nil && n > 0 && s.segmentWith(n) == segment {
			last = max(last, n)
		}
	}
	return last
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
	if segment := s.segmentWith(e.Seq); len(s.segments) == 0 || s.segments[len(s.segments)-1] != segment {
		s.segments = append(s.segments, segment)
	}
	return e, nil
}

// now is what there is, for a reader.
func (s *Series) now() (segments []uint64, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.segments), s.last
}

// Before returns up to limit entries with a lower number than seq, the newest
// first; a seq of 0 means from the newest on.
func (s *Series) Before(seq uint64, limit int) ([]Entry, error) {
	segments, last := s.now()
	if seq == 0 || seq > last {
		seq = last + 1
	}
	var found []Entry
	for _, segment := range slices.Backward(segments) {
		if segment > s.segmentWith(max(seq, 2)-1) {
			continue
		}
		if seq <= 1 || len(found) >= limit {
			break
		}
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
	}
	return found, nil
}

// After returns up to limit entries with a higher number than seq, the oldest
// first.
func (s *Series) After(seq uint64, limit int) ([]Entry, error) {
	segments, last := s.now()
	var found []Entry
	for _, segment := range segments {
		if seq >= last || len(found) >= limit {
			break
		}
		if segment < s.segmentWith(seq+1) {
			continue
		}
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
	segments, last := s.now()
	if len(segments) == 0 {
		return nil, false, nil
	}
	err = s.scan(segments[0], func(e Entry) { entries = append(entries, e) })
	// One that cannot be read, or not all of it, stays for somebody to look at.
	whole := uint64(len(entries)) == s.size
	return entries, last > (segments[0]+1)*s.size && whole, err
}

// DropOldest forgets the oldest file. The newest stays: numbers are never
// given twice.
func (s *Series) DropOldest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) == 0 || s.last <= (s.segments[0]+1)*s.size {
		return nil
	}
	if err := s.home.RemoveAll(s.file(s.segments[0])); err != nil {
		return err
	}
	s.segments = s.segments[1:]
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
