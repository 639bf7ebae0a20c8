package store

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"tapin/internal/layout"
)

const folderLock = ".folders"

// MakeRoom sees to it that where the home has its folders no file stands. What
// does is put aside and told of. Whoever has the home to itself for long calls
// it as it begins: what others make beside the store would fail on it.
func (h *Home) MakeRoom() error {
	var errs []error
	for _, dir := range layout.Folders() {
		errs = append(errs, h.freeFolder(dir))
	}
	return errors.Join(errs...)
}

// Folder makes a folder of the home, and puts aside what stands in its place.
func (h *Home) Folder(dir string) error {
	return storageErrorOrNil("make folder "+dir, h.makeFolder(dir))
}

// makeFolder makes dir and what is above it, and makes them durable. It is the
// one place where folders are made: what stands in the place of one is damage.
func (h *Home) makeFolder(dir string) error {
	if info, err := h.root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := h.freeFolder(dir); err != nil {
		return err
	}
	if err := h.root.MkdirAll(dir, folderMode); err != nil {
		return err
	}
	for dir != "." && dir != "/" {
		dir = path.Dir(dir)
		if err := h.syncFolder(dir); err != nil {
			return err
		}
	}
	return nil
}

// freeFolder puts aside what stands in the place of dir or of a folder above it
// and is none. A link to a folder within the home is as good as one.
func (h *Home) freeFolder(dir string) error {
	dir = path.Clean(dir)
	if top, _, _ := strings.Cut(dir, "/"); !slices.Contains(layout.Folders(), top) {
		return nil // not one of the home's: whatever it is, it is not ours to move
	}
	above := ""
	for part := range strings.SplitSeq(dir, "/") {
		above = path.Join(above, part)
		why, err := h.noFolder(above)
		if err != nil {
			return err
		}
		if why == nil {
			continue
		}
		if err := h.freeOne(above); err != nil {
			return err
		}
	}
	return nil
}

// noFolder says why what has a name is no folder; nil if it is one, or nothing.
func (h *Home) noFolder(dir string) (why, err error) {
	info, err := h.root.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, nil
	case info.Mode()&fs.ModeSymlink == 0:
		return errNoFolder, nil
	}
	if info, err := h.root.Stat(dir); err == nil && info.IsDir() {
		return nil, nil
	}
	return errLink, nil
}

var errNoFolder = errors.New("a file is in the place of a folder")

// freeOne puts aside what is no folder. It belongs to no change: whatever makes
// a folder is one already, and nothing can be locked before locks has its folder.
func (h *Home) freeOne(dir string) error {
	if h.wary {
		return &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	if dir != lockFolder { // another process may have put it aside meanwhile, and made the folder
		unlock, err := h.lockFile(folderLock)
		if err != nil {
			return err
		}
		defer unlock()
	}
	why, err := h.noFolder(dir)
	if err != nil || why == nil {
		return err
	}
	return h.asideQuietly(dir, why)
}

// asideQuietly is PutAside within a change that is under way, or before any can be.
func (h *Home) asideQuietly(name string, why error) error {
	op := "put aside " + name
	if err := h.may(op); err != nil {
		return err
	}
	aside, err := h.rename(op, name)
	if err == nil {
		h.putAside(name, aside, why)
	}
	return err
}

// rename gives what has a name that of something put aside.
func (h *Home) rename(op, name string) (aside string, err error) {
	if aside, err = h.asideName(name); err != nil {
		return "", err
	}
	if err := h.root.Rename(name, aside); err != nil {
		return "", err
	}
	h.made(op, Named)
	err = h.syncFolder(path.Dir(name))
	h.made(op, FolderKept)
	return aside, err
}

// asideName is one that nothing has.
func (h *Home) asideName(name string) (aside string, err error) {
	for at := time.Now().UTC(); ; at = at.Add(time.Millisecond) {
		aside = name + layout.DamagedMark + at.Format(damagedAt)
		if _, err := h.root.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, nil
		} else if err != nil {
			return "", err
		}
	}
}

// putAside tells of what was put aside, and forgets what could not be read in it.
func (h *Home) putAside(name, aside string, why error) {
	h.ill.Lock()
	for file := range h.unread {
		if file == name || strings.HasPrefix(file, name+"/") {
			delete(h.unread, file)
		}
	}
	h.ill.Unlock()
	h.note(Damage{File: name, Aside: aside, Why: inWords(why)})
}

// freed reports whether a name could not be opened because something stands in
// the place of one of the home's folders, and whether that is put aside now.
// The folder of a record is the record's: without it that cannot be read.
func (h *Home) freed(dir string, err error) bool {
	if !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, errNoFile) && !errors.Is(err, errLink) && !isEscape(err) {
		return false
	}
	for ; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if why, err := h.noFolder(dir); err != nil || why == nil {
			continue
		}
		return slices.Contains(layout.Folders(), dir) && h.freeFolder(dir) == nil
	}
	return false
}

func (h *Home) missing(name string) bool {
	_, err := h.root.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// isEscape reports whether the root refused a link that leads out of the home.
func isEscape(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && strings.Contains(path.Err.Error(), "escapes")
}

// NoFolder makes room for a file that is made anew each time, where what has
// its name is none: a folder, a pipe, or a link that leads out of the home.
func (h *Home) NoFolder(name string) error {
	info, err := h.root.Lstat(name)
	if err != nil || info.Mode().IsRegular() {
		return nil //nolint:nilerr // whoever opens it is told
	}
	why := errNoFile
	switch {
	case info.IsDir():
		why = syscall.EISDIR
	case info.Mode()&fs.ModeSymlink != 0:
		if to, err := h.root.Stat(name); err == nil && to.Mode().IsRegular() || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		why = errLink
	}
	if err := h.asideQuietly(name, why); err != nil {
		return storageError("put aside "+name, err)
	}
	h.thin(name)
	return nil
}
