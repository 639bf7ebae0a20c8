package apiserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/page"
	"tapin/internal/session"
)

// session is the one the path names: by id, or the active one.
func (s *Server) session(c *call) (Session, error) {
	if c.id != "" {
		return s.sessions.Get(c.id)
	}
	return s.sessions.Active()
}

func (s *Server) start(c *call, req *api.StartRequest) (*api.StartAnswer, error) {
	answer, o, looked := &api.StartAnswer{}, startOptions(req), false
	if req.Wanted() {
		o.Meanwhile = func(_ context.Context, started *session.Session, recorded func() bool) {
			var linked guard.Group
			linked.Run(func() {
				if recorded() { // nobody hears of a link to what is not there
					answer.LiveViewURL = s.liveView(c.r.Context(), started.ID())
				}
			})
			s.look(c, started, &answer.Page)
			linked.Wait()
			looked = true
		}
	}
	started, err := s.startOnce(c, req, o)
	if err != nil {
		return nil, err
	}
	answer.SessionInfo = sessionInfo(started.Info())
	answer.Outline = s.outline(c, started, req.Look)
	if looked {
		return answer, nil
	}
	answer.LiveViewURL = s.liveView(c.r.Context(), answer.SessionID)
	if req.Wanted() { // somebody else's request has started it
		s.look(c, started, &answer.Page)
	} else if now, err := started.Status(c.r.Context()); err == nil {
		answer.URL, answer.Title = now.URL, now.Title
	}
	return answer, nil
}

// startTime is for a start that nobody may be waiting for.
const startTime = 3 * time.Minute

// startOnce starts a session, or finds the one that the request's
// Idempotency-Key started before.
func (s *Server) startOnce(c *call, req *api.StartRequest, o session.StartOptions) (Session, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	id, err := once(s, c, errand[string]{
		digest: digestOf(c.route(), string(body)),
		within: startTime,
		do: func(ctx context.Context) (string, error) {
			started, err := s.sessions.Start(ctx, o)
			if errors.Is(err, context.DeadlineExceeded) {
				return "", fault.New(fault.SessionCreateFailed, "start", "no browser within %s", startTime)
			}
			if err != nil {
				return "", err
			}
			return started.Info().ID, nil
		},
		settled: func(error) bool { return false }, // a failed start leaves nothing
	})
	if err != nil {
		return nil, err
	}
	started, err := s.sessions.Get(id)
	if err != nil {
		return nil, fault.New(fault.NoSession, "", "the session that this Idempotency-Key started is over").
			With("session_id", id).WithHint("Use a new key to start another one.")
	}
	return started, nil
}

func startOptions(req *api.StartRequest) session.StartOptions {
	o := session.StartOptions{
		URL:         req.URL,
		Context:     req.Context,
		Provider:    req.Provider,
		Mobile:      req.Mobile,
		Locale:      req.Locale,
		Timezone:    req.Timezone,
		Timeout:     time.Duration(req.TimeoutS) * time.Second,
		SaveContext: req.SaveContext,
		Record:      req.Record,
	}
	if v := req.Viewport; v != nil {
		o.Viewport = &session.Viewport{Width: v.Width, Height: v.Height, Scale: v.Scale}
	}
	return o
}

func (s *Server) stop(c *call, req *api.StopRequest) (*api.StopAnswer, error) {
	stopping, err := s.session(c)
	if err != nil {
		return nil, err
	}
	if req.Verified {
		if err := s.sessions.Verified(c.r.Context(), stopping.Info().ID); err != nil {
			return nil, err
		}
	}
	stopped, err := s.sessions.Stop(c.r.Context(), stopping.Info().ID, req.SaveContext)
	if err != nil {
		return nil, err
	}
	return &api.StopAnswer{SessionID: stopped.ID, Stopped: true, ContextSaved: stopped.ContextSaved}, nil
}

func (s *Server) navigate(c *call, req *api.NavigateRequest) (*api.PageAnswer, error) {
	var outline *page.Snapshot
	look := api.Look{Screenshot: req.Screenshot} // the page tells its outline as it comes
	answer, err := s.move(c, look, func(ctx context.Context, on Session) (nav page.Navigation, err error) {
		if req.TimeoutMS > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(req.TimeoutMS)*time.Millisecond)
			defer cancel()
		}
		if req.Outline == nil {
			return on.Navigate(ctx, req.URL, req.Wait)
		}
		nav, outline, err = on.Visit(ctx, req.URL, req.Wait, snapshotOptions(req.Outline))
		return nav, err
	})
	if err == nil && outline != nil {
		answer.Outline = snapshotAnswer(answer.SessionID, req.Outline, outline)
	}
	return answer, err
}

func (s *Server) back(c *call, req *api.MoveRequest) (*api.PageAnswer, error) {
	return s.move(c, req.Look, func(ctx context.Context, on Session) (page.Navigation, error) { return on.Back(ctx) })
}

func (s *Server) forward(c *call, req *api.MoveRequest) (*api.PageAnswer, error) {
	return s.move(c, req.Look, func(ctx context.Context, on Session) (page.Navigation, error) { return on.Forward(ctx) })
}

func (s *Server) reload(c *call, req *api.MoveRequest) (*api.PageAnswer, error) {
	return s.move(c, req.Look, func(ctx context.Context, on Session) (page.Navigation, error) { return on.Reload(ctx) })
}

func (s *Server) move(c *call, look api.Look, do func(context.Context, Session) (page.Navigation, error)) (*api.PageAnswer, error) {
	on, err := s.session(c)
	if err != nil {
		return nil, err
	}
	moved, err := do(c.r.Context(), on)
	if err != nil {
		return nil, err
	}
	answer := &api.PageAnswer{
		SessionID:  on.Info().ID,
		StatusCode: moved.Status,
		TookMS:     moved.Took.Milliseconds(),
		Page:       api.Page{URL: moved.URL, Title: moved.Title},
		Outline:    s.outline(c, on, look),
	}
	if look.Wanted() {
		s.look(c, on, &answer.Page)
	}
	return answer, nil
}

// look adds a picture to the answer of an action that was done. A picture that
// fails must not turn the answer into a failure: the caller would act again.
func (s *Server) look(c *call, at Session, shown *api.Page) {
	picture, err := at.Screenshot(c.r.Context(), page.ShotOptions{Asked: true})
	if err == nil && !plain(picture.Base64) {
		err = fault.New(fault.ProviderError, "", "the browser's picture is not base64")
	}
	if err != nil {
		f := fault.Of(err)
		if f.Code == fault.Internal {
			s.log.Error("picture failed", "route", c.route(), "err", f.Err)
		}
		shown.ScreenshotError = problem(f)
		if f.Code == fault.DialogOpen {
			shown.Dialog = openDialog(c.r.Context(), at)
		}
		return
	}
	shown.URL, shown.Title = picture.URL, picture.Title
	shown.Screenshot, shown.MIMEType = picture.Base64, picture.Format.MIME()
}

// openDialog is the dialog in front, which is why there is no picture.
func openDialog(ctx context.Context, at Session) *api.Dialog {
	now, err := at.Status(ctx)
	if err != nil {
		return nil
	}
	for _, d := range now.Dialogs {
		if slices.ContainsFunc(now.Tabs, func(t session.Tab) bool { return t.Active && t.ID == d.TabID }) {
			open := api.Dialog(d)
			return &open
		}
	}
	return nil
}

// decoded is room for pictures on their way out: they are the largest things that
// come by, and would keep the collector busy.
var decoded sync.Pool

func (s *Server) screenshot(c *call, q *api.ScreenshotQuery) error {
	o := page.ShotOptions{Format: page.Format(q.Format), Quality: q.Quality, FullPage: q.FullPage}
	if of := (api.Target{Element: q.Element, Text: q.Text}); of.Given() {
		if err := of.Check(); err != nil {
			return err
		}
		if q.FullPage {
			return fault.New(fault.InvalidRequest, "", "a picture is of the full page or of an element, not both").With("field", "full_page")
		}
		at := locator(of)
		o.Locator, o.Timeout = &at, time.Duration(q.TimeoutMS)*time.Millisecond
	}
	if o.Quality != 0 && (o.Format == "" || o.Format == page.PNG) {
		return fault.New(fault.InvalidRequest, "", "quality is for jpeg and webp, png has none").With("field", "quality")
	}
	on, err := s.session(c)
	if err != nil {
		return err
	}
	picture, err := on.Screenshot(c.r.Context(), o)
	if err != nil {
		return err
	}
	room, _ := decoded.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	defer decoded.Put(room)
	raw, err := base64.StdEncoding.AppendDecode((*room)[:0], []byte(picture.Base64))
	*room = raw
	if err != nil {
		return fault.New(fault.ProviderError, "", "the browser's picture is not base64")
	}
	// What the bytes are, not what was asked for.
	media := http.DetectContentType(raw)
	if !slices.Contains(c.row.media, media) {
		return fault.New(fault.ProviderError, "", "the browser's picture is none")
	}
	return c.send(http.StatusOK, media, raw)
}

func (s *Server) status(c *call, _ *nothing) (*api.Status, error) {
	on, err := s.session(c)
	if c.id == "" && errors.Is(err, fault.NoSession) {
		return &api.Status{}, nil
	}
	if err != nil {
		return nil, err
	}
	now, err := on.Status(c.r.Context())
	if err != nil {
		return nil, err
	}
	answer := &api.Status{
		Active:      true,
		SessionInfo: sessionInfo(now.Info),
		Driver:      now.Driver,
		Handoff:     now.Handoff,
		URL:         now.URL,
		Title:       now.Title,
		Tabs:        tabsOf(now.Tabs),
		Questions:   questionsOf(now.Questions),
		LiveViewURL: s.liveView(c.r.Context(), now.ID),
	}
	for _, d := range now.Dialogs {
		answer.Dialogs = append(answer.Dialogs, api.Dialog(d))
	}
	return answer, nil
}

func (s *Server) list(*call, *nothing) (*api.Sessions, error) {
	answer := &api.Sessions{Sessions: []api.SessionInfo{}}
	for _, info := range s.sessions.List() {
		answer.Sessions = append(answer.Sessions, sessionInfo(info))
	}
	return answer, nil
}

func sessionInfo(i session.Info) api.SessionInfo {
	return api.SessionInfo{
		SessionID:  i.ID,
		Provider:   i.Provider,
		Generation: i.Generation,
		StartedAt:  i.StartedAt.UTC(),
		LastUsedAt: i.LastUsedAt.UTC(),
		Deadline:   i.Deadline.UTC(),
		Context:    i.Context,
		Restored:   i.Restored,
		PageLost:   i.PageLost,
		EndsAt:     i.EndsAt.UTC(),
		Notes:      i.Notes,
	}
}
