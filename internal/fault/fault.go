// Package fault is the one vocabulary for what can go wrong.
// It owns the table from code to HTTP status, exit code, sentence and hint.
// It must never hold a secret: a cause that may carry one is described, not wrapped.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// Error is a failure with a code from the table. Error() names the operation
// and the cause; Details() is the sentence a caller may see.
type Error struct {
	Code Code
	Op   string         // what was being done: "navigate https://example.com"
	Err  error          // why it failed
	Hint string         // what to do next; empty means the table's hint
	Data map[string]any // further fields of the answer, such as session_id
}

// New makes a fault whose cause is the formatted sentence; %w works.
func New(code Code, op, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Err: fmt.Errorf(format, args...)}
}

// Wrap gives err a code. A fault inside err keeps its own code.
func Wrap(code Code, op string, err error) error {
	if err == nil {
		return nil
	}
	if inner, ok := errors.AsType[*Error](err); ok {
		return &Error{Code: inner.Code, Op: op, Err: err, Hint: inner.Hint, Data: inner.Data}
	}
	return &Error{Code: code, Op: op, Err: err}
}

// WithHint replaces the table's hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// With adds a field to the answer.
func (e *Error) With(key string, value any) *Error {
	if e.Data == nil {
		e.Data = map[string]any{}
	}
	e.Data[key] = value
	return e
}

func (e *Error) Error() string {
	switch {
	case e.Err == nil && e.Op == "":
		return e.Code.Sentence()
	case e.Err == nil:
		return e.Op + ": " + e.Code.Sentence()
	case e.Op == "":
		return e.Err.Error()
	}
	return e.Op + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, fault.NoSession) work.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Details is the sentence for the caller. The cause of an INTERNAL fault is
// for the log alone: nobody outside can use it, and it was not vetted.
func (e *Error) Details() string {
	if e.Code == Internal {
		return Internal.Sentence()
	}
	return e.Error()
}

// Advice is the hint for the caller.
func (e *Error) Advice() string {
	if e.Hint != "" {
		return e.Hint
	}
	return e.Code.Hint()
}

// Of returns err as a fault, so that a door can answer any error. What has no
// code is INTERNAL, but for a caller's own cancelled or expired context.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		// The outermost text, the innermost code.
		return &Error{Code: e.Code, Err: err, Hint: e.Hint, Data: e.Data}
	}
	if code, ok := errors.AsType[Code](err); ok {
		return &Error{Code: code, Err: err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: Busy, Err: errors.New("the call was given up before it ended")}
	}
	return &Error{Code: Internal, Err: err}
}
