package daemon

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tapin/internal/store"
)

const (
	logFolder = "logs"
	logHeader = "# log begun "
)

// LogOptions bound a log; nil means the defaults.
type LogOptions struct {
	MaxBytes int64         // of one file; 0 means 5 MiB
	Files    int           // how many there are with the one being written; 0 means 5
	Keep     time.Duration // how long a line is kept, give or take a file; 0 means for ever
}

// Log is a file under the home's logs folder that is put aside as .1, .2 and so
// on when it is full or old. It is safe for concurrent use, by one process.
type Log struct {
	path string
	opts LogOptions

	mu     sync.Mutex
	closed bool
	file   *os.File // nil after a failure to open it; the next write tries again
	size   int64
	begun  time.Time
}

// OpenLog opens a log to go on writing it.
func OpenLog(home *store.Home, name string, opts *LogOptions) (*Log, error) {
	l := &Log{path: filepath.Join(home.Path(), logFolder, name)}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.MaxBytes <= 0 {
		l.opts.MaxBytes = 5 << 20
	}
	if l.opts.Files <= 0 {
		l.opts.Files = 5
	}
	if err := home.Folder(logFolder); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := home.NoFolder(path.Join(logFolder, name)); err != nil {
		return nil, err
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	l.dropOld()
	return l, nil
}

// Write appends p, whole, to one file.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, os.ErrClosed
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	if full := l.size+int64(len(p)) > l.opts.MaxBytes; full && l.size > l.headerSize() || l.isOld(l.begun, l.share()) {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// Close ends the log. It may be called more than once.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.file == nil {
		l.closed = true
		return nil
	}
	l.closed = true
	return l.file.Close()
}

// open opens the file, and gives a new one its header, which is where the age
// of the lines in it is known from.
func (l *Log) open() error {
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	info, err := file.Stat()
	if err == nil && info.Mode().Perm() != 0o600 {
		err = file.Chmod(0o600)
	}
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("open log: %w", err)
	}
	l.file, l.size, l.begun = file, info.Size(), time.Now()
	if l.size > 0 {
		line, _ := bufio.NewReader(file).ReadString('\n')
		if at, err := time.Parse(time.RFC3339, strings.TrimSpace(strings.TrimPrefix(line, logHeader))); err == nil {
			l.begun = at
		}
		return nil
	}
	n, err := file.WriteString(logHeader + l.begun.UTC().Format(time.RFC3339) + "\n")
	l.size = int64(n)
	if err != nil {
		_ = l.file.Close()
		l.file = nil
		return fmt.Errorf("open log: %w", err)
	}
	return nil
}

func (l *Log) headerSize() int64 { return int64(len(logHeader) + len("2006-01-02T15:04:05Z\n")) }

// share is how long one file is written to, so that all of them together hold
// what is to be kept.
func (l *Log) share() time.Duration { return l.opts.Keep / time.Duration(max(1, l.opts.Files-1)) }

func (l *Log) isOld(at time.Time, limit time.Duration) bool {
	return limit > 0 && time.Since(at) > limit
}

// rotate puts the file aside and begins a new one. What cannot be renamed is
// written on: a log must not stop the work it tells of.
func (l *Log) rotate() error {
	for i := l.opts.Files - 2; i >= 0; i-- {
		_ = os.Rename(l.aside(i), l.aside(i+1))
	}
	if l.opts.Files == 1 {
		_ = os.Remove(l.path)
	}
	_ = l.file.Close()
	l.file = nil
	if err := l.open(); err != nil {
		return err
	}
	l.dropOld()
	return nil
}

// dropOld removes the files whose last line is too old.
func (l *Log) dropOld() {
	for i := 1; i < l.opts.Files; i++ {
		if info, err := os.Stat(l.aside(i)); err == nil && l.isOld(info.ModTime(), l.opts.Keep) {
			_ = os.Remove(l.aside(i))
		}
	}
}

// aside is the name of the file put aside i times ago; 0 is the one written to.
func (l *Log) aside(i int) string {
	if i == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, i)
}
