package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"tapin/internal/layout"
)

// Derived reads a file that can be made anew: use checks what it holds and
// brings it into the shape that its reader relies on. One that cannot be used
// is put aside and told of; then, as when there is none, ok is false and the
// value is zero.
func Derived[T any](h *Home, name string, use func(*T) error) (value T, ok bool) {
	data, err := h.readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return value, false
	}
	if err == nil {
		err = decode(data, &value)
	}
	if err == nil && use != nil {
		err = use(&value)
	}
	if err == nil {
		return value, true
	}
	var none T
	if _, failed := h.PutAside(name, err); failed != nil {
		h.log.Error("a file cannot be used, nor put aside", "file", name, "why", err, "error", failed)
		h.note(Damage{File: name, Why: inWords(err)})
	}
	return none, false
}

// Truth is one file that exists nowhere else, and the value of its owner that
// it holds. While it cannot be read it cannot be written. The version before is
// kept beside it. Its owner sees to it that one at a time uses it.
type Truth[T any] struct {
	home  *Home
	name  string
	into  *T
	check func(*T) error
	read  bool
}

// OpenTruth reads a file into a value of its owner; check may refuse what it
// holds. A missing one leaves the value as it is. One that cannot be read is no
// error here: Ready says so, and tries again.
func OpenTruth[T any](h *Home, name string, into *T, check func(*T) error) *Truth[T] {
	t := &Truth[T]{home: h, name: name, into: into, check: check}
	_ = t.Ready() // whoever needs it asks again
	return t
}

// Ready is nil if the value is that of the file, and else says why not.
func (t *Truth[T]) Ready() error {
	if t.read {
		return nil
	}
	var found T
	err := t.home.ReadRecord(t.name, &found, func() error {
		if t.check == nil {
			return nil
		}
		return t.check(&found)
	})
	if errors.Is(err, fs.ErrNotExist) {
		before, failed := t.home.Exists(t.name + layout.BeforeMark)
		if failed != nil {
			return failed
		}
		if before {
			return t.home.Unreadable(t.name, errors.New("it is gone, and only its version before is there"))
		}
		t.home.Readable(t.name)
		t.read = true
		return nil
	}
	if err != nil {
		return err
	}
	*t.into, t.read = found, true
	return nil
}

// Write replaces the file. The value is its owner's to change, once it is written.
func (t *Truth[T]) Write(next T) error {
	if err := t.Ready(); err != nil {
		return err
	}
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("write %s: %w", t.name, err)
	}
	if err := t.home.keepBefore(t.name); err != nil {
		return err
	}
	return t.home.Write(t.name, append(data, '\n'))
}

// keepBefore has what stands in a file also under the name of its version
// before. It is durable with the next write, which syncs the folder.
func (h *Home) keepBefore(name string) error {
	op := "keep the version before of " + name
	end, err := h.change(op, "")
	if err != nil {
		return err
	}
	defer end()
	folder, err := h.scratchFolder()
	if err != nil {
		return storageError(op, err)
	}
	temp := path.Join(folder, newToken())
	err = h.root.Link(name, temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = h.root.Rename(temp, name+layout.BeforeMark)
	}
	if err != nil {
		_ = h.root.Remove(temp)
	}
	return storageErrorOrNil(op, err)
}

// TakeBefore puts the version before of a file in its place, and what stands
// there aside.
func (h *Home) TakeBefore(name string) error {
	data, err := h.Read(name + layout.BeforeMark)
	if err != nil {
		return err
	}
	if err := decode(data, new(any)); err != nil {
		return h.Unreadable(name+layout.BeforeMark, err)
	}
	if _, err := h.root.Lstat(name); err == nil {
		if _, err := h.PutAside(name, errors.New("its version before was taken instead")); err != nil {
			return err
		}
	}
	h.Readable(name)
	return h.Write(name, data)
}
