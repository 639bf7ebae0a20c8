// Package web holds the pages that people see: the live view on the phone and
// the console. It owns their files, embedded, and gives each asset a name that
// carries its content, so that it can be cached for ever. It must never make a
// page depend on another origin, on inline script or on who asks for it.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed live/*.html live/*.css live/*.js console/*.html console/*.css console/*.js assets/*
var sources embed.FS

// Policy is the Content-Security-Policy under which the pages work: scripts,
// styles and connections of our own origin only, and nobody frames them.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// The pages, as names in a Site.
const (
	Live    = "live.html"
	Console = "console.html"
)

// A File is one page or asset, ready to be served.
type File struct {
	Type string // its media type
	Body []byte
	Gzip []byte // the same, compressed; nil where that gains nothing
	Tag  string // an entity tag; another one is another content
}

// Site is the pages and assets as they are served. As a file system it has
// live.html, console.html and assets/<name>.<hash>.<ext>. It does not change and
// is safe for concurrent use.
type Site struct {
	files map[string]File
}

var _ fs.ReadFileFS = (*Site)(nil)

// New builds the site from the embedded sources.
func New() (*Site, error) { return build(sources) }

// File finds a page, or an asset by its name under assets/.
func (s *Site) File(name string) (File, bool) {
	f, ok := s.files[name]
	return f, ok
}

// Names lists what there is, sorted.
func (s *Site) Names() []string {
	names := make([]string, 0, len(s.files))
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ReadFile is fs.ReadFileFS. The bytes are the site's own: look, do not change.
func (s *Site) ReadFile(name string) ([]byte, error) {
	if f, ok := s.files[name]; ok {
		return f.Body, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Open is fs.FS.
func (s *Site) Open(name string) (fs.File, error) {
	body, err := s.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &opened{Reader: bytes.NewReader(body), name: path.Base(name), size: int64(len(body))}, nil
}

// opened is a file of the site being read, and what is to be known of it.
type opened struct {
	*bytes.Reader
	name string
	size int64
}

func (o *opened) Stat() (fs.FileInfo, error) { return info{o.name, o.size}, nil }
func (o *opened) Close() error               { return nil }

type info struct {
	name string
	size int64
}

func (i info) Name() string     { return i.name }
func (i info) Size() int64      { return i.size }
func (info) Mode() fs.FileMode  { return 0o444 }
func (info) ModTime() time.Time { return time.Time{} }
func (info) IsDir() bool        { return false }
func (info) Sys() any           { return nil }

// builder names assets after their content, and after that of what they refer
// to: what is referred to comes first.
type builder struct {
	from  fs.FS
	site  *Site
	names map[string]string   // by source path: the name under assets/
	order map[string][]string // by source path: what it needs to begin
	open  []string            // being built, to notice a circle
}

func build(from fs.FS) (*Site, error) {
	b := &builder{from: from, site: &Site{files: map[string]File{}}, names: map[string]string{}, order: map[string][]string{}}
	for _, page := range []string{"live", "console"} {
		if err := b.page(page); err != nil {
			return nil, fmt.Errorf("build the page %s: %w", page, err)
		}
	}
	return b.site, nil
}

var (
	// inMarkup finds what a page refers to by src and href, but for its own parts.
	inMarkup = regexp.MustCompile(`\b(src|href)="([^"#:]+)"`)
	// inScript finds what a module imports or passes on, at once or later.
	inScript = regexp.MustCompile(`(import\(|(?:^|\n)(?:import|export) [^"\n]*)"(\.[^"]+)"`)
	// What is for readers of the source only: comments on lines of their own,
	// types in front of an expression, indentation. No string of ours looks so.
	blockComment = regexp.MustCompile(`(?s)/\*.*?\*/[ \t]*`)
	lineComment  = regexp.MustCompile(`(?m)^[ \t]*//.*$`)
	indentation  = regexp.MustCompile(`\n\s+`)
	entry        = regexp.MustCompile(`<script type="module" src="([^"]+)"></script>`)
)

// page builds a page and all that it refers to. The modules behind its entry are
// named in the page, so that a browser fetches them at once and not one after
// the other.
func (b *builder) page(name string) error {
	source := name + "/index.html"
	text, err := fs.ReadFile(b.from, source)
	if err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	var modules []string
	if m := entry.FindSubmatch(text); m != nil {
		main := path.Join(name, string(m[1]))
		if _, err := b.asset(main); err != nil {
			return err
		}
		modules = b.behind(main, nil)
	}
	text, err = b.rewrite(source, text, inMarkup)
	if err != nil {
		return err
	}
	var preload strings.Builder
	for _, m := range modules {
		fmt.Fprintf(&preload, "<link rel=\"modulepreload\" href=\"/assets/%s\">\n", b.names[m])
	}
	text = bytes.Replace(text, []byte("<script type=\"module\""), []byte(preload.String()+"<script type=\"module\""), 1)
	b.site.files[name+".html"] = file("text/html; charset=utf-8", text)
	return nil
}

// behind lists the modules that a module needs to begin, and those behind them.
func (b *builder) behind(source string, seen []string) []string {
	for _, other := range b.order[source] {
		if !slices.Contains(seen, other) {
			seen = b.behind(other, append(seen, other))
		}
	}
	return seen
}

// asset builds one asset and says its name.
func (b *builder) asset(source string) (string, error) {
	if name, ok := b.names[source]; ok {
		return name, nil
	}
	if slices.Contains(b.open, source) {
		return "", fmt.Errorf("%s imports itself: %s", source, strings.Join(b.open, " → "))
	}
	b.open = append(b.open, source)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	body, err := fs.ReadFile(b.from, source)
	if err != nil {
		return "", fmt.Errorf("read an asset: %w", err)
	}
	ext := path.Ext(source)
	switch ext {
	case ".js":
		body = lineComment.ReplaceAll(blockComment.ReplaceAll(body, nil), nil)
		if body, err = b.rewrite(source, body, inScript); err != nil {
			return "", err
		}
		body = indentation.ReplaceAll(body, []byte("\n"))
	case ".css":
		body = indentation.ReplaceAll(blockComment.ReplaceAll(body, nil), []byte("\n"))
	}
	body = bytes.TrimLeft(body, "\n")
	kind := mediaType(ext)
	if kind == "" {
		return "", errors.New(source + " is of no kind that a page needs")
	}
	sum := sha256.Sum256(body)
	stem := strings.TrimSuffix(path.Base(source), ext)
	name := fmt.Sprintf("%s.%s%s", stem, hex.EncodeToString(sum[:6]), ext)
	b.names[source] = name
	b.site.files["assets/"+name] = file(kind, body)
	return name, nil
}

// rewrite puts the built names in the place of the sources'.
func (b *builder) rewrite(source string, text []byte, find *regexp.Regexp) ([]byte, error) {
	var failed error
	out := find.ReplaceAllFunc(text, func(found []byte) []byte {
		m := find.FindSubmatch(found)
		other := path.Join(path.Dir(source), string(m[2]))
		name, err := b.asset(other)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s refers to %s: %w", source, m[2], err))
			return found
		}
		if later := bytes.HasPrefix(m[1], []byte("import(")); !later && !slices.Contains(b.order[source], other) {
			b.order[source] = append(b.order[source], other)
		}
		return bytes.Replace(found, []byte(`"`+string(m[2])+`"`), []byte(`"/assets/`+name+`"`), 1)
	})
	return out, failed
}

// mediaType names what a page may be made of; the system's own table differs
// from machine to machine.
func mediaType(ext string) string {
	switch ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return ""
}

func file(kind string, body []byte) File {
	sum := sha256.Sum256(body)
	f := File{Type: kind, Body: body, Tag: `"` + hex.EncodeToString(sum[:9]) + `"`}
	var small bytes.Buffer
	w, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err == nil {
		_, err = io.Copy(w, bytes.NewReader(body))
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil && small.Len() < len(body) {
		f.Gzip = small.Bytes()
	}
	return f
}
