package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"tapin/internal/layout"
)

var (
	errEndless  = errors.New("its end is longer than any line")
	errForeign  = errors.New("its end is not what tapin wrote")
	errCutShort = errors.New("it was cut by somebody else meanwhile")
)

// wholeLines is the length of f up to and with its last line break. It looks no
// further back than a line can be long.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	for end, step := size, int64(1); end > 0; step = min(step*64, 64<<10) { // one byte, when nothing is torn
		if size-end > longestLine {
			return 0, errEndless
		}
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

// linesFromStart is the length of f up to the first line that is longer than any.
func linesFromStart(f *os.File) (end int64, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, 1<<62), 64<<10)
	line := int64(0) // what was read of the one that has not ended
	for {
		part, err := r.ReadSlice('\n')
		line += int64(len(part))
		switch {
		case err == nil:
			end, line = end+line, 0
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull) && line > longestLine:
			return end, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return 0, err
		}
	}
}

// cutTornTail cuts what follows the last line break and returns the length. A
// writer that was killed leaves the beginning of a line, and nobody was told
// that it was written. All else is damage: it may have been a line, and is kept.
func (l *Log) cutTornTail() (int64, error) {
	end, err := wholeLines(l.file)
	if errors.Is(err, errEndless) {
		return l.cutEndless()
	}
	if err != nil {
		return 0, err
	}
	info, err := l.file.Stat()
	if err != nil || info.Size() == end {
		return end, err
	}
	tail := make([]byte, info.Size()-end)
	if _, err := l.file.ReadAt(tail, end); err != nil {
		return 0, errors.Join(errCutShort, err)
	}
	l.home.log.Warn("cut off a line that was never finished", "log", l.name, "bytes", len(tail))
	if isForeign(tail) && l.keepsForeign() {
		return l.keepForeign(end)
	}
	return end, l.file.Truncate(end)
}

// isForeign reports whether a tail is something else than the beginning of a
// line of JSON, which a power cut may have filled up with zeros.
func isForeign(tail []byte) bool {
	tail = bytes.TrimRight(tail, "\x00")
	if len(tail) == 0 {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(tail))
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF)
	}
	return d.InputOffset() < int64(len(tail)) // a line break that is none any more, such as by one bit
}

// keepsForeign reports whether a copy of a log is kept when its end is damaged.
func (l *Log) keepsForeign() bool {
	kind, _ := layout.Of(l.name)
	return kind.Name != "" && kind.Class != layout.Derived && kind.Class != layout.Runtime
}

// cutEndless is for an end that may be larger than anything that can be looked
// at or copied: the file is put aside, whatever it is worth, and what whole
// lines it begins with go on.
func (l *Log) cutEndless() (int64, error) {
	end, err := linesFromStart(l.file)
	if err != nil {
		return 0, err
	}
	return l.keepForeign(end)
}

// keepForeign puts the file aside and goes on in a copy of its whole lines. It
// is under the lock of the file; who waits for that finds that it has lost its name.
func (l *Log) keepForeign(end int64) (int64, error) {
	op := "put aside " + l.name
	if err := l.home.may(op); err != nil {
		return 0, err
	}
	folder, err := l.home.scratchFolder()
	if err != nil {
		return 0, err
	}
	temp := path.Join(folder, newToken())
	f, err := l.home.openFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND)
	if err != nil {
		return 0, err
	}
	keep := func() (aside string, err error) {
		if _, err := io.Copy(f, io.NewSectionReader(l.file, 0, end)); err != nil {
			return "", err
		}
		if err := errors.Join(f.Sync(), lockWhole(f)); err != nil {
			return "", err
		}
		if aside, err = l.home.asideName(l.name); err != nil {
			return "", err
		}
		// Under two names for a moment, and never under none.
		if err := l.home.root.Link(l.name, aside); err != nil {
			return "", err
		}
		if err := l.home.root.Rename(temp, l.name); err != nil {
			return "", err
		}
		l.home.made(op, Named)
		err = l.home.syncFolder(path.Dir(l.name))
		l.home.made(op, FolderKept)
		return aside, err
	}
	aside, err := keep()
	if err != nil {
		_ = f.Close()
		_ = l.home.root.Remove(temp)
		return 0, err
	}
	_ = l.file.Close() // and so its lock
	l.file = f         // with its own
	l.home.putAside(l.name, aside, errForeign)
	l.home.thin(l.name)
	return end, nil
}

// foreignEnd is what follows the last whole line of a log, if it is not what a
// writer leaves that was killed. More than a line of it is never looked at.
func (h *Home) foreignEnd(name string) (tail []byte, foreign bool) {
	f, err := h.openFile(name, os.O_RDONLY)
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }()
	end, err := wholeLines(f)
	endless := errors.Is(err, errEndless)
	if endless {
		end, err = linesFromStart(f)
	}
	if err != nil {
		return nil, false
	}
	tail, err = io.ReadAll(io.NewSectionReader(f, end, longestLine))
	return tail, err == nil && (endless || isForeign(tail))
}

// HasLostEnd reports whether a log has, or had, an end that was not what a
// writer leaves that was killed: nobody knows then what the last line was.
func (h *Home) HasLostEnd(name string) bool {
	_, foreign := h.foreignEnd(name)
	return foreign || len(h.asideOf(name)) > 0
}

// asideOf are the files that were put aside of one name, the oldest first.
func (h *Home) asideOf(name string) (all []string) {
	names, err := h.List(path.Dir(name))
	if err != nil {
		return nil
	}
	for _, one := range names {
		one = path.Join(path.Dir(name), one)
		if of, aside := layout.Original(one); aside && of == path.Clean(name) && !strings.HasSuffix(one, layout.BeforeMark) {
			all = append(all, one)
		}
	}
	return all
}
