package liveview

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/page"
	"tapin/internal/store"
)

const (
	maxUpload      = 50 << 20 // all files of one upload
	maxUploadFiles = 20
	maxKept        = 500 << 20 // of one session
	uploadWithin   = 10 * time.Minute
)

// upload takes files for a field of the page, or for the chooser that is open
// when no field is named. The browser reads them when the form is sent, so they
// stay until the session ends.
func (d *Door) upload(w http.ResponseWriter, r *http.Request) {
	l, err := d.enter(r, r.PathValue("link"))
	if err == nil && visitOf(r).mode(l) != link.Drive {
		err = fault.New(fault.Forbidden, "", "this link only lets you watch")
	}
	if err == nil {
		err = d.takeFiles(w, r, l)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"ok": true})
}

func (d *Door) takeFiles(w http.ResponseWriter, r *http.Request, l link.Link) error {
	screen, err := d.deps.Screens.Screen(l.SessionID)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	handoff, field := query.Get("h"), query.Get("field")
	// Before anything is written: whoever may not, fills no disk.
	if now, _ := screen.Status(); !now.running() || now.Handoff.ID != handoff {
		return stale()
	}
	if size(filepath.Join(d.deps.Uploads, l.SessionID)) > maxKept {
		return fault.New(fault.PayloadTooLarge, "", "too much has been uploaded in this session")
	}
	ctx, cancel := context.WithTimeout(r.Context(), uploadWithin)
	defer cancel()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(uploadWithin))
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
	folder := filepath.Join(d.deps.Uploads, l.SessionID, store.NewID("upl"))
	paths, err := receive(r, folder)
	if err == nil {
		err = screen.Act(ctx, handoff, func(ctx context.Context, tabs *page.Tabs) error {
			tab, err := tabs.Front(ctx)
			if err != nil {
				return err
			}
			if field == "" {
				return tab.ChooseFiles(ctx, paths)
			}
			return tab.GiveFiles(ctx, field, paths)
		})
	}
	if err != nil {
		_ = os.RemoveAll(folder)
	}
	return err
}

// size is what the files under a folder take.
func size(folder string) (total int64) {
	_ = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what is not there takes nothing
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}

// receive writes the files of a form into a folder of their own.
func receive(r *http.Request, folder string) ([]string, error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "", "an upload is a form with files")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fault.New(fault.Internal, "take an upload", "the folder for uploads cannot be used")
	}
	var paths []string
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, uploadFault(err)
		}
		if part.FileName() == "" {
			continue
		}
		if len(paths) >= maxUploadFiles {
			return nil, fault.New(fault.PayloadTooLarge, "", "at most %d files at once", maxUploadFiles)
		}
		path := filepath.Join(folder, plainName(part.FileName(), len(paths)))
		if err := keep(path, part); err != nil {
			return nil, uploadFault(err)
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return nil, fault.New(fault.InvalidRequest, "", "the upload has no file")
	}
	return paths, nil
}

func keep(path string, from io.Reader) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in a folder of ours, under a name without meaning
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}

func uploadFault(err error) error {
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return fault.New(fault.PayloadTooLarge, "", "the files are larger than %d MiB together", maxUpload>>20)
	}
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.InvalidRequest, "", "two files have the same name")
	}
	return fault.New(fault.InvalidRequest, "", "the upload broke off")
}

// plainName is what a phone calls a file, without anything that means something
// to a file system.
func plainName(name string, n int) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || strings.ContainsRune(`<>:"|?*`, c) {
			return '_'
		}
		return c
	}, strings.ToValidUTF8(name, "_"))
	name = strings.TrimLeft(name, ". ")
	if extension := filepath.Ext(name); len(name) > 120 {
		name = strings.ToValidUTF8(name[:100], "") + strings.ToValidUTF8(extension[:min(len(extension), 16)], "")
	}
	if name == "" {
		name = "file " + strconv.Itoa(n+1)
	}
	return name
}

// download gives the owner a file that the page had the browser load.
func (d *Door) download(w http.ResponseWriter, r *http.Request) {
	l, err := d.enter(r, r.PathValue("link"))
	if err == nil && visitOf(r).mode(l) != link.Drive {
		err = fault.New(fault.Forbidden, "", "this link only lets you watch")
	}
	var file page.Download
	if err == nil {
		file, err = d.findFile(l, r.PathValue("file"))
	}
	if err != nil {
		refuse(w, err)
		return
	}
	in, err := os.Open(file.Path)
	if err != nil {
		refuse(w, fault.New(fault.NotFound, "", "the file is no longer there"))
		return
	}
	defer func() { _ = in.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": file.Name}))
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	http.ServeContent(w, r, "", time.Time{}, in)
}

func (d *Door) findFile(l link.Link, id string) (page.Download, error) {
	missing := fault.New(fault.NotFound, "", "there is no such file, or it is still on its way")
	screen, err := d.deps.Screens.Screen(l.SessionID)
	if err != nil {
		return page.Download{}, err
	}
	tabs, _ := screen.Tabs()
	if tabs == nil {
		return page.Download{}, missing
	}
	all := tabs.Downloads()
	i := slices.IndexFunc(all, func(f page.Download) bool { return f.ID == id && f.State == page.DownloadCompleted && f.Path != "" })
	if i < 0 {
		return page.Download{}, missing
	}
	return all[i], nil
}

// Forget removes what was uploaded in a session, because it is over.
func (d *Door) Forget(session string) error {
	if session == "" || strings.ContainsFunc(session, func(c rune) bool { return !isWord(c) }) {
		return fault.New(fault.InvalidRequest, "forget uploads", "that is no session")
	}
	return fault.Wrap(fault.Internal, "forget uploads", os.RemoveAll(filepath.Join(d.deps.Uploads, session)))
}

// Sweep removes what was uploaded in sessions that are not among those that live.
func (d *Door) Sweep(live []string) error {
	names, err := os.ReadDir(d.deps.Uploads)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range names {
		if !slices.Contains(live, e.Name()) {
			err = errors.Join(err, d.Forget(e.Name()))
		}
	}
	return fault.Wrap(fault.Internal, "sweep uploads", err)
}
