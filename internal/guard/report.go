package guard

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Report is what is kept of a crash. There is no room in it for an argument, an
// address or a text that a page gave.
type Report struct {
	At      time.Time `json:"at"`
	Part    string    `json:"part"` // daemon or sidecar
	PID     int       `json:"pid,omitempty"`
	Room    string    `json:"room"`    // which room it was; empty where nobody knows
	Cause   string    `json:"cause"`   // the type of the panic's value, or the runtime's own words
	Stopped bool      `json:"stopped"` // whether the process ended with it
	Version string    `json:"version"` // of tapin
	Go      string    `json:"go"`      // of the toolchain, and the platform
	Browser string    `json:"browser,omitempty"`
	Stack   []Frame   `json:"stack,omitempty"` // of the goroutine that failed, the innermost first
	Names   []string  `json:"names,omitempty"` // of the last operations and events, the newest last
	Times   int       `json:"times,omitempty"` // how often it was the same; 0 is once
	First   time.Time `json:"first,omitzero"`  // when it was so for the first of them
}

// same reports whether two reports are of one thing: the same cause in the same
// place. What came to that place may differ.
func (r *Report) same(as *Report) bool {
	return r.Part == as.Part && r.Room == as.Room && r.Cause == as.Cause && r.Stopped == as.Stopped && r.Version == as.Version && r.place() == as.place()
}

// place is the innermost call of ours, or of anybody.
func (r *Report) place() Frame {
	for _, f := range r.Stack {
		if strings.HasPrefix(f.Func, "tapin/") {
			return f
		}
	}
	if len(r.Stack) > 0 {
		return r.Stack[0]
	}
	return Frame{}
}

// Frame is one call, without its arguments.
type Frame struct {
	Func string `json:"func"`
	Line string `json:"line"` // spread.go:40
}

const mostFrames = 64

// stack is where the panic under way came from.
func stack() (frames []Frame) {
	pcs := make([]uintptr, 4*mostFrames)
	calls := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for more := true; more; {
		var f runtime.Frame
		f, more = calls.Next()
		if f.Function == "runtime.gopanic" {
			frames = frames[:0] // what came before is us, on the way out
			continue
		}
		if f.Function != "" && len(frames) < mostFrames {
			frames = append(frames, Frame{f.Function, fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)})
		}
	}
	return frames
}

// Describe is what may be said of a panic's value: the words of the runtime,
// which name types and numbers, else its type alone.
func Describe(v any) string {
	switch v := v.(type) {
	case *carried:
		return Describe(v.value)
	case planted:
		return "planted by a test"
	case runtime.Error:
		if text := plainWords(v.Error()); text != "" {
			return text
		}
		return "a runtime error"
	case error:
		var inner runtime.Error
		if errors.As(v, &inner) {
			return Describe(inner)
		}
	}
	return fmt.Sprint("a value of type ", reflect.TypeOf(v))
}

// known are the sentences of Go's runtime that hold nothing but types and numbers.
var known = regexp.MustCompile(`^(` + strings.Join([]string{
	`(runtime error: )?(index out of range( \[-?\d+\])?( with length \d+)?` +
		`|slice bounds out of range( \[[-\d:]*\])?( with (length|capacity) \d+)?` +
		`|integer divide by zero|integer overflow|division by zero|floating point error` +
		`|invalid memory address or nil pointer dereference` +
		`|makeslice: (len|cap) out of range|makechan: size out of range|growslice: len out of range` +
		`|negative shift amount|cannot convert slice with length \d+ to (array|pointer to array) (or pointer to array )?with length \d+` +
		`|hash of unhashable type [\w./*\[\]{} ]+|comparing uncomparable type [\w./*\[\]{} ]+)`,
	`assignment to entry in nil map`,
	`(send on|close of|close of nil) (closed )?channel`,
	`all goroutines are asleep - deadlock!`,
	`interface conversion: [\w./*\[\]{}() ]+ is (nil|[\w./*\[\]{}() ]+), not [\w./*\[\]{}() ]+`,
	`interface conversion: [\w./*\[\]{}() ]+ is not [\w./*\[\]{}() ]+: missing method \w+`,
	`concurrent map (writes|read and map write|iteration and map write)`,
	`stack overflow|out of memory|runtime: out of memory(: cannot allocate \d+-byte block \(\d+ in use\))?`,
	`runtime: cannot allocate memory|cannot allocate memory`,
	`sync: (unlock of unlocked mutex|Unlock of unlocked RWMutex|RUnlock of unlocked RWMutex|negative WaitGroup counter|inconsistent mutex state)`,
	`unexpected signal during runtime execution`,
	`fault|checkmark found unmarked object|morestack on g0`,
}, "|") + `)$`)

// plainWords is a sentence of the runtime, or "" where it is none that we know.
func plainWords(text string) string {
	text = strings.TrimSpace(text)
	if known.MatchString(text) {
		return text
	}
	return ""
}

// RoomOf is the room on whose account a stack was: the innermost that a start
// can do without, else the innermost package of ours.
func RoomOf(frames []Frame) string {
	own := ""
	for _, f := range frames {
		pkg := packageOf(f.Func)
		if !strings.HasPrefix(pkg, "tapin/internal/") || pkg == "tapin/internal/guard" {
			continue
		}
		for _, room := range Dispensable() {
			for _, p := range room.packages {
				if f.Func == p || pkg == p || strings.HasPrefix(f.Func, p+".") {
					return room.Name
				}
			}
		}
		if own == "" {
			own = strings.TrimPrefix(pkg, "tapin/internal/")
		}
	}
	return own
}

// packageOf is the import path in the name of a function.
func packageOf(function string) string {
	folder, name := path.Split(function)
	pkg, _, _ := strings.Cut(name, ".")
	return folder + pkg
}
