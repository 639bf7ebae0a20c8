package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tapin/internal/config"
	"tapin/internal/fault"
)

var (
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	linkSpan  = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	headline  = regexp.MustCompile(`^#{1,6} (.+)$`)
	routeSpan = regexp.MustCompile(`^(GET|POST|PUT|DELETE) (/[A-Za-z0-9_{}./-]*)`)
	toolSpan  = regexp.MustCompile(`^(browser|oc|sandbox)_[a-z_]*[a-z]$`)
	codeWord  = regexp.MustCompile("`([A-Z]+_[A-Z_]+)`")
	flagWord  = regexp.MustCompile(`(^|\s)(--[a-z][a-z-]*)`)
)

// prose calls fn with each line of a page that stands in no block, and its number.
func (g *guide) prose(fn func(number int, line string)) {
	in := map[int]bool{}
	for _, f := range g.fences {
		for i := f.first - 1; i <= f.first+len(f.lines); i++ {
			in[i] = true
		}
	}
	for i, line := range g.lines {
		if !in[i+1] {
			fn(i+1, line)
		}
	}
}

// anchors are what can be linked to on a page.
func (g *guide) anchors() map[string]bool {
	all := map[string]bool{}
	g.prose(func(_ int, line string) {
		if m := headline.FindStringSubmatch(line); m != nil {
			all[anchor(m[1])] = true
		}
	})
	return all
}

// anchor is the name that a headline gets: lower case, spaces as hyphens, and
// nothing else but letters and digits.
func anchor(title string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ' || r == '-':
			out.WriteByte('-')
		case r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := pages(t)
	decisions, err := filepath.Glob(filepath.Join(repository, "docs", "decisions", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range decisions {
		g, err := readGuide(filepath.Join("docs", "decisions", filepath.Base(file)))
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, g)
	}
	byFile := map[string]*guide{}
	for _, g := range all {
		byFile[g.file] = g
	}
	followed, reached := 0, map[string]bool{"README.md": true}
	for _, g := range all {
		g.prose(func(number int, line string) {
			for _, m := range linkSpan.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
				if strings.HasPrefix(m[1], "https://") {
					continue
				}
				followed++
				path, to, _ := strings.Cut(m[1], "#")
				target := filepath.Join(filepath.Dir(g.file), path)
				if path == "" {
					target = g.file
				} else {
					reached[target] = true
				}
				if _, err := os.Stat(filepath.Join(repository, target)); err != nil {
					t.Errorf("%s:%d: %s leads nowhere", g.file, number, m[1])
				} else if page := byFile[target]; to != "" && (page == nil || !page.anchors()[to]) {
					t.Errorf("%s:%d: %s has no part #%s", g.file, number, target, to)
				}
			}
		})
	}
	for _, g := range all {
		if !reached[g.file] && !reached[filepath.Dir(g.file)] {
			t.Errorf("no page leads to %s", g.file)
		}
	}
	if followed < 50 {
		t.Errorf("only %d links were found", followed)
	}
}

// Words that stand for a value of the reader's.
var placeholders = regexp.MustCompile(`^[A-Z…"'<]|…`)

// TestPagesNameWhatThereIs looks at every command, route, tool and code that the
// pages only mention: what is in blocks is run.
func TestPagesNameWhatThereIs(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	api, err := os.ReadFile(filepath.Join(repository, "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := os.ReadFile(filepath.Join(repository, "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, g := range pages(t) {
		if strings.HasSuffix(g.file, "comparison.md") {
			continue // it speaks of others' names
		}
		g.prose(func(number int, line string) {
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				words := strings.Fields(m[1])
				kind, wrong := "", ""
				switch {
				case len(words) > 1 && words[0] == "tapin":
					kind, wrong = "command", wrongCommand(words[1:])
				case len(words) == 2 && words[0] == "make":
					kind = "target"
					if !strings.Contains(string(makefile), "\n"+words[1]+":") {
						wrong = "there is no such target"
					}
				case routeSpan.MatchString(m[1]):
					kind, wrong = "route", wrongRoute(string(api), routeSpan.FindStringSubmatch(m[1]))
				case toolSpan.MatchString(m[1]):
					kind = "tool"
					if !strings.Contains(string(tools), "\n## "+m[1]+"\n") && !strings.Contains(string(api), "| `"+m[1]+"`") {
						wrong = "there is neither such a tool nor such a field"
					}
				case codeWord.MatchString(m[0]):
					kind, wrong = "code", wrongCode(m[1])
				}
				seen[kind]++
				if wrong != "" {
					t.Errorf("%s:%d: `%s`: %s", g.file, number, m[1], wrong)
				}
			}
		})
	}
	for _, kind := range []string{"command", "target", "route", "tool", "code"} {
		if seen[kind] < 5 {
			t.Errorf("%d of the kind %s were looked at", seen[kind], kind)
		}
	}
}

// wrongCommand looks for a command by the longest name that the program has
// help for, and for the flags that are named with it.
func wrongCommand(words []string) string {
	for n := len(words); n > 0; n-- {
		if slices.ContainsFunc(words[:n], func(w string) bool { return strings.HasPrefix(w, "-") || placeholders.MatchString(w) }) {
			continue
		}
		help, ok := helped(words[:n]...)
		if !ok {
			continue
		}
		for _, flag := range flagWord.FindAllStringSubmatch(" "+strings.Join(words[n:], " "), -1) {
			if !strings.Contains(help, flag[2]) {
				return "it has no flag " + flag[2]
			}
		}
		if under := strings.Contains(help, "\nCommands\n"); under && len(words) > n && regexp.MustCompile(`^[a-z-]+$`).MatchString(words[n]) && !strings.HasPrefix(words[n], "-") {
			return "there is no " + words[n] + " under it"
		}
		return ""
	}
	return "there is no such command"
}

// wrongRoute compares names of what varies by their place alone.
func wrongRoute(api string, m []string) string {
	general := regexp.MustCompile(`\{[^}]*\}`)
	want := general.ReplaceAllString(m[1]+" "+m[2], "{}")
	want = strings.Replace(want, " /session/", " /sessions/{}/", 1)
	if strings.HasSuffix(want, "/sessions/{}/start") || strings.HasSuffix(want, "/mcp") {
		return ""
	}
	if !strings.Contains(general.ReplaceAllString(api, "{}"), "| `"+want+"` |") && !publicRoute(m[2]) {
		return "there is no such route"
	}
	return ""
}

// publicRoute reports whether an address is of the listener for people, which
// is not described: its pages are its only clients.
func publicRoute(path string) bool {
	return strings.HasPrefix(path, "/console") || strings.HasPrefix(path, "/live")
}

func wrongCode(code string) string {
	if strings.HasPrefix(code, "TAPIN_") || strings.HasPrefix(code, "BROWSERBASE_") || strings.HasPrefix(code, "TELEGRAM_") || code == "TUNNEL_TOKEN" ||
		slices.Contains([]string{"TIMED_OUT", "NEEDS_HELP", "IN_PROGRESS", "S1_AX", "S7_HITL"}, code) {
		return ""
	}
	if !slices.Contains(fault.Codes(), fault.Code(code)) {
		return "there is no such code"
	}
	return ""
}

func TestEveryCodeIsInTroubleshooting(t *testing.T) {
	t.Parallel()
	g, err := readGuide("docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(g.lines, "\n")
	for _, code := range fault.Codes() {
		if !strings.Contains(text, "`"+string(code)+"`") {
			t.Errorf("%s is not there", code)
		}
	}
}

// Settings that pages show are settings that tapin takes.
func TestSettingsOfThePagesAreValid(t *testing.T) {
	t.Parallel()
	loaded := 0
	for _, g := range pages(t) {
		for _, f := range g.fences {
			if f.language != "yaml" || strings.HasPrefix(f.lines[0], "contexts:") {
				continue
			}
			loaded++
			if _, _, err := config.Load(config.Inputs{File: []byte(strings.Join(f.lines, "\n"))}); err != nil {
				t.Errorf("%s:%d: %v", g.file, f.first, err)
			}
		}
	}
	if loaded < 4 {
		t.Errorf("only %d blocks of settings were found", loaded)
	}
}
