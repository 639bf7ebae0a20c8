package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/layout"
)

// Walk calls fn with every ordinary file of the home whose folder is not left
// out, in the order of their names. Other homes in it are none of it. A file that goes away meanwhile is passed over.
func (h *Home) Walk(leaveOut func(folder string) bool, fn func(name string, info fs.FileInfo) error) error {
	err := fs.WalkDir(h.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			if name == layout.Restoring || name == layout.Before || name != "." && leaveOut(name) {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return fn(name, info)
	})
	return storageErrorOrNil("look through the home", err)
}

// Snapshot is the home as it was at one instant: as a kill at that instant would
// have left it. It is made of links, and costs neither room nor time.
type Snapshot struct {
	home   *Home
	folder string
	Files  []SnapshotFile // sorted by name
	At     time.Time
}

// SnapshotFile is one file of it.
type SnapshotFile struct {
	Name string
	Size int64
	link string
}

// Snapshot takes the home as it is now, but for what is left out. All changes,
// in all processes, wait for the moment that this takes.
func (h *Home) Snapshot(ctx context.Context, leaveOut func(name string) bool) (_ *Snapshot, err error) {
	const op = "take the home as it is"
	scratch, err := h.scratchFolder()
	if err != nil {
		return nil, storageError(op, err)
	}
	s := &Snapshot{home: h, folder: path.Join(scratch, newToken())}
	if err := h.root.Mkdir(s.folder, folderMode); err != nil {
		return nil, storageError(op, err)
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	thaw, err := h.freeze(ctx)
	if err != nil {
		return nil, err
	}
	s.At = time.Now().UTC()
	held, cancel := context.WithTimeout(ctx, freezeFor)
	err = h.Walk(leaveOut, func(name string, info fs.FileInfo) error {
		if leaveOut(name) {
			return nil
		}
		if err := held.Err(); err != nil {
			return err
		}
		return s.take(name, info)
	})
	cancel()
	if frozen := thaw(); err == nil || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = frozen
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// take links a file. A file is never changed in place but for logs, which grow:
// of those only what was there counts, up to the last whole line.
func (s *Snapshot) take(name string, info fs.FileInfo) error {
	link := path.Join(s.folder, strconv.Itoa(len(s.Files)))
	err := s.home.root.Link(name, link)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not one of the store's: those stay where they are
	}
	if err != nil {
		return err
	}
	size := info.Size()
	if strings.HasSuffix(name, ".jsonl") {
		f, err := s.home.root.Open(link)
		if err != nil {
			return err
		}
		size, err = wholeLines(f)
		_ = f.Close()
		if err != nil {
			return err
		}
	} else if info, err = s.home.root.Stat(link); err == nil {
		size = info.Size() // of the very file that was linked
	} else {
		return err
	}
	s.Files = append(s.Files, SnapshotFile{Name: name, Size: size, link: link})
	return nil
}

// Read returns the content of a file as it was.
func (s *Snapshot) Read(name string) ([]byte, error) {
	for _, f := range s.Files {
		if f.Name == name {
			var content bytes.Buffer
			err := s.Copy(&content, f)
			return content.Bytes(), err
		}
	}
	return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
}

// Copy writes the content of a file as it was.
func (s *Snapshot) Copy(to io.Writer, f SnapshotFile) error {
	op := "read " + f.Name
	in, err := s.home.root.Open(f.link)
	if err != nil {
		return storageError(op, err)
	}
	defer func() { _ = in.Close() }()
	n, err := io.Copy(to, io.NewSectionReader(in, 0, f.Size))
	if err == nil && n != f.Size {
		return fault.New(fault.Busy, op, "it was cut while it was read").WithHint("Something else than tapin writes into its home; try again.")
	}
	return storageErrorOrNil(op, err)
}

// Close gives the snapshot up. What a kill leaves of one goes with the next start.
func (s *Snapshot) Close() { _ = s.home.root.RemoveAll(s.folder) }
