package mcpserver

import (
	"context"
	"fmt"
	"time"

	"tapin/internal/api"
)

// The time limits of a hand-off that an agent starts.
const (
	handoffWithin = 10 * time.Minute
	maxWaitMS     = 55_000
)

type handoffIn struct {
	Reason            string          `json:"reason" required:"true" enum:"login,2fa,captcha,permission,manual_recovery,other"`
	Instruction       string          `json:"instruction,omitempty" max:"1024" doc:"What the owner shall do, in one or two plain sentences. No secrets."`
	Task              string          `json:"task,omitempty" max:"1024" doc:"What you were doing and will go on with."`
	Verify            []api.Condition `json:"verify,omitempty" doc:"What is so when it is done and is not so now; then it ends by itself."`
	TimeoutMS         int64           `json:"timeout_ms,omitempty" min:"1000" max:"3600000" default:"600000"`
	OnTimeout         string          `json:"on_timeout,omitempty" enum:"close,return" default:"\"return\"" doc:"Give the browser back to you, or save and close it."`
	Follows           string          `json:"follows,omitempty" max:"64" doc:"The handoff_id before, when the same thing still blocks."`
	RunID             string          `json:"run_id,omitempty" max:"64" doc:"The task run that gets this as evidence."`
	CaptureScreenshot bool            `json:"capture_screenshot,omitempty" hidden:"true"`
	TabID             string          `json:"tab_id,omitempty" max:"128" hidden:"true"`
	Notify            *bool           `json:"notify,omitempty" hidden:"true"`
	session
}

// handedOver is the record as the contract has it; the page's words in it are
// said once more in the fence, for those who read instead of parsing.
type handedOver struct {
	HandoffID    string        `json:"handoff_id,omitempty"`
	Version      int           `json:"version,omitempty"`
	Status       string        `json:"status,omitempty" enum:"RUNNING,FINISHED,CANCELLED,TIMED_OUT"`
	Reason       string        `json:"reason,omitempty"`
	Instruction  string        `json:"instruction,omitempty"`
	SessionID    string        `json:"session_id,omitempty"`
	Generation   int           `json:"generation,omitempty" doc:"Refs of an earlier one are dead."`
	TabID        string        `json:"tab_id,omitempty"`
	RunID        string        `json:"run_id,omitempty"`
	CreatedAt    time.Time     `json:"created_at,omitzero"`
	Deadline     time.Time     `json:"deadline,omitzero"`
	FinishedAt   time.Time     `json:"finished_at,omitzero"`
	FinishedBy   string        `json:"finished_by,omitempty" doc:"owner, agent, verify or time."`
	Parked       bool          `json:"parked,omitempty"`
	Attempts     int           `json:"attempts,omitempty"`
	Before       *api.Snapshot `json:"before,omitempty" doc:"Allow-listed facts from the page."`
	After        *api.Snapshot `json:"after,omitempty" doc:"The same afterwards, from the page."`
	Delta        []api.Change  `json:"delta,omitempty" doc:"What changed, field by field, from the page; never what was typed."`
	DeltaSummary string        `json:"delta_summary,omitempty" doc:"Fenced: it quotes the page."`
	ResumeHint   string        `json:"resume_hint,omitempty" doc:"Fenced: it quotes the page."`
	Verified     *api.Verified `json:"verified,omitempty" doc:"What was checked; nothing without it."`
	Page         *pageView     `json:"page,omitempty"`
}

func (h handedOver) content() string {
	if h.Page == nil {
		return ""
	}
	return h.Page.Content
}

// quoted is a sentence of a record that may hold words of a page.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fence(plain(text, maxWords))
}

func tellHandoff(h *api.Handoff) (string, *handedOver) {
	out := &handedOver{
		HandoffID: h.HandoffID, Version: h.Version, Status: h.Status, Reason: h.Reason, Instruction: h.Instruction, SessionID: h.SessionID,
		Generation: h.Generation, TabID: h.TabID, RunID: h.RunID, CreatedAt: h.CreatedAt, Deadline: h.Deadline, FinishedAt: h.FinishedAt,
		FinishedBy: h.FinishedBy, Parked: h.Parked, Attempts: h.Attempts, Before: &h.Before, After: h.After, Delta: h.Delta, DeltaSummary: quoted(h.DeltaSummary),
		ResumeHint: quoted(h.ResumeHint), Verified: h.Verified,
	}
	var words string
	switch h.Status {
	case "RUNNING":
		words = fmt.Sprintf("Hand-off %s (%s) is RUNNING until %s; version %d. The owner has the browser: wait with oc_handoff_status and wait_ms, and leave the page alone.",
			h.HandoffID, h.Reason, h.Deadline.UTC().Format(time.RFC3339), h.Version)
		if h.Parked {
			words += " It is parked: the owner opens it when there is time."
		}
		return words, out
	case "FINISHED":
		words = fmt.Sprintf("Hand-off %s is FINISHED by %s; the browser is yours again.", h.HandoffID, h.FinishedBy)
	default:
		words = fmt.Sprintf("Hand-off %s is %s; what it was for has not been done.", h.HandoffID, h.Status)
	}
	switch {
	case h.Verified == nil:
		words += " Nothing was verified."
	case h.Verified.Held:
		words += " Its conditions held."
	default:
		words += " Its conditions did not hold."
	}
	words += " Refs from before may be dead: look with browser_snapshot."
	if h.Task != "" {
		words += " Then go on with what you were at: " + plain(h.Task, maxWords)
	}
	out.Page = (&pageView{}).put([]string{plain(h.DeltaSummary, maxWords), plain(h.ResumeHint, maxWords)}, "")
	return words, out
}

func handoffStart(ctx context.Context, c *call, in *handoffIn) (string, *handedOver, error) {
	req := api.HandoffRequest{
		Reason: in.Reason, Instruction: in.Instruction, Task: in.Task, TimeoutMS: in.TimeoutMS, OnTimeout: in.OnTimeout, Verify: in.Verify,
		CaptureScreenshot: in.CaptureScreenshot, Follows: in.Follows, RunID: in.RunID, SessionID: in.SessionID, TabID: in.TabID, Notify: in.Notify,
	}
	if req.TimeoutMS == 0 {
		req.TimeoutMS = handoffWithin.Milliseconds()
	}
	if req.OnTimeout == "" {
		req.OnTimeout = "return"
	}
	now, err := tell(ctx, c.line, func(client *api.Client) (*api.Handoff, error) { return client.StartHandoff(ctx, req) })
	if err != nil {
		return "", nil, err
	}
	words, out := tellHandoff(now)
	if in.Instruction != "" {
		words += " They are asked: " + plain(in.Instruction, maxWords)
	}
	return words, out, nil
}

type handoffStatusIn struct {
	HandoffID string `json:"handoff_id" required:"true" max:"64"`
	WaitMS    int    `json:"wait_ms,omitempty" min:"0" max:"55000" doc:"Wait that long for it to end; 0 answers at once."`
	After     int    `json:"after,omitempty" min:"0" doc:"The version already seen; with it any news ends the wait."`
}

// handoffStatus waits for the end of a hand-off, or for news if a version is
// given: reminders and extensions are no reason to wake an agent.
func handoffStatus(ctx context.Context, c *call, in *handoffStatusIn) (string, *handedOver, error) {
	deadline := time.Now().Add(time.Duration(min(in.WaitMS, maxWaitMS)) * time.Millisecond)
	after := in.After
	for {
		left := max(0, time.Until(deadline).Milliseconds())
		q := api.WaitQuery{After: after, WaitMS: int(left)}
		if after == 0 {
			q.WaitMS = 0 // how it stands first
		}
		now, err := ask(ctx, c.line, func(client *api.Client) (*api.Handoff, error) { return client.Handoff(ctx, in.HandoffID, q) })
		if err != nil {
			return "", nil, err
		}
		if now.Status != "RUNNING" || time.Until(deadline) <= 0 || in.After > 0 && now.Version > in.After {
			words, out := tellHandoff(now)
			return words, out, nil
		}
		after = now.Version
	}
}

type handoffEndIn struct {
	HandoffID string `json:"handoff_id" required:"true" max:"64"`
}

func handoffFinish(ctx context.Context, c *call, in *handoffEndIn) (string, *handedOver, error) {
	now, err := tell(ctx, c.line, func(client *api.Client) (*api.Handoff, error) {
		return client.FinishHandoff(ctx, in.HandoffID, api.FinishRequest{})
	})
	if err != nil {
		return "", nil, err
	}
	words, out := tellHandoff(now)
	return words, out, nil
}

func handoffCancel(ctx context.Context, c *call, in *handoffEndIn) (string, *handedOver, error) {
	now, err := tell(ctx, c.line, func(client *api.Client) (*api.Handoff, error) { return client.CancelHandoff(ctx, in.HandoffID) })
	if err != nil {
		return "", nil, err
	}
	words, out := tellHandoff(now)
	return words, out, nil
}
