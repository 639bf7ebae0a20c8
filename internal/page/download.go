package page

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"

	"tapin/internal/cdp"
	"tapin/internal/fault"
)

// The states of a download.
const (
	DownloadInProgress = "in_progress"
	DownloadCompleted  = "completed"
	DownloadCanceled   = "canceled" // by us, by the site, or because downloads are refused
)

const (
	keptDownloads = 100 // the newest are listed; files stay where they are
	maxFileName   = 120 // bytes; every file system takes that
)

// Download is a file that arrives, or has.
type Download struct {
	ID    string
	Name  string // what the site calls it, made harmless
	URL   string // where it came from, without anything that may be secret
	Bytes int64
	Total int64 // 0 means not known
	State string
	Path  string // where it is, once it is complete
}

// downloads follows what a browser context downloads.
type downloads struct {
	mu   sync.Mutex
	list []*Download
}

// Downloads are the files that arrived or are arriving, the newest last.
func (t *Tabs) Downloads() []Download {
	d := &t.downloads
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Download, len(d.list))
	for i, each := range d.list {
		out[i] = *each
	}
	return out
}

// CancelDownload ends one that is under way.
func (t *Tabs) CancelDownload(ctx context.Context, id string) error {
	const op = "cancel a download"
	i := slices.IndexFunc(t.Downloads(), func(d Download) bool { return d.ID == id && d.State == DownloadInProgress })
	if i < 0 {
		return fault.New(fault.NotFound, op, "no such download is under way")
	}
	_, err := proto.Call(ctx, t.root, cdpbrowser.CancelDownload, cdpbrowser.CancelDownloadParams{
		GUID: id, BrowserContextID: proto.BrowserContextID(t.inst.Ref().Context),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// listenForDownloads hears of downloads; what is under way is told again to a
// client that follows another.
func (t *Tabs) listenForDownloads() {
	t.off = append(t.off, cdp.Listen(t.root, cdpbrowser.DownloadWillBegin, func(e cdpbrowser.EventDownloadWillBegin) {
		if d, isNew := t.downloads.begin(e); isNew {
			t.tell(Surprise{Kind: SurpriseDownload, Tab: t.tabOf(e.FrameID), Download: &d})
		}
	}), cdp.Listen(t.root, cdpbrowser.DownloadProgress, func(e cdpbrowser.EventDownloadProgress) {
		switch e.State {
		case cdpbrowser.DownloadProgressStateCompleted:
			// Naming the file touches the disk, and a handler must be quick.
			t.start(func(context.Context) { t.ended(e, DownloadCompleted) })
		case cdpbrowser.DownloadProgressStateCanceled:
			t.ended(e, DownloadCanceled)
		default:
			t.downloads.update(e, func(*Download) {})
		}
	}))
}

func (t *Tabs) ended(e cdpbrowser.EventDownloadProgress, state string) {
	var path string
	if state == DownloadCompleted {
		path = giveName(e.FilePath, e.GUID, t.downloads.name(e.GUID))
	}
	d, ok := t.downloads.update(e, func(d *Download) { d.State, d.Path = state, path })
	if ok {
		t.tell(Surprise{Kind: SurpriseDownload, Download: &d})
	}
}

// tabOf is the tab a frame is in, empty when it is gone already.
func (t *Tabs) tabOf(id proto.FrameID) string {
	for _, tab := range t.List() {
		if _, ok := tab.frames.get(id); ok {
			return tab.ID()
		}
	}
	return ""
}

func (d *downloads) begin(e cdpbrowser.EventDownloadWillBegin) (Download, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.list, func(o *Download) bool { return o.ID == e.GUID }); i >= 0 {
		return *d.list[i], false
	}
	made := &Download{ID: e.GUID, Name: fileName(e.SuggestedFilename), URL: bareAddress(e.URL), State: DownloadInProgress}
	d.list = append(d.list, made)
	d.list = d.list[max(0, len(d.list)-keptDownloads):]
	return *made, true
}

func (d *downloads) name(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.list, func(o *Download) bool { return o.ID == id }); i >= 0 {
		return d.list[i].Name
	}
	return ""
}

// update notes how far one is, unless it has ended.
func (d *downloads) update(e cdpbrowser.EventDownloadProgress, also func(*Download)) (Download, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.list, func(o *Download) bool { return o.ID == e.GUID })
	if i < 0 || d.list[i].State != DownloadInProgress {
		return Download{}, false
	}
	it := d.list[i]
	it.Bytes, it.Total = int64(e.ReceivedBytes), int64(e.TotalBytes)
	also(it)
	return *it, true
}

// giveName gives a file that the browser has named by its own id the name a
// person would look for, beside what is there already. Where it cannot, because
// the browser runs elsewhere or the folder does not allow it, the file stays.
func giveName(path, id, name string) string {
	if name == "" || filepath.Base(path) != id {
		return path
	}
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return path
	}
	defer func() { _ = folder.Close() }()
	if info, err := folder.Lstat(id); err != nil || !info.Mode().IsRegular() {
		return path
	}
	for n := 1; n < 1000; n++ {
		as := numbered(name, n)
		// A link, because a rename would replace what is there.
		switch err := folder.Link(id, as); {
		case err == nil:
			_ = folder.Remove(id)
			return filepath.Join(filepath.Dir(path), as)
		case !errors.Is(err, fs.ErrExist):
			return path
		}
	}
	return path
}

// numbered is the name of the n-th file of that name: "a.pdf", "a (2).pdf".
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := filepath.Ext(name)
	return fmt.Sprintf("%s (%d)%s", strings.TrimSuffix(name, ext), n, ext)
}

// fileName makes a name that a site chose harmless on every system: no folder,
// nothing hidden, nothing that a terminal or a file manager would show otherwise.
func fileName(suggested string) string {
	name := strings.ToValidUTF8(suggested, "_")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError:
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, name)
	name = strings.TrimLeft(name, ". -~")
	name = strings.TrimRight(name, ". ")
	stem, _, _ := strings.Cut(name, ".")
	if slices.Contains(deviceNames, strings.ToUpper(strings.TrimSpace(stem))) {
		name = "_" + name
	}
	if name == "" {
		return "download"
	}
	return shortened(name)
}

// shortened keeps the ending, by which a file is known.
func shortened(name string) string {
	if len(name) <= maxFileName {
		return name
	}
	ext := filepath.Ext(name)
	if len(ext) > 16 {
		ext = ""
	}
	stem := name[:maxFileName-len(ext)]
	for !utf8.ValidString(stem) {
		stem = stem[:len(stem)-1]
	}
	return strings.TrimRight(stem, ". ") + ext
}

// deviceNames are no files on Windows, whatever their ending.
var deviceNames = []string{
	"CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9",
	"LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
}

// bareAddress is an address without query, fragment and user; of addresses that
// hold their content themselves only the kind is left.
func bareAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return ""
	}
	if u.Scheme == "blob" {
		return "blob:" + originOf(strings.TrimPrefix(address, "blob:"))
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return u.Scheme + ":"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
