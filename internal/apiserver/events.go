package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"tapin/internal/api"
	"tapin/internal/event"
	"tapin/internal/fault"
)

// eventBatch is how many events are taken from the feed at a time, so that a
// reader far behind does not make us hold all of them.
const eventBatch = 64

// events follows the feed for one reader until it leaves or the server ends.
// The reader pulls, so a slow one costs its connection and nothing else.
func (s *Server) events(c *call, q *api.EventsQuery) error {
	cursor, err := s.cursor(c.r, q)
	if err != nil {
		return err
	}
	select {
	case s.subscribers <- struct{}{}:
		defer func() { <-s.subscribers }()
	default:
		return fault.New(fault.Busy, "", "%d readers follow the feed already", cap(s.subscribers))
	}
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	defer context.AfterFunc(s.streaming, cancel)()
	if s.streaming.Err() != nil {
		return fault.New(fault.Busy, "", "tapin is ending")
	}

	// One who comes without a cursor knows from the start where to go on.
	c.w.Header().Set("Last-Event-ID", strconv.FormatUint(cursor, 10))
	c.begin(http.StatusOK, "text/event-stream", -1)
	out := &sse{c: c}
	out.comment("tapin")
	for ctx.Err() == nil && out.err == nil && s.stillKnown(c) {
		last := s.feed.Last()
		batch, resync := s.feed.Since(cursor, eventBatch)
		if resync {
			gap := api.Resync{}
			cursor = last
			if len(batch) > 0 {
				gap.Oldest = batch[0].Seq
				cursor = gap.Oldest - 1
			}
			out.write(cursor, "resync", gap)
		}
		for _, e := range batch {
			out.write(e.Seq, e.Type, e)
			cursor = e.Seq
		}
		out.flush()
		if len(batch) == eventBatch {
			continue
		}
		if !s.await(ctx, out, cursor) {
			break
		}
	}
	if out.err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// await returns true once there is more to read, and keeps the connection
// warm meanwhile.
func (s *Server) await(ctx context.Context, out *sse, cursor uint64) bool {
	for out.err == nil {
		wait, cancel := context.WithTimeout(ctx, s.options.Heartbeat)
		err := s.feed.Wait(wait, cursor)
		cancel()
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return false
		}
		if !s.stillKnown(out.c) {
			return false
		}
		out.comment("")
		out.flush()
	}
	return false
}

// stillKnown reports whether the caller's token is good yet: one that was
// revoked hears nothing more, also on a connection that it opened before.
func (s *Server) stillKnown(c *call) bool {
	_, _, err := s.authenticate(c.r)
	return err == nil
}

// cursor is where the reader left off. Without a word about it, the reader
// wants only what is to come.
func (s *Server) cursor(r *http.Request, q *api.EventsQuery) (uint64, error) {
	if given := r.Header.Get("Last-Event-ID"); given != "" {
		n, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			return 0, fault.New(fault.InvalidRequest, "", "Last-Event-ID must be the id of an event")
		}
		return n, nil
	}
	if q.After != nil {
		return *q.After, nil
	}
	return s.feed.Last(), nil
}

// sse writes server-sent events. After a write that failed it does nothing.
type sse struct {
	c   *call
	err error
}

func (o *sse) write(id uint64, kind string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		o.c.log.Error("event cannot be written", "seq", id, "err", err)
		return
	}
	o.print("id: %d\nevent: %s\ndata: %s\n\n", id, strings.Join(strings.Fields(kind), " "), raw)
}

func (o *sse) comment(text string) { o.print(": %s\n\n", text) }

func (o *sse) print(format string, args ...any) {
	if o.err != nil {
		return
	}
	o.c.extend()
	_, o.err = fmt.Fprintf(o.c.w, format, args...)
}

func (o *sse) flush() {
	if o.err == nil {
		o.err = http.NewResponseController(o.c.w).Flush()
	}
}

var _ Feed = (*event.Feed)(nil)
