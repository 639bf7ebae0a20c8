package page_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// asked counts what a guard hears, and answers as told.
type asked struct {
	allow   bool
	intents []page.Intent
	effects []string
	sent    []page.Trace
}

func (a *asked) guard(ctx context.Context) context.Context {
	return page.Guarded(ctx, page.Guarding{
		Patterns: []string{`^abschicken\b`},
		Permit: func(_ context.Context, i page.Intent) error {
			a.intents = append(a.intents, i)
			if a.allow {
				return nil
			}
			return fault.New(fault.ApprovalRequired, "test", "no")
		},
		Unasked: func(context.Context, page.Intent) error { return fault.New(fault.ApprovalRequired, "test", "no") },
		Sent:    func(_ context.Context, at page.Trace) { a.sent = append(a.sent, at) },
		Settled: func(_ context.Context, effect string) { a.effects = append(a.effects, effect) },
	})
}

// tellsPaid counts, and goes on as a shop does.
const tellsPaid = `<script>window.paid = 0; function pay() { paid++; for (const e of document.querySelectorAll('p, button')) e.remove() }</script>`

func TestNothingPaysUnaskedInWhateverWay(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/":       tellsPaid + `<body style="margin:0"><p>Amount due: $12.00</p><button id=p style="position:absolute;left:50px;top:100px;width:200px;height:50px" onclick="pay()">Pay now</button>`,
		"/inner":  tellsPaid + `<body style="margin:0"><button id=p style="width:200px;height:50px" onclick="pay(); parent.postMessage('paid', '*')">Pay now</button>`,
		"/frame":  tellsPaid + `<body style="margin:0"><p>Amount due: $12.00</p><iframe style="position:absolute;left:50px;top:100px;border:0" width=250 height=80 src="OTHER/inner"></iframe><script>onmessage = pay</script>`,
		"/comes":  tellsPaid + `<body style="margin:0"><p>Amount due: $12.00</p><iframe style="position:absolute;left:50px;top:100px;border:0" width=250 height=80 src="OTHER/moves"></iframe><script>onmessage = pay</script>`,
		"/moves":  tellsPaid + `<body style="margin:0"><form id=form onsubmit="pay(); parent.postMessage('paid', '*'); return false"><button style="width:200px;height:50px">Pay now</button></form><script>onmousemove = () => { onmousemove = null; form.requestSubmit() }</script>`,
		"/form":   tellsPaid + `<p>Total: $12.00</p><form onsubmit="pay(); return false"><input id=f autocomplete=cc-csc><button id=p>Pay</button></form>`,
		"/late":   tellsPaid + `<p>Total: $12.00</p><form id=form onsubmit="pay(); return false"><button id=b>Pay $12.00</button></form><a id=p onclick="form.requestSubmit()" href="#x">Details</a>`,
		"/short":  tellsPaid + `<p>Total: $12.00</p><input id=f><button id=p onclick="pay()">Pay now</button><script>onkeydown = e => { if (e.key === 'F8') p.click() }</script>`,
		"/slide":  tellsPaid + `<body style="margin:0"><p>Amount due: $12.00 <button id=ready onclick="armed = true">Show more</button></p><a id=p href="#x" style="position:absolute;left:50px;top:100px;width:200px;height:50px">Details</a><iframe id=i style="position:absolute;left:-900px;top:100px;border:0" width=250 height=80 src="/inner"></iframe><script>armed = false; onmessage = pay; addEventListener('pointermove', () => { if (armed) i.style.left = '50px' }, true)</script>`,
		"/card":   tellsPaid + `<p>Total: $12.00</p><form onsubmit="pay(); return false"><input autocomplete=cc-number><button id=p>Wyślij zamówienie</button></form>`,
		"/last":   tellsPaid + `<p>Total: $12.00</p><p>Payment method: Visa •••• 4417</p><button>Change card</button> <button id=p onclick="pay()">Off we go</button>`,
		"/again":  tellsPaid + `<p>Your card was declined.</p><p>Total: $12.00</p><p>Visa 4417</p><button id=p onclick="pay()">Try again</button>`,
		"/turns":  tellsPaid + `<p>Amount due: $12.00</p><button id=p>Show more</button><script>addEventListener('pointerdown', () => { p.textContent = 'Pay now' }, true); addEventListener('click', pay, true)</script>`,
		"/thumb":  tellsPaid + `<p>Amount due: $12.00</p><button id=p>Show more</button><script>addEventListener('pointerdown', () => { p.textContent = 'Pay now' }, true); p.addEventListener('touchstart', pay)</script>`,
		"/owners": tellsPaid + `<button id=p onclick="pay()">Abschicken 12</button>`,
	})
	x, y := 120.0, 125.0
	at := page.Locator{X: &x, Y: &y}
	press := func(key string) func(context.Context) error {
		return func(ctx context.Context) error {
			if _, err := d.tab.Click(ctx, css("#f"), page.ClickOptions{}); err != nil {
				return err
			}
			return d.tab.Press(ctx, key)
		}
	}
	rung := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { _, err := d.tab.ClickBy(ctx, name, css("#p")); return err }
	}
	click := func(l page.Locator) func(context.Context) error {
		return func(ctx context.Context) error { _, err := d.tab.Click(ctx, l, page.ClickOptions{}); return err }
	}
	for name, c := range testwait.SomeOf(7, map[string]struct {
		path string
		do   func(context.Context) error
	}{
		"a selector":                                   {"/", click(css("#p"))},
		"a text":                                       {"/", click(page.Locator{Text: "Pay now"})},
		"a point":                                      {"/", click(at)},
		"a point in a frame of elsewhere":              {"/frame", click(at)},
		"a frame that pays when the mouse comes":       {"/comes", click(at)},
		"an element in such a frame":                   {"/frame", click(css("#p"))},
		"a script's click":                             {"/", rung("S4_JS_INJECT")},
		"the keyboard":                                 {"/", rung("S5_KEYBOARD")},
		"a finger":                                     {"/", rung("S6_CDP_RAW")},
		"Enter in a field":                             {"/form", press("Enter")},
		"a link whose script sends a form":             {"/late", click(css("#p"))},
		"a key that the page gave it":                  {"/short", press("F8")},
		"a frame that slides under it":                 {"/slide", func(ctx context.Context) error { return errors.Join(click(css("#ready"))(ctx), click(css("#p"))(ctx)) }},
		"words that nobody taught us":                  {"/card", click(css("#p"))},
		"words that end such a page":                   {"/last", click(css("#p"))},
		"a second try":                                 {"/again", click(css("#p"))},
		"a button that turns in the hand":              {"/turns", click(css("#p"))},
		"a button that turns in the hand, by a finger": {"/turns", rung("S6_CDP_RAW")},
		"a button that pays when it is touched":        {"/thumb", rung("S6_CDP_RAW")},
		"words of the owner's own":                     {"/owners", click(css("#p"))},
	}) {
		d.open(ctx, t, c.path)
		var a asked
		err := c.do(a.guard(ctx))
		if !errors.Is(err, fault.ApprovalRequired) || len(a.intents) != 1 || len(a.effects) != 0 {
			t.Errorf("%s: %v, asked %d times", name, err, len(a.intents))
		}
		d.says(ctx, t, "String(paid)", "0")
		// With a yes it happens once, and the guard hears of it.
		d.open(ctx, t, c.path)
		a = asked{allow: true}
		if err := c.do(a.guard(ctx)); err != nil || len(a.intents) != 1 || len(a.effects) != 1 || a.effects[0] == page.None {
			t.Errorf("%s, permitted: %v, asked %d times, %v", name, err, len(a.intents), a.effects)
		}
		testwait.For(t, name+" pays", func() bool { return d.eval(ctx, t, d.tab, "String(paid)") == "1" })
		// And who drives in person is not in anybody's way.
		d.open(ctx, t, c.path)
		if err := c.do(ctx); err != nil && !errors.Is(err, fault.ElementNotActionable) { // a frame may be in it
			t.Errorf("%s, by a person: %v", name, err)
		}
	}
}

func TestAPermissionIsOneTry(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		// A page that hears nothing of the mouse: the ladder would go on to other means.
		"/deaf": tellsPaid + `<p>Total: $12.00</p><button id=p onclick="paid++" onpointerdown="document.title = 'pressed'">Pay now</button><script>for (const type of ['pointerdown', 'mousedown', 'click']) addEventListener(type, e => { if (e.isTrusted) e.stopImmediatePropagation() }, true)</script>`,
		"/swap": tellsPaid + `<p>Total: <b id=a>$12.00</b></p><button id=p onclick="paid++">Pay now</button><script>addEventListener('pointermove', () => { a.textContent = '$99.00' }, true)</script>`,
	})
	d.open(ctx, t, "/deaf")
	a := asked{allow: true}
	_, _ = d.tab.Click(a.guard(ctx), css("#p"), page.ClickOptions{})
	if len(a.intents) != 1 || len(a.effects) != 1 {
		t.Errorf("asked %d times, settled %v", len(a.intents), a.effects)
	}
	d.says(ctx, t, "String(paid)", "0")

	d.open(ctx, t, "/swap")
	a = asked{allow: true}
	_, err := d.tab.Click(a.guard(ctx), css("#p"), page.ClickOptions{})
	if !errors.Is(err, fault.ApprovalRequired) || len(a.intents) != 1 || len(a.effects) != 1 || a.effects[0] != page.None {
		t.Errorf("a page that changes under the mouse: %v, asked %d times, settled %v", err, len(a.intents), a.effects)
	}
	d.says(ctx, t, "String(paid)", "0")
}

// A page that was paid on goes on to an answer. An error is none, whoever says it.
func TestAnErrorIsNoPayment(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const form = `<p>Total: $12.00</p><form method=post action="%s"><button id=p>Pay now</button></form>`
	d := sitAt(ctx, t, map[string]string{
		"/good": fmt.Sprintf(form, "/thanks"), "/thanks": "<p>thank you",
		"/lost": fmt.Sprintf(form, "/nowhere"),
		"/dead": fmt.Sprintf(form, "http://127.0.0.1:1/"),
	})
	for path, want := range map[string]string{"/good": page.Confirmed, "/lost": page.Unknown, "/dead": page.Unknown} {
		d.open(ctx, t, path)
		a := asked{allow: true}
		if _, err := d.tab.Click(a.guard(ctx), css("#p"), page.ClickOptions{}); err != nil || len(a.effects) != 1 || a.effects[0] != want {
			t.Errorf("%s: %v, settled %v, want %s", path, err, a.effects, want)
		}
		// Whoever comes later and knows where it was sent sees the same.
		if len(a.sent) != 1 || d.tab.WentOn(ctx, a.sent[0]) != (want == page.Confirmed) {
			t.Errorf("%s: sent %v, and that is seen differently later", path, a.sent)
		}
	}
	d.open(ctx, t, "/good")
	a := asked{}
	_, _ = d.tab.Click(a.guard(ctx), css("#p"), page.ClickOptions{})
	if len(a.sent) != 0 {
		t.Errorf("nothing was permitted, and %v was sent", a.sent)
	}
}

func TestAPermissionIsOnePress(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const more = `<script>function more() { paid++; document.querySelector('p').textContent = 'Thanks' }</script>` // and the button is still there
	d := sitAt(ctx, t, map[string]string{
		"/click":   tellsPaid + more + `<p>Total: $12.00</p><button id=p onclick="more()">Pay now</button>`,
		"/press":   tellsPaid + more + `<p>Total: $12.00</p><button id=p onmousedown="more()">Pay now</button>`,
		"/pointer": tellsPaid + more + `<p>Total: $12.00</p><button id=p onpointerdown="more()">Pay now</button>`,
		"/form":    tellsPaid + more + `<p>Total: $12.00</p><form onsubmit="more(); return false"><button id=p>Pay now</button></form>`,
		"/later":   tellsPaid + more + `<p>Total: $12.00</p><form id=form onsubmit="more(); return false"><button id=p type=button onclick="setTimeout(() => { form.requestSubmit() })">Pay now</button></form>`,
	})
	for _, path := range []string{"/click", "/press", "/pointer", "/form", "/later"} {
		for _, count := range []int{2, 3} {
			d.open(ctx, t, path)
			a := asked{allow: true}
			_, err := d.tab.Click(a.guard(ctx), css("#p"), page.ClickOptions{Count: count})
			if err != nil || len(a.intents) != 1 || len(a.effects) != 1 || a.effects[0] == page.None {
				t.Errorf("%s, %d clicks: %v, asked %d times, settled %v", path, count, err, len(a.intents), a.effects)
			}
			testwait.For(t, path+" pays", func() bool { return d.eval(ctx, t, d.tab, "String(paid)") != "0" })
			d.says(ctx, t, "String(paid)", "1")
		}
	}
}

// Typing and filling are not for paying: what they would press or send is
// stopped, and no approval is used up for it.
func TestTypingDoesNotPay(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/":      tellsPaid + `<body style="margin:0"><p>Amount due: $12.00</p><input id=f><button id=p style="position:absolute;left:50px;top:100px;width:200px;height:50px" onclick="pay(); f.focus()">Pay now</button>`,
		"/sends": tellsPaid + `<p>Amount due: $12.00</p><form onsubmit="pay(); return false"><label>Voucher <input id=f oninput="if (value.length === 6) form.requestSubmit()"></label><button id=p>Confirm payment</button></form>`,
		"/code":  tellsPaid + `<p>Amount due: $12.00</p><form onsubmit="pay(); return false"><label>Code <input id=f autocomplete=one-time-code oninput="if (value.length === 6) form.requestSubmit()"></label><button id=p>Confirm payment</button></form>`,
	})
	x, y := 120.0, 125.0
	field := css("#f")
	for name, c := range map[string]struct {
		path string
		do   func(context.Context) error
	}{
		"text at a point": {"/", func(ctx context.Context) error {
			_, err := d.tab.Type(ctx, secret.New("142"), page.TypeOptions{Locator: &page.Locator{X: &x, Y: &y}})
			return err
		}},
		"the last digit of a code, typed": {"/code", func(ctx context.Context) error {
			_, err := d.tab.Type(ctx, secret.New("123456"), page.TypeOptions{Locator: &field})
			return err
		}},
		"a form that sends itself, filled": {"/sends", func(ctx context.Context) error {
			_, err := d.tab.Fill(ctx, []page.Field{{Locator: field, Value: secret.New("123456")}}, 0)
			return err
		}},
		"the last digit of a code, filled": {"/code", func(ctx context.Context) error {
			_, err := d.tab.Fill(ctx, []page.Field{{Locator: field, Value: secret.New("123456")}}, 0)
			return err
		}},
	} {
		for _, allow := range []bool{false, true} {
			d.open(ctx, t, c.path)
			a := asked{allow: allow}
			if err := c.do(a.guard(ctx)); !errors.Is(err, fault.ApprovalRequired) || len(a.intents) != 0 {
				t.Errorf("%s: %v, asked %d times", name, err, len(a.intents))
			}
			d.says(ctx, t, "String(paid)", "0")
		}
		// What was typed is there, and the button pays with its own approval.
		a := asked{allow: true}
		if _, err := d.tab.Click(a.guard(ctx), css("#p"), page.ClickOptions{}); err != nil || len(a.effects) != 1 {
			t.Errorf("%s, then a click: %v, settled %v", name, err, a.effects)
		}
		d.says(ctx, t, "String(paid)", "1")
		d.open(ctx, t, c.path)
		if err := c.do(ctx); err != nil {
			t.Errorf("%s, by a person: %v", name, err)
		}
	}
}

func TestTotalsAreReadWhereNobodyCanWrite(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/typed":   `<p>Amount due: $980.00</p><input value="Amount due: $9.80"><textarea>Amount due: $9.80</textarea><div contenteditable>Amount due: $9.80</div><div role=textbox>Amount due: $9.80</div>`,
		"/hidden":  `<p>Amount due: $980.00</p><p hidden>Amount due: $9.80</p><p style="visibility:hidden">Amount due: $9.80</p><p style="position:absolute;left:-5000px">Amount due: $9.80</p><p style="opacity:0">Amount due: $9.80</p><p style="font-size:1px">Amount due: $9.80</p>`,
		"/mirror":  `<p>Amount due: $980.00</p><input id=n value="Amount due: $9.80"><p id=m></p><script>m.textContent = n.value</script>`,
		"/address": `<p id=m></p><script>m.textContent = 'Amount due: $' + new URLSearchParams(location.search).get('q')</script>`,
		"/ad":      `<p>Amount due: $980.00</p><iframe src="OTHER/offer" width=300 height=100></iframe>`,
		"/offer":   `<p>Amount due: $5000.00</p>`,
		"/only":    `<p>Pay here</p><iframe src="OTHER/offer" width=300 height=100></iframe>`,
		"/shadow":  `<div id=h></div><script>h.attachShadow({mode: 'open'}).innerHTML = '<p>Amount due: $980.00</p>'</script>`,
	})
	for path, want := range map[string]page.Totals{
		"/typed":          {Decision: page.TotalRead},
		"/hidden":         {Decision: page.TotalRead},
		"/mirror":         {Decision: page.TotalRead},
		"/address?q=9.80": {Decision: page.TotalRead, Echoed: true},
		"/ad":             {Decision: page.TotalRead, Larger: true},
		"/only":           {Decision: page.TotalRead, Foreign: true},
		"/shadow":         {Decision: page.TotalRead},
	} {
		d.open(ctx, t, path)
		sum := map[string]string{"/address?q=9.80": "$9.80", "/only": "$5,000.00"}[path]
		if sum == "" {
			sum = "$980.00"
		}
		got, err := d.tab.Totals(ctx, []string{"pay HERE", "nobody"})
		if err != nil || got.Decision != want.Decision || got.Total.String() != sum || got.Echoed != want.Echoed || got.Larger != want.Larger || got.Foreign != want.Foreign {
			t.Errorf("%s: %+v %v", path, got, err)
		}
		if got.Named[0] != (path == "/only") || got.Named[1] {
			t.Errorf("%s: names %v", path, got.Named)
		}
		if shot, err := d.tab.TotalsCrop(ctx, got); err != nil || shot.Format != page.JPEG {
			t.Errorf("%s: the crop: %v", path, err)
		}
	}
}

func TestWhatAClickLeadsToAMomentLaterPaysNothingEither(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const shop = tellsPaid + `<p>Total: $12.00</p><button id=b onclick="pay()">Pay $12.00</button>`
	d := sitAt(ctx, t, map[string]string{
		"/link":   shop + `<a id=p href="#x" onclick="setTimeout(() => b.click(), 20)">Details</a>`,
		"/button": shop + `<button type=button id=p onclick="setTimeout(() => b.click(), 20)">Show more</button>`,
	})
	for _, path := range []string{"/link", "/button"} {
		d.open(ctx, t, path)
		var a asked
		_, err := d.tab.Click(a.guard(ctx), css("#p"), page.ClickOptions{})
		d.says(ctx, t, "new Promise(done => setTimeout(() => done(String(paid)), 60))", "0")
		// Where that was later than the answer, the next deed is told of it, once, and not done.
		if err == nil {
			_, err = d.tab.Click(a.guard(ctx), css("#p"), page.ClickOptions{})
		}
		if !errors.Is(err, fault.ApprovalRequired) {
			t.Errorf("%s: %v", path, err)
		}
		d.says(ctx, t, "String(paid)", "0")
		a = asked{allow: true}
		if _, err := d.tab.Click(a.guard(ctx), css("#b"), page.ClickOptions{}); err != nil || len(a.intents) != 1 {
			t.Errorf("%s, its own button: %v, asked %d times", path, err, len(a.intents))
		}
		d.says(ctx, t, "String(paid)", "1")
	}
}
