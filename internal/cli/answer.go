package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"strings"

	"tapin/internal/fault"
)

// answer prints what a command found: in JSON if that was asked for, else by tell.
func (a *app) answer(v any, tell func()) error {
	if !a.json {
		tell()
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// The members of v behind "ok", as every answer of the API has it.
	head := `{"ok":true`
	if string(raw) != "{}" {
		head += ","
	}
	a.printf("%s%s\n", head, raw[1:])
	return nil
}

// fail tells of an error and returns its exit code.
func (a *app) fail(err error) int {
	f := fault.Of(err)
	details := f.Details()
	if f.Code == fault.Internal && (a.verbose || fromSystem(err)) {
		details = err.Error()
	}
	if a.json {
		body := maps.Clone(f.Data)
		if body == nil {
			body = map[string]any{}
		}
		maps.Copy(body, map[string]any{"ok": false, "error": f.Code, "details": details, "hint": f.Advice()})
		if raw, err := json.Marshal(body); err == nil {
			a.printf("%s\n", raw)
		}
		return f.Code.Exit()
	}
	p := a.paint(a.env.Stderr)
	lines := strings.Split(details, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	a.errorf("%s %s %s\n", p.red("tapin:"), strings.Join(lines, "\n       "), p.dim("["+string(f.Code)+"]"))
	a.errorf("%s  %s\n", p.bold("hint:"), clean(f.Advice()))
	return f.Code.Exit()
}

// fromSystem tells errors of the file system, which name a path and a reason
// and are what a person at the terminal needs to see.
func fromSystem(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*os.LinkError](err); ok {
		return true
	}
	_, ok := errors.AsType[*os.SyscallError](err)
	return ok
}
