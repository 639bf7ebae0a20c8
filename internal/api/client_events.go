package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
)

const (
	firstPause = 100 * time.Millisecond // before following the feed again
	lastPause  = 5 * time.Second
	silence    = 45 * time.Second // three heartbeats; then the connection is dead
	maxEvent   = 4 << 20          // bytes of one event
)

// ResyncError says that events are missing before the next one: what they were
// about must be read anew. Following goes on after it.
type ResyncError struct{ Oldest uint64 }

func (e *ResyncError) Error() string {
	return fmt.Sprintf("events before %d are no longer kept", e.Oldest)
}

// errLeft says that the consumer left the loop.
var errLeft = errors.New("the reader left")

// Newest is the cursor of one who wants only what is to come.
const Newest uint64 = math.MaxUint64

// Events follows the feed from the event after lastID; 0 begins with the oldest
// kept, Newest with the next one. A lost connection, also a sidecar that restarts, is taken up again by
// itself. The loop ends with ctx, or with an error that trying again cannot
// mend; a *ResyncError is yielded too, but does not end it.
func (c *Client) Events(ctx context.Context, lastID uint64) iter.Seq2[event.Event, error] {
	return c.EventsFrom(ctx, &lastID)
}

// EventsFrom is Events that keeps the caller's cursor up to date, for one who
// goes on with another client, such as after a restart at another address.
func (c *Client) EventsFrom(ctx context.Context, lastID *uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		pause := firstPause
		for {
			from := *lastID
			err := c.follow(ctx, lastID, yield)
			switch {
			case errors.Is(err, errLeft) || ctx.Err() != nil:
				return
			case final(err):
				yield(event.Event{}, err)
				return
			}
			if *lastID != from {
				pause = firstPause
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, lastPause)
		}
	}
}

// final reports whether following again would only fail again.
func final(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && slices.Contains([]fault.Code{
		fault.InvalidRequest, fault.Unauthorized, fault.Forbidden, fault.NotFound, fault.PayloadTooLarge, fault.ProviderError,
	}, f.Code)
}

// follow reads one connection to its end.
func (c *Client) follow(ctx context.Context, lastID *uint64, yield func(event.Event, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	header := http.Header{}
	if *lastID != Newest {
		header.Set("Last-Event-ID", strconv.FormatUint(*lastID, 10))
	}
	resp, err := c.send(ctx, http.MethodGet, "/events", nil, header)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if *lastID == Newest {
		if *lastID, err = strconv.ParseUint(resp.Header.Get("Last-Event-ID"), 10, 64); err != nil {
			return fault.New(fault.ProviderError, "follow events", "the feed does not say where it is")
		}
	}
	var kind string
	var data []byte
	id := *lastID // counts once its event is whole
	lines := bufio.NewReaderSize(resp.Body, 16<<10)
	for {
		line, err := readLine(lines)
		if err != nil {
			return err
		}
		dead.Reset(silence)
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			*lastID = id
			if err := deliver(kind, data, yield); err != nil {
				return err
			}
			kind, data = "", nil
		case field == "event":
			kind = value
		case field == "data":
			data = []byte(value)
		case field == "id":
			if id, err = strconv.ParseUint(value, 10, 64); err != nil {
				return fault.New(fault.ProviderError, "follow events", "the id of an event is not a number")
			}
		}
	}
}

func deliver(kind string, data []byte, yield func(event.Event, error) bool) error {
	if data == nil {
		return nil // the end of a comment
	}
	broken := fault.New(fault.ProviderError, "follow events", "an event cannot be read")
	var keepsOn bool
	if kind == "resync" {
		var gap Resync
		if json.Unmarshal(data, &gap) != nil {
			return broken
		}
		keepsOn = yield(event.Event{}, &ResyncError{Oldest: gap.Oldest})
	} else {
		var e event.Event
		if json.Unmarshal(data, &e) != nil {
			return broken
		}
		keepsOn = yield(e, nil)
	}
	if !keepsOn {
		return errLeft
	}
	return nil
}

// readLine reads one line of bounded length, without its end.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxEvent:
			return "", fault.New(fault.PayloadTooLarge, "follow events", "an event is over %d bytes", maxEvent)
		case err == nil:
			return strings.TrimRight(string(line), "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return "", io.ErrUnexpectedEOF
		default:
			return "", err
		}
	}
}
