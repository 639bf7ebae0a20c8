package page_test

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// notes keeps what a watch over the fields reports.
type notes struct {
	mu   sync.Mutex
	seen []page.Native
}

func (n *notes) show(now page.Native) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = append(n.seen, now)
}

func (n *notes) last() page.Native {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.seen) == 0 {
		return page.Native{}
	}
	return n.seen[len(n.seen)-1]
}

func (n *notes) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.seen)
}

// field waits until one with that label is reported.
func (n *notes) field(t *testing.T, label string) page.NativeField {
	t.Helper()
	var found page.NativeField
	testwait.For(t, "the field "+label+" is reported", func() bool {
		for _, f := range n.last().Fields {
			if f.Label == label {
				found = f
				return true
			}
		}
		return false
	})
	return found
}

func (n *notes) has(label string) bool {
	for _, f := range n.last().Fields {
		if f.Label == label {
			return true
		}
	}
	return false
}

const fieldsPage = `<!doctype html><title>fields</title><body style="margin:0">
<style>input, textarea, select, div[contenteditable] { position: absolute; width: 200px; height: 20px; padding: 0; border: 0; margin: 0 }</style>
<input aria-label=plain style="left:10px;top:10px" value="hello" placeholder=name maxlength=40 inputmode=text autocomplete=name enterkeyhint=next>
<input aria-label=secret type=password style="left:10px;top:40px" value="hunter2">
<input aria-label=code autocomplete=one-time-code style="left:10px;top:70px" value="1234">
<textarea aria-label=area style="left:10px;top:100px">two
lines</textarea>
<select aria-label=list style="left:10px;top:130px"><optgroup label=G><option value=a>Alpha<option value=b selected>Beta</optgroup><option value=c disabled>Gamma</select>
<input aria-label=day type=date style="left:10px;top:160px" value=2030-01-31 min=2029-01-01>
<input aria-label=paint type=color style="left:10px;top:190px" value=#336699>
<input aria-label=files type=file multiple accept=image/* style="left:10px;top:220px">
<div aria-label=rich contenteditable style="left:10px;top:250px">rich <b>text</b></div>
<input aria-label=below style="left:10px;top:2000px">
<input aria-label=hidden style="left:10px;top:280px;visibility:hidden">
<input aria-label=covered style="left:10px;top:310px"><div style="position:absolute;left:0;top:300px;width:600px;height:60px;background:red"></div>
<input type=checkbox aria-label=tick style="left:10px;top:370px">
<div id=host style="position:absolute;left:300px;top:10px"></div>
<iframe src="OTHER/inner" style="position:absolute;left:300px;top:100px;width:300px;height:100px;border:5px solid"></iframe>
<div style="height:3000px"></div>
<script>host.attachShadow({mode:'open'}).innerHTML = '<input aria-label=shadow style="width:100px">'</script>`

const innerPage = `<!doctype html><body style="margin:0"><input aria-label=inner style="position:absolute;left:20px;top:30px;width:100px;height:20px;padding:0;border:0">`

func TestFieldsAreReportedWhereTheyLie(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{"/": fieldsPage, "/inner": innerPage}, "/")
	var n notes
	watch := w.tabs.Native(n.show)
	defer watch.Close()

	plain := n.field(t, "plain")
	if plain.Kind != "text" || plain.X != 10 || plain.Y != 10 || plain.Width != 200 || plain.Height != 20 || *plain.Value != "hello" ||
		plain.Placeholder != "name" || plain.MaxLength != 40 || plain.InputMode != "text" || plain.Autocomplete != "name" || plain.EnterKeyHint != "next" || plain.Font.Size == 0 {
		t.Errorf("plain is %+v", plain)
	}
	for label, length := range map[string]int{"secret": 7, "code": 4} {
		if f := n.field(t, label); f.Value != nil || !f.Masked || f.Length == nil || *f.Length != length {
			t.Errorf("%s tells %+v", label, f)
		}
	}
	for label, kind := range map[string]string{"secret": "password", "code": "otp", "area": "textarea", "list": "select", "day": "date", "paint": "color", "files": "file", "rich": "editable", "shadow": "text"} {
		if f := n.field(t, label); f.Kind != kind {
			t.Errorf("%s is a %s", label, f.Kind)
		}
	}
	if list := n.field(t, "list"); len(list.Options) != 3 || list.Options[1].Label != "Beta" || !list.Options[1].Selected || list.Options[0].Group != "G" || !list.Options[2].Disabled {
		t.Errorf("the list has %+v", list.Options)
	}
	if rich := n.field(t, "rich"); *rich.Value != "rich text" {
		t.Errorf("the rich text is %q", *rich.Value)
	}
	if inner := n.field(t, "inner"); inner.X != 325 || inner.Y != 135 || inner.Width != 100 {
		t.Errorf("in a frame of another site: %+v", inner)
	}
	for _, label := range []string{"below", "hidden", "covered", "tick"} {
		if n.has(label) {
			t.Errorf("%s is reported", label)
		}
	}

	w.eval(ctx, t, tab, `scrollTo(0, 1900)`)
	if f := n.field(t, "below"); f.Y != 100 {
		t.Errorf("after scrolling it lies at %v", f.Y)
	}
	if n.has("plain") || n.has("inner") {
		t.Error("what was scrolled out of sight is still reported")
	}
	w.eval(ctx, t, tab, `void (scrollTo(0, 0), document.querySelector('[aria-label=plain]').focus())`)
	testwait.For(t, "the focus is reported", func() bool {
		now := n.last()
		return now.Focus != "" && now.Focus == n.field(t, "plain").ID
	})
}

func TestAQuietPageIsNotReportedAgainAndNobodyLeavesAWatchBehind(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{"/": fieldsPage, "/inner": innerPage}, "/")
	var n notes
	watch := w.tabs.Native(n.show)
	n.field(t, "inner")
	for range 3 {
		watch.Poke(ctx)
		w.eval(ctx, t, tab, `new Promise(r => setTimeout(r, 150))`)
	}
	before := n.count()
	for range 5 {
		watch.Poke(ctx)
		w.eval(ctx, t, tab, `new Promise(r => setTimeout(r, 150))`)
	}
	if after := n.count(); after != before {
		t.Errorf("%d reports of nothing new", after-before)
	}
	// A script's own change of a value is told by nothing but the picture.
	w.eval(ctx, t, tab, `void (document.querySelector('[aria-label=plain]').value = 'by script')`)
	watch.Poke(ctx)
	testwait.For(t, "the new value is reported", func() bool { return *n.field(t, "plain").Value == "by script" })
	watch.Close()
	before = n.count()
	w.eval(ctx, t, tab, `void (document.querySelector('[aria-label=plain]').value = 'unseen', scrollTo(0, 5))`)
	w.eval(ctx, t, tab, `new Promise(r => setTimeout(r, 300))`)
	if n.count() != before {
		t.Error("a watch that ended reports")
	}
}

func TestNativePopupsNeverOpenWhileSomebodyWatches(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{"/": fieldsPage, "/inner": innerPage}, "/")
	var n notes
	watch := w.tabs.Native(n.show)
	defer watch.Close()
	for i, label := range []string{"list", "day", "paint"} {
		f := n.field(t, label)
		for _, kind := range []string{"down", "up"} {
			if err := tab.Point(ctx, page.Pointer{Kind: kind, X: f.X + f.Width - 8, Y: f.Y + 10, Finger: -1, Button: "left", Clicks: 1}, nil); err != nil {
				t.Fatal(err)
			}
		}
		testwait.For(t, "it is said which picker is wanted", func() bool {
			a := n.last().Asked
			return a != nil && a.ID == f.ID && a.Number == i+1 && n.last().Focus == f.ID
		})
	}
	choose := func(label string, values ...string) error {
		var all []secret.Text
		for _, v := range values {
			all = append(all, secret.New(v))
		}
		return tab.Choose(ctx, n.field(t, label).ID, all)
	}
	for label, value := range map[string]string{"list": "a", "day": "2031-02-03", "paint": "#ff0000"} {
		if err := choose(label, value); err != nil {
			t.Errorf("choose in %s: %v", label, err)
		}
		if got := w.eval(ctx, t, tab, `document.querySelector('[aria-label=`+label+`]').value`); got != value {
			t.Errorf("%s is %q", label, got)
		}
	}
	for what, err := range map[string]error{
		"a disabled choice": choose("list", "c"), "no choice": choose("list", "z"), "no date": choose("day", "soon"), "a date too early": choose("day", "2020-01-01"), "a text": choose("plain", "x"),
	} {
		if err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

// standIn is a control of the viewer's own, as a phone has one.
type standIn struct {
	tab   *page.Tab
	id    string
	value string
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

// becomes is one change of the control, and takes over what the page made of it.
func (s *standIn) becomes(ctx context.Context, t *testing.T, value string, caret int) {
	t.Helper()
	base := secret.New(s.value)
	got, err := s.tab.Edit(ctx, page.NativeEdit{ID: s.id, Value: secret.New(value), Base: &base, Caret: caret})
	if err != nil {
		t.Fatalf("%q becomes %q: %v", s.value, value, err)
	}
	s.value = value
	if got.Value != nil {
		s.value = *got.Value
	}
}

func (s *standIn) types(ctx context.Context, t *testing.T, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		s.becomes(ctx, t, s.value+p, units(s.value+p))
	}
}

const typingPage = `<!doctype html><title>typing</title><body>
<input id=plain aria-label=plain>
<input id=email aria-label=email type=email>
<input id=number aria-label=number type=number step=any>
<input id=pass aria-label=pass type=password>
<textarea id=area aria-label=area></textarea>
<div id=rich aria-label=rich contenteditable style="width:300px;min-height:20px;border:1px solid"></div>
<input id=controlled aria-label=controlled>
<input id=mask aria-label=mask>
<input id=short aria-label=short maxlength=5>
<span id=codes><input aria-label=box1 maxlength=1><input aria-label=box2 maxlength=1><input maxlength=1><input maxlength=1></span>
<input id=first aria-label=first maxlength=3><input id=second aria-label=second maxlength=3>
<iframe src="OTHER/inner" style="width:300px;height:60px"></iframe>
<script>
// As a framework with controlled fields does it: the value is the state's.
let state = ''
const put = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set
controlled.addEventListener('input', e => { state = e.target.value; queueMicrotask(() => put.call(controlled, state)) })
// A mask in groups of four digits.
mask.addEventListener('input', () => { mask.value = mask.value.replace(/\D/g, '').replace(/(.{4})(?=.)/g, '$1 ') })
// Boxes that hand the focus on.
const boxes = [...codes.children]
boxes.forEach((b, i) => b.addEventListener('input', () => b.value && boxes[i + 1]?.focus()))
first.addEventListener('input', () => first.value.length === 3 && second.focus())
</script>`

func TestWhatAPersonTypesArrivesExactly(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{"/": typingPage, "/inner": `<!doctype html><input id=inner aria-label=inner>`}, "/")
	var n notes
	watch := w.tabs.Native(n.show)
	defer watch.Close()

	long := strings.Repeat("Lorem ipsum dolor sit amet, ", 72)[:2000]
	corpus := []struct {
		name string
		do   func(t *testing.T, s *standIn)
		want string
	}{
		{"umlauts", func(t *testing.T, s *standIn) { s.types(ctx, t, "G", "r", "ü", "ß", " ", "Ö", "k") }, "Grüß Ök"},
		{"a Chinese composition", func(t *testing.T, s *standIn) {
			if err := tab.Focus(ctx, s.id); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"n", "ni", "nih", "niha", "nihao"} {
				if err := tab.Compose(ctx, secret.New(part), int64(len(part)), int64(len(part))); err != nil {
					t.Fatal(err)
				}
			}
			s.types(ctx, t, "你好")
		}, "你好"},
		{"Arabic", func(t *testing.T, s *standIn) { s.types(ctx, t, "م", "ر", "ح", "ب", "ا") }, "مرحبا"},
		{"emoji with a skin tone, one of them deleted", func(t *testing.T, s *standIn) {
			s.types(ctx, t, "a", "👍🏽", "👨‍👩‍👧", "b")
			s.becomes(ctx, t, "a👍🏽b", units("a👍🏽"))
			s.becomes(ctx, t, "a👍🏿b", units("a👍🏿"))
		}, "a👍🏿b"},
		{"autocorrect replaces a word", func(t *testing.T, s *standIn) {
			s.types(ctx, t, "I", " ", "t", "e", "h", " ")
			s.becomes(ctx, t, "I the ", 6)
			s.types(ctx, t, "end")
		}, "I the end"},
		{"an insertion between the same letters", func(t *testing.T, s *standIn) {
			s.types(ctx, t, "aaaa")
			s.becomes(ctx, t, "aaXaa", 3)
			s.becomes(ctx, t, "aaaXaa", 2)
		}, "aaaXaa"},
		{"2,000 pasted characters", func(t *testing.T, s *standIn) { s.types(ctx, t, long) }, long},
		{"20 fast backspaces", func(t *testing.T, s *standIn) {
			s.types(ctx, t, "The quick brown fox jumps over it")
			for range 20 {
				s.becomes(ctx, t, s.value[:len(s.value)-1], len(s.value)-1)
			}
		}, "The quick bro"},
		{"everything replaced", func(t *testing.T, s *standIn) {
			s.types(ctx, t, "old")
			s.becomes(ctx, t, "brand new", 9)
		}, "brand new"},
	}
	read := func(t *testing.T, id string) string {
		t.Helper()
		if id == "inner" {
			return *n.field(t, "inner").Value
		}
		got, err := url.PathUnescape(w.eval(ctx, t, tab, `encodeURIComponent(`+id+`.value ?? `+id+`.innerText)`))
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(got, "\u00a0", " ")
	}
	for _, id := range []string{"plain", "controlled", "area", "rich", "inner"} {
		for _, c := range testwait.Some(3, corpus) {
			t.Run(c.name+" into "+id, func(t *testing.T) { //nolint:paralleltest // one keyboard
				s := &standIn{tab: tab, id: n.field(t, id).ID}
				c.do(t, s)
				testwait.For(t, c.want[:min(len(c.want), 40)]+" is in the field", func() bool { return read(t, id) == c.want })
				if s.value != c.want {
					t.Errorf("the stand-in holds %q", s.value)
				}
				s.becomes(ctx, t, "", 0)
				testwait.For(t, "it is empty again", func() bool { return read(t, id) == "" || read(t, id) == "\n" })
			})
		}
	}
}

func TestFieldsWithAMindOfTheirOwn(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{"/": typingPage, "/inner": `<!doctype html>`}, "/")
	var n notes
	watch := w.tabs.Native(n.show)
	defer watch.Close()
	in := func(label string) *standIn { return &standIn{tab: tab, id: n.field(t, label).ID} }
	value := func(id string) string { return w.eval(ctx, t, tab, `document.getElementById('`+id+`').value`) }
	is := func(id, want string) {
		t.Helper()
		if got := value(id); got != want {
			t.Errorf("%s holds %q, want %q", id, got, want)
		}
	}

	s := in("mask")
	s.types(ctx, t, "4", "2", "4", "2", "4", "2", "4", "2", "1")
	is("mask", "4242 4242 1")
	if s.value != "4242 4242 1" {
		t.Errorf("the stand-in holds %q", s.value)
	}
	// A change on its way while the page put its mark in: the base is not the field's.
	base := secret.New("424242421")
	if _, err := tab.Edit(ctx, page.NativeEdit{ID: s.id, Value: secret.New("4242942421"), Base: &base, Caret: 5}); err != nil {
		t.Fatal(err)
	}
	is("mask", "4242 9424 21")
	// Somebody else typed since the stand-in was last told what there is.
	w.eval(ctx, t, tab, `void (plain.value = 'Zoë', pass.value = 'old')`)
	for _, label := range []string{"plain", "pass"} {
		if _, err := tab.Edit(ctx, page.NativeEdit{ID: in(label).id, Value: secret.New(" Ünal"), Base: &secret.Text{}, Caret: 5}); err != nil {
			t.Fatal(err)
		}
	}
	is("plain", "Zoë Ünal")
	is("pass", " Ünal")
	w.eval(ctx, t, tab, `void (pass.value = '')`)

	s = in("email")
	s.types(ctx, t, "a", "@", "b.example")
	s.becomes(ctx, t, "ax@b.example", 2)
	s.becomes(ctx, t, "ax@b.exampl", 11)
	is("email", "ax@b.exampl")

	s = in("number")
	s.types(ctx, t, "1", ".", "5")
	is("number", "1.5")
	s.becomes(ctx, t, "1.", 2)
	s.becomes(ctx, t, "1.7", 3)
	is("number", "1.7")

	s = in("short")
	s.types(ctx, t, "1234567")
	is("short", "12345")
	if s.value != "12345" {
		t.Errorf("the stand-in holds %q", s.value)
	}

	s = in("first")
	s.types(ctx, t, "1", "2", "3")
	testwait.For(t, "the page moves on to the next field", func() bool { return n.last().Focus == n.field(t, "second").ID })
	is("first", "123")

	s = in("pass")
	s.types(ctx, t, "s", "3cret")
	is("pass", "s3cret")
	if got, err := tab.Edit(ctx, page.NativeEdit{ID: s.id, Value: secret.New("other"), Caret: 5}); err != nil || got.Value != nil || !got.Masked || *got.Length != 5 || !got.Same {
		t.Errorf("a whole new password: %+v %v", got, err)
	}
	is("pass", "other")

	if _, err := tab.Edit(ctx, page.NativeEdit{ID: in("box1").id, Value: secret.New("1234"), Base: &secret.Text{}, Caret: 4}); err != nil {
		t.Error(err)
	}
	if got := w.eval(ctx, t, tab, `boxes.map(b => b.value).join('')`); got != "1234" {
		t.Errorf("a whole code in its first box became %q", got)
	}
	// The stand-in of the second box was typed into before it was known that the
	// first one's text had filled it.
	w.eval(ctx, t, tab, `void boxes.forEach(b => { b.value = '' })`)
	for _, e := range []struct{ box, base, value string }{{"box1", "", "12"}, {"box2", "", "3"}, {"box2", "2", "24"}} {
		base := secret.New(e.base)
		if _, err := tab.Edit(ctx, page.NativeEdit{ID: in(e.box).id, Value: secret.New(e.value), Base: &base, Caret: len(e.value)}); err != nil {
			t.Error(err)
		}
	}
	if got := w.eval(ctx, t, tab, `boxes.map(b => b.value).join('')`); got != "1234" {
		t.Errorf("a code typed faster than its boxes are told of became %q", got)
	}

	w.eval(ctx, t, tab, `void (second.readOnly = true, plain.remove())`)
	plain, _ := tab.Edit(ctx, page.NativeEdit{ID: in("second").id, Value: secret.New("x"), Caret: 1})
	if plain.Same {
		t.Error("a read-only field took it")
	}
	for name, id := range map[string]string{"nothing": "", "a word": "x.y", "another frame": "99.1", "a made-up id": "1.12"} {
		if _, err := tab.Edit(ctx, page.NativeEdit{ID: id, Value: secret.New("x")}); err == nil || fault.Of(err).Code == fault.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
}
