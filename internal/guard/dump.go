package guard

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"sync"
)

// mostLine is where a line without an end is cut: nobody reads that far.
const mostLine = 16 << 10

// Last is what a process says on its standard error on the way to a log. What
// Go's runtime prints as a process dies passes without the value of the panic
// and without arguments, and is kept for a report.
type Last struct {
	to io.Writer

	mu     sync.Mutex
	torn   []byte
	dying  bool // we are inside what the runtime prints
	value  bool // in the lines of the panic's value
	first  bool // the stack of the goroutine that failed is being read
	past   bool // it was read to its end
	cause  string
	frames []Frame
	called string // the function whose line comes next
}

// NewLast is the way to a log.
func NewLast(to io.Writer) *Last { return &Last{to: to} }

var (
	goroutine = regexp.MustCompile(`^goroutine (\d+)(?: gp=\S+ m=\S+(?: mp=\S+)?)? \[([a-z0-9 ,().-]+)\]:$`)
	called    = regexp.MustCompile(`^([\w./*()\[\]{}·\-…]+)\(.*\)$`)
	created   = regexp.MustCompile(`^created by ([\w./*()\[\]{}·\-…]+)( in goroutine \d+)?$`)
	lineOf    = regexp.MustCompile(`^\t(\S.*\.(?:go|s)):(\d+)(?: \+0x[0-9a-f]+)?(?: .*)?$`)
	signalled = regexp.MustCompile(`^\[?signal (SIG[A-Z]+)(: [a-z ]+)?`)
)

// Write passes on whole lines. It never fails: whoever calls it is a goroutine of
// os/exec's, which no guard is around.
func (l *Last) Write(p []byte) (int, error) {
	l.take(p)
	return len(p), nil
}

func (l *Last) take(p []byte) {
	defer Catch("sidecar's words")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.torn = append(l.torn, p...)
	for {
		i := bytes.IndexByte(l.torn, '\n')
		if i < 0 {
			break
		}
		text := string(l.torn[:i])
		l.torn = l.torn[i+1:]
		l.line(text)
	}
	if len(l.torn) > mostLine {
		l.line(string(l.torn[:mostLine]))
		l.torn = nil
	}
}

func (l *Last) line(text string) {
	if text = l.passed(text); text != "" {
		_, _ = io.WriteString(l.to, text+"\n")
	}
}

// passed is what of a line goes into the log.
func (l *Last) passed(text string) string {
	if strings.HasPrefix(text, "time=") { // a line of a log, in between
		return text
	}
	trimmed := strings.TrimLeft(text, "\t ")
	if value, ok := strings.CutPrefix(trimmed, "panic: "); ok {
		l.dying, l.value = true, true
		return "panic: " + l.because(valueWords(value))
	}
	if value, ok := strings.CutPrefix(text, "fatal error: "); ok {
		l.dying, l.value = true, true
		words := plainWords(value)
		if words == "" {
			words = "a fatal error of the runtime"
		}
		return "fatal error: " + l.because(words)
	}
	if strings.HasPrefix(text, "runtime: ") || strings.HasPrefix(text, "unexpected fault address") {
		l.dying = true
		if strings.Contains(text, "goroutine stack exceeds") {
			return "runtime: " + l.because("a goroutine's stack outgrew its limit")
		}
		return ""
	}
	if m := signalled.FindStringSubmatch(text); m != nil && (l.dying || strings.HasPrefix(text, "[")) {
		l.dying, l.value = true, false
		return "[signal " + m[1] + m[2] + "]"
	}
	if m := goroutine.FindStringSubmatch(text); m != nil {
		l.dying, l.value, l.called = true, false, ""
		l.past = l.past || l.first
		l.first = !l.past
		return fmt.Sprintf("goroutine %s [%s]:", m[1], m[2])
	}
	if !l.dying {
		return text
	}
	return l.stack(text)
}

// stack is a line of a goroutine's stack without its arguments.
func (l *Last) stack(text string) string {
	if l.value {
		return "" // a value may go over several lines
	}
	if m := lineOf.FindStringSubmatch(text); m != nil {
		at := path.Base(m[1]) + ":" + m[2]
		if l.first && !l.past && l.called != "" && len(l.frames) < mostFrames {
			l.frames = append(l.frames, Frame{l.called, at})
		}
		l.called = ""
		return "\t" + at
	}
	if m := created.FindStringSubmatch(text); m != nil {
		l.called = m[1]
		return "created by " + m[1]
	}
	if called.MatchString(text) {
		l.called = text[:strings.LastIndexByte(text, '(')]
		return l.called + "(…)"
	}
	if strings.TrimSpace(text) == "" {
		l.past = l.past || l.first && len(l.frames) > 0
	}
	return ""
}

// because keeps the first cause: what follows is its consequence.
func (l *Last) because(words string) string {
	if l.cause == "" {
		l.cause = words
	}
	return words
}

// valueWords is what may be said of a panic's value as it was printed.
func valueWords(value string) string {
	value, _, _ = strings.Cut(value, " [recovered")
	if words := plainWords(value); words != "" {
		return words
	}
	if words := plainWords(strings.TrimPrefix(value, "runtime error: ")); words != "" {
		return words
	}
	return "a value that is left out here"
}

// Crash is what the runtime said of the end of the process, if it did.
func (l *Last) Crash() (cause string, frames []Frame, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.torn) > 0 {
		l.line(string(l.torn))
		l.torn = nil
	}
	if l.cause == "" && len(l.frames) == 0 {
		return "", nil, false
	}
	frames = l.frames
	for i, f := range frames { // the runtime's own way to the panic says nothing
		if f.Func == "panic" || f.Func == "runtime.gopanic" {
			frames = frames[i+1:]
			break
		}
	}
	if l.cause == "" {
		return "it was ended by a signal", frames, true
	}
	return l.cause, frames, true
}
