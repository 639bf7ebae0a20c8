package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"

	"tapin/internal/cdp"
	"tapin/internal/secret"
)

// Cookie is one cookie with everything that decides where it is sent.
type Cookie struct {
	Name         string
	Value        secret.Text
	Domain       string // without a leading dot: host-only
	Path         string
	Expires      float64 // Unix seconds; 0 means a session cookie
	HTTPOnly     bool
	Secure       bool
	SameSite     string // Strict, Lax, None; empty means that the site did not say
	Priority     string
	SourceScheme string
	SourcePort   int64
	Partition    *PartitionKey
}

// PartitionKey says under which top-level site a partitioned cookie lives.
type PartitionKey struct {
	TopLevelSite      string
	CrossSiteAncestor bool
}

// cookieID is what tells one cookie of a jar from another.
type cookieID struct {
	name, domain, path string
	partition          PartitionKey
}

func (c Cookie) id() cookieID {
	id := cookieID{name: c.Name, domain: c.Domain, path: c.Path}
	if id.path == "" {
		id.path = "/"
	}
	if c.Partition != nil {
		id.partition = *c.Partition
	}
	return id
}

// HasExpired reports whether the browser would drop the cookie by now.
func (c Cookie) HasExpired(now time.Time) bool {
	return c.Expires != 0 && c.Expires <= float64(now.UnixMicro())/1e6
}

// CompareCookies orders by domain, path, name and partition key: an order that
// does not depend on when a cookie came.
func CompareCookies(a, b Cookie) int {
	x, y := a.id(), b.id()
	return cmp.Or(cmp.Compare(x.domain, y.domain), cmp.Compare(x.path, y.path), cmp.Compare(x.name, y.name),
		cmp.Compare(x.partition.TopLevelSite, y.partition.TopLevelSite), compareBool(x.partition.CrossSiteAncestor, y.partition.CrossSiteAncestor))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Cookies reads the whole jar of a browser context, in the order in which the
// browser sends them: longer paths first, then those that came first. Set in
// that order, another browser sends them in that order too.
func Cookies(ctx context.Context, conn *cdp.Conn, contextID string) ([]Cookie, error) {
	got, err := proto.Call(ctx, conn.Root(), storage.GetCookies, storage.GetCookiesParams{BrowserContextID: proto.BrowserContextID(contextID)})
	if err != nil {
		return nil, fmt.Errorf("read cookies: %w", err)
	}
	out := make([]Cookie, 0, len(got.Cookies))
	for _, c := range got.Cookies {
		cookie := Cookie{
			Name: c.Name, Value: secret.New(c.Value), Domain: c.Domain, Path: c.Path,
			HTTPOnly: c.HTTPOnly, Secure: c.Secure, SameSite: string(c.SameSite), Priority: string(c.Priority),
			SourceScheme: string(c.SourceScheme), SourcePort: c.SourcePort,
		}
		if !c.Session {
			cookie.Expires = c.Expires
		}
		if c.PartitionKey != nil {
			cookie.Partition = &PartitionKey{TopLevelSite: c.PartitionKey.TopLevelSite, CrossSiteAncestor: c.PartitionKey.HasCrossSiteAncestor}
		}
		out = append(out, cookie)
	}
	return out, nil
}

// SetCookies puts cookies into a browser context, in their order, and returns
// the names of those it did not take, each once a cookie; one invalid among a
// thousand costs only itself. The error is for a browser that answers nothing.
func SetCookies(ctx context.Context, conn *cdp.Conn, contextID string, cookies []Cookie) (refused []string, err error) {
	if len(cookies) == 0 {
		return nil, nil
	}
	params := make([]*network.CookieParam, len(cookies))
	for i, c := range cookies {
		params[i] = c.param()
	}
	if err := setBatch(ctx, conn, contextID, params); err != nil {
		return nil, fmt.Errorf("set cookies: %w", err)
	}
	// Some it drops without a word: only the jar tells.
	jar, err := Cookies(ctx, conn, contextID)
	if err != nil {
		return nil, err
	}
	there := make(map[cookieID]secret.Text, len(jar))
	for _, c := range jar {
		there[c.id()] = c.Value
	}
	for _, c := range cookies {
		if value, ok := there[c.id()]; !ok || !value.Equal(c.Value) {
			refused = append(refused, c.Name)
		}
	}
	return refused, nil
}

// setBatch sets what can be set. The browser refuses a batch as a whole for one
// invalid cookie, so a refused one is halved until the invalid stand alone.
func setBatch(ctx context.Context, conn *cdp.Conn, contextID string, batch []*network.CookieParam) error {
	_, err := proto.Call(ctx, conn.Root(), storage.SetCookies, storage.SetCookiesParams{Cookies: batch, BrowserContextID: proto.BrowserContextID(contextID)})
	if _, refused := errors.AsType[*cdp.Error](err); !refused {
		return err
	}
	if len(batch) == 1 {
		return nil
	}
	half := len(batch) / 2
	if err := setBatch(ctx, conn, contextID, batch[:half]); err != nil {
		return err
	}
	return setBatch(ctx, conn, contextID, batch[half:])
}

// ReplaceCookies removes some cookies and puts others in, in one call: when the
// browser refuses one of them as invalid, nothing has changed.
func ReplaceCookies(ctx context.Context, conn *cdp.Conn, contextID string, old, cookies []Cookie) error {
	if len(old)+len(cookies) == 0 {
		return nil
	}
	batch := make([]*network.CookieParam, 0, len(old)+len(cookies))
	for _, c := range old {
		gone := c.param()
		gone.Expires = 1 // long ago; 0 would be a session cookie
		batch = append(batch, gone)
	}
	for _, c := range cookies {
		batch = append(batch, c.param())
	}
	_, err := proto.Call(ctx, conn.Root(), storage.SetCookies, storage.SetCookiesParams{Cookies: batch, BrowserContextID: proto.BrowserContextID(contextID)})
	if err != nil {
		return fmt.Errorf("replace cookies: %w", err)
	}
	return nil
}

func (c Cookie) param() *network.CookieParam {
	p := &network.CookieParam{
		Name: c.Name, Value: c.Value.Reveal(), Domain: c.Domain, Path: c.Path,
		Secure: c.Secure, HTTPOnly: c.HTTPOnly, Expires: proto.TimeSinceEpoch(c.Expires),
		SameSite: network.CookieSameSite(c.SameSite), Priority: network.CookiePriority(c.Priority),
		SourceScheme: network.CookieSourceScheme(c.SourceScheme), SourcePort: c.SourcePort,
	}
	if c.Partition != nil {
		p.PartitionKey = &network.CookiePartitionKey{TopLevelSite: c.Partition.TopLevelSite, HasCrossSiteAncestor: c.Partition.CrossSiteAncestor}
	}
	return p
}
