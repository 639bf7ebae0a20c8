package page

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"

	"tapin/internal/cdp"
	"tapin/internal/fault"
	"tapin/internal/guard"
)

// maxRefused bounds what one document can be refused; there are not more kinds
// than that, but a page may have many frames.
const maxRefused = 16

// permission is one capability of one site.
type permission struct{ origin, name string }

func (p permission) question() Question {
	return Question{Kind: AskPermission, Origin: p.origin, Name: p.name}
}

// permissions are the names we take, as pages know them, and what the browser
// wants to hear. The engine watches those that a page has to ask for.
var permissions = map[string]cdpbrowser.PermissionDescriptor{
	"background-fetch":   {Name: "background-fetch"},
	"background-sync":    {Name: "background-sync"},
	"camera":             {Name: "camera"},
	"clipboard-read":     {Name: "clipboard-read"},
	"clipboard-write":    {Name: "clipboard-write"},
	"display-capture":    {Name: "display-capture"},
	"geolocation":        {Name: "geolocation"},
	"idle-detection":     {Name: "idle-detection"},
	"local-fonts":        {Name: "local-fonts"},
	"microphone":         {Name: "microphone"},
	"midi":               {Name: "midi"},
	"midi-sysex":         {Name: "midi", Sysex: true},
	"notifications":      {Name: "notifications"},
	"payment-handler":    {Name: "payment-handler"},
	"persistent-storage": {Name: "persistent-storage"},
	"push":               {Name: "push", UserVisibleOnly: true},
	"screen-wake-lock":   {Name: "screen-wake-lock"},
	"sensors":            {Name: "accelerometer"},
	"storage-access":     {Name: "storage-access"},
	"window-management":  {Name: "window-management"},
}

// Permission grants a site of this browser context a capability, or refuses it.
// A browser without a screen refuses silently what nobody granted, so a page
// that was refused before has to ask again: reload it, or repeat the click.
func (t *Tabs) Permission(ctx context.Context, origin, name string, grant bool) error {
	const op = "set a permission"
	descriptor, known := permissions[name]
	if !known {
		return fault.New(fault.InvalidRequest, op, "%q is no permission", name).
			WithHint("Use one of %s.", strings.Join(slices.Sorted(maps.Keys(permissions)), ", "))
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fault.New(fault.InvalidRequest, op, "the origin must be one like https://example.com")
	}
	p := permission{originOf(origin), name}
	setting := cdpbrowser.PermissionSettingDenied
	if grant {
		setting = cdpbrowser.PermissionSettingGranted
	}
	t.mu.Lock()
	t.decided[p] = true
	t.mu.Unlock()
	_, err = proto.Call(ctx, t.root, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
		Permission: &descriptor, Setting: setting, Origin: p.origin, BrowserContextID: proto.BrowserContextID(t.inst.Ref().Context),
	})
	if refused, ok := errors.AsType[*cdp.Error](err); ok {
		return fault.New(fault.InvalidRequest, op, "the browser refused: %s", refused.Message)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	for _, tab := range t.List() {
		tab.questions.answered(p)
	}
	return nil
}

// watchRefusals asks the engine for the next permission that the page did not
// get, and waits with it. One call waits per tab: there is no event for it that
// a page could not find out about. A new document is left alone while it loads.
func (t *Tab) watchRefusals(ctx context.Context) {
	for t.leaveAlone(ctx) == nil {
		before := t.life.now()
		var told struct {
			Origin string `json:"origin"`
			Name   string `json:"name"`
		}
		t.equipMain(ctx)
		err := t.refusal(ctx, &told)
		switch {
		case err == nil:
			t.refused(permission{originOf(told.Origin), told.Name})
			continue
		case errors.Is(err, context.DeadlineExceeded):
			continue
		}
		// The document went away; there may be another.
		if t.nextDocument(ctx, before) != nil {
			return
		}
	}
}

// leaveAlone waits for as long as the document has work of its own to do; one that
// never has loaded waits for an answer as well.
func (t *Tab) leaveAlone(ctx context.Context) error {
	patience, cancel := context.WithTimeout(ctx, unaskedAtLast)
	defer cancel()
	_ = t.life.idle(patience, unasked)
	return ctx.Err()
}

func (t *Tab) refusal(ctx context.Context, told any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	main, ok := t.frames.get(t.frames.main)
	if !ok {
		return errWorldGone
	}
	return t.call(ctx, main, "refusal", nil, told)
}

// nextDocument waits until there is another document than at the mark.
func (t *Tab) nextDocument(ctx context.Context, since mark) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer guard.Catch("page")
		select {
		case <-t.session.Ended():
			cancel()
		case <-stop:
		}
	}()
	return t.life.awaitChange(ctx, since, "commit")
}

// refused notes what the engine told. It comes from our own world, which the
// page cannot reach, but the browser did not write it: it is checked.
func (t *Tab) refused(p permission) {
	if _, known := permissions[p.name]; !known || p.origin == "" {
		return
	}
	t.tabs.mu.Lock()
	decided := t.tabs.decided[p]
	t.tabs.mu.Unlock()
	if !decided && t.questions.refuse(p) {
		t.ask(p.question())
	}
}
