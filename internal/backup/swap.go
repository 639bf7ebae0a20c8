package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tapin/internal/fault"
	"tapin/internal/layout"
	"tapin/internal/store"
)

// swapping is what a mark of a swap says.
type swapping struct {
	Aside string `json:"aside"` // relative to the home
	Keep  bool   `json:"keep"`  // what is put there
}

// swap exchanges the home with the one that is unpacked in it, entry by entry.
// From its first step on the home is refused by who opens it, and from then on a
// kill changes nothing but who ends it: Finish does. Begun is false as long as
// all is as it was.
func (s *stage) swap(used bool, step func(string)) (begun bool, aside string, err error) {
	now := swapping{filepath.Join(layout.Before, time.Now().UTC().Format("20060102T150405.000Z")), used}
	for _, folder := range []string{filepath.Join(s.path, layout.Before), filepath.Join(s.path, now.Aside)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return false, "", err
		}
	}
	raw, err := json.Marshal(now)
	if err != nil {
		return false, "", err
	}
	draft := filepath.Join(s.folder, "swap")
	if err := writeSynced(draft, raw); err != nil {
		return false, "", err
	}
	for _, folder := range []string{s.home, s.folder, filepath.Join(s.path, layout.Before), s.path} {
		if err := syncFolder(folder); err != nil {
			return false, "", err
		}
	}
	if err := s.phase(draft, store.SwapOut, step); err != nil {
		gone := os.Remove(filepath.Join(s.path, store.SwapOut)) // nothing was moved yet
		return gone != nil && !errors.Is(gone, fs.ErrNotExist), "", err
	}
	back, err := s.goOn(store.SwapOut, now, step)
	if used {
		aside = filepath.Join(s.path, now.Aside)
	}
	return !back, aside, err
}

// Finish ends a swap that was cut off, where there is one and nobody is at it.
func Finish(path string) error {
	path, err := real(path)
	if err != nil {
		return nil //nolint:nilerr // whoever opens it is told
	}
	if phase, err := phaseOf(path); phase == "" {
		return err
	}
	s := stageAt(path, filepath.Join(path, layout.Restoring))
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	if ok, err := s.lock.TryLock(); err != nil || !ok {
		return err // somebody is at it, and the home is refused
	}
	defer func() { _ = s.lock.Unlock() }()
	phase, err := phaseOf(path)
	if phase == "" {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(path, phase)) //nolint:gosec // in the home
	if err != nil {
		return err
	}
	var now swapping
	if err := json.Unmarshal(raw, &now); err != nil || !filepath.IsLocal(now.Aside) || filepath.Dir(now.Aside) != layout.Before {
		return fault.New(fault.Forbidden, "end a restore", "%s is not what tapin wrote", filepath.Join(path, phase)).
			WithHint("What was there before lies in %s, and what was to come in %s.", filepath.Join(path, layout.Before), s.home)
	}
	if back, err := s.goOn(phase, now, func(string) {}); !back {
		return err
	}
	return nil
}

func phaseOf(path string) (string, error) {
	for _, phase := range store.Swaps() {
		if _, err := os.Lstat(filepath.Join(path, phase)); err == nil {
			return phase, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", nil //nolint:nilerr // no folder, or none of ours: whoever opens it is told
		}
	}
	return "", nil
}

// goOn goes on with a swap. What cannot be moved out is moved back, and then
// back is true and all is as it was.
func (s *stage) goOn(phase string, now swapping, step func(string)) (back bool, err error) {
	aside := filepath.Join(s.path, now.Aside)
	mark := func(phase string) string { return filepath.Join(s.path, phase) }
	var why error
	if phase == store.SwapOut {
		if _, why = os.Lstat(filepath.Join(s.home, "schema")); why == nil {
			why = moveAll(s.path, aside, stays, step)
		}
		if why == nil {
			phase, err = store.SwapIn, s.phase(mark(store.SwapOut), store.SwapIn, step)
		} else {
			phase, err = store.SwapBack, s.phase(mark(store.SwapOut), store.SwapBack, step)
		}
		if err != nil {
			return false, errors.Join(why, err)
		}
	}
	if phase == store.SwapBack {
		if err := moveAll(aside, s.path, stays, step); err != nil {
			return false, errors.Join(why, err)
		}
		_ = os.Remove(aside)
		if err := errors.Join(os.Remove(mark(store.SwapBack)), syncFolder(s.path)); err != nil {
			return false, errors.Join(why, err)
		}
		if why != nil {
			why = fault.New(fault.Forbidden, "restore a backup", "the home that is there could not be moved out of the way: %w", why).
				WithHint("Nothing was changed. Name an empty place with --home.")
		}
		return true, why
	}
	// Nobody opens the home, but if somebody has put something there all the same it is kept.
	err = moveAll(s.home, s.path, func(name string) bool { return stays(name) || name == "tmp" }, step)
	if err == nil && !now.Keep {
		err = os.RemoveAll(aside)
		_ = os.Remove(filepath.Dir(aside)) // where nothing else is in it
	}
	if err == nil {
		err = errors.Join(os.Remove(mark(store.SwapIn)), syncFolder(s.path))
		step("ended")
	}
	if err != nil {
		return false, fault.New(fault.Busy, "restore a backup", "the restored home is not yet in its place: %w", err).
			WithHint("Put that right, and start tapin: it goes on with it. What was there before lies in %s.", aside)
	}
	return false, nil
}

// phase gives a mark its next name.
func (s *stage) phase(from, to string, step func(string)) error {
	if err := os.Rename(from, filepath.Join(s.path, to)); err != nil {
		return err
	}
	step(to)
	return syncFolder(s.path)
}

// moveAll moves the entries of a folder that do not stay. What is in the way of
// one keeps lying there, under another name.
func moveAll(from, to string, stays func(string) bool, step func(string)) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if stays(e.Name()) {
			continue
		}
		place := filepath.Join(to, e.Name())
		if _, err := os.Lstat(place); err == nil {
			if err := os.Rename(place, fmt.Sprintf("%s.%d", place, time.Now().UnixNano())); err != nil {
				return err
			}
		}
		if err := os.Rename(filepath.Join(from, e.Name()), place); err != nil {
			return err
		}
		step("moved")
	}
	return errors.Join(syncFolder(to), syncFolder(from))
}

func writeSynced(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the home
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
