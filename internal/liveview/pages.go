package liveview

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"tapin/internal/fault"
)

// pages are what browsers load: shells that are the same for everybody, and
// assets under a name that changes with their contents. They are read once, when
// a person first comes: what an agent starts may never see one.
type pages struct {
	shells map[string]file
	assets map[string]file // by their path after /assets/
}

type file struct {
	kind       string
	plain, zip []byte
}

// reference finds what a shell loads by a path of its own.
var reference = regexp.MustCompile(`\b(src|href)="([^"#:?]+)"`)

// readPages takes in the pages. All assets have one folder with the digest of all
// of them as its name, so that modules find each other by relative paths and every
// name can be kept for ever.
func readPages(ready func() (fs.FS, error)) (*pages, error) {
	from, err := ready()
	if err != nil {
		return nil, err
	}
	raw := map[string][]byte{}
	var order []string
	err = fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw[name], err = fs.ReadFile(from, name)
		order = append(order, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(order)
	sum := sha256.New()
	for _, name := range order {
		_, _ = fmt.Fprintf(sum, "%s %d\n", name, len(raw[name])) // a digest takes everything
		_, _ = sum.Write(raw[name])
	}
	folder := hex.EncodeToString(sum.Sum(nil))[:16]
	p, z := &pages{shells: map[string]file{}, assets: map[string]file{}}, newZipper()
	for _, name := range order {
		if path.Ext(name) != ".html" {
			p.assets[folder+"/"+name] = z.pack(name, raw[name])
			continue
		}
		shell := reference.ReplaceAllFunc(raw[name], func(m []byte) []byte {
			parts := reference.FindSubmatch(m)
			target := path.Join(path.Dir(name), string(parts[2]))
			if raw[target] == nil {
				return m
			}
			return []byte(string(parts[1]) + `="/assets/` + folder + "/" + target + `"`)
		})
		p.shells[name] = z.pack(name, shell)
	}
	return p, nil
}

// zipper is one for all files: it takes a megabyte.
type zipper struct{ *gzip.Writer }

func newZipper() zipper {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestCompression) // the level is one
	return zipper{z}
}

func (z zipper) pack(name string, plain []byte) file {
	f := file{kind: mime.TypeByExtension(path.Ext(name)), plain: plain}
	switch path.Ext(name) {
	case ".js", ".mjs":
		f.kind = "text/javascript; charset=utf-8"
	case ".webmanifest":
		f.kind = "application/manifest+json"
	case "":
		f.kind = "application/octet-stream"
	}
	var out bytes.Buffer
	z.Reset(&out)
	if _, err := z.Write(plain); err == nil && z.Close() == nil && out.Len() < len(plain) {
		f.zip = out.Bytes()
	}
	return f
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	body := f.plain
	if f.zip != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.zip
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write(body)
}

// shell answers with a page that knows nothing of who asks.
func (d *Door) shell(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f, err := d.find(shells, name)
		if id := r.PathValue("link"); err == nil && (len(id) > 64 || strings.ContainsFunc(id, func(c rune) bool { return !isWord(c) })) {
			err = noPage()
		}
		if err != nil {
			refuse(w, err)
			return
		}
		f.serve(w, r)
	}
}

func shells(p *pages) map[string]file { return p.shells }
func assets(p *pages) map[string]file { return p.assets }

// find looks for a file among the pages.
func (d *Door) find(among func(*pages) map[string]file, name string) (file, error) {
	p, err := d.pages()
	if err != nil {
		return file{}, fault.Wrap(fault.Internal, "read the pages", err)
	}
	f, ok := among(p)[name]
	if !ok {
		return file{}, noPage()
	}
	return f, nil
}

func noPage() error { return fault.New(fault.NotFound, "", "there is no such page") }

func isWord(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func (d *Door) asset(w http.ResponseWriter, r *http.Request) {
	f, err := d.find(assets, strings.TrimPrefix(r.URL.Path, "/assets/"))
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	f.serve(w, r)
}
