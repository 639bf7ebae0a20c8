package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/layout"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
)

const (
	// staging is what a home is called while it is unpacked, beside where it will be.
	staging = ".restoring-"
	// aside is what the home is called afterwards that was there before.
	aside = ".before-"
	// mark lies where a home is unpacked that is none yet; who does it holds its lock.
	mark = ".restoring"
)

// RestoreOptions say how a backup is restored. Renew is required.
type RestoreOptions struct {
	Vault   *vault.Options
	Replace bool // put a home aside that is there
	// Inside unpacks it in the home that is there and exchanges them entry by entry,
	// as is done by itself where that is a mount point or nothing can lie beside it.
	Inside bool
	Store  *store.Options
	// Renew makes what was unpacked a home that may be served. known is the highest
	// epoch of the homes that it follows.
	Renew func(home *store.Home, known uint64) error
	// Begin is called right before the home that is there loses its place, once
	// nothing speaks against it; an error keeps it there. Nil is none.
	Begin func() error
	// Step hears of every step that is made beside those of the store; tests end
	// the process in it.
	Step func(what string)
}

// Restored says what came of it.
type Restored struct {
	Head  Head
	Key   vault.Source // where the key is now; none where nothing is sealed
	Aside string       // where the home is that was there before
}

// Restore puts the home of a backup at path. Nobody may run under it. Until the
// one step that gives it its name nothing has changed there, whatever happens,
// and from then on it is whole.
func Restore(ctx context.Context, path string, from io.Reader, pass secret.Text, o RestoreOptions) (done Restored, err error) {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if path, err = real(path); err != nil {
		return done, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { //nolint:gosec // the owner chooses where the home is
		return done, err
	}
	if err := tidy(ctx, path, o); err != nil {
		return done, err
	}
	there, used, err := look(path)
	if err != nil {
		return done, err
	}
	if used && !o.Replace {
		return done, fault.New(fault.InvalidRequest, "restore a backup", "there is a home at %s already", path).
			WithHint("Name an empty place with --home, or put that one aside with --replace.")
	}
	s, err := newStage(path, there, o)
	if err != nil {
		return done, err
	}
	if ok, err := s.lock.TryLock(); err != nil {
		return done, err
	} else if !ok {
		return done, fault.New(fault.Busy, "restore a backup", "another restore is under way at %s", path)
	}
	committed := false
	defer func() {
		if !committed {
			_ = s.drop(ctx, o) // what stays of it the next restore removes
		}
		_ = s.lock.Unlock()
	}()
	o.Step("marked")
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		return done, err
	}
	if done.Head, err = Unpack(ctx, from, pass, s.home); err != nil {
		return done, err
	}
	o.Step("unpacked")
	if err := prepare(ctx, path, s.home, there, o, &done); err != nil {
		return done, err
	}
	o.Step("ready")
	err = ctx.Err()
	if err == nil && o.Begin != nil {
		err = o.Begin()
	}
	if err != nil {
		return done, err
	}
	if s.inside {
		committed, done.Aside, err = s.swap(used, o.Step)
		if err == nil {
			_ = s.drop(ctx, o) // it is empty, and goes with the next restore too
		}
		return done, err
	}
	if committed, err = give(path, s.home, there, o.Step); err != nil {
		return done, err
	}
	if there {
		done.Aside, err = putAside(path, s.home, used)
		o.Step("put aside")
	}
	return done, errors.Join(err, os.Remove(filepath.Join(path, mark)), syncFolder(filepath.Dir(path)))
}

// real is the folder itself where the home is a link to one.
func real(path string) (string, error) {
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return path, nil //nolint:nilerr // whoever opens it is told
	}
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fault.New(fault.InvalidRequest, "restore a backup", "%s is a link that leads nowhere: %w", path, err).
			WithHint("Make the folder that it leads to, or name another place with --home.")
	}
	return to, nil
}

// prepare brings what was unpacked to the form of this program, gives it its
// key, and takes out of it what was of the other life.
func prepare(ctx context.Context, path, temp string, there bool, o RestoreOptions, done *Restored) error {
	home, err := store.Open(temp, o.Store)
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	known, err := home.CounterAt("epoch")
	if err != nil {
		return err
	}
	if there {
		before, err := store.Glance(path)
		if err != nil {
			return err
		}
		// One that cannot be read is why somebody restores; time is beyond it.
		if n, err := before.CounterAt("epoch"); err == nil {
			known = max(known, n)
		}
		_ = before.Close()
	}
	if err := o.Renew(home, known); err != nil {
		return err
	}
	if done.Head.Key == "" {
		return nil
	}
	if done.Key, err = vault.Plant(ctx, home, o.Vault, secret.New(done.Head.Key)); err != nil {
		vault.Uproot(context.WithoutCancel(ctx), home, o.Vault)
	}
	done.Head.Key = ""
	return err
}

// give gives the home its name, in one step; named says whether that was made.
func give(path, temp string, there bool, step func(string)) (named bool, err error) {
	if err := syncFolder(temp); err != nil {
		return false, err
	}
	if there {
		err = exchange(temp, path)
	} else {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return false, fault.New(fault.Forbidden, "restore a backup", "the home could not be put in its place: %w", err).
			WithHint("Nothing was changed. Move %s away yourself, and restore to an empty place.", path)
	}
	step("named")
	err = syncFolder(filepath.Dir(path))
	step("kept")
	return true, err
}

// putAside gives the home that was there before a name that says so.
func putAside(path, old string, used bool) (string, error) {
	if !used {
		return "", os.RemoveAll(old)
	}
	to := path + aside + time.Now().UTC().Format("20060102T150405.000Z")
	return to, os.Rename(old, to)
}

// look reports whether there is a folder, and whether anything in it is worth keeping.
func look(path string) (there, used bool, err error) {
	info, err := os.Stat(path) //nolint:gosec // the owner chooses where the home is
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err == nil && !info.IsDir() {
		err = fault.New(fault.InvalidRequest, "restore a backup", "%s is no folder", path).WithHint("Name another place with --home.")
	}
	if err != nil {
		return false, false, err
	}
	err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && filepath.Dir(file) == path && stays(d.Name()) {
			return fs.SkipDir
		}
		if err == nil && d.IsDir() {
			return nil
		}
		name, bad := filepath.Rel(path, file)
		kind, known := layout.Of(filepath.ToSlash(name))
		// What cannot be seen may be worth keeping.
		if err != nil || bad != nil || !known || name != "schema" && (kind.Class == layout.Truth || kind.Class == layout.Key) {
			used = true
			return fs.SkipAll
		}
		return nil
	})
	return true, used, err
}

func syncFolder(path string) error {
	f, err := os.Open(path) //nolint:gosec // the owner chooses where the home is
	if err != nil {
		return fmt.Errorf("restore a backup: %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}

func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
