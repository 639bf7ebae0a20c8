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

	"github.com/gofrs/flock"

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
	// mark lies in a home that is none yet; who unpacks it holds its lock.
	mark = ".restoring"
)

// RestoreOptions say how a backup is restored. Renew is required.
type RestoreOptions struct {
	Vault   *vault.Options
	Replace bool // put a home aside that is there
	Store   *store.Options
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
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { //nolint:gosec // the owner chooses where the home is
		return done, err
	}
	if err := tidy(path); err != nil {
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
	temp, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+staging)
	if err != nil {
		return done, err
	}
	lock := flock.New(filepath.Join(temp, mark), flock.SetPermissions(0o600))
	committed := false
	defer func() {
		_ = lock.Unlock()
		if !committed {
			_ = os.RemoveAll(temp)
		}
	}()
	if ok, err := lock.TryLock(); err != nil || !ok {
		return done, errors.Join(errors.New("mark what is being unpacked"), err)
	}
	o.Step("marked")
	if done.Head, err = Unpack(ctx, from, pass, temp); err != nil {
		return done, err
	}
	o.Step("unpacked")
	if err := prepare(ctx, path, temp, there, o, &done); err != nil {
		return done, err
	}
	o.Step("ready")
	err = ctx.Err()
	if err == nil && o.Begin != nil {
		err = o.Begin()
	}
	if err != nil {
		uproot(ctx, temp, o)
		return done, err
	}
	if err := give(path, temp, there, o.Step); err != nil {
		uproot(ctx, temp, o)
		return done, err
	}
	committed = true
	if there {
		done.Aside, err = putAside(path, temp, used)
		o.Step("put aside")
	}
	return done, errors.Join(err, os.Remove(filepath.Join(path, mark)), syncFolder(filepath.Dir(path)))
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

// give gives the home its name, in one step.
func give(path, temp string, there bool, step func(string)) error {
	if err := syncFolder(temp); err != nil {
		return err
	}
	var err error
	if there {
		err = exchange(temp, path)
	} else {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fault.New(fault.Forbidden, "restore a backup", "the home could not be put in its place: %w", err).
			WithHint("Nothing was changed. Move %s away yourself, and restore to an empty place.", path)
	}
	step("named")
	err = syncFolder(filepath.Dir(path))
	step("kept")
	return err
}

// putAside gives the home that was there before a name that says so.
func putAside(path, old string, used bool) (string, error) {
	if !used {
		return "", os.RemoveAll(old)
	}
	to := path + aside + time.Now().UTC().Format("20060102T150405.000Z")
	return to, os.Rename(old, to)
}

// tidy removes what a kill left of a restore, and puts a home aside that had
// lost its place by then.
func tidy(path string) error {
	left, err := filepath.Glob(escape(path) + staging + "*")
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(path, mark)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	for _, folder := range left {
		if _, err := os.Lstat(filepath.Join(folder, mark)); err == nil {
			lock := flock.New(filepath.Join(folder, mark))
			ok, err := lock.TryLock()
			if err == nil && ok {
				err = os.RemoveAll(folder)
				_ = lock.Unlock()
			}
			if err != nil {
				return err
			}
			continue // else somebody is at it
		}
		_, used, err := look(folder)
		if err == nil {
			_, err = putAside(path, folder, used)
		}
		if err != nil {
			return err
		}
	}
	return nil
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

func uproot(ctx context.Context, temp string, o RestoreOptions) {
	if home, err := store.Open(temp, nil); err == nil {
		vault.Uproot(context.WithoutCancel(ctx), home, o.Vault)
		_ = home.Close()
	}
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
