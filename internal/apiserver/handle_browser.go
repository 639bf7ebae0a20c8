package apiserver

import (
	"context"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/oneshot"
)

// OneShots open pages for one call each. Safe for concurrent use.
type OneShots interface {
	Screenshot(ctx context.Context, c oneshot.ShotCall) (oneshot.Shot, error)
	Extract(ctx context.Context, c oneshot.ExtractCall) (oneshot.Extract, error)
	Intent(prompt string) oneshot.Intent
	Cards() []oneshot.Card
	Again(ctx context.Context, id string) (oneshot.Card, error)
}

func browserRoutes() []*route {
	return []*route{
		post("/browser/screenshot", Agent, "Photographs the page at an address, in a browser context of its own.", (*Server).browserScreenshot),
		post("/browser/extract", Agent, "Reads out a part of the page at an address, in a browser context of its own.", (*Server).browserExtract),
		post("/browser/intent", Agent, "Tells whether a prompt wants the browser, and the hint to add to it.", (*Server).browserIntent),
		get("/browser/cards", Owner, "Shows the last one-shot calls.", (*Server).browserCards),
		post("/browser/cards/{id}/retry", Owner, "Makes the call of a card once more.", (*Server).browserRetry),
	}
}

// tools are the one-shots, where there are any.
func (s *Server) tools() (OneShots, error) {
	if s.oneshots == nil {
		return nil, fault.New(fault.Disabled, "", "there are no browser tools here")
	}
	return s.oneshots, nil
}

func (s *Server) browserScreenshot(c *call, req *api.BrowserScreenshotRequest) (*api.BrowserScreenshot, error) {
	on, err := s.tools()
	if err != nil {
		return nil, err
	}
	shot, err := on.Screenshot(c.r.Context(), oneshot.ShotCall{Call: oneShot(req.OneShot), FullPage: req.FullPage})
	if err != nil {
		return nil, err
	}
	return &api.BrowserScreenshot{
		Title: shot.Title, FinalURL: shot.FinalURL, StatusCode: shot.StatusCode, Retries: shot.Retries, Blocked: blockedOf(shot.Blocked),
		MIMEType: shot.MIME, Truncated: shot.Truncated, ImageBase64: shot.Base64,
	}, nil
}

func (s *Server) browserExtract(c *call, req *api.BrowserExtractRequest) (*api.BrowserExtract, error) {
	on, err := s.tools()
	if err != nil {
		return nil, err
	}
	got, err := on.Extract(c.r.Context(), oneshot.ExtractCall{Call: oneShot(req.OneShot), Instruction: req.Instruction, Most: req.MaxChars})
	if err != nil {
		return nil, err
	}
	return &api.BrowserExtract{
		Extracted: api.Extracted{
			Title: got.Title, FinalURL: got.FinalURL, StatusCode: got.StatusCode,
			Content: got.Content, Kind: string(got.Kind), Truncated: got.Truncated, Note: got.Note,
		},
		Retries: got.Retries, Blocked: blockedOf(got.Blocked),
	}, nil
}

func (s *Server) browserIntent(_ *call, req *api.BrowserIntentRequest) (*api.BrowserIntent, error) {
	if s.oneshots == nil {
		return &api.BrowserIntent{}, nil
	}
	i := s.oneshots.Intent(req.Prompt)
	return &api.BrowserIntent{Browser: i.Browser, Tool: i.Tool, URL: i.URL, Hint: i.Hint}, nil
}

func (s *Server) browserCards(_ *call, _ *nothing) (*api.BrowserCards, error) {
	on, err := s.tools()
	if err != nil {
		return nil, err
	}
	answer := &api.BrowserCards{Cards: []api.BrowserCard{}}
	for _, card := range on.Cards() {
		answer.Cards = append(answer.Cards, CardOf(card))
	}
	return answer, nil
}

func (s *Server) browserRetry(c *call, _ *nothing) (*api.BrowserCard, error) {
	on, err := s.tools()
	if err != nil {
		return nil, err
	}
	card, err := on.Again(c.r.Context(), c.id)
	if err != nil {
		return nil, err
	}
	shown := CardOf(card)
	return &shown, nil
}

// CardOf is a card as it is shown. A failure has a calm sentence beside its
// code, and whatever a page may have said in it stays out.
func CardOf(card oneshot.Card) api.BrowserCard {
	out := api.BrowserCard{CardID: card.ID, Kind: card.Kind, At: card.At, URL: card.URL}
	if card.Err != nil {
		f := fault.Of(card.Err)
		out.Error = &api.CardError{Code: string(f.Code), Message: f.Code.Sentence()}
		out.Retries, _ = f.Data["retries"].(int)
		return out
	}
	seen := oneshot.Seen{}
	switch {
	case card.Shot != nil:
		seen = card.Shot.Seen
		out.MIMEType, out.ImageBase64, out.Truncated = card.Shot.MIME, card.Shot.Base64, card.Shot.Truncated
	case card.Extract != nil:
		seen = card.Extract.Seen
		out.Content, out.Truncated = card.Extract.Content, card.Extract.Truncated
	}
	out.Title, out.FinalURL, out.StatusCode, out.Retries = seen.Title, seen.FinalURL, seen.StatusCode, seen.Retries
	return out
}

func oneShot(o api.OneShot) oneshot.Call {
	c := oneshot.Call{URL: o.URL, Mobile: o.Mobile, Within: time.Duration(o.TimeoutMS) * time.Millisecond}
	if o.Viewport != nil {
		c.Width, c.Height, c.Scale = o.Viewport.Width, o.Viewport.Height, o.Viewport.Scale
	}
	return c
}

func blockedOf(blocks []oneshot.Blocked) []api.BlockedTarget {
	var out []api.BlockedTarget
	for _, b := range blocks {
		out = append(out, api.BlockedTarget{Error: string(b.Code), Rule: b.Rule, Host: b.Host})
	}
	return out
}
