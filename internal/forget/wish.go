package forget

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"tapin/internal/fault"
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
	At      time.Time `json:"at,omitzero"`       // what came later is not meant
	Records []string  `json:"records"`           // ids of hand-offs, payments, runs, sessions
	Keys    bool      `json:"keychain,omitzero"` // its credentials are gone already
	Open    []string  `json:"-"`                 // those records that are not over

	since time.Time // At, once tapin may have served since
}

// Since is when the wish was noted if tapin may have served since, else zero:
// everything that there is was there then.
func (w Wish) Since() time.Time { return w.since }

// wishes are all that are noted, as they stand in the file: the first, and the others.
type wishes struct {
	Wish

	Others []Wish `json:"others,omitempty"`
}

// Plan finds what is of a site, and changes nothing.
func Plan(home *store.Home, at site.Site) (Wish, error) {
	return Wish{Site: at, At: time.Now().UTC()}.Again(home)
}

// Again is the wish with the records that were not found, or could not be read,
// when it was noted.
func (w Wish) Again(home *store.Home) (Wish, error) {
	m := mentionOf(w)
	err := walk(home, func(f file) error {
		if f.how != layout.ForgetRecord {
			return nil
		}
		raw, err := home.Read(f.name)
		if err != nil {
			return nil //nolint:nilerr // told of when the wish is fulfilled
		}
		v, err := decode(raw)
		id := idOf(f.name)
		if err != nil || slices.Contains(w.Records, id) || m.age.record(id, v) || !m.of(f.kind, v) {
			return nil //nolint:nilerr // as above
		}
		w.Records = append(w.Records, id)
		folder, _, _ := strings.Cut(f.name, "/")
		open, err := home.Exists(path.Join(folder, "open", id))
		if err == nil && open && !isOver(v) {
			w.Open = append(w.Open, id)
		}
		return err
	})
	return w, err
}

// isOver reports whether a record says that it has ended. One that is marked as
// open may have only something left to tell, as after a restore.
func isOver(v any) bool {
	record, _ := v.(map[string]any)
	switch record["status"] {
	case "FINISHED", "CANCELLED", "TIMED_OUT", "COMPLETED", "FAILED", "denied", "expired":
		return true
	case "used":
		outcome, _ := record["outcome"].(string)
		return outcome != ""
	}
	return false
}

// of reports whether a record is of the site. A run has no field that says so.
func (m mention) of(kind layout.Kind, v any) bool {
	record, _ := v.(map[string]any)
	if kind.Name != "run" {
		return m.about(record)
	}
	if !m.in(record) || m.in(record["goal"]) {
		return m.in(record["goal"])
	}
	evidence, _ := record["evidence"].([]any)
	return !slices.ContainsFunc(evidence, func(e any) bool { return !m.in(e) })
}

// idOf is the record that a file is of.
func idOf(name string) string {
	if base := path.Base(name); base != "meta.json" {
		id, _, _ := strings.Cut(base, ".")
		return id
	}
	return path.Base(path.Dir(name))
}

// Note writes the wish down, in place of an earlier one for the same site: from
// here on it is fulfilled, whatever happens.
func Note(home *store.Home, w Wish) error {
	all, err := Noted(home)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(e Wish) bool { return e.Site == w.Site }); i >= 0 {
		all[i] = w
		return write(home, all)
	}
	return write(home, append(all, w))
}

func write(home *store.Home, all []Wish) error {
	return home.WriteJSON(wishFile, wishes{all[0], all[1:]})
}

// Noted are the wishes that are not fulfilled yet.
func Noted(home *store.Home) ([]Wish, error) {
	var w wishes
	var all []Wish
	err := home.ReadRecord(wishFile, &w, func() error {
		all = append([]Wish{w.Wish}, w.Others...)
		for i := range all {
			if err := all[i].check(); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].At.IsZero() { // of a version that did not write it
			info, err := home.Stat(wishFile)
			if err != nil {
				return nil, err
			}
			all[i].At = info.ModTime()
		}
		all[i].since = all[i].At
	}
	return all, nil
}

// check refuses a wish that says nothing: what has no name is found in everything.
func (w *Wish) check() error {
	if at, err := site.Of(string(w.Site)); err != nil || at != w.Site || slices.Contains(w.Records, "") {
		return errors.New("it names no site")
	}
	return nil
}

// Done takes the wish for a site back. It comes when nothing of the site is left,
// or when the owner gives it up.
func Done(home *store.Home, at site.Site) error {
	all, err := Noted(home)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(w Wish) bool { return w.Site == at })
	switch {
	case len(rest) == len(all):
		return nil
	case len(rest) > 0:
		return write(home, rest)
	}
	if err := home.Remove(wishFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Matters are those of the files left that exist nowhere else: while there is
// one, the wish is not fulfilled.
func Matters(left []string) []string {
	return slices.DeleteFunc(slices.Clone(left), func(name string) bool {
		kind, _ := layout.Of(name)
		return kind.Class != layout.Truth && kind.Class != layout.Key
	})
}

// Unread reports whether an error is of a file that cannot be read, and not of
// the disk or a kill: others can be gone on with.
func Unread(err error) bool { return errors.Is(err, fault.Unreadable) }
