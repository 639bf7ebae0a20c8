package apiserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"

	"tapin/internal/fault"
)

// maxMounted is the most of a body for a mounted handler.
const maxMounted = 4 << 20

// message is what a mounted handler takes, for the description; it reads the
// body itself.
type message struct {
	JSONRPC string `json:"jsonrpc" required:"true" doc:"2.0"`
	Method  string `json:"method,omitempty"`
	ID      any    `json:"id,omitempty"`
	Params  any    `json:"params,omitempty"`
	Result  any    `json:"result,omitempty"`
	Error   any    `json:"error,omitempty"`
}

// mounted are the rows of a handler that is not ours. It stands behind every
// check of the door, its answers carry what all of ours do, and like all
// streams they end at once when the server does.
func mounted(path, doc string, h http.Handler) []*route {
	serve := func(s *Server, c *call) error {
		ctx, cancel := context.WithCancel(c.r.Context())
		defer cancel()
		defer context.AfterFunc(s.streaming, cancel)()
		if s.streaming.Err() != nil {
			return fault.New(fault.Busy, "", "tapin is ending")
		}
		r := c.r.WithContext(ctx)
		if r.Body != http.NoBody {
			raw, err := c.body(maxMounted)
			if err != nil {
				return err
			}
			r.Body = io.NopCloser(bytes.NewReader(raw))
		}
		h.ServeHTTP(&mountedWriter{c}, r)
		return nil
	}
	var rows []*route
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		row := &route{
			method: method, path: path, who: Agent, doc: doc, stream: true, serve: serve,
			query: reflect.TypeFor[nothing](), media: []string{"application/json", "text/event-stream"},
		}
		if method == http.MethodPost {
			row.body = reflect.TypeFor[message]()
		}
		rows = append(rows, row)
	}
	return rows
}

// mountedWriter lets a foreign handler answer: it notes the status, and every
// write has its own time to be taken.
type mountedWriter struct{ c *call }

func (m *mountedWriter) Header() http.Header { return m.c.w.Header() }

func (m *mountedWriter) WriteHeader(status int) {
	m.c.guard()
	if status >= http.StatusOK {
		m.c.status = status
	}
	m.c.w.WriteHeader(status)
}

func (m *mountedWriter) Write(p []byte) (int, error) {
	if m.c.status == 0 {
		m.WriteHeader(http.StatusOK)
	}
	m.c.extend()
	return m.c.w.Write(p)
}

func (m *mountedWriter) Flush() {
	m.c.extend()
	_ = http.NewResponseController(m.c.w).Flush()
}

// Unwrap is for http.ResponseController.
func (m *mountedWriter) Unwrap() http.ResponseWriter { return m.c.w }
