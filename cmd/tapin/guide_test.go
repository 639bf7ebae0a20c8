package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fence is a block of code in a guide.
type fence struct {
	language string
	first    int // the line of its first line, counted from 1
	lines    []string
	notRun   string   // why the block is not run, where it is not
	ended    bool     // its commands go on until they are ended with Ctrl-C
	typed    []string // what a person types when its commands ask
}

// guide is a page of the documentation.
type guide struct {
	file   string // from the root of the repository
	lines  []string
	fences []fence
}

const repository = "../.."

// The marks that may stand above a block, as comments that readers do not see.
var (
	remark = regexp.MustCompile(`^<!-- (not run|ended with Ctrl-C|typed)(?:: (.+))? -->$`)
	opener = regexp.MustCompile("^(`{3,})([a-z]*)$")
)

// readGuide takes a page apart. What it does not know is an error: a block that
// nobody looks at would go stale unseen.
func readGuide(file string) (*guide, error) {
	raw, err := os.ReadFile(filepath.Join(repository, file))
	if err != nil {
		return nil, err
	}
	return parseGuide(file, string(raw))
}

func parseGuide(file, text string) (*guide, error) {
	g := &guide{file: file, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	var open *fence
	var next fence // what the marks say of the block to come
	for i, line := range g.lines {
		at := fmt.Sprintf("%s:%d", file, i+1)
		found := opener.FindStringSubmatch(line)
		switch {
		case open != nil && line == "```":
			g.fences = append(g.fences, *open)
			open, next = nil, fence{}
		case open != nil:
			open.lines = append(open.lines, line)
		case found != nil:
			open = &next
			open.language, open.first = found[2], i+2
			if !slices.Contains([]string{"sh", "yaml", "json", "toml", "text", "js", "python"}, open.language) {
				return nil, fmt.Errorf("%s: a block of %q: use sh, yaml, json, toml, js, python or text", at, open.language)
			}
		case strings.HasPrefix(line, "<!--"):
			m := remark.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("%s: the mark %s is not known", at, line)
			}
			switch m[1] {
			case "not run":
				next.notRun = m[2]
			case "typed":
				next.typed = strings.Split(m[2], " | ")
			default:
				next.ended = true
			}
			if (m[2] == "") != next.ended {
				return nil, fmt.Errorf("%s: the mark says no reason, or one too many", at)
			}
		case strings.HasPrefix(line, "    ") && i > 0 && g.lines[i-1] == "":
			return nil, fmt.Errorf("%s: an indented block: put it into a fence, with its language", at)
		case line != "" && (next.notRun != "" || next.ended || next.typed != nil):
			return nil, fmt.Errorf("%s: the mark above stands before no block", at)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block at line %d does not end", file, open.first)
	}
	return g, nil
}

// pages are the README and everything in docs, the references too.
func pages(t *testing.T) []*guide {
	t.Helper()
	files := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md"}
	found, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, file := range found {
		files = append(files, filepath.Join("docs", filepath.Base(file)))
	}
	var all []*guide
	for _, file := range files {
		g, err := readGuide(file)
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, g)
	}
	return all
}

// shell is the page as a script for bash: commands stand in the lines in which
// the page has them, so that the shell's line numbers are the page's.
func (g *guide) shell() (script string, typed []string) {
	out := make([]string, len(g.lines)+1)
	for _, f := range g.fences {
		if f.language != "sh" || f.notRun != "" {
			continue
		}
		typed = append(typed, f.typed...)
		for i, line := range f.lines {
			line = strings.ReplaceAll(line, "http://127.0.0.1:3849", "http://$(cat ~/.tapin/control.addr)")
			if f.ended && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
				line = "glance " + line
			}
			out[f.first-1+i] = line
		}
	}
	return strings.Join(out, "\n"), typed
}

// runs reports whether the page has commands to run at all.
func (g *guide) runs() bool {
	return slices.ContainsFunc(g.fences, func(f fence) bool { return f.language == "sh" && f.notRun == "" })
}
