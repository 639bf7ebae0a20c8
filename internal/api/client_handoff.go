package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// StartHandoff hands the browser to a person.
func (c *Client) StartHandoff(ctx context.Context, req HandoffRequest) (*Handoff, error) {
	return call[Handoff](ctx, c, http.MethodPost, "/handoff/start", req, keyed(req.IdempotencyKey))
}

// Takeover takes the wheel of a session, for the owner.
func (c *Client) Takeover(ctx context.Context, session string, req TakeoverRequest) (*Handoff, error) {
	return call[Handoff](ctx, c, http.MethodPost, at(session, "takeover"), req, nil)
}

// Handoff reads a hand-off, and with a WaitMS waits for news of it.
func (c *Client) Handoff(ctx context.Context, id string, q WaitQuery) (*Handoff, error) {
	ctx, cancel := c.patient(ctx, q)
	defer cancel()
	return call[Handoff](ctx, c, http.MethodGet, query(handoffAt(id, ""), q.values()), nil, nil)
}

// Handoffs lists hand-offs, the newest first.
func (c *Client) Handoffs(ctx context.Context, q HandoffsQuery) (*Handoffs, error) {
	values := given(map[string]string{"status": q.Status, "reason": q.Reason, "session_id": q.SessionID, "run_id": q.RunID, "cursor": q.Cursor}, q.Limit)
	return call[Handoffs](ctx, c, http.MethodGet, query("/handoffs", values), nil, nil)
}

// FinishHandoff says that the person is done.
func (c *Client) FinishHandoff(ctx context.Context, id string, req FinishRequest) (*Handoff, error) {
	return call[Handoff](ctx, c, http.MethodPost, handoffAt(id, "/finish"), req, keyed(req.IdempotencyKey))
}

// CancelHandoff ends a hand-off without a result.
func (c *Client) CancelHandoff(ctx context.Context, id string) (*Handoff, error) {
	return call[Handoff](ctx, c, http.MethodPost, handoffAt(id, "/cancel"), Nothing{}, nil)
}

// ExtendHandoff gives the person more time.
func (c *Client) ExtendHandoff(ctx context.Context, id string, req ExtendRequest) (*Handoff, error) {
	return call[Handoff](ctx, c, http.MethodPost, handoffAt(id, "/extend"), req, keyed(req.IdempotencyKey))
}

// ParkHandoff frees the browser until the person has time.
func (c *Client) ParkHandoff(ctx context.Context, id string) (*Handoff, error) {
	return call[Handoff](ctx, c, http.MethodPost, handoffAt(id, "/park"), Nothing{}, nil)
}

// ResumeHandoff brings the browser of a parked hand-off back.
func (c *Client) ResumeHandoff(ctx context.Context, id string) (*Handoff, error) {
	return call[Handoff](ctx, c, http.MethodPost, handoffAt(id, "/resume"), Nothing{}, nil)
}

// PresentAtHandoff says that the owner is there, and ends a countdown.
func (c *Client) PresentAtHandoff(ctx context.Context, id string) (*Handoff, error) {
	return call[Handoff](ctx, c, http.MethodPost, handoffAt(id, "/present"), Nothing{}, nil)
}

// TypeInHandoff types what the owner sent into the field that has the focus.
func (c *Client) TypeInHandoff(ctx context.Context, id string, req HandoffTypeRequest) (*HandoffTyped, error) {
	// The body of this one request is where the text goes on in the clear.
	body := struct {
		Text string `json:"text"`
	}{req.Text.Reveal()}
	return call[HandoffTyped](ctx, c, http.MethodPost, handoffAt(id, "/type"), body, keyed(req.IdempotencyKey))
}

// HandoffScreenshot is the picture that the owner asks for.
func (c *Client) HandoffScreenshot(ctx context.Context, id string) (*HandoffPicture, error) {
	return call[HandoffPicture](ctx, c, http.MethodPost, handoffAt(id, "/screenshot"), Nothing{}, nil)
}

// HandoffPhoto is the picture for the message, which is handed out once.
func (c *Client) HandoffPhoto(ctx context.Context, id string) (*Shot, error) {
	body, mime, err := c.bytes(ctx, handoffAt(id, "/photo"))
	if err != nil {
		return nil, err
	}
	return &Shot{Bytes: body, MIMEType: mime}, nil
}

// Todos lists what waits for the owner.
func (c *Client) Todos(ctx context.Context) (*Todos, error) {
	return call[Todos](ctx, c, http.MethodGet, "/todos", nil, nil)
}

// TodoDone takes a to-do off the list.
func (c *Client) TodoDone(ctx context.Context, id string) (*TodoDone, error) {
	return call[TodoDone](ctx, c, http.MethodPost, "/todos/"+url.PathEscape(id)+"/done", Nothing{}, nil)
}

// StartRun begins a run.
func (c *Client) StartRun(ctx context.Context, req RunRequest) (*TaskRun, error) {
	return call[TaskRun](ctx, c, http.MethodPost, "/task-run/start", req, nil)
}

// Run reads a run, and with a WaitMS waits for news of it.
func (c *Client) Run(ctx context.Context, id string, q WaitQuery) (*TaskRun, error) {
	ctx, cancel := c.patient(ctx, q)
	defer cancel()
	return call[TaskRun](ctx, c, http.MethodGet, query(runAt(id, ""), q.values()), nil, nil)
}

// UpdateRun notes how far a run came.
func (c *Client) UpdateRun(ctx context.Context, id string, req RunUpdate) (*TaskRun, error) {
	return call[TaskRun](ctx, c, http.MethodPost, runAt(id, "/update"), req, nil)
}

// RunNeedsHelp says that a run cannot go on by itself.
func (c *Client) RunNeedsHelp(ctx context.Context, id string, req RunHelp) (*TaskRun, error) {
	return call[TaskRun](ctx, c, http.MethodPost, runAt(id, "/needs-help"), req, nil)
}

// CompleteRun ends a run.
func (c *Client) CompleteRun(ctx context.Context, id string, req RunEnd) (*TaskRun, error) {
	return call[TaskRun](ctx, c, http.MethodPost, runAt(id, "/complete"), req, nil)
}

// Runs lists runs, the newest first.
func (c *Client) Runs(ctx context.Context, q RunsQuery) (*Runs, error) {
	return call[Runs](ctx, c, http.MethodGet, query("/task-runs", given(map[string]string{"status": q.Status, "cursor": q.Cursor}, q.Limit)), nil, nil)
}

func handoffAt(id, rest string) string { return "/handoff/" + url.PathEscape(id) + rest }

func runAt(id, rest string) string { return "/task-run/" + url.PathEscape(id) + rest }

func keyed(key string) http.Header {
	if key == "" {
		return nil
	}
	return http.Header{"Idempotency-Key": {key}}
}

func (q WaitQuery) values() url.Values {
	values := url.Values{}
	if q.After > 0 {
		values.Set("after", strconv.Itoa(q.After))
	}
	if q.WaitMS > 0 {
		values.Set("wait_ms", strconv.Itoa(q.WaitMS))
	}
	return values
}

// given are the parameters that say something.
func given(texts map[string]string, limit int) url.Values {
	values := url.Values{}
	for name, value := range texts {
		if value != "" {
			values.Set(name, value)
		}
	}
	if limit > 0 {
		values.Set("limit", strconv.Itoa(limit))
	}
	return values
}

// patient gives a call that waits its time beside the usual one.
func (c *Client) patient(ctx context.Context, q WaitQuery) (context.Context, context.CancelFunc) {
	if _, set := ctx.Deadline(); set {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.limit+time.Duration(q.WaitMS)*time.Millisecond)
}
