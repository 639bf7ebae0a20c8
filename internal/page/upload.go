package page

import (
	"context"
	"errors"
	"mime"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/fault"
)

// Upload gives files to a file input: the one meant, also a hidden one, or the
// one whose chooser opens when the element meant is clicked. Which folders files
// may come from is the caller's rule.
func (t *Tab) Upload(ctx context.Context, l Locator, files []string, within time.Duration) error {
	op := "upload to " + l.String()
	paths, folder, err := filesToSend(op, files)
	if err != nil {
		return err
	}
	// Outside of the field's time: a file may be large, and the way long.
	if paths, err = t.carried(ctx, paths, folder); err != nil {
		return err
	}
	if within <= 0 {
		within = actWithin
	}
	ctx, cancel := fieldTime(ctx, within)
	defer cancel()
	var d deed
	err = t.unlessDialog(ctx, func(ctx context.Context) error {
		at, err := t.locate(ctx, l, wanted{Enabled: true}, within)
		if err != nil {
			return err
		}
		var into *field
		if err := t.call(ctx, at.frame, "filesOf", map[string]int{"id": at.id}, &into); err != nil {
			return err
		}
		if into == nil {
			return t.uploadByChooser(ctx, l, paths, within, &d)
		}
		if err := fits(*into, paths, folder); err != nil {
			return err
		}
		t.noteAccept(*into, paths)
		object, err := t.remote(ctx, at.frame, into.ID)
		if err != nil {
			return err
		}
		return d.do(func() error {
			return t.setFiles(ctx, at.frame.session, dom.SetFileInputFilesParams{Files: paths, ObjectID: object})
		})
	})
	if d.provoked(err) {
		return nil
	}
	return fieldFault(op, err)
}

// filesToSend makes the paths absolute and sure: the browser would take a
// missing file without a word.
func filesToSend(op string, files []string) (paths []string, folder bool, err error) {
	if len(files) == 0 {
		return nil, false, fault.New(fault.InvalidRequest, op, "no file is named")
	}
	for _, name := range files {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, false, fault.New(fault.InvalidRequest, op, "%q is no path", short(name))
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, false, fault.New(fault.InvalidRequest, op, "there is no file %q", short(filepath.Base(name)))
		case err != nil:
			return nil, false, fault.New(fault.InvalidRequest, op, "the file %q cannot be read", short(filepath.Base(name)))
		case info.IsDir():
			folder = true
		case !info.Mode().IsRegular():
			return nil, false, fault.New(fault.InvalidRequest, op, "%q is no ordinary file", short(filepath.Base(name)))
		}
		paths = append(paths, path)
	}
	return paths, folder, nil
}

// carryWithin bounds the way of files to a browser elsewhere.
const carryWithin = 2 * time.Minute

// carried are the files as the browser finds them: on the same disk, or where
// they were brought to.
func (t *Tab) carried(ctx context.Context, paths []string, folder bool) ([]string, error) {
	courier, elsewhere := t.tabs.inst.(browser.Courier)
	if !elsewhere || len(paths) == 0 {
		return paths, nil
	}
	if folder {
		return nil, fault.New(fault.InvalidRequest, "", "a folder cannot be brought to a browser elsewhere").WithHint("Name the files in it.")
	}
	ctx, cancel := context.WithTimeout(ctx, carryWithin)
	defer cancel()
	return courier.Carry(ctx, paths)
}

// fits holds the files against what the input takes.
func fits(into field, paths []string, folder bool) error {
	switch {
	case into.Locked == "disabled":
		return locked(into)
	case folder != into.Folder && folder:
		return fault.New(fault.InvalidRequest, "", "the field takes files, not folders")
	case folder != into.Folder:
		return fault.New(fault.InvalidRequest, "", "the field takes a folder, not files")
	case len(paths) > 1 && !into.Multiple:
		return fault.New(fault.InvalidRequest, "", "the field takes one file, not %d", len(paths))
	}
	return nil
}

// noteAccept leaves a note when a file is not of a kind that the field asks for.
// A person may choose it all the same, and the page may well take it.
func (t *Tab) noteAccept(into field, paths []string) {
	for _, path := range paths {
		if !accepted(into.Accept, path) {
			t.tabs.log.Info("a file is not of a kind that the field asks for", "accept", short(into.Accept), "extension", short(filepath.Ext(path)))
		}
	}
}

// accepted reads an accept attribute: extensions, types, and type/*.
func accepted(accept, path string) bool {
	extension := strings.ToLower(filepath.Ext(path))
	kind, _, _ := strings.Cut(mime.TypeByExtension(extension), ";")
	none := true
	for want := range strings.SplitSeq(accept, ",") {
		if want = strings.ToLower(strings.TrimSpace(want)); want == "" {
			continue
		}
		none = false
		group, wild := strings.CutSuffix(want, "/*")
		if want == extension || want == kind || wild && (group == "*" || strings.HasPrefix(kind, group+"/")) {
			return true
		}
	}
	return none
}

// remote is the browser's own handle of a kept element.
func (t *Tab) remote(ctx context.Context, in frame, id int) (runtime.RemoteObjectID, error) {
	now, ok := t.frames.get(in.id)
	if !ok || now.session != in.session || now.world == 0 {
		return "", errWorldGone
	}
	got, err := proto.Call(ctx, in.session, runtime.Evaluate, runtime.EvaluateParams{
		Expression: "globalThis.tapin.kept(" + strconv.Itoa(id) + ")", ContextID: now.world,
	})
	if err != nil {
		return "", worldError(err)
	}
	if got.Result == nil || got.Result.ObjectID == "" {
		return "", errWorldGone
	}
	return got.Result.ObjectID, nil
}

// setFiles gives a file input its files: by name where the browser finds them,
// else by what is in them.
func (t *Tab) setFiles(ctx context.Context, s *cdp.Session, p dom.SetFileInputFilesParams) error {
	var err error
	if far, ok := t.tabs.inst.(browser.Distant); ok && far.Distant() {
		err = giveBytes(ctx, s, p)
	} else {
		_, err = proto.Call(ctx, s, dom.SetFileInputFiles, p)
	}
	if p.ObjectID != "" {
		_ = s.Send(ctx, runtime.ReleaseObject.Method, runtime.ReleaseObjectParams{ObjectID: p.ObjectID})
	}
	return worldError(err)
}

// opening is a file chooser that the page opened, and where.
type opening struct {
	session *cdp.Session
	node    proto.BackendNodeID
	several bool
}

// uploadByChooser clicks what opens a file chooser, and answers it. Choosers are
// never shown in a tab of ours; they are told.
func (t *Tab) uploadByChooser(ctx context.Context, l Locator, paths []string, within time.Duration, d *deed) error {
	opened, stop := t.hearChoosers()
	defer stop()
	if _, err := t.Click(ctx, l, ClickOptions{Timeout: within}); err != nil {
		return err
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case at := <-opened:
		switch {
		case at.node == 0:
			return fault.New(fault.ElementNotActionable, "", "the page asked for a file in a way that only a person can answer")
		case len(paths) > 1 && !at.several:
			return fault.New(fault.InvalidRequest, "", "the field takes one file, not %d", len(paths))
		}
		return d.do(func() error {
			err := t.setFiles(ctx, at.session, dom.SetFileInputFilesParams{Files: paths, BackendNodeID: at.node})
			if err == nil || t.Dialog() != nil {
				t.chosen()
			}
			return err
		})
	case <-timer.C:
		return fault.New(fault.ElementNotActionable, "", "that is no field for files, and clicking it did not ask for one")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hearChoosers listens in every process of the page, until stop.
func (t *Tab) hearChoosers() (<-chan opening, func()) {
	opened := make(chan opening, 1)
	heard := map[*cdp.Session]func(){}
	for _, f := range t.frames.list() {
		s := f.session
		if heard[s] != nil {
			continue
		}
		heard[s] = cdp.Listen(s, cdppage.FileChooserOpened, func(e cdppage.EventFileChooserOpened) {
			select {
			case opened <- opening{s, e.BackendNodeID, e.Mode == cdppage.FileChooserOpenedModeSelectMultiple}:
			default: // the first one is the answer to the click
			}
		})
	}
	return opened, func() {
		for _, off := range heard {
			off()
		}
	}
}
