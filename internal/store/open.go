package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// What is read as a whole is bounded: a file beyond it was not written by tapin,
// and reading it would take the memory that everything else needs.
const (
	mostWhole  = 64 << 20
	mostSealed = 272 << 20 // what the vault seals at most, and what sealing adds
)

// What ReadFile says of a file that it does not read.
var (
	ErrNoFile   = errNoFile
	ErrTooLarge = errTooLarge
)

var (
	errNoFile   = errors.New("it is no ordinary file")
	errLink     = errors.New("a link in its place leads to nothing in the home")
	errTooLarge = errors.New("it is far larger than any that tapin writes")
)

// openFile opens what is an ordinary file, and refuses all else: a pipe or a
// device would have whoever opens or reads it wait, for ever.
func (h *Home) openFile(name string, flag int) (*os.File, error) {
	f, err := h.root.OpenFile(name, flag|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, h.inPlaceOf(name, err)
	}
	if err := ordinary(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// inPlaceOf says better than the system why a name could not be opened.
func (h *Home) inPlaceOf(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrClosed) {
		return err
	}
	info, failed := h.root.Lstat(name)
	switch {
	case failed != nil || info.Mode().IsRegular() || info.IsDir():
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return errLink
	}
	return errNoFile
}

func ordinary(f *os.File) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &fs.PathError{Op: "open", Path: f.Name(), Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return errNoFile
	}
	return nil
}

// ReadFile returns what an ordinary file holds, anywhere. It never waits, and
// reads none that is larger than most.
func ReadFile(file string, most int64) ([]byte, error) {
	f, err := OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := readAtMost(f, most)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return data, nil
}

// OpenFile opens an ordinary file to be read, anywhere. It never waits.
func OpenFile(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the caller knows which
	if err != nil {
		return nil, err
	}
	if err := ordinary(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	return f, nil
}

func readAtMost(f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, errTooLarge
	}
	data := make([]byte, 0, info.Size()+1) // one more, so that its end is found without growing
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case int64(len(data)) > most:
			return nil, errTooLarge
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

// mostOf is how large a file may be that is read as a whole.
func mostOf(name string) int64 {
	if isSealed(name) {
		return mostSealed
	}
	return mostWhole
}

func isSealed(name string) bool {
	switch path.Ext(name) {
	case ".age", ".state", ".undo", ".crop":
		return true
	}
	return strings.HasSuffix(name, ".age.1")
}

// passing reports whether an error says nothing of the file: it is the
// system's, and may be gone in a moment.
func passing(err error) bool {
	for _, number := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EINTR} {
		if errors.Is(err, number) {
			return true
		}
	}
	return errors.Is(err, fs.ErrClosed)
}
