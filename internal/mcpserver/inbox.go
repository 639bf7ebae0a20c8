package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"tapin/internal/api"
)

type inboxIn struct {
	After  uint64 `json:"after,omitempty" doc:"seq of the last message you have; it and those before it are not told again."`
	WaitMS int    `json:"wait_ms,omitempty" min:"0" max:"55000" doc:"How long to wait for a message."`
}

type inboxOut struct {
	Messages []api.InboxMessage `json:"messages"`
}

// maxOwnWords is how much of one message is said in words; all of it is in the
// structure.
const maxOwnWords = 4000

func readInbox(ctx context.Context, c *call, in *inboxIn) (string, *inboxOut, error) {
	now, err := tell(ctx, c.line, func(client *api.Client) (*api.Inbox, error) {
		return client.Inbox(ctx, api.InboxQuery{After: in.After, WaitMS: in.WaitMS})
	})
	if err != nil {
		return "", nil, err
	}
	if len(now.Messages) == 0 {
		return "No messages.", &inboxOut{Messages: []api.InboxMessage{}}, nil
	}
	var lines []string
	for _, m := range now.Messages {
		what := "The owner wrote"
		if m.Kind == "retry" {
			what = "The owner asks for a retry"
		}
		lines = append(lines, fmt.Sprintf("%d. %s: %s", m.Seq, what, plain(m.Text, maxOwnWords)))
	}
	last := now.Messages[len(now.Messages)-1].Seq
	return strings.Join(lines, "\n") + fmt.Sprintf("\nOnce you have dealt with them, pass after: %d.", last), &inboxOut{now.Messages}, nil
}
