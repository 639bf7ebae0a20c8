package apiserver

import (
	"time"

	"tapin/internal/api"
	"tapin/internal/page"
	"tapin/internal/session"
)

func (s *Server) snapshot(c *call, q *api.SnapshotQuery) (*api.SnapshotAnswer, error) {
	on, err := s.session(c)
	if err != nil {
		return nil, err
	}
	outline, err := on.Snapshot(c.r.Context(), snapshotOptions(q))
	if err != nil {
		return nil, err
	}
	return snapshotAnswer(on.Info().ID, q, &outline), nil
}

// outline is the page as the answer to an action shows it. One that fails must not
// turn the answer into a failure.
func (s *Server) outline(c *call, on Session, look api.Look) *api.SnapshotAnswer {
	if look.Outline == nil {
		return nil
	}
	outline, err := on.Snapshot(c.r.Context(), snapshotOptions(look.Outline))
	if err != nil {
		return nil
	}
	return snapshotAnswer(on.Info().ID, look.Outline, &outline)
}

func snapshotOptions(q *api.SnapshotQuery) page.SnapshotOptions {
	return page.SnapshotOptions{
		MaxChars: q.MaxChars, Interactive: q.Interactive, Offset: q.Offset, PartChars: q.PartChars,
		Stir: time.Duration(q.StirMS) * time.Millisecond, Still: time.Duration(q.StillMS) * time.Millisecond,
	}
}

func snapshotAnswer(id string, q *api.SnapshotQuery, outline *page.Snapshot) *api.SnapshotAnswer {
	answer := &api.SnapshotAnswer{
		SessionID: id, Snapshot: outline.Text, Truncated: outline.Truncated, Part: outline.Part, Cut: outline.Cut,
		URL: outline.URL, Title: outline.Title,
	}
	if q.Tabs {
		answer.Tabs = outline.Tabs
	}
	return answer
}

func (s *Server) text(c *call, q *api.TextQuery) (*api.TextAnswer, error) {
	on, err := s.session(c)
	if err != nil {
		return nil, err
	}
	text, truncated, err := on.Text(c.r.Context(), q.MaxChars)
	if err != nil {
		return nil, err
	}
	return &api.TextAnswer{SessionID: on.Info().ID, Text: text, Truncated: truncated}, nil
}

func (s *Server) extract(c *call, req *api.ExtractRequest) (*api.ExtractAnswer, error) {
	on, err := s.session(c)
	if err != nil {
		return nil, err
	}
	got, err := on.Extract(c.r.Context(), page.ExtractOptions{Instruction: req.Instruction, Most: req.MaxChars})
	if err != nil {
		return nil, err
	}
	return &api.ExtractAnswer{SessionID: on.Info().ID, Extracted: api.Extracted{
		Title: got.Title, FinalURL: got.URL, StatusCode: got.Status,
		Content: got.Content, Kind: string(got.Kind), Truncated: got.Truncated, Note: got.Note,
	}}, nil
}

func (s *Server) tabs(c *call, _ *nothing) (*api.TabsAnswer, error) {
	on, err := s.session(c)
	if err != nil {
		return nil, err
	}
	open, err := on.Tabs(c.r.Context())
	if err != nil {
		return nil, err
	}
	return &api.TabsAnswer{SessionID: on.Info().ID, Tabs: tabsOf(open)}, nil
}

func tabsOf(open []session.Tab) []api.Tab {
	tabs := []api.Tab{}
	for _, t := range open {
		tabs = append(tabs, api.Tab{TabID: t.ID, URL: t.URL, Title: t.Title, Active: t.Active})
	}
	return tabs
}

func questionsOf(asked []session.Question) []api.Question {
	var out []api.Question
	for _, q := range asked {
		out = append(out, api.Question{TabID: q.TabID, Kind: q.Kind, Origin: q.Origin, Name: q.Name, Realm: q.Realm, Multiple: q.Multiple})
	}
	return out
}

func (s *Server) downloads(c *call, _ *nothing) (*api.Downloads, error) {
	on, err := s.session(c)
	if err != nil {
		return nil, err
	}
	answer := &api.Downloads{SessionID: on.Info().ID, Downloads: []api.Download{}}
	arrived, err := on.Downloads(c.r.Context())
	if err != nil {
		return nil, err
	}
	for _, d := range arrived {
		answer.Downloads = append(answer.Downloads, api.Download{
			DownloadID: d.ID, Name: d.Name, URL: d.URL, Bytes: d.Bytes, Total: d.Total, State: d.State, Path: d.Path,
		})
	}
	return answer, nil
}
