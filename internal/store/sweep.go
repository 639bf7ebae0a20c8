package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// Temp files live in tmp/<token>/, one folder for each open Home, which holds
// a lock on the folder's owner file while it lives. The kernel drops the lock
// with the process, so a folder whose lock can be had belongs to nobody.
// Folders are made and swept under one more lock: none is seen half made.
const (
	scratchParent = "tmp"
	ownerFile     = "owner"
	scratchLock   = ".tmp"
)

// scratchFolder returns this home's folder for temp files and makes it first
// if need be.
func (h *Home) scratchFolder() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", fs.ErrClosed
	}
	if h.scratch != "" {
		return h.scratch, nil
	}
	unlock, err := h.lockFile(scratchLock)
	if err != nil {
		return "", err
	}
	defer unlock()
	folder := path.Join(scratchParent, newToken())
	if err := h.makeFolder(scratchParent); err != nil {
		return "", err
	}
	if err := h.root.Mkdir(folder, folderMode); err != nil {
		return "", err
	}
	owner := h.flock(path.Join(folder, ownerFile))
	if ok, err := owner.TryLock(); err != nil || !ok {
		return "", errors.Join(fmt.Errorf("cannot lock %s", folder), err)
	}
	h.scratch, h.owner = folder, owner
	return folder, nil
}

// sweep removes the temp files of processes that are gone.
func (h *Home) sweep() error {
	if names, err := h.List(scratchParent); err != nil || len(names) == 0 {
		return err
	}
	unlock, err := h.lockFile(scratchLock)
	if err != nil {
		return err
	}
	defer unlock()
	names, err := h.List(scratchParent)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := h.sweepFolder(path.Join(scratchParent, name)); err != nil {
			return err
		}
	}
	return nil
}

func (h *Home) sweepFolder(folder string) error {
	info, err := h.root.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its owner closed while we were on the way
	}
	if err != nil {
		return err
	}
	if owner, err := h.root.Lstat(path.Join(folder, ownerFile)); err == nil && !owner.Mode().IsRegular() {
		info = owner // no lock of ours, so nobody's
	}
	if info.IsDir() {
		owner := h.flock(path.Join(folder, ownerFile))
		ok, err := owner.TryLock()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, syscall.EISDIR): // no lock of ours, so nobody's
		case err != nil || !ok:
			return err
		default:
			defer func() { _ = owner.Unlock() }()
		}
	}
	h.log.Info("removed what an ended process left behind", "folder", folder)
	return h.root.RemoveAll(folder)
}

// flock is a lock on a file of the home that nobody holds yet.
func (h *Home) flock(name string) *flock.Flock {
	return flock.New(filepath.Join(h.path, filepath.FromSlash(name)), flock.SetPermissions(fileMode))
}
