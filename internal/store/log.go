package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"tapin/internal/fault"
	"tapin/internal/layout"
)

const defaultMaxLine = 1 << 20

// LogOptions are the settings of a log; nil means the defaults.
type LogOptions struct {
	NoSync       bool // leave it to the system when lines reach the disk
	MaxLineBytes int  // longer lines are refused; 0 means 1 MiB
}

// Log is a file of JSON lines that only grows. Several processes may append
// to one log; each line is there as a whole or not at all.
type Log struct {
	home *Home
	name string
	opts LogOptions

	mu   sync.Mutex
	file *os.File
}

// OpenLog opens a log and makes it if there is none. What a killed writer left
// of its last line is cut off; it had not been acknowledged.
func (h *Home) OpenLog(name string, opts *LogOptions) (*Log, error) {
	op := "open log " + name
	if err := h.broken(name); err != nil {
		return nil, h.unreadable(name, err, false)
	}
	l := &Log{home: h, name: name}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.MaxLineBytes <= 0 {
		l.opts.MaxLineBytes = defaultMaxLine
	}
	if err := h.makeFolder(path.Dir(name)); err != nil {
		return nil, storageError(op, err)
	}
	f, err := h.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, fileMode)
	if errors.Is(err, syscall.EISDIR) {
		if kind, _ := layout.Of(name); precious(kind) {
			return nil, h.unreadable(name, err, false)
		}
		if _, err := h.PutAside(name, err); err != nil {
			return nil, err
		}
		f, err = h.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, fileMode)
	}
	if err != nil {
		return nil, storageError(op, err)
	}
	l.file = f
	err = h.syncFolder(path.Dir(name))
	if err == nil {
		err = l.exclusively(func() error { _, err := l.cutTornTail(); return err })
	}
	if err != nil {
		_ = f.Close()
		return nil, storageError(op, err)
	}
	return l, nil
}

// Append adds one line, which must be JSON without line breaks. When it fails
// the log is as before.
func (l *Log) Append(line []byte) error {
	op := "append to " + l.name
	if len(line) > l.opts.MaxLineBytes {
		return fault.New(fault.PayloadTooLarge, op, "a line of %d bytes is over the limit of %d", len(line), l.opts.MaxLineBytes)
	}
	if bytes.IndexByte(line, '\n') >= 0 || !json.Valid(line) {
		return fmt.Errorf("%s: the line is not one line of JSON", op)
	}
	end, err := l.home.change(op, "")
	if err != nil {
		return err
	}
	defer end()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fmt.Errorf("%s: %w", op, fs.ErrClosed)
	}
	return storageErrorOrNil(op, l.exclusively(func() error { return l.write(line) }))
}

// Scan calls fn with every whole line, oldest first, until fn fails. The line
// is fn's only during the call.
func (l *Log) Scan(fn func(line []byte) error) error {
	return l.home.ScanLog(l.name, fn)
}

// ScanLog is Scan for those who do not append. A missing log has no lines.
// Lines that are not JSON (a disk may damage what it holds) are left out and
// logged.
func (h *Home) ScanLog(name string, fn func(line []byte) error) error {
	op := "scan " + name
	if err := h.broken(name); err != nil {
		return h.unreadable(name, err, false)
	}
	f, err := h.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, fs.ErrClosed) {
		return storageError(op, err)
	}
	if err != nil {
		return h.unreadable(name, err, false)
	}
	defer func() { _ = f.Close() }()
	// Whole lines never change, but a torn tail may be cut off and written
	// over while we read: what is read ends where the tail begins.
	end, err := wholeLines(f)
	if err != nil {
		return h.unreadable(name, err, false)
	}
	damaged, err := scanLines(io.NewSectionReader(f, 0, end), fn)
	if damaged > 0 {
		h.log.Warn("left out damaged lines", "log", name, "lines", damaged)
		if kind, _ := layout.Of(name); precious(kind) {
			h.note(Damage{File: name, Why: fmt.Sprintf("lines of it, %d in all, are not what tapin wrote and are left out", damaged), open: true})
		}
	}
	return storageErrorOrNil(op, err)
}

// Size is the length of the log in bytes.
func (l *Log) Size() (int64, error) {
	info, err := l.home.root.Stat(l.name)
	if err != nil {
		return 0, storageError("measure "+l.name, err)
	}
	return info.Size(), nil
}

// Close closes the log. It may be called more than once.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// exclusively runs fn while no other process writes to this log.
func (l *Log) exclusively(fn func() error) error {
	lock := l.home.flock(l.name)
	if err := lock.Lock(); err != nil {
		return err
	}
	named, err := lock.Stat()
	if err == nil {
		err = l.reopenUnless(named)
	}
	if err == nil {
		err = fn()
	}
	return errors.Join(err, lock.Unlock())
}

// reopenUnless sees to it that we write to the file that has the log's name:
// a line added to one that somebody has removed would be lost.
func (l *Log) reopenUnless(named fs.FileInfo) error {
	ours, err := l.file.Stat()
	if err != nil || os.SameFile(ours, named) {
		return err
	}
	f, err := l.home.root.OpenFile(l.name, os.O_RDWR|os.O_APPEND, fileMode)
	if err != nil {
		return err
	}
	_ = l.file.Close() // nothing of ours is unsynced in it
	l.file = f
	return nil
}

func (l *Log) write(line []byte) error {
	// Another process may have been killed in the middle of a line.
	end, err := l.cutTornTail()
	if err != nil {
		return err
	}
	whole := append(append(make([]byte, 0, len(line)+1), line...), '\n')
	err = l.home.write("append to "+l.name, l.file, whole, !l.opts.NoSync)
	if err != nil {
		// If this fails as well, the tail is cut before the next line.
		_ = l.file.Truncate(end)
	}
	return err
}

// cutTornTail cuts what follows the last line break and returns the length.
func (l *Log) cutTornTail() (int64, error) {
	end, err := wholeLines(l.file)
	if err != nil {
		return 0, err
	}
	info, err := l.file.Stat()
	if err != nil || info.Size() == end {
		return end, err
	}
	l.home.log.Warn("cut off a line that was never finished", "log", l.name, "bytes", info.Size()-end)
	if err := l.keepForeign(end); err != nil {
		return 0, err
	}
	return end, l.file.Truncate(end)
}

// keepForeign keeps a copy of a log whose tail cannot be the beginning of a line
// of ours: a disk has damaged it, and what it held may be mended from that.
func (l *Log) keepForeign(end int64) error {
	var first [1]byte
	if _, err := l.file.ReadAt(first[:], end); err != nil || first[0] == '{' || first[0] == 0 { // 0: a power cut
		return nil //nolint:nilerr // cut by somebody else meanwhile
	}
	if kind, _ := layout.Of(l.name); !precious(kind) || kind.Name == "" {
		return nil
	}
	aside := l.name + layout.DamagedMark + time.Now().UTC().Format(damagedAt)
	data, err := l.home.root.ReadFile(l.name)
	if err == nil {
		err = l.home.put("put aside "+l.name, aside, data, l.home.root.Rename)
	}
	if err == nil {
		l.home.note(Damage{File: l.name, Aside: aside, Why: "its end is not what tapin wrote"})
	}
	return err
}

// wholeLines is the length of f up to and with its last line break.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	end := info.Size()
	for step := int64(1); end > 0; step = min(step*64, 64<<10) { // one byte, when nothing is torn
		from := max(end-step, 0)
		buf := make([]byte, end-from)
		n, err := f.ReadAt(buf, from)
		if err != nil && !errors.Is(err, io.EOF) { // EOF: cut by somebody else meanwhile
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}
