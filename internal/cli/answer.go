package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"tapin/internal/api"
	"tapin/internal/fault"
)

// answer prints what a command found: in JSON if that was asked for, else by tell.
func (a *app) answer(v any, tell func()) error {
	if !a.json {
		tell()
		return nil
	}
	return a.object(true, v)
}

// object prints one JSON object: "ok", and behind it the members of each part.
func (a *app) object(ok bool, parts ...any) error {
	line := fmt.Appendf(nil, `{"ok":%t`, ok)
	for _, part := range parts {
		raw, err := json.Marshal(part)
		if err != nil {
			return err
		}
		if members := bytes.TrimSuffix(bytes.TrimPrefix(raw, []byte("{")), []byte("}")); len(members) > 0 && string(raw) != "null" {
			line = append(append(line, ','), members...)
		}
	}
	a.printf("%s}\n", line)
	return nil
}

// plainObject prints one JSON object as it is: a line of something that goes on.
func (a *app) plainObject(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	a.printf("%s\n", raw)
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
		problem := api.Problem{Error: string(f.Code), Details: details, Hint: f.Advice()}
		if err := a.object(false, problem, f.Data); err != nil {
			_ = a.object(false, problem)
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
