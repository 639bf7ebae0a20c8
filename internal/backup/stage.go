package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/gofrs/flock"

	"tapin/internal/layout"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// stage is where a home is unpacked: beside where it will be, or, where nothing
// can be there, in it.
type stage struct {
	path   string // where it will be
	folder string // what goes when it is given up
	home   string // what becomes the home
	inside bool
	lock   *flock.Flock // on the mark, in the folder
}

func newStage(path string, there bool, o RestoreOptions) (*stage, error) {
	if there && (o.Inside || mounted(path)) {
		return insideOf(path)
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+staging)
	switch {
	case err == nil:
		return stageAt(path, folder), nil
	case there && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)):
		return insideOf(path)
	}
	return nil, err
}

func insideOf(path string) (*stage, error) {
	s := stageAt(path, filepath.Join(path, layout.Restoring))
	return s, os.MkdirAll(s.folder, 0o700)
}

// stageAt is the stage in a folder, whether it is there or not.
func stageAt(path, folder string) *stage {
	s := &stage{path: path, folder: folder, home: folder, lock: flock.New(filepath.Join(folder, mark), flock.SetPermissions(0o600))}
	if s.inside = folder == filepath.Join(path, layout.Restoring); s.inside {
		s.home = filepath.Join(folder, "home")
	}
	return s
}

// drop removes a stage whose lock is held: the key of it, then all but the mark,
// and that last, so that a kill leaves what is still known for a stage.
func (s *stage) drop(ctx context.Context, o RestoreOptions) error {
	if home, err := store.Glance(s.home); err == nil {
		vault.Uproot(context.WithoutCancel(ctx), home, o.Vault)
		_ = home.Close()
	}
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == mark {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.folder, e.Name())); err != nil {
			return err
		}
		if o.Step != nil {
			o.Step("removed")
		}
	}
	if err := syncFolder(s.folder); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.folder, mark)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Remove(s.folder)
}

// Left are the folders that restores have left beside a home, or in it, and that
// nobody is at: decrypted homes, with the key that seals what is in them, and a
// home that has lost its place and not got its new name yet.
func Left(path string) (folders []string) {
	path, err := real(path)
	if err != nil {
		return nil
	}
	for _, folder := range leftAt(path) {
		s := stageAt(path, folder)
		if _, err := os.Lstat(s.lock.Path()); err == nil {
			ok, err := s.lock.TryLock()
			_ = s.lock.Unlock()
			if err == nil && !ok {
				continue
			}
		}
		folders = append(folders, folder)
	}
	return folders
}

func leftAt(path string) []string {
	left, _ := filepath.Glob(escape(path) + staging + "*") // the pattern is never bad
	if _, err := os.Lstat(filepath.Join(path, layout.Restoring)); err == nil {
		left = append(left, filepath.Join(path, layout.Restoring))
	}
	return left
}

// Tidy removes what restores have left that nobody is at; see Left. A home that
// had lost its place is put aside.
func Tidy(ctx context.Context, path string, keys *vault.Options) error {
	path, err := real(path)
	if err != nil {
		return err
	}
	return tidy(ctx, path, RestoreOptions{Vault: keys})
}

func tidy(ctx context.Context, path string, o RestoreOptions) error {
	if err := Finish(path); err != nil {
		return err
	}
	left := leftAt(path)
	if err := os.Remove(filepath.Join(path, mark)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	for _, folder := range left {
		s := stageAt(path, folder)
		_, err := os.Lstat(s.lock.Path())
		if err == nil || s.inside {
			ok, err := s.lock.TryLock()
			if err == nil && ok {
				err = s.drop(ctx, o)
				_ = s.lock.Unlock()
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

// stays reports whether an entry of a home stays where it is when all else is
// exchanged: locks are held on what lies there, and the others are of no home.
func stays(name string) bool {
	return slices.Contains([]string{"locks", layout.Restoring, layout.Before, lostAndFound}, name) || slices.Contains(store.Swaps(), name)
}

// lostAndFound is of a file system, where one begins.
const lostAndFound = "lost+found"

// elsewhere reports whether a folder is on another file system than its parent.
func elsewhere(path string) bool {
	var here, above syscall.Stat_t
	return syscall.Stat(path, &here) == nil && syscall.Stat(filepath.Dir(path), &above) == nil && here.Dev != above.Dev
}
