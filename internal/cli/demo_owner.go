package cli

import (
	"context"
	"strings"

	"tapin/internal/api"
	"tapin/internal/demo"
)

var _ demo.Owner = (*terminalOwner)(nil)

// terminalOwner is the person at the terminal.
type terminalOwner struct {
	stage *demoStage
	lines <-chan string // what is typed here; nil where nobody can
}

func newTerminalOwner(s *demoStage) *terminalOwner { return &terminalOwner{s, s.app.typedLines()} }

// Help shows the way to the page, and opens it here if that is wanted.
func (t *terminalOwner) Help(ctx context.Context, h *api.Handoff, liveView string) error {
	s := t.stage
	a := s.app
	way, err := a.wayIn(ctx, s.owner, h.SessionID, liveView)
	if err != nil {
		return err
	}
	opens := t.lines != nil && opener(a.getenv) != nil
	s.screen.above(func() { a.tellWay(way, h, opens, s.command+" --set tunnel=cloudflared") })
	defer s.screen.doing("waiting for you")()
	for {
		select {
		case <-t.lines:
			if opens {
				if err := openHere(ctx, a.getenv, liveView); err != nil {
					s.screen.tell(demo.Line{Who: demo.Tapin, Text: "No browser could be opened here: " + err.Error() + ".", Mark: "stop"})
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Decide asks for a yes here. The console's yes is as good.
func (t *terminalOwner) Decide(ctx context.Context, ask *api.Approval) error {
	s := t.stage
	a := s.app
	s.screen.above(func() {
		if a.json {
			_ = a.plainObject(map[string]any{"ask": "approval", "approval_id": ask.ApprovalID, "question": ask.Question})
			return
		}
		p := a.paint(a.env.Stdout)
		a.printf("\n    %s  %s\n", p.bold("Your turn"), clean(ask.Question))
		if t.lines != nil {
			a.printf("    %s ", p.bold("Pay? [y/N]"))
			return
		}
		a.printf("    Answer with: %s\n             or: %s\n\n", a.command("approve", ask.ApprovalID), a.command("deny", ask.ApprovalID))
	})
	if t.lines == nil {
		defer s.screen.doing("waiting for your yes or no")()
	}
	select {
	case line := <-t.lines:
		decision := "deny"
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			decision = "approve"
		}
		a.printf("\n")
		_, err := s.owner.Decide(ctx, ask.ApprovalID, api.DecideRequest{Decision: decision})
		return err
	case <-ctx.Done():
		return nil
	}
}
