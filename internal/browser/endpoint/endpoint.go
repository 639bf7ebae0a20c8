// Package endpoint uses a browser that runs elsewhere, through any CDP endpoint.
// It owns how such an endpoint is found and which context or tab in it is ours.
// It must never close, read or attach to anything there that is not ours, and
// never repeat the endpoint's address, which may hold a key.
package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// Name is the provider's name.
const Name = "cdp"

// dialWithin bounds one try to connect.
const dialWithin = 20 * time.Second

var _ browser.Provider = (*Provider)(nil)

// Provider makes contexts in a browser behind an endpoint.
type Provider struct {
	url     secret.Text
	headers map[string]secret.Text
}

// New takes ws://, wss://, http:// or https://. Behind the last two the
// browser is asked for its WebSocket.
func New(endpoint secret.Text, headers map[string]secret.Text) (*Provider, error) {
	u, err := url.Parse(endpoint.Reveal())
	if err != nil || u.Host == "" || !slices.Contains([]string{"ws", "wss", "http", "https"}, u.Scheme) {
		return nil, fault.New(fault.ProviderNotConfigured, "use a CDP endpoint", "cdp.url is not a ws, wss, http or https address").
			WithHint("Set cdp.url in config.yaml, for example ws://127.0.0.1:9222/devtools/browser/… or http://127.0.0.1:9222.")
	}
	return &Provider{url: endpoint, headers: headers}, nil
}

// Name is "cdp".
func (p *Provider) Name() string { return Name }

// Create makes a private context there or, where the browser has only one, a tab.
func (p *Provider) Create(ctx context.Context, spec browser.Spec) (browser.Instance, error) {
	const op = "make a browser context at the endpoint"
	inst, err := p.connect(ctx, browser.Ref{Provider: Name, ID: spec.ID})
	if err != nil {
		return nil, fault.Wrap(fault.SessionCreateFailed, op, err)
	}
	inst.ref.Context, err = browser.PrivateContext(ctx, inst.conn, spec)
	if errors.Is(err, browser.ErrNoContexts) {
		inst.ref.Target, err = p.tab(ctx, inst.conn, spec)
	}
	if err != nil {
		_ = inst.Release()
		return nil, fault.Wrap(fault.SessionCreateFailed, op, err)
	}
	return inst, nil
}

// tab opens a tab of ours in the browser's only context. The downloads of that
// context are not ours to direct.
func (p *Provider) tab(ctx context.Context, conn *cdp.Conn, spec browser.Spec) (string, error) {
	if spec.State != nil {
		if _, err := browser.SetCookies(ctx, conn, "", spec.State.Cookies); err != nil {
			return "", err
		}
	}
	made, err := proto.Call(ctx, conn.Root(), target.CreateTarget, target.CreateTargetParams{URL: "about:blank"})
	return string(made.TargetID), err
}

// Reconnect goes on with a context or tab that Create made.
func (p *Provider) Reconnect(ctx context.Context, ref browser.Ref) (browser.Instance, error) {
	const op = "reconnect to the endpoint"
	inst, err := p.connect(ctx, ref)
	if err != nil {
		return nil, fault.Wrap(fault.BrowserLost, op, err)
	}
	there, err := exists(ctx, inst.conn, ref)
	if err == nil && !there {
		err = fault.New(fault.BrowserLost, op, "our browser context is gone from the endpoint")
	}
	if err != nil {
		_ = inst.Release()
		return nil, fault.Wrap(fault.BrowserLost, op, err)
	}
	return inst, nil
}

// Own returns which of the known ones are still there. A CDP endpoint keeps no
// mark, so that what is not in our records is not ours.
func (p *Provider) Own(ctx context.Context, known []browser.Ref) ([]browser.Ref, error) {
	known = slices.DeleteFunc(slices.Clone(known), func(r browser.Ref) bool { return r.Provider != Name })
	if len(known) == 0 {
		return nil, nil
	}
	inst, err := p.connect(ctx, browser.Ref{})
	if err != nil {
		return nil, fault.Wrap(fault.ProviderError, "look for our contexts at the endpoint", err)
	}
	defer func() { _ = inst.Release() }()
	var own []browser.Ref
	for _, ref := range known {
		there, err := exists(ctx, inst.conn, ref)
		if err != nil {
			return nil, fault.Wrap(fault.ProviderError, "look for our contexts at the endpoint", err)
		}
		if there {
			own = append(own, ref)
		}
	}
	return own, nil
}

// End closes a context or tab of ours.
func (p *Provider) End(ctx context.Context, ref browser.Ref) error {
	inst, err := p.connect(ctx, ref)
	if err != nil {
		return fault.Wrap(fault.ProviderError, "close our context at the endpoint", err)
	}
	return inst.End(ctx)
}

func exists(ctx context.Context, conn *cdp.Conn, ref browser.Ref) (bool, error) {
	switch {
	case ref.Context != "":
		got, err := proto.Call(ctx, conn.Root(), target.GetBrowserContexts, proto.Empty{})
		return slices.Contains(got.BrowserContextIDs, proto.BrowserContextID(ref.Context)), err
	case ref.Target != "":
		got, err := proto.Call(ctx, conn.Root(), target.GetTargets, target.GetTargetsParams{})
		return slices.ContainsFunc(got.TargetInfos, func(i *target.Info) bool { return string(i.TargetID) == ref.Target }), err
	}
	return false, nil
}

func (p *Provider) connect(ctx context.Context, ref browser.Ref) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	header := http.Header{}
	for name, value := range p.headers {
		header.Set(name, value.Reveal())
	}
	ws, err := p.socket(ctx, header)
	if err != nil {
		return nil, err
	}
	transport, err := cdp.Dial(ctx, ws, header)
	if err != nil {
		return nil, err
	}
	return &instance{conn: cdp.New(transport, nil), ref: ref, here: isHere(ws)}, nil
}

// isHere reports whether an address is on this machine.
func isHere(ws secret.Text) bool {
	u, err := url.Parse(ws.Reveal())
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// socket is the address of the browser's WebSocket, asked for anew each time:
// it changes when the browser there is restarted.
func (p *Provider) socket(ctx context.Context, header http.Header) (secret.Text, error) {
	u, err := url.Parse(p.url.Reveal())
	if err != nil {
		return secret.Text{}, errors.New("the endpoint's address cannot be read")
	}
	if u.Scheme == "ws" || u.Scheme == "wss" {
		return p.url, nil
	}
	ask := *u
	ask.Path = "/json/version"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ask.String(), nil)
	if err != nil {
		return secret.Text{}, errors.New("the endpoint's address cannot be read")
	}
	req.Header = header.Clone()
	// The key must not follow a redirect to somebody else.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return secret.Text{}, errors.New("the endpoint cannot be reached")
	}
	defer func() { _ = resp.Body.Close() }()
	var version struct {
		URL string `json:"webSocketDebuggerUrl"`
	}
	if resp.StatusCode != http.StatusOK {
		return secret.Text{}, fmt.Errorf("the endpoint answered %d to /json/version", resp.StatusCode)
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&version) != nil || version.URL == "" {
		return secret.Text{}, errors.New("the endpoint's /json/version names no WebSocket")
	}
	ws, err := url.Parse(version.URL)
	if err != nil {
		return secret.Text{}, errors.New("the endpoint's /json/version names no WebSocket")
	}
	// The way we came, the key we were given: the browser knows only its own side.
	ws.Host, ws.RawQuery, ws.Scheme = u.Host, u.RawQuery, map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	return secret.New(ws.String()), nil
}
