package apiserver

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/session"
)

// act does something on the session of the path, and fills in what the answer
// of every action carries.
func (s *Server) act(c *call, look api.Look, acted *api.Acted, do func(context.Context, Session) (session.Did, error)) error {
	on, err := s.session(c)
	if err != nil {
		return err
	}
	did, err := do(c.r.Context(), on)
	if err != nil {
		return err
	}
	s.tell(c, on, look, acted, did)
	return nil
}

func (s *Server) tell(c *call, on Session, look api.Look, acted *api.Acted, did session.Did) {
	acted.SessionID, acted.TookMS = on.Info().ID, did.Took.Milliseconds()
	acted.URL, acted.Title = did.URL, did.Title
	acted.Questions = questionsOf(did.Questions)
	if did.Dialog != nil {
		open := api.Dialog(*did.Dialog)
		acted.Dialog = &open
		return
	}
	if !did.Moved {
		acted.Outline = s.outline(c, on, look)
	}
	if look.Wanted() {
		s.look(c, on, &acted.Page)
	}
}

func (s *Server) click(c *call, req *api.ClickRequest) (*api.ClickAnswer, error) {
	answer := &api.ClickAnswer{Clicked: true}
	return answer, s.act(c, req.Look, &answer.Acted, func(ctx context.Context, on Session) (session.Did, error) {
		o := page.ClickOptions{Button: req.Button, Count: req.Count, Timeout: patience(req.Patience)}
		clicked, did, err := on.Click(session.Approved(ctx, req.ApprovalID), locator(req.Target), o)
		answer.Strategy, answer.Effect = clicked.Strategy, clicked.Effect
		return did, err
	})
}

func (s *Server) hover(c *call, req *api.HoverRequest) (*api.HoverAnswer, error) {
	answer := &api.HoverAnswer{Hovered: true}
	return answer, s.act(c, req.Look, &answer.Acted, func(ctx context.Context, on Session) (session.Did, error) {
		hovered, did, err := on.Hover(ctx, locator(req.Target), patience(req.Patience))
		answer.Strategy, answer.Effect = hovered.Strategy, hovered.Effect
		return did, err
	})
}

func (s *Server) drag(c *call, req *api.DragRequest) (*api.DragAnswer, error) {
	answer := &api.DragAnswer{Dragged: true}
	return answer, s.act(c, req.Look, &answer.Acted, func(ctx context.Context, on Session) (session.Did, error) {
		dragged, did, err := on.Drag(session.Approved(ctx, req.ApprovalID), locator(req.Target), locator(*req.To), patience(req.Patience))
		answer.Strategy, answer.Effect = dragged.Strategy, dragged.Effect
		return did, err
	})
}

// typeTime is for a text that nobody may be waiting for.
const typeTime = 2 * time.Minute

// harmless are failures after which nothing was typed, unless they tell how much.
var harmless = []fault.Code{
	fault.InvalidRequest, fault.NoSession, fault.HumanInControl, fault.ElementNotFound, fault.ElementNotActionable,
	fault.StaleRef, fault.NoFocusedField, fault.DialogOpen,
}

func (s *Server) typing(c *call, req *api.TypeRequest) (*api.TypeAnswer, error) {
	on, err := s.session(c)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	type typed struct {
		page.Typed
		session.Did
	}
	done, err := once(s, c, errand[typed]{
		// The text is masked in the body, and so is told beside it.
		digest: digestOf(c.route(), on.Info().ID, string(body), req.Text.Reveal()),
		within: typeTime,
		do: func(ctx context.Context) (typed, error) {
			o := page.TypeOptions{Locator: element(req.Element), Clear: req.Clear, Submit: req.Submit, Timeout: patience(req.Patience)}
			done, did, err := on.Type(session.Approved(ctx, req.ApprovalID), req.Text, o)
			return typed{done, did}, err
		},
		settled: func(err error) bool {
			f := fault.Of(err)
			return f != nil && (f.Data["characters"] != nil || !slices.Contains(harmless, f.Code))
		},
	})
	if err != nil {
		return nil, err
	}
	answer := &api.TypeAnswer{Characters: done.Characters, Field: done.Field}
	s.tell(c, on, req.Look, &answer.Acted, done.Did)
	return answer, nil
}

func (s *Server) fill(c *call, req *api.FillRequest) (*api.FillAnswer, error) {
	fields := make([]session.Field, 0, len(req.Fields))
	for _, f := range req.Fields {
		field := session.Field{Locator: *element(f.Element), Credential: f.Credential, Part: f.Part}
		if f.Value != nil {
			field.Value = *f.Value
		}
		fields = append(fields, field)
	}
	answer := &api.FillAnswer{Fields: []api.FilledField{}}
	return answer, s.act(c, req.Look, &answer.Acted, func(ctx context.Context, on Session) (session.Did, error) {
		filled, did, err := on.Fill(ctx, fields, patience(req.Patience))
		for _, f := range filled {
			answer.Fields = append(answer.Fields, api.FilledField{Field: f.Field, OK: f.OK})
			if f.OK {
				answer.Filled++
			}
		}
		return did, err
	})
}

func (s *Server) press(c *call, req *api.PressRequest) (*api.Acted, error) {
	answer := &api.Acted{}
	return answer, s.act(c, req.Look, answer, func(ctx context.Context, on Session) (session.Did, error) {
		return on.Press(session.Approved(ctx, req.ApprovalID), req.Key)
	})
}

func (s *Server) choose(c *call, req *api.SelectRequest) (*api.SelectAnswer, error) {
	answer := &api.SelectAnswer{Selected: []string{}}
	return answer, s.act(c, req.Look, &answer.Acted, func(ctx context.Context, on Session) (session.Did, error) {
		chosen, did, err := on.Select(ctx, *element(req.Element), req.Values, patience(req.Patience))
		answer.Selected = append(answer.Selected, chosen...)
		return did, err
	})
}

func (s *Server) upload(c *call, req *api.UploadRequest) (*api.UploadAnswer, error) {
	answer := &api.UploadAnswer{Files: len(req.Files)}
	return answer, s.act(c, req.Look, &answer.Acted, func(ctx context.Context, on Session) (session.Did, error) {
		return on.Upload(ctx, element(req.Element), req.Files, patience(req.Patience))
	})
}

func (s *Server) scroll(c *call, req *api.ScrollRequest) (*api.Acted, error) {
	o := page.ScrollOptions{Direction: req.Direction, Amount: req.Amount, Timeout: patience(req.Patience)}
	if req.Given() {
		at := locator(req.Target)
		o.Locator = &at
	}
	answer := &api.Acted{}
	return answer, s.act(c, req.Look, answer, func(ctx context.Context, on Session) (session.Did, error) {
		return on.Scroll(ctx, o)
	})
}

func (s *Server) wait(c *call, req *api.WaitRequest) (*api.Acted, error) {
	o := page.WaitOptions{
		Locator: element(req.Element), Text: req.Text, URL: req.URL, State: req.State,
		Timeout: time.Duration(req.TimeoutMS) * time.Millisecond,
	}
	answer := &api.Acted{}
	return answer, s.act(c, req.Look, answer, func(ctx context.Context, on Session) (session.Did, error) {
		return on.WaitFor(ctx, o)
	})
}

func (s *Server) dialog(c *call, req *api.DialogRequest) (*api.Acted, error) {
	answer := &api.Acted{}
	return answer, s.act(c, req.Look, answer, func(ctx context.Context, on Session) (session.Did, error) {
		return on.Answer(session.Approved(ctx, req.ApprovalID), *req.Accept, req.Text)
	})
}

func (s *Server) permission(c *call, req *api.PermissionRequest) (*api.Acted, error) {
	answer := &api.Acted{}
	return answer, s.act(c, req.Look, answer, func(ctx context.Context, on Session) (session.Did, error) {
		return on.Permission(ctx, req.Origin, req.Name, *req.Grant)
	})
}

func (s *Server) auth(c *call, req *api.AuthRequest) (*api.Acted, error) {
	answer := &api.Acted{}
	return answer, s.act(c, req.Look, answer, func(ctx context.Context, on Session) (session.Did, error) {
		return on.Authenticate(ctx, req.Username, req.Password)
	})
}

func (s *Server) tab(c *call, req *api.TabRequest) (*api.Acted, error) {
	answer := &api.Acted{}
	return answer, s.act(c, req.Look, answer, func(ctx context.Context, on Session) (session.Did, error) {
		if req.Action == "close" {
			return on.CloseTab(ctx, req.TabID)
		}
		return on.Switch(ctx, req.TabID)
	})
}

// patience is how long an action waits; zero leaves it to the page.
func patience(p api.Patience) time.Duration { return time.Duration(p.TimeoutMS) * time.Millisecond }

// locator is a target as the page knows it.
func locator(t api.Target) page.Locator {
	l := page.Locator{
		CSS: t.Selector, Text: t.Text, Label: t.Label, Role: t.Role, Name: t.Name,
		TestID: t.TestID, XPath: t.XPath, Ref: t.Ref, X: t.X, Y: t.Y,
	}
	return l
}

// element is an element as the page knows it; nil when none is named.
func element(e api.Element) *page.Locator {
	if !e.Given() {
		return nil
	}
	l := locator(api.Target{Element: e})
	return &l
}
