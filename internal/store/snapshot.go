package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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
	Left   []LeftOut      // what is no ordinary file, and not in it
	At     time.Time

	links  int
	before map[string]taken // by name: what was linked before the instant
	late   int              // how many were linked while everything waited
}

// SnapshotFile is one file of it.
type SnapshotFile struct {
	Name string
	Size int64
	link string
}

// LeftOut is something that is not in a snapshot or a backup.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// taken is a file that was linked, and what it was like then.
type taken struct {
	file SnapshotFile
	info fs.FileInfo
}

// Snapshot takes the home as it is now, but for what is left out. All changes,
// in all processes, wait for the moment that this takes: files are linked before,
// and in that moment only those that changed meanwhile. Of links those to files
// are followed that stay in the home, as its readers do, and those that follow
// names wherever they lead.
func (h *Home) Snapshot(ctx context.Context, leaveOut, follow func(name string) bool) (_ *Snapshot, err error) {
	const op = "take the home as it is"
	scratch, err := h.scratchFolder()
	if err != nil {
		return nil, storageError(op, err)
	}
	s := &Snapshot{home: h, folder: path.Join(scratch, newToken()), before: map[string]taken{}}
	if err := h.root.Mkdir(s.folder, folderMode); err != nil {
		return nil, storageError(op, err)
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	err = h.entries(leaveOut, func(name string, d fs.DirEntry) error {
		if err := ctx.Err(); err != nil || !d.Type().IsRegular() {
			return err
		}
		_, err := s.take(name)
		return err
	})
	if err != nil {
		return nil, storageErrorOrNil(op, err)
	}
	if err := s.still(ctx, leaveOut, follow); err != nil {
		return nil, err
	}
	s.before = nil
	return s, nil
}

// still goes over the home once more while nothing changes.
func (s *Snapshot) still(ctx context.Context, leaveOut, follow func(name string) bool) error {
	const op = "take the home as it is"
	thaw, err := s.home.freeze(ctx)
	if err != nil {
		return err
	}
	s.At = time.Now().UTC()
	held, cancel := context.WithTimeout(ctx, freezeFor)
	defer cancel()
	err = s.home.entries(leaveOut, func(name string, d fs.DirEntry) error {
		if err := held.Err(); err != nil {
			return err
		}
		if d.Type().IsRegular() {
			return s.settle(name, d)
		}
		return s.other(name, follow(name))
	})
	tooLong := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if frozen := thaw(); frozen != nil && (err == nil || tooLong) {
		err, tooLong = frozen, true
	}
	if tooLong {
		return fault.New(fault.Busy, op, "%d of its %d files could be looked at in the %v for which it is held still: %w", len(s.Files), max(len(s.before), len(s.Files)), freezeFor, err).
			WithHint("End tapin with tapin down, and try again on a quieter machine; files in %s that are not tapin's need not lie there.", s.home.path)
	}
	return storageErrorOrNil(op, err)
}

// settle takes a file as it is at the instant. One that was linked before and is
// the same file, as long and as old, is what it was.
func (s *Snapshot) settle(name string, d fs.DirEntry) error {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not one of the store's: those stay where they are
	}
	if err != nil {
		return err
	}
	t, ok := s.before[name]
	if !ok || !os.SameFile(t.info, info) || t.info.Size() != info.Size() || !t.info.ModTime().Equal(info.ModTime()) {
		s.late++
		if ok, err = s.take(name); err != nil || !ok {
			return err
		}
		t = s.before[name]
	}
	s.Files = append(s.Files, t.file)
	return nil
}

// take links a file; ok is false if it has gone. A file is never changed in place
// but for logs, which grow: of those only what was there counts, up to the last
// whole line.
func (s *Snapshot) take(name string) (ok bool, err error) {
	link := path.Join(s.folder, strconv.Itoa(s.links))
	s.links++
	err = s.home.root.Link(name, link)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := s.home.root.Stat(link) // of the very file that was linked
	if err != nil {
		return false, err
	}
	size := info.Size()
	if strings.HasSuffix(name, ".jsonl") {
		f, err := s.home.openFile(link, os.O_RDONLY)
		if err != nil {
			return false, err
		}
		size, err = wholeLines(f)
		if errors.Is(err, errEndless) {
			size, err = linesFromStart(f)
		}
		_ = f.Close()
		if err != nil {
			return false, err
		}
	}
	s.before[name] = taken{SnapshotFile{Name: name, Size: size, link: link}, info}
	return true, nil
}

// other takes what a link leads to, where that is a file that is read through it,
// and else notes what is left out.
func (s *Snapshot) other(name string, anywhere bool) error {
	leave := func(why string) error {
		s.Left = append(s.Left, LeftOut{name, why})
		return nil
	}
	full := filepath.Join(s.home.path, filepath.FromSlash(name))
	if info, err := os.Lstat(full); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return leave("it is no ordinary file")
	}
	open := func() (fs.File, error) { return s.home.root.Open(name) }
	stat := s.home.root.Stat
	if anywhere {
		open, stat = func() (fs.File, error) { return os.Open(full) }, func(string) (fs.FileInfo, error) { return os.Stat(full) } //nolint:gosec // the owner chooses where it leads
	}
	info, err := stat(name) // first: the opening of a pipe would wait
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return leave("it is a link that leads nowhere")
	case err != nil:
		return leave("it is a link that leads out of the home")
	case !info.Mode().IsRegular():
		return leave("it is a link to what is no ordinary file")
	}
	from, err := open()
	if err != nil {
		return leave("what it leads to cannot be read: " + inWords(err))
	}
	defer func() { _ = from.Close() }()
	link := path.Join(s.folder, strconv.Itoa(s.links))
	s.links++
	to, err := s.home.root.OpenFile(link, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	size, err := io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	s.Files = append(s.Files, SnapshotFile{Name: name, Size: size, link: link})
	return nil
}

// entries calls fn with everything that is no folder. It goes by plain names,
// which is several times as fast as through the root, and opens nothing.
func (h *Home) entries(leaveOut func(name string) bool, fn func(name string, d fs.DirEntry) error) error {
	base, err := filepath.EvalSymlinks(h.path) // a link is not walked into
	if err != nil {
		return err
	}
	return filepath.WalkDir(base, func(file string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(file, base)), "/")
		switch {
		case name == "":
			return err
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case name == layout.Restoring || name == layout.Before || leaveOut(name):
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case err != nil:
			return err
		case d.IsDir():
			return nil
		}
		return fn(name, d)
	})
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
	in, err := s.home.openFile(f.link, os.O_RDONLY)
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
