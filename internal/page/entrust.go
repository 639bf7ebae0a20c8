package page

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/fault"
	"tapin/internal/site"
)

// entrust gives a field a value that belongs to one site. Keys go to whatever
// has the focus when they arrive, and a page can move the focus, or itself, in
// between. So such a value is not sent as keys: it goes by handle to the very
// document whose address was checked, and a handle of a document that is gone
// leads nowhere.
func (t *Tab) entrust(ctx context.Context, f field, want Field) error {
	if f.Way != "type" {
		return fault.New(fault.ElementNotActionable, "", "a credential is typed, and nobody types into a field of kind %s", f.Kind)
	}
	held, err := t.grasp(ctx, f)
	if err != nil {
		return err
	}
	defer t.letGo(ctx, held)
	// Even if this were a page's own world: location is the one thing there that
	// no page can forge, and nothing else is called.
	var told string
	if err := held.call(ctx, `function() {
		"use strict"
		let places = location.origin
		for (let i = 0; i < location.ancestorOrigins.length; i++) places += " " + location.ancestorOrigins[i]
		return places
	}`, nil, &told); err != nil {
		return err
	}
	places := strings.Split(told, " ")
	for i, place := range places {
		if err := belongs(place, want.Only, i > 0); err != nil {
			return err
		}
	}
	if want.Hidden {
		t.tabs.hidden().add(want.Value)
	}
	var done struct {
		Elsewhere bool   `json:"elsewhere"`
		Gone      bool   `json:"gone"`
		Locked    string `json:"locked"`
		Unfocused bool   `json:"unfocused"`
		Took      bool   `json:"took"`
	}
	err = held.call(ctx, `function(args) {
		"use strict"
		return location.origin === args.origin ? this.type(args) : { elsewhere: true }
	}`, map[string]any{"value": want.Value.Reveal(), "origin": places[0], "hidden": want.Hidden}, &done)
	switch {
	case err != nil:
		return err
	case done.Elsewhere, done.Gone:
		return fault.New(fault.ElementNotActionable, "", "the field went away before anything was typed")
	case done.Locked != "":
		return locked(field{Locked: done.Locked})
	case done.Unfocused:
		return fault.New(fault.ElementNotActionable, "", "the field does not take the focus")
	case !done.Took:
		return fault.New(fault.ElementNotActionable, "", "the field did not take the text: nothing in it changed").
			WithHint("It may be read-only, full, or accept other characters only.")
	}
	return nil
}

// belongs refuses a place that is not of the site, or that others can listen to.
// around says that it is a page around the field's own.
func belongs(place, only string, around bool) error {
	where := "the field is on"
	if around {
		where = "the field is in a frame of"
	}
	u, err := url.Parse(place)
	here, notSite := site.Of(place)
	if err != nil || notSite != nil || u.Host == "" {
		return fault.New(fault.Forbidden, "", "the credential belongs to %s, and %s a page without an address of its own", only, where)
	}
	if string(here) != only {
		return fault.New(fault.Forbidden, "", "the credential belongs to %s, and %s %s", only, where, here).
			WithHint("Nothing was typed. Go to %s first; if this page only looks like it, leave it.", only)
	}
	if u.Scheme != "https" && !loopback(u.Hostname()) {
		return fault.New(fault.Forbidden, "", "%s %s over plain http, where others can listen", where, here).
			WithHint("Nothing was typed. Open the page with https.")
	}
	return nil
}

// loopback reports whether a host is this machine, by the names that browsers
// take for it without asking anybody.
func loopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// handle is an object in a document. Its id names the process it is in too, so
// that no other document, also of a later process, can be meant by it.
type handle struct {
	frame frame
	id    runtime.RemoteObjectID
}

// grasp takes hold of what types into a field.
func (t *Tab) grasp(ctx context.Context, f field) (handle, error) {
	raw, err := jsonv2.Marshal(map[string]int{"id": f.ID})
	if err != nil {
		return handle{}, err
	}
	in, ok := t.frames.get(f.frame.id)
	if !ok || in.world == 0 || in.session != f.frame.session {
		return handle{}, errWorldGone
	}
	var got struct {
		Result struct {
			ObjectID runtime.RemoteObjectID `json:"objectId"`
		} `json:"result"`
	}
	err = in.session.Call(ctx, runtime.CallFunctionOn.Method, runtime.CallFunctionOnParams{
		FunctionDeclaration: "function(args) { return globalThis.tapin.entrust(args) }",
		ExecutionContextID:  in.world, Arguments: []*runtime.CallArgument{{Value: raw}},
	}, &got)
	if err == nil && got.Result.ObjectID == "" {
		err = errWorldGone
	}
	return handle{in, got.Result.ObjectID}, worldError(err)
}

func (t *Tab) letGo(ctx context.Context, h handle) {
	// The document keeps nothing by it but a few bytes, and those until it goes.
	_ = h.frame.session.Send(context.WithoutCancel(ctx), runtime.ReleaseObject.Method, runtime.ReleaseObjectParams{ObjectID: h.id})
}

// call runs a function on the object, in its document, and decodes the answer.
func (h handle) call(ctx context.Context, function string, args, result any) error {
	yes := true
	params := runtime.CallFunctionOnParams{FunctionDeclaration: function, ObjectID: h.id, AwaitPromise: &yes, ReturnByValue: &yes}
	if args != nil {
		raw, err := jsonv2.Marshal(args)
		if err != nil {
			return err
		}
		params.Arguments = []*runtime.CallArgument{{Value: raw}}
	}
	var got struct {
		Result struct {
			Value jsonv2.Value `json:"value"`
		} `json:"result"`
		ExceptionDetails *struct{} `json:"exceptionDetails"`
	}
	if err := h.frame.session.Call(ctx, runtime.CallFunctionOn.Method, params, &got); err != nil {
		if err = worldError(err); !errors.Is(err, errWorldGone) && strings.Contains(err.Error(), "Could not find object") {
			err = errWorldGone
		}
		return err
	}
	if got.ExceptionDetails != nil || len(got.Result.Value) == 0 || jsonv2.Unmarshal(got.Result.Value, result) != nil {
		return errors.New("the page's engine answered in an unexpected shape") // not quoted: it had the value
	}
	return nil
}
