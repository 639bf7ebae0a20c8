package apiserver

import (
	"context"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/taskrun"
)

// runRoutes are the rows about task runs.
func runRoutes() []*route {
	return []*route{
		post("/task-run/start", Agent, "Begins a run.", run(
			func(ctx context.Context, room Runs, _ *call, req *api.RunRequest) (taskrun.Record, error) {
				return room.Start(ctx, req.Goal)
			})),
		get("/task-runs", Agent, "Lists runs, the newest first.", (*Server).listRuns),
		get("/task-run/{id}", Agent, "Reads a run, and waits for news of it.", (*Server).getRun),
		post("/task-run/{id}/update", Agent, "Notes how far a run came.", run(
			func(ctx context.Context, room Runs, c *call, req *api.RunUpdate) (taskrun.Record, error) {
				if e := req.Evidence; e != nil {
					if e.Kind == taskrun.HandoffKind {
						// One who could add it first could say what a person did.
						return taskrun.Record{}, fault.New(fault.InvalidRequest, "", "evidence of a hand-off is added by its finish alone").With("field", "evidence.kind").
							WithHint("Give the hand-off this run_id when you start it.")
					}
					if err := room.AppendOnce(ctx, c.id, e.Kind, e.Ref, e.Summary); err != nil || req.Note == "" {
						return again(ctx, room, c.id, err)
					}
				}
				return room.Update(ctx, c.id, req.Note)
			})),
		post("/task-run/{id}/needs-help", Agent, "Says that a run cannot go on by itself.", run(
			func(ctx context.Context, room Runs, c *call, req *api.RunHelp) (taskrun.Record, error) {
				return room.NeedsHelp(ctx, c.id, req.Help)
			})),
		post("/task-run/{id}/complete", Agent, "Ends a run.", run(
			func(ctx context.Context, room Runs, c *call, req *api.RunEnd) (taskrun.Record, error) {
				return room.Complete(ctx, c.id, taskrun.Status(req.Status), req.Summary)
			})),
	}
}

// run is a handler that does one thing to a run.
func run[B any](do func(ctx context.Context, room Runs, c *call, req *B) (taskrun.Record, error)) func(*Server, *call, *B) (*api.TaskRun, error) {
	return func(s *Server, c *call, req *B) (*api.TaskRun, error) {
		room, err := s.runRoom()
		if err != nil {
			return nil, err
		}
		rec, err := do(c.r.Context(), room, c, req)
		if err != nil {
			return nil, err
		}
		return runOf(rec), nil
	}
}

// again reads a run after a change that does not answer with it.
func again(ctx context.Context, room Runs, id string, err error) (taskrun.Record, error) {
	if err != nil {
		return taskrun.Record{}, err
	}
	return room.Wait(ctx, id, 0, 0)
}

func (s *Server) getRun(c *call, q *api.WaitQuery) (*api.TaskRun, error) {
	room, err := s.runRoom()
	if err != nil {
		return nil, err
	}
	rec, err := polled(s, c, q, room.Wait)
	if err != nil {
		return nil, err
	}
	return runOf(rec), nil
}

func (s *Server) listRuns(c *call, q *api.RunsQuery) (*api.Runs, error) {
	room, err := s.runRoom()
	if err != nil {
		return nil, err
	}
	found, err := room.List(c.r.Context(), taskrun.Status(q.Status), q.Limit, q.Cursor)
	if err != nil {
		return nil, err
	}
	answer := &api.Runs{Runs: []api.TaskRun{}, Next: found.Next}
	for _, rec := range found.Runs {
		answer.Runs = append(answer.Runs, *runOf(rec))
	}
	return answer, nil
}

func runOf(r taskrun.Record) *api.TaskRun {
	t := &api.TaskRun{
		RunID: r.ID, Version: r.Version, Status: string(r.Status), Goal: r.Goal, Help: r.Help, Summary: r.Summary,
		Evidence: []api.Evidence{}, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, FinishedAt: r.FinishedAt,
	}
	for _, n := range r.Notes {
		t.Notes = append(t.Notes, api.RunNote(n))
	}
	for _, e := range r.Evidence {
		t.Evidence = append(t.Evidence, api.Evidence(e))
	}
	return t
}
