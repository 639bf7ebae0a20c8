package apiserver

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/link"
)

// linkFor is how long a link lives at most; most end with their session.
const linkFor = 7 * 24 * time.Hour

// MintedLink is the one answer that has a token in the clear: it is for the
// owner, and told this once.
type MintedLink struct {
	api.Link
	OpenURL string `json:"open_url" doc:"Lets the first device in that opens it; told this once."`

	ProviderView bool `json:"provider_view,omitempty" doc:"It leads to the provider's own live view of the tab in front now: whoever has it can act, nobody is told who looks, and it may be recorded. Ask again when another tab is in front."`
}

// linkRoutes are the rows about the live view's links and its address.
func linkRoutes() []*route {
	return []*route{
		get("/links", Owner, "Lists the links into live browsers.", (*Server).listLinks),
		post("/links", Owner, "Makes a link into a live browser.", (*Server).mintLink),
		post("/links/{id}/move", Owner, "Gives a link to the device that shows the number.", (*Server).moveLink),
		remove("/links/{id}", Owner, "Ends a link.", (*Server).revokeLink),
		get("/public", Owner, "Tells where people reach the live view.", (*Server).publicAddress),
		put("/public", Owner, "Takes the address under which a tunnel makes the live view reachable.", (*Server).setPublicAddress),
		post("/public/check", Owner, "Asks the address that people are sent to whether it leads here.", (*Server).checkPublic),
	}
}

// put is post for what is said again without harm.
func put[B, A any](path string, who Role, doc string, handle func(*Server, *call, *B) (*A, error)) *route {
	row := post(path, who, doc, handle)
	row.method = http.MethodPut
	return row
}

func (s *Server) listLinks(c *call, _ *nothing) (*api.Links, error) {
	if err := s.views.ready(); err != nil {
		return nil, err
	}
	found, err := s.views.links.List(c.r.Context())
	if err != nil {
		return nil, err
	}
	answer := &api.Links{Links: []api.Link{}}
	for _, l := range found {
		answer.Links = append(answer.Links, s.linkOf(l))
	}
	return answer, nil
}

func (s *Server) mintLink(c *call, req *api.LinkRequest) (*MintedLink, error) {
	if err := s.views.ready(); err != nil {
		return nil, err
	}
	c.id = req.SessionID
	into := req.SessionID
	on, err := s.session(c)
	switch {
	case err == nil:
		into = on.Info().ID
	case into == "" || !errors.Is(err, fault.HumanInControl): // a parked one is still somebody's
		return nil, err
	}
	mode, lives := link.Mode(req.Mode), linkFor
	if mode == "" {
		mode = link.Drive
	}
	if req.Minutes > 0 {
		lives = time.Duration(req.Minutes) * time.Minute
	}
	made, token, err := s.views.links.Mint(c.r.Context(), into, mode, time.Now().Add(lives))
	if err != nil {
		return nil, err
	}
	told := s.linkOf(made)
	minted := &MintedLink{Link: told, OpenURL: told.URL + "#t=" + token.Reveal()}
	if s.views.theirs != nil && mode == link.Drive { // theirs lets whoever has it act
		theirs, err := s.views.theirs(c.r.Context(), into)
		if err != nil {
			return nil, err
		}
		if !theirs.IsEmpty() {
			minted.OpenURL, minted.ProviderView = theirs.Reveal(), true
		}
	}
	return minted, nil
}

func (s *Server) moveLink(c *call, req *api.MoveLinkRequest) (*api.Link, error) {
	if err := s.views.ready(); err != nil {
		return nil, err
	}
	moved, err := s.views.links.Move(c.r.Context(), c.id, req.Number)
	if err != nil {
		return nil, err
	}
	told := s.linkOf(moved)
	return &told, nil
}

func (s *Server) revokeLink(c *call) (*api.RevokedLink, error) {
	if err := s.views.ready(); err != nil {
		return nil, err
	}
	return &api.RevokedLink{LinkID: c.id, Revoked: true}, s.views.links.Revoke(c.r.Context(), c.id)
}

func (s *Server) publicAddress(*call, *nothing) (*api.Public, error) {
	if err := s.views.ready(); err != nil {
		return nil, err
	}
	address, discovered := s.views.address.Now()
	answer := &api.Public{URL: address, Source: "configured", Local: s.views.address.Local()}
	switch {
	case discovered:
		answer.Source = "discovered"
	case address == answer.Local:
		answer.Source = "none"
	}
	if s.nearby != nil {
		answer.LAN = s.nearby()
	}
	return answer, nil
}

func (s *Server) setPublicAddress(c *call, req *api.PublicRequest) (*api.Public, error) {
	if err := s.views.ready(); err != nil {
		return nil, err
	}
	if err := s.views.address.Set(c.r.Context(), req.URL); err != nil {
		return nil, err
	}
	return s.publicAddress(c, nil)
}

// liveView is where a person can look at a session, or nil. It carries no
// token: who opens it is asked who he is. That there is none must not turn an
// action that was done into a failure.
func (s *Server) liveView(ctx context.Context, session string) *string {
	if s.views.ready() != nil {
		return nil
	}
	l, err := s.views.links.View(ctx, session, time.Now().Add(linkFor))
	if err != nil {
		s.log.Warn("a session has no live view", "session", session, "error", fault.Of(err).Code)
		return nil
	}
	at := s.views.address.Of(l.ID)
	return &at
}

func (s *Server) linkOf(l link.Link) api.Link {
	waiting := l.Waiting
	if waiting == nil {
		waiting = []int{}
	}
	return api.Link{
		LinkID: l.ID, SessionID: l.SessionID, Mode: string(l.Mode), URL: s.views.address.Of(l.ID), CreatedAt: l.CreatedAt,
		ExpiresAt: l.ExpiresAt, Claimed: l.Claimed, Waiting: waiting, Session: l.Open,
	}
}
