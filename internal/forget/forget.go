// Package forget takes a site out of a home that nobody serves.
// It owns the wish to forget one, which is on the disk until nothing of the site
// is left, and what of each kind of file goes. It must never take away what is
// of another site, nor leave a wish half fulfilled and say that it is done.
package forget

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tapin/internal/event"
	"tapin/internal/layout"
	"tapin/internal/store"
)

// Counts say how much went, by the kind of file.
type Counts map[string]int

// file is one that lies in the home.
type file struct {
	name string
	info fs.FileInfo
	kind layout.Kind
	how  layout.Forgetting
}

// work is a wish while it is fulfilled.
type work struct {
	home *store.Home
	wish Wish
	m    mention
	gone Counts
	left []string
	kept bool // the feed goes on beyond all its numbers
}

// Fulfil takes everything of a noted wish out of the home but for the saved
// logins. It may be done any number of times. What it could not look into, or
// not take away, is left, and told.
func Fulfil(home *store.Home, w Wish, gone Counts) (left []string, err error) {
	f := &work{home: home, wish: w, m: mentionOf(w), gone: gone}
	if err := walk(home, f.take); err != nil {
		return f.left, err
	}
	for _, id := range w.Records {
		for _, folder := range []string{"handoffs", "task-runs", "downloads", "received"} {
			name := path.Join(folder, id)
			if err := f.leave(name, home.RemoveAll(name)); err != nil {
				return f.left, err
			}
		}
	}
	slices.Sort(f.left)
	return slices.Compact(f.left), nil
}

// take takes one file, or what is of the site in it.
func (f *work) take(file file) error {
	name := file.name
	switch file.how {
	case layout.ForgetRecord:
		if slices.Contains(f.wish.Records, idOf(name)) {
			return f.remove(file)
		}
		return f.members(file, true)
	case layout.ForgetAlike:
		return f.members(file, true)
	case layout.ForgetFile:
		raw, err := f.home.Read(name)
		if err != nil {
			return f.leave(name, unread(err))
		}
		v, _ := decode(raw)
		if (f.m.raw(raw) || f.m.text(name)) && !f.m.age.file(v, file.info.ModTime()) {
			return f.remove(file)
		}
	case layout.ForgetBeside:
		if f.beside(name) {
			return f.remove(file)
		}
	case layout.ForgetLines:
		if f.beside(name) {
			return f.remove(file)
		}
		return f.lines(file)
	case layout.ForgetMembers:
		return f.members(file, false)
	case layout.ForgetNothing, layout.ForgetLogin:
	}
	return nil
}

// beside reports whether a file belongs to a record that goes.
func (f *work) beside(name string) bool {
	return slices.ContainsFunc(f.wish.Records, func(id string) bool { return strings.Contains(name, "/"+id) })
}

// errUnread is a file that could not be read.
type errUnread struct{ error }

func unread(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went away meanwhile
	}
	return errUnread{err}
}

// leave goes on with the others where a file cannot be read or is spared because
// of that, and notes it.
func (f *work) leave(name string, err error) error {
	if _, ok := errors.AsType[errUnread](err); ok || Unread(err) {
		f.left = append(f.left, name)
		return nil
	}
	return err
}

// Yours are the owner's own texts that name the site. They are not tapin's to change.
func Yours(home *store.Home, w Wish) (names []string, err error) {
	m := mentionOf(w)
	for _, name := range []string{"browser-contexts.yaml", "config.draft.yaml", "config.yaml"} {
		raw, err := home.Read(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !Unread(err) {
			return names, err
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) || m.raw(raw) {
			names = append(names, name)
		}
	}
	return names, nil
}

// walk goes through what lies in the home, kind by kind.
func walk(home *store.Home, fn func(file) error) error {
	var files []file
	skip := func(folder string) bool { return slices.Contains([]string{"run", "tmp", "locks", layout.Demo}, folder) }
	err := home.Walk(skip, func(name string, info fs.FileInfo) error {
		if kind, ok := layout.Of(name); ok { // else it is the owner's own
			how, _ := layout.ForgettingOf(kind)
			files = append(files, file{name, info, kind, how})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

func (f *work) remove(file file) error {
	err := f.home.Remove(file.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		f.gone[file.kind.Name]++
	}
	return f.leave(file.name, err)
}

// lines takes those out that mention the site. The file is the one before or
// the one after.
func (f *work) lines(file file) error {
	raw, err := f.home.Read(file.name)
	if err != nil {
		return f.leave(file.name, unread(err))
	}
	var kept bytes.Buffer
	went := 0
	for line := range bytes.Lines(raw) {
		if f.line(line) {
			went++
			continue
		}
		kept.Write(line)
	}
	if went == 0 {
		return nil
	}
	if file.kind.Name == "feed" && !f.kept { // no number is given twice, wherever it is cut off
		if err := event.KeepNumbers(f.home); err != nil {
			return err
		}
		f.kept = true
	}
	if err := f.home.Write(file.name, kept.Bytes()); err != nil {
		return f.leave(file.name, err)
	}
	f.gone[file.kind.Name] += went
	return nil
}

// line reports whether a line goes.
func (f *work) line(line []byte) bool {
	if v, err := decode(line); err == nil {
		return f.m.in(v) && !f.m.age.value(v)
	}
	text := string(line)
	return f.m.text(text) && !f.m.age.line(text)
}

// members takes those parts out of a file that are of the site. One that is of
// another site as a whole keeps all that does not name this one.
func (f *work) members(file file, record bool) error {
	raw, err := f.home.Read(file.name)
	if err != nil {
		return f.leave(file.name, unread(err))
	}
	v, err := decode(raw)
	if err != nil {
		return f.leave(file.name, errUnread{err})
	}
	if record && f.m.age.record(idOf(file.name), v) || !f.m.in(v) {
		return nil
	}
	if fields, _ := v.(map[string]any); file.how == layout.ForgetAlike && (f.m.about(fields) || f.m.refers(fields)) {
		return f.remove(file)
	}
	went := 0
	v = f.m.prune(v, record, &went)
	if went == 0 {
		return nil
	}
	if err := f.home.WriteJSON(file.name, v); err != nil {
		return f.leave(file.name, err)
	}
	f.gone[file.kind.Name] += went
	return nil
}

// prune takes out of lists what is of the site, and out of objects the texts that
// mention it. What holds such a list stays; so does, in a record, what mentions
// the site in passing.
func (m mention) prune(v any, record bool, went *int) any {
	switch v := v.(type) {
	case []any:
		kept := make([]any, 0, len(v))
		for _, each := range v {
			fields, object := each.(map[string]any)
			switch {
			case !m.in(each) || m.age.value(each):
				kept = append(kept, each)
			case record && object && !m.about(fields) && !m.is(fields["ref"]) && !m.refers(fields):
				kept = append(kept, m.prune(each, record, went))
			default:
				*went++
			}
		}
		return kept
	case map[string]any:
		for key, each := range v {
			named := m.text(key)
			if !named && !m.in(each) || m.age.value(each) {
				continue
			}
			if record && key == "session_id" && !named {
				continue // a record is of a session, also of one that is no more
			}
			switch each.(type) {
			case []any, map[string]any:
				if !named && key != "now" { // of the chat: a word that was under way
					v[key] = m.prune(each, record, went)
					continue
				}
			}
			delete(v, key)
			*went++
		}
	}
	return v
}

// refers reports whether something is of a record that goes.
func (m mention) refers(fields map[string]any) bool {
	for _, key := range []string{"id", "ref", "handoff_id", "approval_id", "todo_id"} {
		if text, _ := fields[key].(string); text != "" && m.hasID(text) {
			return true
		}
	}
	return false
}
