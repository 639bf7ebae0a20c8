package logins

import (
	"context"
	"errors"
	"io/fs"

	"tapin/internal/fault"
)

// DeleteOptions limit what may be deleted; nil means no limit.
type DeleteOptions struct {
	OnlyExpired bool // refuse a login whose last check did not fail
}

// Deleted tells what is gone, and what is not ours to delete.
type Deleted struct {
	Name     string
	Sealed   bool // the saved state
	Previous bool // the state before it
	SetAside int  // damaged files
	Entry    bool // its lines in the manifest
	History  bool // how long it lasted
	Remote   bool // what the provider kept of it
	// Remains is where the provider keeps a state of its own, which is still
	// there because nobody here can delete it: a Browserbase context id.
	Remains string
}

// Delete removes a login wherever this tapin keeps it. One that is in use stays.
func (r *Room) Delete(ctx context.Context, name string, opts *DeleteOptions) (Deleted, error) {
	out := Deleted{Name: name}
	if err := CheckName(name); err != nil {
		return out, err
	}
	err := r.exclusively(ctx, func() error {
		rec, entry, err := r.idle(name)
		if err != nil {
			return err
		}
		if opts != nil && opts.OnlyExpired && !r.failed(rec) {
			return fault.New(fault.Forbidden, "delete the login "+name, "only the owner may delete a login whose last check did not fail").
				WithHint("Ask the owner, or check it first with POST /contexts/%s/check.", name)
		}
		if entry != nil {
			out.Entry, out.Remains = true, entry.BrowserbaseContextID
			// Before anything is gone: a manifest that cannot be changed refuses all.
			d, err := r.book.read()
			if err == nil {
				_, err = d.remove(keyContexts, name)
			}
			if err != nil {
				return err
			}
		}
		var aside []string
		if out.Sealed, out.Previous, aside, err = r.files(name); err != nil {
			return err
		}
		out.SetAside = len(aside)
		out.History = len(rec.Lives) > 0 || !rec.AliveSince.IsZero() || rec.LastCheck != nil
		rec.Task, rec.Kept = taskDelete, out.Remains
		if err := r.keep(rec); err != nil {
			return err
		}
		if err := r.finish(ctx, rec); err != nil {
			return err
		}
		if out.Remains != "" && rec.Kept == "" {
			out.Remote, out.Remains = true, ""
		}
		return nil
	})
	return out, err
}

// failed reports whether the last that is known of a login is a check that
// failed. One that was saved or found to work since is another.
func (r *Room) failed(rec *record) bool {
	if rec.LastCheck == nil || rec.LastCheck.Result != Expired || rec.VerifiedAt.After(rec.LastCheck.At) {
		return false
	}
	v, _, err := r.peek(rec.Name)
	return err == nil && (v == nil || v.SavedAt.Before(rec.LastCheck.At))
}

// Rename gives a login another name. It keeps its history.
func (r *Room) Rename(ctx context.Context, name, to string) error {
	for _, n := range []string{name, to} {
		if err := CheckName(n); err != nil {
			return err
		}
	}
	return r.exclusively(ctx, func() error {
		rec, entry, err := r.idle(name)
		if err != nil {
			return err
		}
		if name == to {
			return nil
		}
		if err := r.unused(name, to); err != nil {
			return err
		}
		if entry != nil {
			d, err := r.book.read()
			if err == nil {
				_, err = d.rename(to, keyContexts, name)
			}
			if err != nil {
				return err
			}
		}
		next := *rec
		next.Name, next.Task, next.From = to, taskRename, name
		if err := r.keep(&next); err != nil {
			return err
		}
		return r.finish(ctx, &next)
	})
}

// unused refuses a name that is taken. Another spelling of the old one is not
// free either: its files would be each other's.
func (r *Room) unused(name, to string) error {
	infos, err := r.names()
	if err != nil {
		return err
	}
	for _, other := range infos {
		if other == to {
			return fault.New(fault.InvalidRequest, "rename the login "+name, "there is a login %q already", to).WithHint("Choose another name, or delete that one first.")
		}
	}
	if other := clashing(to, infos); other != "" {
		return clash(to, other)
	}
	return nil
}

// idle returns what there is of a login that nobody uses.
func (r *Room) idle(name string) (*record, *Entry, error) {
	rec, err := r.record(name)
	if err != nil {
		return nil, nil, err
	}
	if rec.Use != nil {
		return nil, nil, locked(name, rec.Use.Session)
	}
	if rec.Task == taskRename {
		return nil, nil, unfinished(name)
	}
	entries, err := r.book.entries()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if e.Name == name {
			return rec, &e, nil
		}
	}
	sealed, previous, aside, err := r.files(name)
	if err != nil {
		return nil, nil, err
	}
	if !sealed && !previous && len(aside) == 0 && rec.Task == "" {
		return nil, nil, unknown(name)
	}
	return rec, nil, nil
}

// finish does what a record says is under way, from wherever a kill left it.
func (r *Room) finish(ctx context.Context, rec *record) error {
	if rec.Task == taskRename {
		return r.finishRename(ctx, rec)
	}
	_, _, aside, err := r.files(rec.Name)
	if err != nil {
		return err
	}
	// What opens accounts goes first.
	if err := r.removeAll(append([]string{sealedFile(rec.Name), previousFile(rec.Name)}, aside...)...); err != nil {
		return err
	}
	// Before the manifest forgets where it is: what fails here is tried again.
	if rec.Kept != "" {
		r.at("forget")
		done, err := r.forget(ctx, rec.Kept)
		if err != nil {
			return fault.Wrap(fault.ProviderError, "delete the login "+rec.Name+" at its provider", err)
		}
		if done {
			rec.Kept = ""
		}
	}
	if err := r.book.update(ctx, func(d *document) (*document, error) { return d.remove(keyContexts, rec.Name) }); err != nil {
		return err
	}
	return r.drop(rec.Name)
}

func (r *Room) finishRename(ctx context.Context, rec *record) error {
	old, err := r.record(rec.From)
	if err != nil {
		return err
	}
	if old.Use != nil {
		return locked(rec.From, old.Use.Session)
	}
	for _, file := range []func(string) string{previousFile, sealedFile} {
		r.at("rename")
		v, _, err := r.open(rec.From, file(rec.From))
		if errors.Is(err, fault.IntegrityMismatch) {
			_, err = r.home.PutAside(file(rec.From), err)
		}
		if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		plain, err := encodeVersion(*v)
		if err != nil {
			return err
		}
		sealed, err := r.vault.Seal(sealName(rec.Name), "", plain)
		if err != nil {
			return err
		}
		if err := r.home.Write(file(rec.Name), sealed); err != nil {
			return err
		}
	}
	err = r.book.update(ctx, func(d *document) (*document, error) {
		if !d.has(key(keyContexts, rec.From)) || d.has(key(keyContexts, rec.Name)) {
			return d, nil
		}
		return d.rename(rec.Name, keyContexts, rec.From)
	})
	if err != nil {
		return err
	}
	if err := r.removeAll(sealedFile(rec.From), previousFile(rec.From), recordFile(rec.From)); err != nil {
		return err
	}
	rec.Task, rec.From = "", ""
	return r.keep(rec)
}

func (r *Room) removeAll(files ...string) error {
	for _, file := range files {
		r.at("remove")
		if err := r.home.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
