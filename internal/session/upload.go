package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
)

// Upload gives files to a field, or without one to the file chooser that is
// open. A page gets only what lies under the allowed folder, wherever a path or
// a link claims to lead.
func (s *Session) Upload(ctx context.Context, at *page.Locator, files []string, within time.Duration) (Did, error) {
	return only(do(ctx, s, "session.upload", func(ctx context.Context, t *page.Tab) (none, counts, error) {
		found, err := allowed(s.host.opts.Uploads, files)
		if err != nil {
			return none{}, nil, err
		}
		if at == nil {
			err = t.ChooseFiles(ctx, found)
		} else {
			err = t.Upload(ctx, *at, found, within)
		}
		return none{}, counts{"files": len(found)}, err
	}))
}

// allowed resolves files to what they are, and refuses those outside of the
// folder before it says anything about them, even whether they exist.
func allowed(folder string, files []string) ([]string, error) {
	const op = "upload"
	if folder == "" {
		return nil, fault.New(fault.Disabled, op, "no folder is set up that files may be taken from").
			WithHint("Name one with uploads in config.yaml.")
	}
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		root = filepath.Clean(folder) // it does not exist, and so nothing in it does
	}
	forbidden := func() error {
		return fault.New(fault.Forbidden, op, "that file is not in the folder that files may be taken from").
			WithHint("Put it into %s, or set uploads in config.yaml to another folder.", folder)
	}
	found := make([]string, 0, len(files))
	for _, file := range files {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		path = filepath.Clean(path)
		if !under(folder, path) && !under(root, path) {
			return nil, forbidden()
		}
		resolved, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.NotFound, op, "there is no such file in the folder for uploads").
				WithHint("Put it into %s first.", folder)
		}
		if err != nil || !under(root, resolved) {
			return nil, forbidden()
		}
		info, err := os.Stat(resolved)
		if err != nil || !info.Mode().IsRegular() {
			return nil, fault.New(fault.InvalidRequest, op, "only ordinary files can be uploaded").With("field", "files")
		}
		found = append(found, resolved)
	}
	return found, nil
}

// under reports whether a clean path is inside of a folder.
func under(folder, path string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && rest != "." && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}
