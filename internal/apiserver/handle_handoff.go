package apiserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/handoff"
	"tapin/internal/page"
	"tapin/internal/store"
)

func (s *Server) startHandoff(c *call, req *api.HandoffRequest) (*api.Handoff, error) {
	room, err := s.handoffRoom()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	o := handoff.StartOptions{
		By: c.by(), Reason: handoff.Reason(req.Reason), Instruction: req.Instruction, Task: req.Task,
		Timeout: time.Duration(req.TimeoutMS) * time.Millisecond, OnTimeout: req.OnTimeout, Capture: req.CaptureScreenshot,
		Follows: req.Follows, RunID: req.RunID, SessionID: req.SessionID, TabID: req.TabID, Silent: req.Notify != nil && !*req.Notify,
	}
	for _, v := range req.Verify {
		o.Verify = append(o.Verify, page.Condition(v))
	}
	id, err := once(s, c, errand[string]{
		digest: digestOf(c.route(), string(body)),
		within: startTime,
		do: func(ctx context.Context) (string, error) {
			started, err := room.Start(ctx, o)
			return started.ID, err
		},
		settled: func(error) bool { return false }, // a failed start leaves nothing
	})
	if err != nil {
		return nil, err
	}
	now, err := room.Wait(c.r.Context(), id, 0, 0) // a repetition hears how it stands by now
	if err != nil {
		return nil, err
	}
	return noticed(now), nil
}

func (s *Server) takeover(c *call, req *api.TakeoverRequest) (*api.Handoff, error) {
	room, err := s.handoffRoom()
	if err != nil {
		return nil, err
	}
	o := handoff.StartOptions{
		By: handoff.Owner, Reason: handoff.Other, Instruction: req.Instruction, SessionID: c.id, Silent: true,
		Timeout: time.Duration(req.TimeoutMS) * time.Millisecond, OnTimeout: req.OnTimeout,
	}
	if o.OnTimeout == "" {
		o.OnTimeout = handoff.ReturnOnTimeout // the owner asked for nothing to be closed
	}
	started, err := room.Start(c.r.Context(), o)
	if err != nil {
		return nil, err
	}
	return handoffOf(started), nil
}

func (s *Server) getHandoff(c *call, q *api.WaitQuery) (*api.Handoff, error) {
	room, err := s.handoffRoom()
	if err != nil {
		return nil, err
	}
	rec, err := polled(s, c, q, room.Wait)
	if err != nil {
		return nil, err
	}
	return handoffOf(rec), nil
}

func (s *Server) listHandoffs(c *call, q *api.HandoffsQuery) (*api.Handoffs, error) {
	room, err := s.handoffRoom()
	if err != nil {
		return nil, err
	}
	found, err := room.List(c.r.Context(), handoff.Filter{
		Status: handoff.Status(q.Status), Reason: handoff.Reason(q.Reason), SessionID: q.SessionID, RunID: q.RunID, Limit: q.Limit, Cursor: q.Cursor,
	})
	if err != nil {
		return nil, err
	}
	answer := &api.Handoffs{Handoffs: []api.Handoff{}, Next: found.Next}
	for _, rec := range found.Handoffs {
		answer.Handoffs = append(answer.Handoffs, *handoffOf(rec))
	}
	return answer, nil
}

// turn is a handler that does one thing about a person's turn.
func turn[B any](do func(ctx context.Context, room Handoffs, c *call, req *B) (handoff.Record, error)) func(*Server, *call, *B) (*api.Handoff, error) {
	return func(s *Server, c *call, req *B) (*api.Handoff, error) {
		room, err := s.handoffRoom()
		if err != nil {
			return nil, err
		}
		ctx := c.r.Context()
		key, given, err := c.once()
		if err != nil {
			return nil, err
		}
		if given {
			ctx = handoff.Once(ctx, key)
		}
		rec, err := do(ctx, room, c, req)
		if err != nil {
			return nil, err
		}
		return handoffOf(rec), nil
	}
}

// handoffRoutes are the rows about hand-offs. Who may end a turn, and when, is
// for the room to say; what only the owner can do is said here.
func handoffRoutes() []*route {
	return []*route{
		post("/handoff/start", Agent, "Hands the browser to a person.", (*Server).startHandoff).withKey(),
		post("/sessions/{id}/takeover", Owner, "Takes the wheel.", (*Server).takeover),
		get("/handoffs", Agent, "Lists hand-offs, the newest first.", (*Server).listHandoffs),
		get("/handoff/{id}", Agent, "Reads a hand-off, and waits for news of it.", (*Server).getHandoff),
		post("/handoff/{id}/finish", Agent, "Says that the person is done.", turn(
			func(ctx context.Context, room Handoffs, c *call, req *api.FinishRequest) (handoff.Record, error) {
				if req.Anyway && c.role < Owner {
					return handoff.Record{}, fault.New(fault.Forbidden, "", "only the owner hands a browser back although its conditions do not hold")
				}
				return room.Finish(ctx, c.by(), c.id, req.Anyway)
			})).withKey(),
		post("/handoff/{id}/cancel", Agent, "Ends a hand-off without a result: the owner's closes the session, the agent's gives the wheel back.", turn(
			func(ctx context.Context, room Handoffs, c *call, _ *api.Nothing) (handoff.Record, error) {
				return room.Cancel(ctx, c.by(), c.id)
			})).withKey(),
		post("/handoff/{id}/extend", Agent, "Gives the person more time.", turn(
			func(ctx context.Context, room Handoffs, c *call, req *api.ExtendRequest) (handoff.Record, error) {
				return room.Extend(ctx, c.by(), c.id, time.Duration(req.MoreMS)*time.Millisecond)
			})).withKey(),
		post("/handoff/{id}/park", Agent, "Frees the browser until the person has time.", turn(
			func(ctx context.Context, room Handoffs, c *call, _ *api.Nothing) (handoff.Record, error) {
				return room.Park(ctx, c.by(), c.id)
			})).withKey(),
		post("/handoff/{id}/resume", Owner, "Brings the browser of a parked hand-off back.", turn(
			func(ctx context.Context, room Handoffs, c *call, _ *api.Nothing) (handoff.Record, error) {
				return room.Resume(ctx, c.id)
			})).withKey(),
		post("/handoff/{id}/present", Owner, "Says that the person is there, and ends a countdown.", turn(
			func(ctx context.Context, room Handoffs, c *call, _ *api.Nothing) (handoff.Record, error) {
				if err := room.Present(ctx, c.id); err != nil {
					return handoff.Record{}, err
				}
				return room.Wait(ctx, c.id, 0, 0)
			})),
		post("/handoff/{id}/type", Owner, "Types into the field that has the focus.", (*Server).typeInHandoff).withKey(),
		post("/handoff/{id}/screenshot", Owner, "Photographs the page for the owner.", (*Server).handoffScreenshot),
		raw("/handoff/{id}/photo", Owner, "The picture for the message, once.", (*Server).handoffPhoto, "image/png", "image/jpeg", "image/webp"),
		get("/todos", Agent, "Lists what waits for the owner.", (*Server).todos),
		post("/todos/{id}/done", Agent, "Takes a to-do off the list.", (*Server).todoDone),
	}
}

// once is the caller's own key of a request that is to have its effect once.
func (c *call) once() (key string, given bool, err error) {
	all := c.r.Header.Values("Idempotency-Key")
	switch {
	case len(all) == 0:
		return "", false, nil
	case len(all) > 1 || !readable(all[0]):
		return "", false, fault.New(fault.InvalidRequest, "", "Idempotency-Key must be one text of 1 to %d readable characters", maxKey)
	}
	return c.caller + "/" + all[0], true, nil
}

func (s *Server) typeInHandoff(c *call, req *api.HandoffTypeRequest) (*api.HandoffTyped, error) {
	room, err := s.handoffRoom()
	if err != nil {
		return nil, err
	}
	key, given, err := c.once()
	if err != nil {
		return nil, err
	}
	if !given {
		key = store.NewID("key")
	}
	typed, err := room.Type(c.r.Context(), c.id, req.Text, key)
	if err != nil {
		return nil, err
	}
	return &api.HandoffTyped{HandoffID: c.id, Characters: typed.Characters, Field: typed.Field, Origin: typed.Origin}, nil
}

func (s *Server) handoffScreenshot(c *call, _ *api.Nothing) (*api.HandoffPicture, error) {
	room, err := s.handoffRoom()
	if err != nil {
		return nil, err
	}
	shot, err := room.Screenshot(c.r.Context(), c.id)
	if err != nil {
		return nil, err
	}
	return &api.HandoffPicture{HandoffID: c.id, MIMEType: shot.Format.MIME(), Screenshot: shot.Base64}, nil
}

func (s *Server) handoffPhoto(c *call, _ *nothing) error {
	if c.r.Method != http.MethodGet {
		// A glance must not use up what is given once.
		return fault.New(fault.InvalidRequest, "", "the photo is fetched with GET")
	}
	room, err := s.handoffRoom()
	if err != nil {
		return err
	}
	shot, err := room.Photo(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	picture, err := base64.StdEncoding.DecodeString(shot.Base64)
	if err != nil {
		return fault.New(fault.ProviderError, "", "the browser's picture is not base64")
	}
	media := http.DetectContentType(picture)
	if !slices.Contains(c.row.media, media) {
		return fault.New(fault.ProviderError, "", "the browser's picture is none")
	}
	return c.send(http.StatusOK, media, picture)
}

func (s *Server) todos(*call, *nothing) (*api.Todos, error) {
	room, err := s.handoffRoom()
	if err != nil {
		return nil, err
	}
	found, err := room.Todos()
	if err != nil {
		return nil, err
	}
	answer := &api.Todos{Todos: []api.Todo{}}
	for _, t := range found {
		answer.Todos = append(answer.Todos, api.Todo{
			TodoID: t.ID, HandoffID: t.HandoffID, Reason: string(t.Reason), Task: t.Task, Site: t.Site, URL: t.URL, CreatedAt: t.CreatedAt,
		})
	}
	return answer, nil
}

func (s *Server) todoDone(c *call, _ *api.Nothing) (*api.TodoDone, error) {
	room, err := s.handoffRoom()
	if err != nil {
		return nil, err
	}
	return &api.TodoDone{TodoID: c.id, Done: true}, room.TodoDone(c.id)
}

// noticed adds the line that a host shows when a person has been called.
func noticed(rec handoff.Record) *api.Handoff {
	h := handoffOf(rec)
	asked := rec.Instruction
	if asked == "" {
		asked = "help with " + string(rec.Reason)
	}
	h.Notice = "A person was asked (" + string(rec.Reason) + "): " + asked + "; until " + rec.Deadline.Format(time.RFC3339) + "."
	return h
}

func handoffOf(r handoff.Record) *api.Handoff {
	h := &api.Handoff{
		HandoffID: r.ID, Version: r.Version, Status: string(r.Status), Reason: string(r.Reason), Instruction: r.Instruction, Task: r.Task,
		SessionID: r.SessionID, Generation: r.Generation, TabID: r.TabID, RunID: r.RunID, Follows: r.Follows,
		StartedBy: string(r.StartedBy), OnTimeout: r.OnTimeout, CreatedAt: r.CreatedAt, Deadline: r.Deadline, FinishesAt: r.FinishesAt,
		FinishedAt: r.FinishedAt, FinishedBy: string(r.FinishedBy), Parked: r.Parked, Before: snapshotOf(r.Before),
		DeltaSummary: r.DeltaSummary, ResumeHint: r.ResumeHint, Attempts: r.Attempts, ContextSaved: r.ContextSaved, TodoID: r.TodoID,
	}
	if r.After != nil {
		after := snapshotOf(*r.After)
		h.After = &after
	}
	for _, c := range r.Delta {
		h.Delta = append(h.Delta, api.Change(c))
	}
	if r.Verified != nil {
		verified := api.Verified(*r.Verified)
		h.Verified = &verified
	}
	return h
}

func snapshotOf(s handoff.Snapshot) api.Snapshot {
	return api.Snapshot{
		URL: s.URL, Origin: s.Origin, Title: s.Title, Timestamp: s.Timestamp, CookieCount: s.CookieCount,
		LocalStorageKeys: s.LocalKeys, SessionStorageKeys: s.SessionKeys, DOMFingerprint: s.DOMFingerprint, ScreenshotRef: s.ScreenshotRef,
	}
}
