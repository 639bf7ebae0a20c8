package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// soon is what a test gives to something that must fail.
const soon = 700 * time.Millisecond

func css(selector string) page.Locator { return page.Locator{CSS: selector} }

func into(selector string) page.TypeOptions {
	l := css(selector)
	return page.TypeOptions{Locator: &l}
}

// desk is one browser for the subtests of a test, each on a page of its own.
type desk struct {
	*web
	tab *page.Tab
}

func sitAt(ctx context.Context, t *testing.T, pages map[string]string) desk {
	t.Helper()
	w := visit(t, pages, page.Look{})
	return desk{w, w.front(ctx, t)}
}

func (d desk) open(ctx context.Context, t *testing.T, path string) {
	t.Helper()
	if _, err := d.tab.Navigate(ctx, d.URL+path, page.WaitLoad); err != nil {
		t.Fatal(err)
	}
}

func (d desk) says(ctx context.Context, t *testing.T, script, want string) {
	t.Helper()
	if got := d.eval(ctx, t, d.tab, script); got != want {
		t.Errorf("%s is %q, not %q", script, got, want)
	}
}

// controlled behaves as a React input does: it remembers the value it set
// itself, ignores events without a change, and puts its own state back.
const controlled = `<script>
function controlled(el, onChange) {
  const proto = Object.getPrototypeOf(el), native = Object.getOwnPropertyDescriptor(proto, 'value')
  let tracked = el.value, state = el.value
  Object.defineProperty(el, 'value', { configurable: true, get() { return native.get.call(this) }, set(v) { tracked = String(v); native.set.call(this, v) } })
  el.addEventListener('input', () => {
    const now = native.get.call(el)
    if (now === tracked) return
    tracked = now
    state = onChange(now, state)
    Promise.resolve().then(() => { if (native.get.call(el) !== state) el.value = state; el.dataset.state = state })
  })
}
</script>`

const everyKind = controlled + `<title>form</title><form onsubmit="return false">
<label>Name <input id=text value="old"></label>
<label for=password>Password</label><input id=password type=password>
<input id=email type=email value="old@example.com"><input id=number type=number value=3><input id=tel type=tel><input id=search type=search><input id=url type=url>
<textarea id=area>was here</textarea>
<div id=rich contenteditable><p>old <b>text</b></p></div>
<input id=react value="before"><input id=phone>
<input id=date type=date><input id=time type=time><input id=local type=datetime-local><input id=month type=month><input id=week type=week>
<input id=range type=range min=0 max=10><input id=color type=color>
<select id=select><option value=a>Alpha<option value=b>Beta</select>
<select id=many multiple><option>one<option>two<option>three</select>
<input id=box type=checkbox><input id=off type=checkbox checked>
<input id=hiddenbox type=checkbox style="opacity:0;position:absolute;width:0;height:0"><label for=hiddenbox style="display:inline-block;width:20px;height:20px;background:#ccc"></label>
<label><input type=radio name=plan value=free checked> Free</label><label><input type=radio name=plan value=pro> Professional</label>
</form><script>
controlled(react, v => v.toUpperCase())
controlled(phone, v => { const d = v.replace(/\D/g, '').slice(0, 10); return d.length > 6 ? '(' + d.slice(0,3) + ') ' + d.slice(3,6) + '-' + d.slice(6) : d.length > 3 ? '(' + d.slice(0,3) + ') ' + d.slice(3) : d && '(' + d })
window.events = []
for (const el of [date, color, range, select, box, hiddenbox]) for (const type of ['input', 'change']) el.addEventListener(type, () => events.push(el.id + ' ' + type))
</script>`

func TestFillGivesEveryKindItsValue(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{"/": everyKind})
	d.open(ctx, t, "/")
	radio := `document.querySelector("[name=plan]:checked").value`
	kinds := []struct {
		locator           page.Locator
		value, read, want string
	}{
		{page.Locator{Label: "Name"}, "Grace Hopper ", "text.value", "Grace Hopper "},
		{page.Locator{Text: "Password"}, "pa ss", "password.value", "pa ss"},
		{css("#email"), "new@example.com", "email.value", "new@example.com"},
		{css("#number"), "-12.5", "number.value", "-12.5"},
		{css("#tel"), "+41 44", "tel.value", "+41 44"},
		{css("#search"), "x", "search.value", "x"},
		{css("#url"), "http://a.b/?c", "url.value", "http://a.b/?c"},
		{css("#area"), "two\nlines", "area.value", "two\nlines"},
		{css("#rich"), "rich é", "rich.textContent", "rich é"},
		{css("#react"), "loud", "react.value + react.dataset.state", "LOUDLOUD"},
		{css("#phone"), "5551234567", "phone.value", "(555) 123-4567"},
		{css("#date"), "2030-01-31", "date.value", "2030-01-31"},
		{css("#time"), "13:45", "time.value", "13:45"},
		{css("#local"), "2030-01-31T13:45", "local.value", "2030-01-31T13:45"},
		{css("#month"), "2030-02", "month.value", "2030-02"},
		{css("#week"), "2030-W05", "week.value", "2030-W05"},
		{css("#range"), "7", "range.value", "7"},
		{css("#color"), "#0af", "color.value", "#00aaff"},
		{css("#select"), "beta", "select.value", "b"},
		{css("#many"), "one, three", "[...many.selectedOptions].map(o => o.value).join()", "one,three"},
		{css("#box"), "true", "box.checked", "true"},
		{css("#off"), "off", "off.checked", "false"},
		{css("#hiddenbox"), "on", "hiddenbox.checked", "true"},
		{css("[name=plan]"), "professional", radio, "pro"},
	}
	var fields []page.Field
	for _, k := range kinds {
		fields = append(fields, page.Field{Locator: k.locator, Value: secret.New(k.value)})
	}
	for range 2 { // what is so already stays so
		began := time.Now()
		filled, err := d.tab.Fill(ctx, fields, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d fields in %s", len(filled), time.Since(began).Round(time.Millisecond))
		for i, k := range kinds {
			d.says(ctx, t, k.read, k.want)
			if !filled[i].OK || filled[i].Field != k.locator.String() {
				t.Errorf("the answer says %+v of %s", filled[i], k.locator)
			}
		}
	}
	d.says(ctx, t, "events.join()", "date input,date change,range input,range change,color input,color change,select input,select change,box input,box change,hiddenbox input,hiddenbox change")
}

func TestFillStopsAtTheFieldThatFailsAndNamesItByItsLocator(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const canary = "canary-7261"
	d := sitAt(ctx, t, map[string]string{"/": `<title>t</title><input id=a><input id=b><input id=date type=date><input id=range type=range max=5><input id=color type=color>
		<select id=select><option>x<option disabled>no</select><input id=box type=checkbox><input id=radio type=radio><input id=file type=file><input id=ro readonly><input id=dis disabled><fieldset disabled><input id=set></fieldset>
		<input id=digits onbeforeinput="if (/\D/.test(event.data ?? '')) event.preventDefault()"><input id=late type=date min=2030-01-01><p id=p>text</p>`})
	d.open(ctx, t, "/")
	for selector, tt := range map[string]struct {
		value string
		code  fault.Code
	}{
		"#date":    {canary, fault.InvalidRequest},
		"#late":    {"2029-12-31", fault.InvalidRequest},
		"#range":   {"6", fault.InvalidRequest},
		"#color":   {canary, fault.InvalidRequest},
		"#select":  {canary, fault.ElementNotFound},
		"#box":     {canary, fault.InvalidRequest},
		"#radio":   {"false", fault.InvalidRequest},
		"#file":    {canary, fault.InvalidRequest},
		"#ro":      {canary, fault.ElementNotActionable},
		"#dis":     {canary, fault.ElementNotActionable},
		"#set":     {canary, fault.ElementNotActionable},
		"#digits":  {"canaryab", fault.ElementNotActionable},
		"#p":       {canary, fault.ElementNotActionable},
		"#nowhere": {canary, fault.ElementNotFound},
	} {
		d.eval(ctx, t, d.tab, "(a.value = b.value = '')")
		filled, err := d.tab.Fill(ctx, []page.Field{
			{Locator: css("#a"), Value: secret.New("stays")}, {Locator: css(selector), Value: secret.New(tt.value)}, {Locator: css("#b"), Value: secret.New("never")},
		}, soon)
		if !errors.Is(err, tt.code) {
			t.Errorf("%s gave %v, not %s", selector, err, tt.code)
			continue
		}
		want := []page.Filled{{Field: `selector "#a"`, OK: true}, {Field: fmt.Sprintf("selector %q", selector)}}
		if diff := cmp.Diff(want, filled); diff != "" {
			t.Errorf("%s: %s", selector, diff)
		}
		all, _ := json.Marshal(fault.Of(err))
		if said := err.Error() + fault.Of(err).Advice() + string(all); strings.Contains(said, tt.value) && tt.value != "6" && tt.value != "false" {
			t.Errorf("%s: the value is in %s", selector, said)
		}
		d.says(ctx, t, "a.value + b.value", "stays")
	}
	d.says(ctx, t, "[date.value, range.value, color.value, late.value].join()", ",3,#000000,")
}

func TestTextGoesToTheFocusedFieldWhereverItIs(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const inner = `<title>inner</title><input id=i type=password autofocus><script>i.focus(); i.oninput = () => top.postMessage(i.value, '*')</script>`
	heard := `<script>onmessage = e => document.title = e.data</script>`
	d := sitAt(ctx, t, map[string]string{
		"/plain":  `<title></title><input id=i oninput="document.title = value"><script>i.focus()</script>`,
		"/open":   `<title></title><div id=h></div><script>const r = h.attachShadow({mode: 'open'}); r.innerHTML = '<input>'; r.firstChild.focus(); r.firstChild.oninput = e => document.title = e.target.value</script>`,
		"/closed": `<title></title><div id=h></div><script>const r = h.attachShadow({mode: 'closed'}); r.innerHTML = '<input>'; r.firstChild.focus(); r.firstChild.oninput = e => document.title = e.target.value</script>`,
		"/same":   heard + `<iframe src="/inner"></iframe>`,
		"/cross":  heard + `<iframe src="OTHER/inner"></iframe>`,
		"/deep":   heard + `<iframe src="OTHER/middle"></iframe>`,
		"/middle": `<iframe src="/inner"></iframe>`,
		"/inner":  inner,
		"/design": `<title></title><script>document.designMode = 'on'; onload = () => document.body.focus(); document.addEventListener('input', () => document.title = document.body.textContent)</script><body>`,
	})
	for _, path := range []string{"/plain", "/open", "/closed", "/same", "/cross", "/deep", "/design"} {
		d.open(ctx, t, path)
		if framed := path == "/same" || path == "/cross" || path == "/deep"; framed {
			// A frame takes the focus when somebody clicks into it.
			l := page.Locator{CSS: "#i"}
			if _, err := d.tab.Type(ctx, secret.Text{}, page.TypeOptions{Locator: &l}); err != nil {
				t.Errorf("%s: focus: %v", path, err)
				continue
			}
		}
		got, err := d.tab.Type(ctx, secret.New("aB 1é"), page.TypeOptions{})
		if err != nil || got.Characters != 5 {
			t.Errorf("%s: %+v, %v", path, got, err)
			continue
		}
		if other := path == "/cross" || path == "/deep"; other != strings.HasPrefix(got.Origin, "http://localhost:") {
			t.Errorf("%s: the field is said to belong to %s", path, got.Origin)
		}
		testwait.For(t, "the text in "+path, func() bool { return d.title(ctx, t) == "aB 1é" })
	}
	d.eval(ctx, t, d.tab, "document.designMode = 'off'")
	for _, empty := range []string{"document.body.innerHTML = '<button>b</button>'", "document.querySelector('button').focus()"} {
		d.eval(ctx, t, d.tab, "void ("+empty+")")
		if _, err := d.tab.Type(ctx, secret.New("x"), page.TypeOptions{}); !errors.Is(err, fault.NoFocusedField) {
			t.Errorf("typing without a field gave %v", err)
		}
	}
}

const codeBoxes = `<title>code</title><form id=f>` + `<input maxlength=1 inputmode=numeric><input maxlength=1 inputmode=numeric><input maxlength=1 inputmode=numeric><input maxlength=1 inputmode=numeric><input maxlength=1 inputmode=numeric><input maxlength=1 inputmode=numeric></form>
<script>const all = [...document.querySelectorAll('input')]; const code = () => all.map(i => i.value).join('-')</script>`

func TestCodesGoIntoTheirBoxesOneEach(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const advance = `<script>all.forEach((i, n) => i.oninput = () => i.value && (MOVE))</script>`
	d := sitAt(ctx, t, map[string]string{
		"/now":   codeBoxes + strings.Replace(advance, "MOVE", "all[n + 1]?.focus()", 1),
		"/later": codeBoxes + strings.Replace(advance, "MOVE", "setTimeout(() => all[n + 1]?.focus(), 60)", 1),
		"/keyup": codeBoxes + `<script>all.forEach((i, n) => i.onkeyup = e => { if (/\d/.test(e.key)) all[n + 1]?.focus() })</script>`,
		"/stays": codeBoxes,
		"/leave": codeBoxes + strings.Replace(advance, "MOVE", "n === 5 ? location.href = '/done?' + code() : all[n + 1].focus()", 1),
		"/done":  `<title>done</title>`,
		"/one":   `<title>one</title><input id=c autocomplete="section-a one-time-code" maxlength=6>`,
	})
	for _, path := range []string{"/now", "/later", "/keyup", "/stays", "/leave", "/one"} {
		d.open(ctx, t, path)
		got, err := d.tab.Type(ctx, secret.New("123456"), into("input"))
		if err != nil || got.Characters != 6 {
			t.Errorf("%s: %+v, %v", path, got, err)
			continue
		}
		switch path {
		case "/leave":
			testwait.For(t, "the next page", func() bool { return d.title(ctx, t) == "done" })
			d.says(ctx, t, "location.search", "?1-2-3-4-5-6")
		case "/one":
			d.says(ctx, t, "c.value", "123456")
			if got.Field != "one-time-code" {
				t.Errorf("a field for codes is called %q", got.Field)
			}
		default:
			d.says(ctx, t, "code()", "1-2-3-4-5-6")
			if _, err := d.tab.Fill(ctx, []page.Field{{Locator: css("input"), Value: secret.New("654321")}}, 0); err != nil {
				t.Errorf("%s: another code: %v", path, err)
			}
			d.says(ctx, t, "code()", "6-5-4-3-2-1")
		}
	}
}

func TestTypingEndsUpInItsFieldWhateverThePageDoes(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/anew": `<title>t</title><div id=root></div><script>
			function draw(v) { root.innerHTML = '<form><input name=x></form>'; const i = root.querySelector('input'); i.value = v; i.oninput = () => draw(i.value); i.focus(); i.setSelectionRange(v.length, v.length) }
			draw('')</script>`,
		"/lost": `<title>t</title><div id=root></div><script>
			function draw(v) { root.innerHTML = '<form><input name=x></form>'; const i = root.querySelector('input'); i.value = v; i.oninput = () => draw(i.value) }
			draw('')</script>`,
		"/stolen": `<title>t</title><input id=other><input name=x type=password><script>
			let n = 0; document.querySelector('[name=x]').oninput = () => { if (++n === 3) other.focus() }; window.hot = 0; onkeyup = () => { if (n === 5) other.focus() }; other.onkeydown = () => hot++</script>`,
		"/timer": `<title>t</title><input id=other><input name=x type=password><script>onkeydown = () => setInterval(() => other.focus(), 1)</script>`,
		"/editor": `<title>t</title><div id=e contenteditable name=x></div><script>
			e.addEventListener('beforeinput', ev => { ev.preventDefault(); if (ev.data) setTimeout(() => { e.textContent += ev.data; getSelection().collapse(e, 1) }, 5) })</script>`,
		"/float":  `<title>t</title><div style="position:relative"><input name=x id=fl><label for=fl style="position:absolute;inset:0">Your name</label></div>`,
		"/append": `<title>t</title><input name=x value="begin a long long long long long long text " size=80>`,
		"/mail":   `<title>t</title><input name=x type=email value="a@b.c" size=60>`,
	})
	const value = `(e => e.value ?? e.textContent)(document.querySelector("[name=x]"))`
	for path, want := range map[string]string{
		"/anew": "Secret 1é!", "/lost": "Secret 1é!", "/stolen": "Secret 1é!", "/timer": "Secret 1é!", "/editor": "Secret 1é!", "/float": "Secret 1é!",
		"/append": "begin a long long long long long long text Secret 1é!", "/mail": "a@b.cSecret 1é!",
	} {
		d.open(ctx, t, path)
		if _, err := d.tab.Type(ctx, secret.New("Secret 1é!"), into("[name=x]")); err != nil {
			if path == "/timer" && errors.Is(err, fault.ElementNotActionable) {
				// A page that keeps taking the focus away may win, but gets nothing.
				d.says(ctx, t, "other.value", "")
				continue
			}
			t.Errorf("%s: %v", path, err)
			continue
		}
		// An editor shows it when it gets round to it.
		testwait.For(t, path+" has its text", func() bool { return d.eval(ctx, t, d.tab, value) == want })
		if path == "/stolen" || path == "/timer" {
			d.says(ctx, t, "other.value", "")
		}
		if path == "/stolen" {
			d.says(ctx, t, "hot", "0")
		}
	}
}

func TestTypeClearsSubmitsAndRefuses(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const canary = "Canary-9 x"
	d := sitAt(ctx, t, map[string]string{"/": controlled + `<title>t</title>
		<form onsubmit="document.title = 'sent ' + q.value; return false"><input id=q value=old></form>
		<form onsubmit="alert('sure?'); return false"><input id=ask></form>
		<input id=react value=old><div id=rich contenteditable>old <i>text</i></div>
		<input id=ro readonly value=r><input id=full maxlength=3 value=abc><input id=digits><input id=stubborn value=z>
		<input id=box type=checkbox><button id=b>b</button>
		<script>controlled(react, v => v); controlled(stubborn, (v, s) => s); digits.onkeypress = e => /\d/.test(e.key)</script>`})
	d.open(ctx, t, "/")
	for _, tt := range []struct {
		name, selector, read, want string
		o                          page.TypeOptions
	}{
		{"clear a plain field", "#q", "q.value", canary, page.TypeOptions{Clear: true}},
		{"clear and type the same", "#q", "q.value", canary, page.TypeOptions{Clear: true}},
		{"submit", "#q", "document.title", "sent " + canary + canary, page.TypeOptions{Submit: true}},
		{"clear a controlled field", "#react", "react.value + '|' + react.dataset.state", canary + "|" + canary, page.TypeOptions{Clear: true}},
		{"clear an editor", "#rich", "rich.textContent", canary, page.TypeOptions{Clear: true}},
	} {
		l := css(tt.selector)
		tt.o.Locator = &l
		got, err := d.tab.Type(ctx, secret.New(canary), tt.o)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if strings.Contains(fmt.Sprintf("%+v", got), canary) || got.Origin != d.URL {
			t.Errorf("%s: the answer is %+v", tt.name, got)
		}
		d.says(ctx, t, tt.read, tt.want)
	}
	if got, err := d.tab.Type(ctx, secret.Text{}, into("#q")); err != nil || got.Characters != 0 {
		t.Errorf("typing nothing gave %+v, %v", got, err)
	}
	d.says(ctx, t, "q.value", canary+canary)
	for _, selector := range []string{"#ro", "#full", "#digits", "#stubborn", "#box", "#b"} {
		o := into(selector)
		o.Timeout = soon
		text := canary
		if selector == "#digits" {
			text = "canary"
		}
		_, err := d.tab.Type(ctx, secret.New(text), o)
		if !errors.Is(err, fault.ElementNotActionable) || strings.Contains(strings.ToLower(err.Error()+fault.Of(err).Advice()), "canary") {
			t.Errorf("%s: %v", selector, err)
		}
	}
	ask := css("#ask")
	if _, err := d.tab.Type(ctx, secret.New("x"), page.TypeOptions{Locator: &ask, Submit: true}); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the question", func() bool { return d.tab.Dialog() != nil })
	if _, err := d.tab.Type(ctx, secret.New("x"), page.TypeOptions{}); !errors.Is(err, fault.DialogOpen) {
		t.Errorf("typing under a dialog gave %v", err)
	}
}

func TestTypingThatADialogEndsLeavesTheKeyboardToTheNext(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/":    `<title>t</title><input id=a oninput="if (value.length === 3) alert('stop')"><input id=b><iframe src="OTHER/pay" style="position:absolute;left:300px;top:200px;border:0"></iframe><script>onmessage = e => document.title = e.data</script>`,
		"/pay": `<body style="margin:0"><input style="width:200px;height:40px" oninput="top.postMessage('card ' + value, '*')">`,
	})
	d.open(ctx, t, "/")
	if _, err := d.tab.Type(ctx, secret.New("canary"), into("#a")); !errors.Is(err, fault.DialogOpen) || strings.Contains(err.Error(), "can") {
		t.Fatalf("typing into a field that stops everything gave %v", err)
	}
	if err := d.tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the answer", func() bool { return d.tab.Dialog() == nil })
	d.eval(ctx, t, d.tab, "void b.focus()")
	if err := d.tab.Press(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	d.says(ctx, t, "b.value", "x")

	x, y := 350.0, 220.0
	got, err := d.tab.Type(ctx, secret.New("42"), page.TypeOptions{Locator: &page.Locator{X: &x, Y: &y}})
	if err != nil || !strings.HasPrefix(got.Origin, "http://localhost") {
		t.Fatalf("typing at a point in a frame gave %+v, %v", got, err)
	}
	testwait.For(t, "the text in the frame", func() bool { return d.title(ctx, t) == "card 42" })
	if _, err := d.tab.Type(ctx, secret.New("a\xff"), into("#b")); !errors.Is(err, fault.InvalidRequest) {
		t.Fatalf("a text that is none gave %v", err)
	}
}

func TestAThousandCharacters(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{"/": `<title>t</title><textarea id=a></textarea><script>let keys = ''; a.onkeypress = e => keys += e.key</script>`})
	d.open(ctx, t, "/")
	text := strings.Repeat("The quick brown fox, 42 (yes)! ", 33)[:1000]
	began := time.Now()
	got, err := d.tab.Type(ctx, secret.New(text), into("#a"))
	took := time.Since(began)
	if err != nil || got.Characters != 1000 {
		t.Fatalf("%+v, %v", got, err)
	}
	t.Logf("1,000 characters in %s", took.Round(time.Millisecond))
	d.says(ctx, t, "a.value", text)
	d.says(ctx, t, "keys", text)
}

func TestPressedKeysDoWhatTheyDo(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{"/": `<title>t</title><input id=a value="first one"><input id=b><button id=c onclick="document.title='pressed'">c</button>
		<script>const log = []; onkeydown = e => log.push([e.ctrlKey && 'C', e.shiftKey && 'S', e.metaKey && 'M', e.key, e.code, e.keyCode, e.location].filter(x => x !== false).join(':'))</script>`})
	d.open(ctx, t, "/")
	press := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			if err := d.tab.Press(ctx, k); err != nil {
				t.Fatalf("%s: %v", k, err)
			}
		}
	}
	d.eval(ctx, t, d.tab, "void a.focus()")
	press("Control+A", "Control+C", "End", "x", "Tab", "Control+V")
	d.says(ctx, t, "a.value + '|' + b.value", "first onex|first one")
	press("Shift+Tab", "Cmd+a", "Control+X")
	d.says(ctx, t, "a.value", "")
	press("Control+Z")
	d.says(ctx, t, "a.value", "first onex")
	press("Tab", "Tab", " ")
	d.says(ctx, t, "document.title", "pressed")
	d.eval(ctx, t, d.tab, "log.length = 0")
	press("Shift+ArrowLeft", "F2", "Numpad5", "?")
	d.says(ctx, t, "log.join(' ')", "S:Shift:ShiftLeft:16:1 S:ArrowLeft:ArrowLeft:37:0 F2:F2:113:0 5:Numpad5:101:3 S:?:Slash:191:0")
	if err := d.tab.Press(ctx, "Entr"); !errors.Is(err, fault.InvalidRequest) || fault.Of(err).Advice() != "Did you mean Enter?" {
		t.Errorf("an unknown key gave %v", err)
	}
}
