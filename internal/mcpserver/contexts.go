package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tapin/internal/api"
)

type exportIn struct {
	Origin         string   `json:"origin,omitempty" max:"2048" doc:"Whose login; the active tab's without it."`
	Context        string   `json:"context,omitempty" max:"128" doc:"A saved login by name, instead of the live session."`
	IncludeStorage *bool    `json:"includeStorage,omitempty" default:"true"`
	CaptureUA      bool     `json:"captureUA,omitempty"`
	IncludeAuth    bool     `json:"includeHttpAuth,omitempty" hidden:"true"`
	Sealed         *bool    `json:"sealed,omitempty" hidden:"true"`
	Recipients     []string `json:"recipients,omitempty" max:"256" hidden:"true"`
	TabID          string   `json:"tabId,omitempty" max:"128" hidden:"true"`
	session
}

type exported struct {
	Envelope    anyJSON  `json:"envelope,omitempty" doc:"From the page, to be passed on as it is. It logs in: treat it as a secret."`
	Origin      string   `json:"origin,omitempty" doc:"From the page."`
	Sealed      bool     `json:"sealed,omitempty"`
	Cookies     int      `json:"cookies"`
	StorageKeys int      `json:"storage_keys"`
	NotCarried  []string `json:"not_carried,omitempty"`
	fenced      string
}

// content is the envelope for those who read: its values were written by pages.
func (e exported) content() string { return e.fenced }

func contextExport(ctx context.Context, c *call, in *exportIn) (string, *exported, error) {
	req := api.ExportRequest{
		Origin: in.Origin, IncludeStorage: in.IncludeStorage, IncludeHTTPAuth: in.IncludeAuth, CaptureUA: in.CaptureUA,
		TabID: in.TabID, SessionID: in.SessionID, Sealed: in.Sealed, Recipients: in.Recipients,
	}
	done, err := ask(ctx, c.line, func(client *api.Client) (*api.ExportAnswer, error) { return client.ExportContext(ctx, in.Context, req) })
	if err != nil {
		return "", nil, err
	}
	out := &exported{anyJSON(done.Envelope), done.Origin, done.Sealed, done.Cookies, done.StorageKeys, done.NotCarried, fence(string(done.Envelope))}
	words := fmt.Sprintf("Exported %d cookies and %d storage keys. The envelope logs in: pass it on unread, and write it nowhere else.",
		done.Cookies, done.StorageKeys)
	return words, out, nil
}

type importIn struct {
	Envelope     anyJSON `json:"envelope" required:"true" doc:"As it was exported, plain or sealed."`
	Context      string  `json:"context,omitempty" max:"128" doc:"Into a saved login of this new name, instead of the live session."`
	StrictOrigin bool    `json:"strictOrigin,omitempty" doc:"Refuse unless the tab is at the envelope's origin already."`
	TabID        string  `json:"tabId,omitempty" max:"128" hidden:"true"`
	session
}

// anyJSON is an object that is passed on as it is.
type anyJSON []byte

// UnmarshalJSON keeps the value; hosts that write an object as a text mean it.
func (a *anyJSON) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil && json.Valid([]byte(text)) {
		raw = []byte(text)
	}
	*a = append((*a)[:0], raw...)
	return nil
}

// MarshalJSON writes the value as it came.
func (a anyJSON) MarshalJSON() ([]byte, error) { return a, nil }

type imported struct {
	Origin             string   `json:"origin,omitempty"`
	AppliedCookies     int      `json:"appliedCookies"`
	AppliedStorageKeys int      `json:"appliedStorageKeys"`
	LeftAlone          []string `json:"left_alone,omitempty"`
	IntegrityError     string   `json:"integrityError,omitempty"`
}

func contextImport(ctx context.Context, c *call, in *importIn) (string, *imported, error) {
	req := api.ImportRequest{Envelope: []byte(in.Envelope), StrictOrigin: in.StrictOrigin, TabID: in.TabID, SessionID: in.SessionID}
	done, err := tell(ctx, c.line, func(client *api.Client) (*api.ImportAnswer, error) { return client.ImportContext(ctx, in.Context, req) })
	if err != nil {
		return "", nil, err
	}
	words := fmt.Sprintf("Applied %d cookies and %d storage keys. Open the site again to be logged in.", done.AppliedCookies, done.AppliedStorageKeys)
	return words, &imported{Origin: done.Origin, AppliedCookies: done.AppliedCookies, AppliedStorageKeys: done.AppliedStorageKeys, LeftAlone: done.LeftAlone}, nil
}

type contextsIn struct{}

type contextsOut struct {
	Contexts []contextOut `json:"contexts"`
}

type contextOut struct {
	Name         string    `json:"name"`
	Domain       string    `json:"domain,omitempty"`
	Saved        bool      `json:"saved" doc:"Whether there is a state to start with."`
	LastUsed     string    `json:"last_used,omitempty"`
	LastVerified string    `json:"last_verified,omitempty"`
	StaleSince   time.Time `json:"stale_since,omitzero" doc:"It was found not to work any more: log in anew by a hand-off."`
	InUseBy      string    `json:"in_use_by,omitempty"`
}

func contextList(ctx context.Context, c *call, _ *contextsIn) (string, *contextsOut, error) {
	now, err := ask(ctx, c.line, func(client *api.Client) (*api.Contexts, error) { return client.Contexts(ctx) })
	if err != nil {
		return "", nil, err
	}
	out, lines := &contextsOut{Contexts: []contextOut{}}, []string{fmt.Sprintf("%d saved logins.", len(now.Contexts))}
	for _, one := range now.Contexts {
		out.Contexts = append(out.Contexts, contextOut{one.Name, one.Domain, one.Saved, one.LastUsed, one.LastVerified, one.StaleSince, one.InUseBy})
		state := "not saved yet"
		switch {
		case !one.StaleSince.IsZero():
			state = "stale"
		case one.Saved:
			state = "saved, last verified " + or(one.LastVerified, "never")
		}
		lines = append(lines, fmt.Sprintf("%s (%s): %s", plain(one.Name, maxTitle), plain(one.Domain, maxTitle), state))
	}
	return strings.Join(lines, "\n"), out, nil
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
