package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"tapin/internal/fault"
	"tapin/internal/layout"
)

const (
	damagedAt = "20060102T150405.000Z"
	// asideKept is how many files of one name are kept that were put aside, where
	// they can be made anew. What cannot is never removed by itself.
	asideKept = 3
)

// Damage is a file that could not be used.
type Damage struct {
	File  string // relative to the home
	Kind  string // what it is, for people
	Aside string // where it was put; "" for one that was left as it is
	Why   string // in words for people; nothing of what it holds
	At    time.Time

	content bool // it was read, and is not what it should be
	open    bool // parts of it are used, and more may be added
}

// OnDamage has fn told of every file that cannot be used, also of those that
// were found before, and of those that can be used again. It is called at once
// and must not wait for the home. There is one who is told.
func (h *Home) OnDamage(fn func(d Damage, again bool)) {
	h.ill.Lock()
	defer h.ill.Unlock()
	h.tell = fn
	for _, d := range h.damages() {
		fn(d, false)
	}
}

// Damages are the files that could not be used, by name.
func (h *Home) Damages() []Damage {
	h.ill.Lock()
	defer h.ill.Unlock()
	return h.damages()
}

func (h *Home) damages() []Damage {
	all := slices.Clone(h.aside)
	for _, d := range h.unread {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Damage) int { return strings.Compare(a.File, b.File) })
	return all
}

// Unreadable says that a file cannot be used although it is there, because of
// what it holds. From then on it is neither written nor removed, until
// ReadRecord or Readable find that it can be used.
func (h *Home) Unreadable(name string, why error) error { return h.unreadable(name, why, true) }

// Readable takes back what Unreadable said.
func (h *Home) Readable(name string) { h.well(name, true) }

func (h *Home) unreadable(name string, why error, content bool) error {
	if already, ok := errors.AsType[*fault.Error](why); ok && already.Code == fault.Unreadable {
		return why
	}
	kind, _ := layout.Of(name)
	if !precious(kind) {
		return fmt.Errorf("read %s: %w", name, why)
	}
	h.note(Damage{File: name, Why: inWords(why), content: content})
	return fault.New(fault.Unreadable, "read "+name, "%s in tapin's home cannot be read: %s", name, inWords(why)).With("file", name)
}

// precious reports whether a file of that kind is left as it is when it cannot be read.
func precious(k layout.Kind) bool {
	return k.Class != layout.Derived && k.Class != layout.Log && k.Class != layout.Runtime
}

// note remembers a damage, and tells of it once.
func (h *Home) note(d Damage) {
	h.ill.Lock()
	defer h.ill.Unlock()
	kind, _ := layout.Of(d.File)
	d.Kind, d.At = kind.Name, time.Now().UTC()
	if d.Kind == "" {
		d.Kind = kindOfNone(d.File)
	}
	if d.Aside != "" {
		h.aside = append(h.aside, d)
	} else {
		if before, ok := h.unread[d.File]; ok {
			before.content = before.content || d.content
			h.unread[d.File] = before
			return
		}
		if h.unread == nil {
			h.unread = map[string]Damage{}
		}
		h.unread[d.File] = d
	}
	h.log.Error("a file cannot be used", "file", d.File, "why", d.Why, "aside", d.Aside)
	if h.tell != nil {
		h.tell(d, false)
	}
}

// kindOfNone is what people call a file that is of no kind.
func kindOfNone(name string) string {
	if slices.Contains(layout.Folders(), name) {
		return "folder"
	}
	return "file"
}

// well forgets that a file could not be read. Content says that it was looked
// into, and not only that the disk gave it.
func (h *Home) well(name string, content bool) {
	h.ill.Lock()
	defer h.ill.Unlock()
	d, ok := h.unread[name]
	if !ok || d.content && !content {
		return
	}
	delete(h.unread, name)
	h.log.Info("a file can be read again", "file", name)
	if h.tell != nil {
		h.tell(d, true)
	}
}

// spare refuses a change of what cannot be read: nobody knows what it would undo.
func (h *Home) spare(op, name string) error {
	h.ill.Lock()
	defer h.ill.Unlock()
	for file, d := range h.unread {
		if !d.open && (file == name || strings.HasPrefix(file, name+"/")) {
			return fault.New(fault.Unreadable, op, "%s in tapin's home cannot be read and is left as it is: %s", file, d.Why).With("file", file)
		}
	}
	return nil
}

// PutAside gives a file, or a folder in its place, a name that says that it
// cannot be used, and makes room for another. Nothing is overwritten by it.
func (h *Home) PutAside(name string, why error) (aside string, err error) {
	op := "put aside " + name
	end, err := h.change(op, "") // also of a file that is left as it is
	if err != nil {
		return "", err
	}
	defer func() { end() }()
	aside, err = h.rename(op, name)
	if err != nil {
		return "", storageError(op, err)
	}
	end()
	end = func() {} // what follows are changes of their own
	h.putAside(name, aside, why)
	h.thin(name)
	return aside, nil
}

// thin removes the oldest of many that were put aside.
func (h *Home) thin(name string) {
	if kind, _ := layout.Of(name); precious(kind) {
		return
	}
	all := h.asideOf(name)
	for ; len(all) > asideKept; all = all[1:] { // sorted by time
		_ = h.RemoveAll(all[0])
	}
}

// inWords says why a file cannot be used, and nothing of what stands in it.
func inWords(why error) string {
	switch {
	case errors.Is(why, syscall.EISDIR):
		return "a folder is in its place"
	case errors.Is(why, syscall.ENOTDIR):
		return "a file is in the place of its folder"
	case errors.Is(why, fs.ErrPermission):
		return "the system does not permit it"
	case errors.Is(why, errEmpty):
		return "it is empty"
	case isEscape(why), errors.Is(why, syscall.ELOOP):
		return errLink.Error()
	}
	var number syscall.Errno
	if errors.As(why, &number) {
		return number.Error()
	}
	if _, ok := errors.AsType[*json.SyntaxError](why); ok {
		return "it is not what tapin wrote"
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](why); ok {
		return "it is not what tapin wrote"
	}
	if f, ok := errors.AsType[*fault.Error](why); ok {
		return f.Details()
	}
	return why.Error()
}

var errEmpty = errors.New("it is empty")

// decode is json.Unmarshal that takes nothing for no value: a file that says
// nothing was not written by us.
func decode(data []byte, v any) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 {
		return errEmpty
	} else if bytes.Equal(trimmed, []byte("null")) {
		return errors.New("it is not what tapin wrote")
	}
	return json.Unmarshal(data, v)
}
