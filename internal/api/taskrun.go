package api

import "time"

// RunRequest is the body of POST /task-run/start.
type RunRequest struct {
	Goal string `json:"goal" required:"true" max:"2048" doc:"What the run is for."`
}

// RunUpdate is the body of POST /task-run/{id}/update.
type RunUpdate struct {
	Note     string    `json:"note,omitempty" max:"2048" doc:"How far it came."`
	Evidence *Evidence `json:"evidence,omitempty" doc:"Added unless one of that kind and ref is there."`
}

// RunHelp is the body of POST /task-run/{id}/needs-help.
type RunHelp struct {
	Help string `json:"help" required:"true" max:"2048" doc:"What is needed."`
}

// RunEnd is the body of POST /task-run/{id}/complete.
type RunEnd struct {
	Status  string `json:"status" required:"true" enum:"COMPLETED,FAILED,CANCELLED"`
	Summary string `json:"summary,omitempty" max:"1024"`
}

// RunsQuery says which runs to list.
type RunsQuery struct {
	Status string `json:"status,omitempty" enum:"RUNNING,NEEDS_HELP,COMPLETED,FAILED,CANCELLED"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"200" doc:"50 without it."`
	Cursor string `json:"cursor,omitempty" max:"32" doc:"next of the page before."`
}

// Runs is a page of runs, the newest first.
type Runs struct {
	Runs []TaskRun `json:"runs"`
	Next string    `json:"next,omitempty"`
}

// TaskRun is one run.
type TaskRun struct {
	RunID      string     `json:"run_id"`
	Version    int        `json:"version"`
	Status     string     `json:"status" enum:"RUNNING,NEEDS_HELP,COMPLETED,FAILED,CANCELLED"`
	Goal       string     `json:"goal"`
	Notes      []RunNote  `json:"notes,omitempty"`
	Help       string     `json:"help,omitempty" doc:"What is needed, while it is."`
	Summary    string     `json:"summary,omitempty"`
	Evidence   []Evidence `json:"evidence"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	FinishedAt time.Time  `json:"finished_at,omitzero"`
}

// RunNote is a word on how far a run came.
type RunNote struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Evidence is a pointer to something that was done.
type Evidence struct {
	Kind    string    `json:"kind" required:"true" max:"64"`
	Ref     string    `json:"ref" required:"true" max:"512"`
	Summary string    `json:"summary,omitempty" max:"1024"`
	At      time.Time `json:"at,omitzero"`
}
