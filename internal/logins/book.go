package logins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"tapin/internal/fault"
	"tapin/internal/layout"
	"tapin/internal/store"
)

const (
	bookTries = 50 // an editor that saves more often than we can write
	bookPoll  = 5 * time.Millisecond

	mostOfBook = 8 * maxManifest // one that is too long by less is told of as such
)

// book is the manifest on the disk. It may lie outside the home, be shared
// with another tapin, and be open in somebody's editor.
type book struct {
	path string
	at   func(step string)
	home *store.Home // nil where it may lie anywhere
}

// read returns what the manifest says. A missing one says nothing.
func (b *book) read() (*document, error) {
	data, err := store.ReadFile(b.path, mostOfBook)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, b.failed("read", err)
	}
	d, err := readDocument(b.path, data)
	return d, b.legible(err)
}

// legible says of a manifest in the home whether it can be read, as of every
// other file there. One that lies elsewhere is its owner's own.
func (b *book) legible(err error) error {
	if b.home == nil {
		return err
	}
	name, outside := filepath.Rel(b.home.Path(), b.path)
	if kind, ok := layout.Of(filepath.ToSlash(name)); outside != nil || !ok || kind.Name != "manifest" {
		return err
	}
	if err == nil {
		b.home.Readable(name)
		return nil
	}
	return b.home.Unreadable(name, err)
}

// Legible says why the manifest at a path cannot be read, or nil.
func Legible(path string) error {
	_, err := (&book{path: filepath.Clean(path), at: func(string) {}}).entries()
	return err
}

// entries reads the logins of the manifest.
func (b *book) entries() ([]Entry, error) {
	d, err := b.read()
	if err != nil {
		return nil, err
	}
	entries, err := d.entries()
	return entries, b.legible(err)
}

// update writes what change makes of the manifest, unless that is the same.
// What others have written meanwhile is read and changed anew, never lost.
func (b *book) update(ctx context.Context, change func(*document) (*document, error)) error {
	path, err := b.target()
	if err != nil {
		return err
	}
	unlock, err := b.lock(ctx, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unlock()
	for range bookTries {
		b.at("manifest read")
		before, err := store.ReadFile(path, mostOfBook)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return b.failed("read", err)
		}
		d, err := readDocument(b.path, before)
		if err == nil {
			_, err = d.entries()
		}
		if err := b.legible(err); err != nil {
			return err
		}
		d, err = change(d)
		if err != nil {
			return err
		}
		after := []byte(d.String())
		if bytes.Equal(before, after) {
			return nil
		}
		written, err := b.swap(path, before, after)
		if err != nil {
			return b.failed("write", err)
		}
		if written {
			return nil
		}
	}
	return fault.New(fault.Busy, "write the saved logins", "%s is being written by somebody else, again and again", b.path)
}

// swap puts after in the place of before. It does nothing if something else
// stands there by now.
func (b *book) swap(path string, before, after []byte) (written bool, err error) {
	b.at("manifest temp")
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil { //nolint:gosec // the owner chooses where the manifest is
		mode = info.Mode().Perm()
	}
	// One name, under our lock: what a kill leaves is taken away by the next write.
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tapin")
	_ = os.Remove(name)                                                     //nolint:gosec // the owner chooses where the manifest is
	temp, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // as above
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(name) }() //nolint:gosec // as above; after the rename there is nothing left to remove
	_, err = temp.Write(after)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err != nil {
		return false, err
	}
	b.at("manifest compare")
	now, err := store.ReadFile(path, mostOfBook)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if !bytes.Equal(now, before) {
		return false, nil
	}
	if err := os.Rename(name, path); err != nil { //nolint:gosec // the owner chooses where the manifest is
		return false, err
	}
	b.at("manifest renamed")
	return true, syncFolder(filepath.Dir(path))
}

// target is the file itself where the manifest is a link, so that the link
// stays one.
func (b *book) target() (string, error) {
	path, err := filepath.EvalSymlinks(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = b.path, os.MkdirAll(filepath.Dir(b.path), 0o700) //nolint:gosec // the owner chooses where the manifest is
	}
	if err != nil {
		return "", b.failed("write", err)
	}
	return path, nil
}

// lock keeps other tapins away, also those of other homes: it is taken on the
// folder, so that nothing is left lying in it.
func (b *book) lock(ctx context.Context, folder string) (unlock func(), err error) {
	f, err := os.Open(folder) //nolint:gosec // the owner chooses where the manifest is
	if err != nil {
		return nil, b.failed("lock", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, b.failed("lock", err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("lock the saved logins: %w", ctx.Err())
		case <-time.After(bookPoll):
		}
	}
}

func (b *book) failed(what string, err error) error {
	op := what + " the saved logins"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(fault.StorageFull, op, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.New(fault.Forbidden, op, "%w", err).WithHint("See who may write %s; context_store names it.", b.path)
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return fault.New(fault.InvalidRequest, op, "%w", err).WithHint("context_store must name a file.")
	case errors.Is(err, store.ErrNoFile), errors.Is(err, store.ErrTooLarge):
		return fault.New(fault.Unreadable, op, "%w", err).WithHint("See what %s is, and put the manifest there; context_store names it.", b.path)
	}
	return fmt.Errorf("%s: %w", op, err)
}

func syncFolder(path string) error {
	f, err := os.Open(path) //nolint:gosec // the owner chooses where the manifest is
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
