package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"tapin/internal/layout"
)

// Read returns the content of a file. A missing one is fs.ErrNotExist; one that
// is there and cannot be read is UNREADABLE, and left as it is from then on.
func (h *Home) Read(name string) ([]byte, error) {
	data, err := h.readFile(name)
	switch {
	case err == nil:
		h.well(name, false)
		return data, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrClosed):
		return nil, storageError("read "+name, err)
	}
	return nil, h.unreadable(name, err, false)
}

// Write replaces a file as a whole and makes its folders. When it returns nil
// the content survives a power cut; when it fails the old content stands.
func (h *Home) Write(name string, data []byte) error {
	return h.put("write "+name, name, data, h.root.Rename)
}

// Create is Write for a file that must not exist yet; otherwise it fails with
// fs.ErrExist. Of several that create the same name one succeeds.
func (h *Home) Create(name string, data []byte) error {
	if _, err := h.root.Lstat(name); err == nil { // nothing need be written to find that out
		return fmt.Errorf("create %s: %w", name, fs.ErrExist)
	}
	// A link, unlike a rename, refuses to replace.
	return h.put("create "+name, name, data, h.root.Link)
}

func (h *Home) readFile(name string) ([]byte, error) {
	if err := h.broken(name); err != nil {
		return nil, err
	}
	f, err := h.openFile(name, os.O_RDONLY)
	if err != nil && h.freed(path.Dir(name), err) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAtMost(f, mostOf(name))
}

func (h *Home) broken(name string) error {
	if h.bad == nil {
		return nil
	}
	return h.bad(name)
}

// ReadJSON decodes a file into v; see Read for what cannot be read.
func (h *Home) ReadJSON(name string, v any) error { return h.ReadRecord(name, v, nil) }

// ReadRecord is ReadJSON of a file that must also pass a check, such as that it
// is of the record whose name it has.
func (h *Home) ReadRecord(name string, v any, check func() error) error {
	data, err := h.Read(name)
	if err != nil {
		return err
	}
	err = decode(data, v)
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		return h.unreadable(name, err, true)
	}
	h.well(name, true)
	return nil
}

// Of is a check for ReadRecord: that a record has the id that its file is named for.
func Of(got *string, want string) func() error {
	return func() error {
		if *got != want {
			return errors.New("it belongs to another record")
		}
		return nil
	}
}

// WriteJSON is Write of v encoded.
func (h *Home) WriteJSON(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return h.Write(name, append(data, '\n'))
}

// Remove removes a file or an empty folder. A missing one is fs.ErrNotExist.
func (h *Home) Remove(name string) error {
	end, err := h.change("remove "+name, name)
	if err != nil {
		return err
	}
	defer end()
	if err := h.root.Remove(name); err != nil {
		return storageError("remove "+name, err)
	}
	h.made("remove "+name, Removed)
	err = h.syncFolder(path.Dir(name))
	h.made("remove "+name, FolderKept)
	return storageErrorOrNil("remove "+name, err)
}

// RemoveAll removes a file or a folder with all in it. A missing one is fine.
func (h *Home) RemoveAll(name string) error {
	end, err := h.change("remove "+name, name)
	if err != nil {
		return err
	}
	defer end()
	if err := h.root.RemoveAll(name); err != nil {
		return storageError("remove "+name, err)
	}
	h.made("remove "+name, Removed)
	err = h.syncFolder(path.Dir(name))
	h.made("remove "+name, FolderKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return storageErrorOrNil("remove "+name, err)
}

// List returns the sorted names in a folder; a missing folder has none. What is
// no folder is put aside, and so has none either.
func (h *Home) List(dir string) ([]string, error) {
	f, err := h.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil && !passing(err) && !errors.Is(err, fs.ErrPermission) {
		if free := h.freeFolder(dir); h.wary || free == nil && h.missing(dir) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, storageError("list "+dir, err)
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, storageError("list "+dir, err)
	}
	slices.Sort(names)
	return names, nil
}

// Exists reports whether there is a file or folder of that name.
func (h *Home) Exists(name string) (bool, error) {
	_, err := h.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if isEscape(err) { // of a link in its place, or above it
		_, err = h.root.Lstat(name)
		return err == nil, nil
	}
	return err == nil, storageErrorOrNil("look for "+name, err)
}

// Stat describes a file or a folder. A missing one is fs.ErrNotExist.
func (h *Home) Stat(name string) (fs.FileInfo, error) {
	info, err := h.root.Stat(name)
	return info, storageErrorOrNil("look at "+name, err)
}

// may asks the guard, where there is one.
func (h *Home) may(change string) error {
	if h.guard == nil {
		return nil
	}
	return h.guard(change)
}

// mayChange also keeps what cannot be read as it is.
func (h *Home) mayChange(op, name string) error {
	if err := h.spare(op, name); err != nil {
		return err
	}
	return h.may(op)
}

// put writes a temp file and lets publish give it its name. Only a whole,
// synced file ever gets a name that readers look at.
func (h *Home) put(op, name string, data []byte, publish func(temp, name string) error) error {
	end, err := h.change(op, name)
	if err != nil {
		return err
	}
	defer end()
	temp, err := h.writeTemp(op, data)
	if err != nil {
		return storageError(op, err)
	}
	// After a rename there is nothing left to remove, after a link or a
	// failure there is; what this cannot remove, the next sweep does.
	defer func() { _ = h.root.Remove(temp) }()
	if err := h.makeFolder(path.Dir(name)); err != nil {
		return storageError(op, err)
	}
	err = publish(temp, name)
	if info, bad := h.root.Lstat(name); err != nil && bad == nil && info.IsDir() && !errors.Is(err, fs.ErrExist) {
		if kind, known := layout.Of(name); !known || precious(kind) {
			return h.unreadable(name, syscall.EISDIR, false)
		}
		if err = h.asideQuietly(name, syscall.EISDIR); err == nil {
			err = publish(temp, name)
		}
	}
	if err != nil {
		return storageError(op, err)
	}
	h.made(op, Named)
	err = h.syncFolder(path.Dir(name))
	h.made(op, FolderKept)
	return storageErrorOrNil(op, err)
}

func (h *Home) writeTemp(op string, data []byte) (name string, err error) {
	folder, err := h.scratchFolder()
	if err != nil {
		return "", err
	}
	name = path.Join(folder, newToken())
	f, err := h.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return "", err
	}
	err = errors.Join(h.write(op, f, data, true), f.Close())
	if err != nil {
		_ = h.root.Remove(name)
		return "", err
	}
	return name, nil
}

// syncFolder makes the names in a folder durable.
func (h *Home) syncFolder(dir string) error {
	f, err := h.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ReadIfPrefix returns the content of a file that begins with prefix, and nil
// of one that does not.
func (h *Home) ReadIfPrefix(name, prefix string) ([]byte, error) {
	f, err := h.openFile(name, os.O_RDONLY)
	if err != nil {
		return nil, storageError("read "+name, err)
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, len(prefix))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != prefix {
		return nil, nil //nolint:nilerr // a shorter one does not begin with it
	}
	rest, err := readAtMost(f, mostOf(name))
	if err != nil {
		return nil, storageError("read "+name, err)
	}
	return append(head, rest...), nil
}
