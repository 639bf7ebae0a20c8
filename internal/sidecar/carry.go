package sidecar

import (
	"context"

	"tapin/internal/apiserver"
	"tapin/internal/browser"
	"tapin/internal/logins"
	"tapin/internal/page"
	"tapin/internal/session"
)

// carried shows the logins of live sessions to the door.
type carried struct{ sessions *session.Host }

var _ apiserver.Live = carried{}

// find is the session named, or the active one.
func (c carried) find(id string) (*session.Session, error) {
	if id == "" {
		return c.sessions.Active()
	}
	return c.sessions.Get(id)
}

func (c carried) Capture(ctx context.Context, id string, o apiserver.CaptureOptions) (apiserver.Captured, error) {
	s, err := c.find(id)
	if err != nil {
		return apiserver.Captured{}, err
	}
	got, err := s.Capture(ctx, session.CaptureOptions{TabID: o.TabID, Origin: o.Origin})
	if err != nil {
		return apiserver.Captured{}, err
	}
	out := apiserver.Captured{State: got.State, Origin: got.Origin, At: got.At, Pristine: got.Pristine}
	if o.UserAgent {
		out.UserAgent, out.Viewport = got.Agent, &logins.Viewport{Width: got.Look.Width, Height: got.Look.Height}
	}
	if o.HTTPAuth && got.HTTP != nil {
		out.HTTPAuth = &logins.HTTPAuth{Username: got.HTTP.Username, Password: got.HTTP.Password}
	}
	return out, nil
}

func (c carried) Apply(ctx context.Context, id string, e logins.Envelope, o apiserver.ApplyOptions) (apiserver.Applied, error) {
	s, err := c.find(id)
	if err != nil {
		return apiserver.Applied{}, err
	}
	options := session.ApplyOptions{TabID: o.TabID, Strict: o.StrictOrigin, Private: o.Sealed}
	if e.HTTPAuth != nil {
		options.HTTP = &page.HTTPLogin{Username: e.HTTPAuth.Username, Password: e.HTTPAuth.Password}
	}
	stored := browser.OriginState{Origin: e.Origin, Local: e.Local, Session: e.Session}
	got, err := s.Apply(ctx, e.Origin, e.Cookies, stored, options)
	if err != nil {
		return apiserver.Applied{}, err
	}
	out := apiserver.Applied{Cookies: got.Cookies, StorageKeys: got.StorageKeys, LeftAlone: []string{"indexedDB"}}
	if e.Local == nil {
		out.LeftAlone = append(out.LeftAlone, "localStorage")
	}
	if e.Session == nil {
		out.LeftAlone = append(out.LeftAlone, "sessionStorage")
	}
	return out, nil
}
