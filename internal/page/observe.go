package page

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/network"

	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/site"
)

// Observation is a page as a record may keep it: typed fields that hold nothing
// of what a person typed, and nothing that a query or a fragment carries.
// Title and key names have been through secret.Conceal.
type Observation struct {
	URL         string // without userinfo, query and fragment
	Origin      string
	Title       string
	Cookies     int // how many the browser would send to this page
	LocalKeys   []string
	SessionKeys []string
	Fingerprint string   // of the structure, keyed: nothing can be read back from it; empty where Partial
	Concealed   []string // ObserveOptions.Conceal, concealed with the page's form values too
	Partial     bool     // the page could not be asked: only what the browser itself knows is here
}

// ObserveOptions say how a page is observed.
type ObserveOptions struct {
	Key     []byte   // of this installation, for the fingerprint
	Conceal []string // other texts, about to be kept, that may repeat what stands in the page's fields
}

const (
	observeWithin = 5 * time.Second
	longestTitle  = 300 // runes
)

// Observe tells what a page is like, in words that may be kept. It changes
// nothing, moves nothing and takes no turn: a person may be at the page. Where
// the page cannot answer, because it crashed, hangs or waits behind a dialog,
// the browser says what it knows and the rest stays empty.
func (t *Tab) Observe(ctx context.Context, o ObserveOptions) (Observation, error) {
	const op = "observe the page"
	if len(o.Key) == 0 {
		return Observation{}, fault.New(fault.Internal, op, "there is no key for the fingerprint")
	}
	limited, cancel := context.WithTimeout(ctx, observeWithin)
	defer cancel()
	var seen survey
	err := t.unlessDialog(limited, func(ctx context.Context) error {
		var err error
		seen, err = t.survey(ctx)
		return err
	})
	switch _, lost := cdp.IsLost(err); {
	case err == nil:
	case ctx.Err() != nil:
		return Observation{}, fmt.Errorf("%s: %w", op, ctx.Err())
	case lost, t.isClosed():
		return Observation{}, fmt.Errorf("%s: %w", op, err)
	default:
		seen = survey{partial: true}
		if seen.URL, err = t.browserAddress(ctx); err != nil {
			return Observation{}, fmt.Errorf("%s: %w", op, err)
		}
	}
	got := seen.observation(o)
	if got.Cookies, err = t.cookieCount(ctx, seen.URL); err != nil {
		return Observation{}, fmt.Errorf("%s: %w", op, err)
	}
	return got, nil
}

func (t *Tab) isClosed() bool {
	select {
	case <-t.session.Ended():
		return true
	default:
		return false
	}
}

// browserAddress is where the browser says the tab is; no page needs to answer.
func (t *Tab) browserAddress(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	address, _, err := t.address(ctx)
	return address, err
}

// observation is what may be kept of it.
func (s survey) observation(o ObserveOptions) Observation {
	got := Observation{URL: keptAddress(s.URL), Partial: s.partial, Concealed: make([]string, 0, len(o.Conceal))}
	got.Origin, _ = site.Origin(s.URL) // pages without one have none
	// A long value may contain a short one.
	slices.SortFunc(s.values, func(a, b secret.Text) int { return len(b.Reveal()) - len(a.Reveal()) })
	for _, text := range o.Conceal {
		got.Concealed = append(got.Concealed, secret.Conceal(text, s.values...))
	}
	if s.partial {
		return got
	}
	got.Title = cutRunes(secret.Conceal(strings.Join(strings.Fields(s.Title), " "), s.values...), longestTitle)
	got.LocalKeys, got.SessionKeys = concealAll(s.Local, s.values), concealAll(s.Session, s.values)
	got.Fingerprint = fingerprint(o.Key, s.lines)
	return got
}

func concealAll(names []string, known []secret.Text) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = secret.Conceal(name, known...)
	}
	slices.Sort(out)
	return out
}

func cutRunes(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

// fingerprint is the same for the same lines, in whatever order they came.
func fingerprint(key []byte, lines []string) string {
	lines = slices.Compact(slices.Sorted(slices.Values(lines)))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("tapin page structure 1\n" + strings.Join(lines, "\n")))
	return hex.EncodeToString(mac.Sum(nil))
}

// keptAddress is an address without anything that it may carry for the site
// alone: userinfo, query, fragment, parameters of a path, and parts of the path
// that look like tokens, as in a link to reset a password.
func keptAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	origin, err := site.Origin(address)
	if err != nil {
		// What follows may be a whole document, or another address.
		if address == "about:blank" {
			return address
		}
		return u.Scheme + ":"
	}
	segments := strings.Split(u.EscapedPath(), "/")
	for i, segment := range segments {
		segment, _, _ = strings.Cut(segment, ";")
		segments[i] = secret.Conceal(segment)
	}
	return origin + strings.Join(segments, "/")
}

// cookieCount is how many cookies the browser would send to an address. Their
// names and values are not looked at.
func (t *Tab) cookieCount(ctx context.Context, address string) (int, error) {
	if u, err := url.Parse(address); err != nil || u.Host == "" {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var got struct {
		Cookies []struct{} `json:"cookies"`
	}
	err := t.session.Call(ctx, network.GetCookies.Method, network.GetCookiesParams{URLs: []string{address}}, &got)
	if refused, ok := errors.AsType[*cdp.Error](err); ok {
		return 0, fmt.Errorf("count the cookies: %w", refused)
	}
	return len(got.Cookies), err
}
