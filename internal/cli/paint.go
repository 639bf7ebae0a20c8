package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"tapin/internal/guard"
)

// paint colours text where somebody looks at it.
type paint struct{ on bool }

func (a *app) paint(w io.Writer) paint {
	return paint{on: a.env.IsTerminal(w) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"}
}

func (p paint) code(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) bold(s string) string  { return p.code("1", s) }
func (p paint) dim(s string) string   { return p.code("2", s) }
func (p paint) green(s string) string { return p.code("32", s) }
func (p paint) red(s string) string   { return p.code("31", s) }

// bang marks what a person should know but need not mend.
func (p paint) bang() string { return p.code("33", "!") }

// row is one labelled line of an answer.
type row struct{ label, text string }

// rows prints labelled lines, aligned. What has no text is left out.
func (a *app) rows(rows ...row) {
	p, width := a.paint(a.env.Stdout), 0
	for _, r := range rows {
		if r.text != "" {
			width = max(width, utf8.RuneCountInString(r.label))
		}
	}
	for _, r := range rows {
		if r.text != "" {
			a.printf("%s  %s\n", p.dim(pad(r.label, width)), r.text)
		}
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// printf writes to stdout. What cannot be written there cannot be told either.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.env.Stdout, format, args...) }

func (a *app) errorf(format string, args ...any) { _, _ = fmt.Fprintf(a.env.Stderr, format, args...) }

// longText is where text from a page is cut.
const longText = 300

// clean makes text from outside safe to print: a title must not move the
// cursor, change its colours, or turn the line around.
func clean(s string) string {
	s = harmless(s)
	if runes := []rune(s); len(runes) > longText {
		return string(runes[:longText]) + "…"
	}
	return s
}

// cleanLines is clean for text whose lines and length are wanted as they are.
func cleanLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = harmless(strings.TrimSuffix(line, "\r"))
	}
	return strings.Join(lines, "\n")
}

func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' || r == utf8.RuneError:
			return '�'
		}
		return r
	}, s)
}

// progress tells that something is under way once it has taken a second. The
// returned function ends it and may be called more than once.
func (a *app) progress(doing string) (done func()) {
	if a.json {
		return func() {}
	}
	p, lively := a.paint(a.env.Stderr), a.env.IsTerminal(a.env.Stderr)
	stop := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		defer guard.Catch("command line")
		began := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for shown := false; ; {
			select {
			case <-stop:
				if shown && lively {
					a.errorf("\r\x1b[K")
				}
				return
			case <-tick.C:
			}
			switch {
			case lively:
				a.errorf("\r\x1b[K  %s", p.dim(fmt.Sprintf("%s … %.0f s", doing, time.Since(began).Seconds())))
			case !shown:
				a.errorf("%s …\n", doing)
			}
			shown = true
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		telling.Wait()
	})
}

// tilde shortens a path under the user's home folder, as a shell reads it.
func (a *app) tilde(path string) string {
	user := a.getenv("HOME")
	if rest, ok := strings.CutPrefix(path, user+string(filepath.Separator)); ok && filepath.IsAbs(user) && len(user) > 1 {
		return "~/" + rest
	}
	return path
}

// shellWord quotes a word for a line to copy, if it needs it. A leading ~/
// stays outside of the quotes, where the shell still reads it.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+:@%,=", r))
	}
	prefix, rest := "", s
	if after, ok := strings.CutPrefix(s, "~/"); ok {
		prefix, rest = "~/", after
	}
	if rest != "" && strings.IndexFunc(rest, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return prefix + "'" + strings.ReplaceAll(rest, "'", `'\''`) + "'"
}

// lookPath finds a program in a list of folders.
func lookPath(name, path string) string {
	for _, folder := range filepath.SplitList(path) {
		full := filepath.Join(folder, name)
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full
		}
	}
	return ""
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
