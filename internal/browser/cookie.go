package browser

import (
	"context"
	"fmt"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"

	"tapin/internal/cdp"
	"tapin/internal/fault"
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
	SameSite     string
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

// Cookies reads the whole jar of a browser context.
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

// SetCookies puts cookies into a browser context. One invalid cookie makes the
// browser refuse the whole batch, so a refused batch is tried one by one; how
// many did not make it is the error.
func SetCookies(ctx context.Context, conn *cdp.Conn, contextID string, cookies []Cookie) error {
	if len(cookies) == 0 {
		return nil
	}
	params := make([]*network.CookieParam, len(cookies))
	for i, c := range cookies {
		params[i] = c.param()
	}
	set := func(batch []*network.CookieParam) error {
		_, err := proto.Call(ctx, conn.Root(), storage.SetCookies, storage.SetCookiesParams{Cookies: batch, BrowserContextID: proto.BrowserContextID(contextID)})
		return err
	}
	err := set(params)
	if err == nil {
		return nil
	}
	if _, lost := cdp.IsLost(err); lost || ctx.Err() != nil {
		return fmt.Errorf("restore cookies: %w", err)
	}
	refused := 0
	for _, p := range params {
		if set([]*network.CookieParam{p}) != nil {
			refused++
		}
	}
	if refused > 0 {
		return fault.New(fault.InvalidRequest, "restore cookies", "the browser refused %d of %d cookies", refused, len(params))
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
