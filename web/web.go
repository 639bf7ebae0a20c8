// Package web holds the pages that people see: the live view on the phone and
// the console. It owns their files, embedded, and makes them ready to be served:
// without what only readers of the source need. It must never make a page depend
// on another origin, on inline script or on who asks for it.
package web

import (
	"archive/zip"
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed live/*.html live/*.css live/*.js console/*.html console/*.css console/*.js assets/*
var sources embed.FS

// Pages are live/index.html, console/index.html and what they load by relative
// paths, as files to be served. Whoever serves them gives assets a name that
// changes with their contents.
func Pages() (fs.FS, error) { return prepare(sources) }

// What is for readers of the source only: comments on lines of their own, types
// in front of an expression, indentation. No string of ours looks so.
var (
	blockComment = regexp.MustCompile(`(?s)/\*.*?\*/[ \t]*`)
	lineComment  = regexp.MustCompile(`(?m)^[ \t]*//.*$`)
	indentation  = regexp.MustCompile(`\n\s+`)
)

var (
	entry    = regexp.MustCompile(`<script type="module" src="([^"]+)"></script>`)
	imported = regexp.MustCompile(`(?m)^(?:import|export) [^"\n]*"(\.[^"]+)"`)
	named    = regexp.MustCompile(`(?:\b(?:src|href)=|import\()"([^"#:]+)"`)
)

func prepare(from fs.FS) (fs.FS, error) {
	ready := map[string][]byte{}
	err := fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		ready[name] = plain(name, body)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the pages: %w", err)
	}
	for name, body := range ready {
		if path.Ext(name) == ".html" {
			if ready[name], err = preloading(ready, name, body); err != nil {
				return nil, fmt.Errorf("make %s ready: %w", name, err)
			}
		}
		for _, m := range named.FindAllSubmatch(body, -1) {
			if other := beside(name, m[1]); ready[other] == nil {
				return nil, fmt.Errorf("%s needs %s, which is not there", name, other)
			}
		}
	}
	return pack(ready)
}

func beside(name string, reference []byte) string {
	return path.Join(path.Dir(name), string(reference))
}

// plain takes away what a browser does not need.
func plain(name string, body []byte) []byte {
	switch path.Ext(name) {
	case ".js":
		body = lineComment.ReplaceAll(blockComment.ReplaceAll(body, nil), nil)
	case ".css":
		body = blockComment.ReplaceAll(body, nil)
	default:
		return body
	}
	return bytes.TrimLeft(indentation.ReplaceAll(body, []byte("\n")), "\n")
}

// preloading names in a page all modules that its script needs to begin, so that
// a phone far away fetches them at once and not one after the other.
func preloading(files map[string][]byte, page string, body []byte) ([]byte, error) {
	m := entry.FindSubmatch(body)
	if m == nil {
		return body, nil
	}
	modules, err := behind(files, beside(page, m[1]), nil, nil)
	if err != nil {
		return nil, err
	}
	var links strings.Builder
	for _, module := range modules {
		to := strings.TrimPrefix(module, path.Dir(page)+"/")
		if to == module {
			to = "../" + module
		}
		fmt.Fprintf(&links, "<link rel=\"modulepreload\" href=\"%s\">\n", to)
	}
	return bytes.Replace(body, m[0], append([]byte(links.String()), m[0]...), 1), nil
}

// behind lists the modules that a module imports, and those behind them.
func behind(files map[string][]byte, module string, open, seen []string) ([]string, error) {
	if slices.Contains(open, module) {
		return nil, fmt.Errorf("%s imports itself: %s", module, strings.Join(open, " → "))
	}
	body, ok := files[module]
	if !ok {
		return nil, fmt.Errorf("%s is not there", module)
	}
	for _, m := range imported.FindAllSubmatch(body, -1) {
		other := beside(module, m[1])
		if !slices.Contains(seen, other) {
			seen = append(seen, other)
		}
		var err error
		if seen, err = behind(files, other, append(slices.Clone(open), module), seen); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// pack makes a file system of files: an archive in memory is one.
func pack(files map[string][]byte) (fs.FS, error) {
	var raw bytes.Buffer
	w := zip.NewWriter(&raw)
	for name, body := range files {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = f.Write(body)
		}
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack the pages: %w", err)
	}
	return zip.NewReader(bytes.NewReader(raw.Bytes()), int64(raw.Len()))
}
