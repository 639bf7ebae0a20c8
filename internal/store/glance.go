package store

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"tapin/internal/fault"
)

// Glance opens a home to find out what runs under it, also one that Open
// refuses: it makes and migrates nothing. What lies in such a home may
// be anybody's, so its locks count only if their files are this user's alone.
func Glance(folder string) (*Home, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("look at home: %w", err)
	}
	root, err := openRoot(folder)
	if err != nil {
		return nil, openError("look at home "+folder, err)
	}
	h := &Home{path: folder, root: root, log: slog.New(slog.DiscardHandler), wary: true}
	h.write = h.writeFile
	return h, nil
}

// openRoot opens a folder, and gives its owner's rights back if they were taken:
// without them not even what runs there could be found and ended.
func openRoot(folder string) (*os.Root, error) {
	info, err := os.Stat(folder) //nolint:gosec // the owner chooses where the home is
	if err == nil && !info.IsDir() {
		// The opening of a pipe would wait for somebody to write to it.
		return nil, &fs.PathError{Op: "open", Path: folder, Err: syscall.ENOTDIR}
	}
	if err == nil && info.Mode().Perm()&folderMode != folderMode {
		// It fails for a foreign one, which then cannot be opened either.
		_ = os.Chmod(folder, info.Mode().Perm()|folderMode) //nolint:gosec // as above
	}
	return os.OpenRoot(folder)
}

// checkLock refuses a lock that somebody else could have made, to have the
// process signalled that its file names.
func (h *Home) checkLock(name string) error {
	if !h.wary {
		return nil
	}
	for _, file := range []string{lockFolder, path.Join(lockFolder, name)} {
		info, err := h.root.Lstat(file)
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if info.Mode()&fs.ModeSymlink != 0 || info.Mode().Perm()&0o022 != 0 || ok && int(stat.Uid) != os.Geteuid() {
			return fault.New(fault.Forbidden, "look for tapin", "%s may be another user's", filepath.Join(h.path, file)).
				WithHint("See that nothing in %s is foreign, then run: chmod -R go= %s", h.path, h.path)
		}
	}
	return nil
}
