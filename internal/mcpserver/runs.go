package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tapin/internal/api"
)

type runIn struct {
	Goal string `json:"goal" required:"true" max:"2048"`
}

type runRefIn struct {
	RunID  string `json:"run_id" required:"true" max:"64"`
	WaitMS int    `json:"wait_ms,omitempty" min:"0" max:"55000" hidden:"true"`
	After  int    `json:"after,omitempty" min:"0" hidden:"true"`
}

type runUpdateIn struct {
	RunID    string        `json:"run_id" required:"true" max:"64"`
	Note     string        `json:"note,omitempty" max:"2048" doc:"How far it came."`
	Evidence *api.Evidence `json:"evidence,omitempty" doc:"kind and ref of what was done; added once."`
}

type runHelpIn struct {
	RunID string `json:"run_id" required:"true" max:"64"`
	Help  string `json:"help" required:"true" max:"2048" doc:"What is needed."`
}

type runEndIn struct {
	RunID   string `json:"run_id" required:"true" max:"64"`
	Status  string `json:"status" required:"true" enum:"COMPLETED,FAILED,CANCELLED"`
	Summary string `json:"summary,omitempty" max:"1024"`
}

type runOut struct {
	RunID    string         `json:"run_id,omitempty"`
	Version  int            `json:"version,omitempty"`
	Status   string         `json:"status,omitempty" enum:"RUNNING,NEEDS_HELP,COMPLETED,FAILED,CANCELLED"`
	Goal     string         `json:"goal,omitempty"`
	Help     string         `json:"help,omitempty"`
	Summary  string         `json:"summary,omitempty"`
	Notes    []api.RunNote  `json:"notes,omitempty"`
	Evidence []api.Evidence `json:"evidence"`
}

func tellRun(now *api.TaskRun, err error) (string, *runOut, error) {
	if err != nil {
		return "", nil, err
	}
	out := &runOut{now.RunID, now.Version, now.Status, now.Goal, now.Help, now.Summary, now.Notes, nil}
	out.Evidence = make([]api.Evidence, 0, len(now.Evidence))
	for _, e := range now.Evidence {
		e.Summary = quoted(e.Summary) // a hand-off's tells of the page
		out.Evidence = append(out.Evidence, e)
	}
	lines := []string{fmt.Sprintf("Run %s is %s: %s", now.RunID, now.Status, plain(now.Goal, maxWords))}
	for _, e := range now.Evidence {
		lines = append(lines, fmt.Sprintf("evidence %s %s", plain(e.Kind, 64), plain(e.Ref, 512)))
	}
	return strings.Join(lines, "\n"), out, nil
}

func runStart(ctx context.Context, c *call, in *runIn) (string, *runOut, error) {
	return tellRun(tell(ctx, c.line, func(client *api.Client) (*api.TaskRun, error) {
		return client.StartRun(ctx, api.RunRequest{Goal: in.Goal})
	}))
}

func runGet(ctx context.Context, c *call, in *runRefIn) (string, *runOut, error) {
	return tellRun(ask(ctx, c.line, func(client *api.Client) (*api.TaskRun, error) {
		return client.Run(ctx, in.RunID, api.WaitQuery{After: in.After, WaitMS: in.WaitMS})
	}))
}

func runUpdate(ctx context.Context, c *call, in *runUpdateIn) (string, *runOut, error) {
	return tellRun(tell(ctx, c.line, func(client *api.Client) (*api.TaskRun, error) {
		return client.UpdateRun(ctx, in.RunID, api.RunUpdate{Note: in.Note, Evidence: in.Evidence})
	}))
}

func runHelp(ctx context.Context, c *call, in *runHelpIn) (string, *runOut, error) {
	return tellRun(tell(ctx, c.line, func(client *api.Client) (*api.TaskRun, error) {
		return client.RunNeedsHelp(ctx, in.RunID, api.RunHelp{Help: in.Help})
	}))
}

func runComplete(ctx context.Context, c *call, in *runEndIn) (string, *runOut, error) {
	return tellRun(tell(ctx, c.line, func(client *api.Client) (*api.TaskRun, error) {
		return client.CompleteRun(ctx, in.RunID, api.RunEnd{Status: in.Status, Summary: in.Summary})
	}))
}

type runsIn struct {
	Status string `json:"status,omitempty" enum:"RUNNING,NEEDS_HELP,COMPLETED,FAILED,CANCELLED"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"200" default:"20"`
	Cursor string `json:"cursor,omitempty" max:"32"`
}

type runsOut struct {
	Runs []runOut `json:"runs"`
	Next string   `json:"next,omitempty"`
}

func runList(ctx context.Context, c *call, in *runsIn) (string, *runsOut, error) {
	if in.Limit == 0 {
		in.Limit = 20
	}
	now, err := ask(ctx, c.line, func(client *api.Client) (*api.Runs, error) {
		return client.Runs(ctx, api.RunsQuery{Status: in.Status, Limit: in.Limit, Cursor: in.Cursor})
	})
	if err != nil {
		return "", nil, err
	}
	out, lines := &runsOut{Runs: []runOut{}, Next: now.Next}, []string{fmt.Sprintf("%d runs.", len(now.Runs))}
	for _, r := range now.Runs {
		words, one, err := tellRun(&r, nil)
		if err != nil {
			return "", nil, err
		}
		out.Runs = append(out.Runs, *one)
		lines = append(lines, words)
	}
	return strings.Join(lines, "\n"), out, nil
}

type journalIn struct {
	Recent  int    `json:"recent,omitempty" min:"0" max:"1000" default:"20"`
	Summary bool   `json:"summary,omitempty"`
	Since   string `json:"since,omitempty" max:"64" doc:"A time, or how long ago: 90m, 24h, 7d."`
	What    string `json:"what,omitempty" max:"128" doc:"An operation, or a family such as session."`
	Outcome string `json:"outcome,omitempty" max:"64" doc:"ok, a code, or failed."`
	Who     string `json:"who,omitempty" max:"64" hidden:"true"`
	session
}

type journalOut struct {
	Entries []api.JournalEntry  `json:"entries" doc:"Origins are from the page."`
	More    bool                `json:"more,omitempty"`
	Summary *api.JournalSummary `json:"summary,omitempty"`
	fenced  string
}

// content is the journal for those who read: a site chooses its own name.
func (j journalOut) content() string { return j.fenced }

func journal(ctx context.Context, c *call, in *journalIn) (string, *journalOut, error) {
	if in.Recent == 0 && !in.Summary {
		in.Recent = 20
	}
	now, err := ask(ctx, c.line, func(client *api.Client) (*api.JournalAnswer, error) {
		return client.Journal(ctx, api.JournalQuery{
			Recent: in.Recent, Summary: in.Summary, Since: in.Since, Who: in.Who, What: in.What, SessionID: in.SessionID, Outcome: in.Outcome,
		})
	})
	if err != nil {
		return "", nil, err
	}
	var lines []string
	for _, e := range now.Entries {
		lines = append(lines, fmt.Sprintf("%s %s %s %s %s", e.At.UTC().Format(time.RFC3339), plain(e.Who, 64), plain(e.What, 128), plain(e.Origin, maxTitle), e.Outcome))
	}
	out := &journalOut{Entries: now.Entries, More: now.More, Summary: now.Summary}
	if out.Entries == nil {
		out.Entries = []api.JournalEntry{}
	}
	if len(lines) > 0 {
		out.fenced = fence(strings.Join(lines, "\n"))
	}
	words := fmt.Sprintf("%d entries.", len(now.Entries))
	if now.Summary != nil {
		words = sentence(words, fmt.Sprintf("In all %d, %d of them failed.", now.Summary.Entries, now.Summary.Failed))
	}
	return words, out, nil
}
