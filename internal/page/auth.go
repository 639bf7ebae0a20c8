package page

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"

	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// authMissing is what the browser says of a page behind a password when nobody
// is there to give it.
const authMissing = "net::ERR_INVALID_AUTH_CREDENTIALS"

// login is a site's wish for a user name and password, put by HTTP itself.
type login struct{ origin, realm string }

func (l *login) question() Question {
	return Question{Kind: AskHTTPAuth, Origin: l.origin, Realm: l.realm}
}

// Authenticate gives the site that asked a user name and password, and loads the
// page again. The browser keeps them for that site for as long as it lives. Only
// the site that asked gets them, wherever the page leads.
//
// Requests are looked at during this one load only: nothing is slowed down, and
// nothing ever hangs in the browser until a person has found a password.
func (t *Tab) Authenticate(ctx context.Context, username string, password secret.Text) error {
	asked := t.asked()
	if asked == nil {
		return fault.New(fault.NotFound, "authenticate", "no site asks for a password")
	}
	return t.authenticate(ctx, asked, username, password)
}

// AuthenticateAt is Authenticate for somebody who has seen which site asked: the
// tab may have gone on to another that asks too.
func (t *Tab) AuthenticateAt(ctx context.Context, origin, username string, password secret.Text) error {
	asked := t.asked()
	if asked == nil || asked.origin != origin {
		return fault.New(fault.NotFound, "authenticate", "that site no longer asks for a password").WithHint("Look at what the page asks now.")
	}
	return t.authenticate(ctx, asked, username, password)
}

func (t *Tab) authenticate(ctx context.Context, asked *login, username string, password secret.Text) error {
	const op = "authenticate"
	given := HTTPLogin{username, password}
	_, still, err := t.reloadAs(ctx, op, func(l login) *fetch.AuthChallengeResponse {
		if l.origin != asked.origin {
			return nil
		}
		return given.provide()
	})
	switch {
	case err != nil:
		return err
	case still == nil:
		t.tabs.logins.put(asked.origin, given)
		return nil
	case still.origin != asked.origin:
		return fault.New(fault.NavigationFailed, op, "the page leads to %s, which asks for a password of its own", still.origin)
	}
	return fault.New(fault.NavigationFailed, op, "%s did not accept this user name and password", still.origin).
		WithHint("Give others, or go on without: the site's own answer is on the page.")
}

// DeclineLogin takes the question for a password off; the page shows what the
// site says to those without one.
func (t *Tab) DeclineLogin() error {
	if t.asked() == nil {
		return fault.New(fault.NotFound, "authenticate", "no site asks for a password")
	}
	t.questions.mu.Lock()
	defer t.questions.mu.Unlock()
	t.questions.login = nil
	return nil
}

func (t *Tab) asked() *login {
	t.questions.mu.Lock()
	defer t.questions.mu.Unlock()
	return t.questions.login
}

// challenged deals with a navigation that ended at a site that wants a password.
// The browser shows an empty page of its own; loaded again with the wish declined
// it shows the site's, and tells what the password is for.
func (t *Tab) challenged(ctx context.Context, op string) (Navigation, error) {
	nav, _, err := t.reloadAs(ctx, op, func(l login) *fetch.AuthChallengeResponse {
		if known, ok := t.tabs.logins.get(l.origin); ok {
			return known.provide()
		}
		return nil
	})
	return nav, err
}

// answering decides what a site that asks is told; nil declines.
type answering func(login) *fetch.AuthChallengeResponse

// reloadAs loads the page again and answers what its sites ask on the way. It
// returns who asked without getting an answer that served, and leaves that as
// the tab's question.
func (t *Tab) reloadAs(ctx context.Context, op string, answer answering) (Navigation, *login, error) {
	began := time.Now()
	gate := &gate{tab: t, answer: answer, tried: map[login]bool{}}
	if err := gate.open(ctx); err != nil {
		return Navigation{}, nil, fmt.Errorf("%s: %w", op, err)
	}
	defer gate.close(ctx)
	before := t.life.now()
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		if _, err := proto.Call(ctx, t.session, cdppage.Reload, cdppage.ReloadParams{}); err != nil {
			return err
		}
		state, _ := WaitDOM.lifecycleName()
		return t.life.awaitChange(ctx, before, state)
	})
	if settled := t.session.Conn().Settle(ctx); err == nil {
		err = settled
	}
	if err != nil {
		return Navigation{}, nil, t.explain(op, began, err)
	}
	still := gate.unanswered()
	t.questions.mu.Lock()
	t.questions.login = still
	t.questions.mu.Unlock()
	if still != nil {
		t.ask(still.question())
	}
	nav, err := t.Here(ctx)
	nav.Took = time.Since(began)
	return nav, still, err
}

// gate stands in the way of a tab's document requests while it is open, which
// is the only place where the browser lets passwords in.
type gate struct {
	tab    *Tab
	answer answering
	off    []func()

	mu    sync.Mutex
	tried map[login]bool // who has had an answer
	left  *login         // who got none, or did not take it
}

func (g *gate) open(ctx context.Context) error {
	s := g.tab.session
	// Handlers must not wait, so nothing here does.
	g.off = []func(){
		cdp.Listen(s, fetch.RequestPaused, func(e fetch.EventRequestPaused) {
			if e.ResponseStatusCode == http.StatusUnauthorized && e.FrameID == g.tab.life.frame {
				g.tab.tabs.start(func(ctx context.Context) { g.show(ctx, e) })
				return
			}
			_ = s.Send(ctx, fetch.ContinueRequest.Method, fetch.ContinueRequestParams{RequestID: e.RequestID})
		}),
		cdp.Listen(s, fetch.AuthRequired, func(e fetch.EventAuthRequired) {
			_ = s.Send(ctx, fetch.ContinueWithAuth.Method, fetch.ContinueWithAuthParams{RequestID: e.RequestID, AuthChallengeResponse: g.respond(e)})
		}),
	}
	yes := true
	_, err := proto.Call(ctx, s, fetch.Enable, fetch.EnableParams{HandleAuthRequests: &yes, Patterns: []*fetch.RequestPattern{
		{URLPattern: "*", ResourceType: network.ResourceTypeDocument, RequestStage: fetch.RequestStageRequest},
		{URLPattern: "*", ResourceType: network.ResourceTypeDocument, RequestStage: fetch.RequestStageResponse},
	}})
	if err != nil {
		g.close(ctx)
	}
	return err
}

// show lets the tab have what the site says to those without a password. As the
// answer came the browser would hide it behind a prompt of its own.
func (g *gate) show(ctx context.Context, e fetch.EventRequestPaused) {
	s := g.tab.session
	body, err := proto.Call(ctx, s, fetch.GetResponseBody, fetch.GetResponseBodyParams{RequestID: e.RequestID})
	if err != nil {
		_ = s.Send(ctx, fetch.ContinueRequest.Method, fetch.ContinueRequestParams{RequestID: e.RequestID})
		return
	}
	// The body is as the page will read it, and the cookies are in the jar.
	headers := slices.DeleteFunc(e.ResponseHeaders, func(h *fetch.HeaderEntry) bool {
		switch http.CanonicalHeaderKey(h.Name) {
		case "Www-Authenticate", "Content-Encoding", "Content-Length", "Transfer-Encoding", "Set-Cookie":
			return true
		}
		return false
	})
	_ = s.Send(ctx, fetch.FulfillRequest.Method, fetch.FulfillRequestParams{
		RequestID: e.RequestID, ResponseCode: e.ResponseStatusCode, ResponsePhrase: e.ResponseStatusText, ResponseHeaders: headers, Body: body.Body,
	})
}

// respond answers one challenge. A proxy's is never a question to anybody: the
// only proxy there is is our own guard.
func (g *gate) respond(e fetch.EventAuthRequired) *fetch.AuthChallengeResponse {
	decline := &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseCancelAuth}
	if e.AuthChallenge == nil || e.AuthChallenge.Source == fetch.AuthChallengeSourceProxy {
		return decline
	}
	l := login{originOf(e.AuthChallenge.Origin), e.AuthChallenge.Realm}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Frames of the page may ask too; the question is the page's own.
	own := e.FrameID == g.tab.life.frame
	if !g.tried[l] {
		g.tried[l] = true
		if answer := g.answer(l); answer != nil {
			return answer
		}
	}
	if own {
		g.left = &l
	}
	return decline
}

func (g *gate) unanswered() *login {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left
}

// close lets every request go on by itself again, whatever became of the caller.
func (g *gate) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = proto.Call(ctx, g.tab.session, fetch.Disable, proto.Empty{})
	for _, off := range g.off {
		off()
	}
}

// noticeLogin finds out whether an error page that nobody navigated to, by a
// click say, stands for a site that wants a password.
func (t *Tab) noticeLogin(f *proto.Frame) {
	if !strings.HasPrefix(f.UnreachableURL, "http") {
		return
	}
	t.tabs.start(func(ctx context.Context) {
		nav, err := t.Here(ctx)
		if err != nil || nav.Status != http.StatusUnauthorized || t.life.now().loader != f.LoaderID {
			return
		}
		l := &login{origin: originOf(f.UnreachableURL)}
		t.questions.mu.Lock()
		known := t.questions.login != nil
		if !known {
			t.questions.login = l
		}
		t.questions.mu.Unlock()
		if !known {
			t.ask(l.question())
		}
	})
}
