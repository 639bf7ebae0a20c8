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

	"tapin/internal/fault"
	"tapin/internal/layout"
)

const (
	defaultMaxLine = 1 << 20
	// longestLine bounds the lines of all logs, and how far is looked for one.
	longestLine = 8 << 20
)

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
	l.opts.MaxLineBytes = min(l.opts.MaxLineBytes, longestLine)
	f, err := h.openLogFile(name)
	if err != nil {
		return nil, storageErrorOf(op, err)
	}
	l.file = f
	err = h.syncFolder(path.Dir(name))
	if err == nil {
		err = l.exclusively(func() error { _, err := l.cutTornTail(); return err })
	}
	if err != nil {
		_ = l.file.Close()
		return nil, storageErrorOf(op, err)
	}
	return l, nil
}

// openLogFile opens the file of a log, and makes it if there is none. What has
// its name and is none is put aside, unless it exists nowhere else.
func (h *Home) openLogFile(name string) (*os.File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_APPEND
	if err := h.makeFolder(path.Dir(name)); err != nil {
		return nil, err
	}
	f, err := h.openFile(name, flags)
	if err == nil || passing(err) || errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if kind, _ := layout.Of(name); precious(kind) {
		return nil, h.unreadable(name, err, false)
	}
	if err := h.asideQuietly(name, err); err != nil {
		return nil, err
	}
	h.thin(name)
	return h.openFile(name, flags)
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
	return storageErrorOf(op, l.exclusively(func() error { return l.write(line) }))
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
	damaged, err := h.scanLog(name, fn, nil)
	if damaged > 0 {
		h.log.Warn("left out damaged lines", "log", name, "lines", damaged)
		if kind, _ := layout.Of(name); precious(kind) {
			h.note(Damage{File: name, Why: fmt.Sprintf("lines of it, %d in all, are not what tapin wrote and are left out", damaged), open: true})
		}
	}
	return err
}

// scanAll calls fn with all lines of a log that are no longer than lines are,
// also with the damaged ones.
func (h *Home) scanAll(name string, fn func(line []byte)) error {
	_, err := h.scanLog(name, func(line []byte) error { fn(line); return nil }, fn)
	return err
}

func (h *Home) scanLog(name string, fn func(line []byte) error, bad func(line []byte)) (damaged int, err error) {
	op := "scan " + name
	if err := h.broken(name); err != nil {
		return 0, h.unreadable(name, err, false)
	}
	f, err := h.openFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) || err != nil && h.freed(path.Dir(name), err) {
		return 0, nil
	}
	if errors.Is(err, fs.ErrClosed) {
		return 0, storageError(op, err)
	}
	if err != nil {
		return 0, h.unreadable(name, err, false)
	}
	defer func() { _ = f.Close() }()
	// Whole lines never change, but a torn tail may be cut off and written
	// over while we read: what is read ends where the tail begins.
	end, err := wholeLines(f)
	if errors.Is(err, errEndless) {
		end, err = linesFromStart(f)
	}
	if err != nil {
		return 0, h.unreadable(name, err, false)
	}
	damaged, err = scanLinesAnd(io.NewSectionReader(f, 0, end), fn, bad)
	return damaged, storageErrorOrNil(op, err)
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

// exclusively runs fn while no other process writes to this log, and sees to it
// that we write to the file that has the log's name: a line added to one that
// somebody has removed, or put aside, would be lost.
func (l *Log) exclusively(fn func() error) error {
	for {
		if err := lockWhole(l.file); err != nil {
			return err
		}
		named, err := l.home.root.Stat(l.name)
		ours, failed := l.file.Stat()
		if err == nil && failed == nil && os.SameFile(ours, named) {
			err := fn()
			return errors.Join(err, syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN))
		}
		if failed != nil {
			return failed
		}
		f, err := l.home.openLogFile(l.name)
		if err != nil {
			return errors.Join(err, syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN))
		}
		_ = l.file.Close() // nothing of ours is unsynced in it
		l.file = f
	}
}

func lockWhole(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
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
