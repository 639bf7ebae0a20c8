// Package forget takes a site out of a home that nobody serves.
// It owns the wish to forget one, which is on the disk until nothing of the site
// is left, and what of each kind of file goes. It must never take away what is
// of another site, nor leave a wish half fulfilled and say that it is done.
package forget

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"tapin/internal/event"
	"tapin/internal/layout"
	"tapin/internal/site"
	"tapin/internal/store"
)

// wishFile is there from before the first thing goes until the last one has gone.
const wishFile = "forget.json"

// Wish is a site to be forgotten, with the records that are of it: once a part
// of them is gone nobody could find the others.
type Wish struct {
	Site    site.Site `json:"site"`
	Records []string  `json:"records"` // ids of hand-offs, payments, runs, sessions, to-dos
	Open    []string  `json:"-"`       // those of them that are not over
}

// Counts say how much went, by the kind of file.
type Counts map[string]int

// mention finds a site in a text: its domain or one below it, whole.
type mention struct {
	host *regexp.Regexp
	ids  []string
}

func mentionOf(w Wish) mention {
	below := `|\.`
	if of, err := site.Of("below." + string(w.Site)); err != nil || of != w.Site {
		below = "" // an address, or a suffix such as co.uk: what is below it is of others
	}
	return mention{regexp.MustCompile(`(?i)(^|[^a-z0-9.-]` + below + `)` + regexp.QuoteMeta(string(w.Site)) + `\.?($|[^a-z0-9.-])`), w.Records}
}

func (m mention) in(text []byte) bool {
	return m.host.Match(text) || slices.ContainsFunc(m.ids, func(id string) bool { return bytes.Contains(text, []byte(id)) })
}

// Plan finds what is of a site, and changes nothing.
func Plan(home *store.Home, at site.Site) (Wish, error) {
	w := Wish{Site: at}
	m := mentionOf(w)
	err := walk(home, func(name string, kind layout.Kind, how layout.Forgetting) error {
		if how != layout.ForgetRecord {
			return nil
		}
		raw, err := home.Read(name)
		if err != nil || !m.in(raw) || kind.Name == "run" && !aboutSite(raw, m) {
			return nil //nolint:nilerr // what cannot be read is left for a person
		}
		id := idOf(name)
		w.Records = append(w.Records, id)
		folder, _, _ := strings.Cut(name, "/")
		if open, err := home.Exists(path.Join(folder, "open", id)); err != nil || open {
			w.Open = append(w.Open, id)
			return err
		}
		return nil
	})
	return w, err
}

// aboutSite reports whether a run is of the site, and not only a part of its evidence.
func aboutSite(raw []byte, m mention) bool {
	var run map[string]json.RawMessage
	if json.Unmarshal(raw, &run) != nil {
		return false
	}
	var evidence []json.RawMessage
	_ = json.Unmarshal(run["evidence"], &evidence)
	others := slices.ContainsFunc(evidence, func(e json.RawMessage) bool { return !m.in(e) })
	for part, text := range run {
		if part != "evidence" && part != "outbox" && m.in(text) {
			return true
		}
	}
	return !others
}

// idOf is the record that a file is of.
func idOf(name string) string {
	if base := path.Base(name); base != "meta.json" {
		id, _, _ := strings.Cut(base, ".")
		return id
	}
	return path.Base(path.Dir(name))
}

// Note writes the wish down: from here on it is fulfilled, whatever happens.
func Note(home *store.Home, w Wish) error { return home.WriteJSON(wishFile, w) }

// Noted is the wish that is not fulfilled yet, if there is one.
func Noted(home *store.Home) (w Wish, ok bool, err error) {
	err = home.ReadRecord(wishFile, &w, w.check)
	if errors.Is(err, fs.ErrNotExist) {
		return w, false, nil
	}
	return w, err == nil, err
}

// check refuses a wish that says nothing: what has no name is found in everything.
func (w *Wish) check() error {
	if at, err := site.Of(string(w.Site)); err != nil || at != w.Site || slices.Contains(w.Records, "") {
		return errors.New("it names no site")
	}
	return nil
}

// Done takes the wish back. It comes when nothing of the site is left.
func Done(home *store.Home) error {
	err := home.Remove(wishFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Fulfil takes everything of a noted wish out of the home but for the saved
// logins. It may be done any number of times.
func Fulfil(home *store.Home, w Wish, gone Counts) (left []string, err error) {
	m := mentionOf(w)
	last, dropped := uint64(0), false
	err = walk(home, func(name string, kind layout.Kind, how layout.Forgetting) error {
		var err error
		switch how {
		case layout.ForgetRecord:
			if slices.Contains(w.Records, idOf(name)) {
				err = remove(home, name, kind, gone)
			} else {
				err = members(home, name, kind, m, gone)
			}
		case layout.ForgetFile:
			raw, bad := home.Read(name)
			switch {
			case errors.Is(bad, fs.ErrNotExist):
			case bad != nil:
				left = append(left, name)
			case m.in(raw) || m.in([]byte(name)):
				err = remove(home, name, kind, gone)
			}
		case layout.ForgetBeside:
			if slices.ContainsFunc(w.Records, func(id string) bool { return strings.Contains(name, "/"+id) }) {
				err = remove(home, name, kind, gone)
			}
		case layout.ForgetLines:
			err = lines(home, name, kind, m, gone, &last, &dropped)
		case layout.ForgetMembers:
			err = members(home, name, kind, m, gone)
		case layout.ForgetNothing, layout.ForgetLogin:
		}
		return err
	})
	if err == nil && dropped {
		err = event.KeepFeedAt(home, last+1) // no number is given twice
	}
	if err == nil {
		err = folders(home, w)
	}
	return left, err
}

// walk goes through what lies in the home, kind by kind.
func walk(home *store.Home, fn func(name string, kind layout.Kind, how layout.Forgetting) error) error {
	var names []string
	skip := func(folder string) bool { return slices.Contains([]string{"run", "tmp", "locks", layout.Demo}, folder) }
	err := home.Walk(skip, func(name string, _ fs.FileInfo) error { names = append(names, name); return nil })
	if err != nil {
		return err
	}
	for _, name := range names {
		kind, ok := layout.Of(name)
		if !ok {
			continue // the owner's own
		}
		how, _ := layout.ForgettingOf(kind)
		if err := fn(name, kind, how); err != nil {
			return err
		}
	}
	return nil
}

func remove(home *store.Home, name string, kind layout.Kind, gone Counts) error {
	err := home.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		gone[kind.Name]++
	}
	return err
}

// folders removes what is empty of records that went.
func folders(home *store.Home, w Wish) error {
	for _, id := range w.Records {
		for _, folder := range []string{"handoffs", "task-runs", "downloads", "received"} {
			if err := home.RemoveAll(path.Join(folder, id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lines takes those out that mention the site. The file is the one before or
// the one after.
func lines(home *store.Home, name string, kind layout.Kind, m mention, gone Counts, last *uint64, dropped *bool) error {
	raw, err := home.Read(name)
	if err != nil {
		return nil //nolint:nilerr // it went away meanwhile, or is left for a person
	}
	feed := kind.Name == "feed"
	var kept bytes.Buffer
	went := 0
	for line := range bytes.Lines(raw) {
		var e struct {
			Seq uint64 `json:"seq"`
		}
		if feed && json.Unmarshal(line, &e) == nil {
			*last = max(*last, e.Seq)
		}
		if m.in(line) {
			went++
			continue
		}
		kept.Write(line)
	}
	if went == 0 {
		return nil
	}
	gone[kind.Name] += went
	*dropped = *dropped || feed
	return home.Write(name, kept.Bytes())
}

// members takes those parts out of a file that are of the site.
func members(home *store.Home, name string, kind layout.Kind, m mention, gone Counts) error {
	raw, err := home.Read(name)
	if err != nil || !m.in(raw) {
		return nil //nolint:nilerr // it went away meanwhile, or is left for a person
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil // as every start finds it
	}
	went := 0
	v = prune(v, m, &went)
	gone[kind.Name] += went
	return home.WriteJSON(name, v)
}

// prune takes out of lists what mentions the site, and out of objects the texts
// that do. What holds such a list stays.
func prune(v any, m mention, went *int) any {
	switch v := v.(type) {
	case []any:
		kept := make([]any, 0, len(v))
		for _, each := range v {
			if raw, err := json.Marshal(each); err == nil && m.in(raw) {
				*went++
				continue
			}
			kept = append(kept, each)
		}
		return kept
	case map[string]any:
		for key, each := range v {
			raw, err := json.Marshal(each)
			if err != nil || !m.in(raw) && !m.in([]byte(key)) {
				continue
			}
			switch each.(type) {
			case []any, map[string]any:
				if !m.in([]byte(key)) && key != "now" { // of the chat: a word that was under way
					v[key] = prune(each, m, went)
					continue
				}
			}
			delete(v, key)
			*went++
		}
	}
	return v
}
