package page_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

func TestSelectChoosesFromListsOfAllKinds(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const list = `<select id=s onchange="top.postMessage(this.value, '*')"><option value=a>Alpha<option value=b>Beta</select>`
	d := sitAt(ctx, t, map[string]string{
		"/": `<title>t</title><label for=one>Fruit</label><select id=one><option value=1>Apple</option><optgroup label=More><option value=2>Big  Pear</option></optgroup><optgroup label=No disabled><option>Gone</option></optgroup><option disabled>Sold out</option></select>
			<select id=many multiple><option>x<option>y<option>z</select><select id=late></select><select id=dis disabled><option>q</select>
			<div id=host></div>
			<div id=combo role=combobox tabindex=0 aria-controls=pop aria-expanded=false>Choose</div><ul id=pop role=listbox hidden><li role=option>Dark red</li><li role=option>Red</li><li role=option aria-disabled=true>Blue</li></ul>
			<input id=type role=combobox aria-controls=found><ul id=found role=listbox></ul><script>
			const events = []; for (const el of [one, many]) for (const n of ['input', 'change']) el.addEventListener(n, () => events.push(el.id + n))
			setTimeout(() => late.innerHTML = '<option value=l>Late</option>', 300)
			host.attachShadow({mode: 'open'}).innerHTML = '<select id=inner><option>i<option>j</select>'
			combo.onclick = () => setTimeout(() => { pop.hidden = false; combo.setAttribute('aria-expanded', 'true') }, 50)
			pop.onclick = e => { combo.textContent = e.target.textContent; pop.hidden = true; combo.setAttribute('aria-expanded', 'false') }
			type.oninput = () => { found.innerHTML = type.value ? '<li role=option>' + type.value + ' City</li><li role=option>' + type.value + '</li>' : '' }
			found.onclick = e => { type.value = 'chose ' + e.target.textContent; found.innerHTML = '' }
			</script>`,
		"/frame": `<title></title><iframe src="OTHER/list"></iframe><script>onmessage = e => document.title = e.data</script>`,
		"/list":  list,
	})
	d.open(ctx, t, "/")
	for _, tt := range []struct {
		locator    page.Locator
		values     []string
		chosen     string
		read, want string
	}{
		{page.Locator{Label: "Fruit"}, []string{"2"}, "Big Pear", "one.value", "2"},
		{css("#one"), []string{"apple"}, "Apple", "one.value", "1"},
		{css("#one"), []string{"Big Pear"}, "Big Pear", "one.value", "2"},
		{css("#one"), []string{"0"}, "Apple", "one.value", "1"},
		{css("#many"), []string{"x", "z"}, "x,z", "[...many.selectedOptions].map(o => o.value).join()", "x,z"},
		{css("#late"), []string{"Late"}, "Late", "late.value", "l"},
		{css("#inner"), []string{"j"}, "j", "host.shadowRoot.querySelector('select').value", "j"},
		{css("#combo"), []string{"red"}, "Red", "combo.textContent", "Red"},
		{css("#type"), []string{"York"}, "York", "type.value", "chose York"},
	} {
		got, err := d.tab.Select(ctx, tt.locator, tt.values, 0)
		if err != nil || strings.Join(got, ",") != tt.chosen {
			t.Errorf("%s: %q, %v", tt.locator, got, err)
			continue
		}
		d.says(ctx, t, tt.read, tt.want)
	}
	d.says(ctx, t, "events.join()", "oneinput,onechange,oneinput,onechange,oneinput,onechange,oneinput,onechange,manyinput,manychange")
	for _, tt := range []struct {
		selector string
		values   []string
		code     fault.Code
		says     string
	}{
		{"#one", []string{"Sold out"}, fault.ElementNotActionable, "disabled"},
		{"#one", []string{"Gone"}, fault.ElementNotActionable, "disabled"},
		{"#one", []string{"Kiwi"}, fault.ElementNotFound, "Apple, Big Pear"},
		{"#one", []string{"1", "2"}, fault.InvalidRequest, "exactly one"},
		{"#one", nil, fault.InvalidRequest, "nothing to select"},
		{"#dis", []string{"q"}, fault.ElementNotActionable, "disabled"},
		{"#combo", []string{"Blue"}, fault.ElementNotActionable, "disabled"},
		{"#combo", []string{"Green"}, fault.ElementNotFound, "Dark red, Red, Blue"},
	} {
		_, err := d.tab.Select(ctx, css(tt.selector), tt.values, soon)
		if !errors.Is(err, tt.code) || !strings.Contains(err.Error()+fault.Of(err).Advice(), tt.says) {
			t.Errorf("%s %v: %v (%s)", tt.selector, tt.values, err, fault.Of(err).Advice())
		}
	}
	d.open(ctx, t, "/frame")
	if _, err := d.tab.Select(ctx, css("#s"), []string{"Beta"}, 0); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the choice in the frame", func() bool { return d.title(ctx, t) == "b" })
}

func TestUploadFindsTheInputBehindWhatIsShown(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	const says = ` onchange="top.postMessage([...this.files].map(f => f.name + ':' + f.size).join(), '*')"`
	d := sitAt(ctx, t, map[string]string{
		"/": `<title>t</title><script>onmessage = e => document.title = e.data</script>
			<input id=plain type=file` + says + `><input id=hidden type=file multiple accept=".png,image/*" hidden` + says + `>
			<label id=label for=labelled>Photo</label><input id=labelled type=file style="display:none"` + says + `>
			<button id=button>Attach</button><button id=nothing>Nothing</button><input id=dis type=file disabled>
			<iframe src="OTHER/frame"></iframe><script>
			button.onclick = () => { const i = document.createElement('input'); i.type = 'file'; i.onchange = () => document.title = 'chosen ' + i.files[0].name; i.click() }</script>`,
		"/frame": `<input id=framed type=file` + says + `><button id=framedbutton onclick="framed.click()">Attach in frame</button>`,
	})
	d.open(ctx, t, "/")
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.png")
	for _, name := range []string{a, b} {
		if err := os.WriteFile(name, []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		selector string
		files    []string
		want     string
	}{
		{"#plain", []string{a}, "a.txt:5"},
		{"#hidden", []string{a, b}, "a.txt:5,b.png:5"},
		{"#label", []string{b}, "b.png:5"},
		{"#button", []string{a}, "chosen a.txt"},
		{"#framed", []string{b}, "b.png:5"},
		{"#framedbutton", []string{a}, "a.txt:5"},
	} {
		if err := d.tab.Upload(ctx, css(tt.selector), tt.files, testwait.Limit()); err != nil {
			t.Errorf("%s: %v", tt.selector, err)
			continue
		}
		testwait.For(t, "the file in "+tt.selector, func() bool { return d.title(ctx, t) == tt.want })
	}
	for _, tt := range []struct {
		selector string
		files    []string
		code     fault.Code
	}{
		{"#plain", []string{filepath.Join(dir, "missing")}, fault.InvalidRequest},
		{"#plain", []string{dir}, fault.InvalidRequest},
		{"#plain", nil, fault.InvalidRequest},
		{"#plain", []string{a, b}, fault.InvalidRequest},
		{"#button", []string{a, b}, fault.InvalidRequest},
		{"#dis", []string{a}, fault.ElementNotActionable},
		{"#nothing", []string{a}, fault.ElementNotActionable},
	} {
		if err := d.tab.Upload(ctx, css(tt.selector), tt.files, soon); !errors.Is(err, tt.code) {
			t.Errorf("%s %v: %v, not %s", tt.selector, tt.files, err, tt.code)
		}
	}
}
