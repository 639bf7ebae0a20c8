package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

const entrusted = "canary-Entrusted-5d!"

// here is the site of the tests' pages; OTHER in a page is another one.
const here, other = "127.0.0.1", "localhost"

func trust(selector string) []page.Field {
	return []page.Field{{Locator: css(selector), Value: secret.New(entrusted), Only: here, Hidden: true}}
}

// listening makes a page report everything that is typed into it.
const listening = `<script>
window.heard = ''
for (const kind of ['keydown', 'keypress', 'beforeinput', 'input', 'paste', 'change'])
  addEventListener(kind, e => { window.heard += kind + ':' + (e.key ?? '') + (e.data ?? '') + (e.target.value ?? '') + ' ' }, true)
</script>`

func TestWhatBelongsToASiteIsTypedThereAlone(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, map[string]string{
		"/":        `<input id=p type=password><input id=u><textarea id=a></textarea><div id=e contenteditable>old</div><input id=n type=number><select id=s><option>a</select><input id=ro readonly>`,
		"/framed":  `<iframe src="/inner" width=300 height=100></iframe>`,
		"/inner":   `<input id=p type=password>`,
		"/phished": listening + `<input id=mine autofocus><iframe src="OTHER/inner" width=300 height=100></iframe>`,
		"/ringed":  `<iframe src="OTHER/ring" width=300 height=200></iframe>`,
		"/ring":    `<script>document.write('<iframe width=200 height=100 src="http://127.0.0.1:' + location.port + '/inner"></iframe>')</script>`,
		"/srcdoc":  `<iframe srcdoc="<input id=p type=password>" width=300 height=100></iframe>`,
		"/opaque":  `<iframe sandbox="allow-scripts" srcdoc="<input id=p type=password>" width=300 height=100></iframe>`,
		"/shadow":  `<div id=host></div><script>host.attachShadow({mode:'open'}).innerHTML = '<input id=p type=password>'</script>`,
		"/react":   controlled + `<input id=p><script>controlled(p, v => window.state = v)</script>`,
	})
	for name, tt := range map[string]struct {
		path, selector, read string
		at                   string
	}{
		"a password field":        {"/", "#p", "p.value", ""},
		"a plain field":           {"/", "#u", "u.value", ""},
		"a text area":             {"/", "#a", "a.value", ""},
		"a rich editor":           {"/", "#e", "e.textContent", ""},
		"a frame of the site":     {"/framed", "#p", "frames[0].p.value", ""},
		"a field in a shadow":     {"/shadow", "#p", "host.shadowRoot.querySelector('#p').value", ""},
		"a field that React owns": {"/react", "#p", "window.state", ""},
	} {
		t.Run("into "+name, func(t *testing.T) {
			d.open(ctx, t, tt.path)
			if _, err := d.tab.Fill(ctx, trust(tt.selector), testwait.Limit()); err != nil {
				t.Fatal(err)
			}
			d.says(ctx, t, tt.read, entrusted)
		})
	}
	for name, tt := range map[string]struct {
		path string
		says []string // in the refusal
	}{
		"the same page under another name":        {"OTHER/", []string{here, other}},
		"a frame of another site":                 {"/phished", []string{here, other}},
		"a frame of the site inside another's":    {"OTHER/ring", []string{here, other}},
		"a frame whose address is its parent's":   {"/srcdoc", []string{here, "without an address"}},
		"a frame that may not say whose it is":    {"/opaque", []string{here, "without an address"}},
		"a frame of the site in a ring of others": {"/ringed", []string{here, other}},
	} {
		t.Run("not into "+name, func(t *testing.T) {
			address := d.URL + tt.path
			if path, ok := strings.CutPrefix(tt.path, "OTHER"); ok {
				address = strings.Replace(d.URL, here, other, 1) + path
			}
			if _, err := d.tab.Navigate(ctx, address, page.WaitLoad); err != nil {
				t.Fatal(err)
			}
			got, err := d.tab.Fill(ctx, trust("#p"), testwait.Limit())
			if !errors.Is(err, fault.Forbidden) || len(got) != 1 || got[0].OK {
				t.Fatalf("%+v, %v", got, err)
			}
			for _, word := range tt.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the refusal does not say %q: %v", word, err)
				}
			}
			if strings.Contains(err.Error()+fault.Of(err).Advice(), entrusted) {
				t.Error("the value is in the refusal")
			}
			if path := tt.path; path == "/phished" {
				d.says(ctx, t, "String(heard) + mine.value", "")
			}
		})
	}
	for selector, code := range map[string]fault.Code{"#s": fault.ElementNotActionable, "#ro": fault.ElementNotActionable, "#n": fault.ElementNotActionable} {
		d.open(ctx, t, "/")
		if _, err := d.tab.Fill(ctx, trust(selector), soon); !errors.Is(err, code) {
			t.Errorf("%s: %v", selector, err)
		}
	}
}

func TestPlainHTTPIsForLoopbackAlone(t *testing.T) {
	t.Parallel()
	for place, want := range map[string]string{
		"https://chase.com": "", "https://secure05.chase.com": "", "https://chase.com:8443": "", "https://CHASE.com.": "",
		"http://chase.com": "plain http", "ws://chase.com": "plain http", "null": "without an address", "": "without an address", "file://": "without an address",
		"https://chase.com.evil.example": "evil.example", "https://chasecom": "chasecom", "https://chаse.com": "xn--", "https://xchase.com": "xchase.com",
		"https://chase.co": "chase.co", "https://com": "com", "data:text/html,x": "without an address", "https://1.2.3.4": "1.2.3.4",
	} {
		err := page.Belongs(place, "chase.com")
		if want == "" && err != nil || want != "" && (!errors.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", place, err)
		}
	}
	for place, only := range map[string]string{
		"http://127.0.0.1:8080": "127.0.0.1", "http://localhost": "localhost", "http://[::1]:80": "::1", "http://bank.localhost": "bank.localhost",
	} {
		if err := page.Belongs(place, only); err != nil {
			t.Errorf("%s: %v", place, err)
		}
	}
	for place, only := range map[string]string{"http://192.168.1.1": "192.168.1.1", "http://localhost.example": "localhost.example", "http://127.0.0.1.example": "0.1.example"} {
		if err := page.Belongs(place, only); !errors.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// The pages go to another site the moment that they can know of the value to
// come, and are all ears there.
func TestAPageThatMovesOnTakesNothingWithIt(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	ear := listening + `<input id=p autofocus style="position:fixed;inset:0"><script>
	  document.title = 'ear'
	  p.focus()
	  setInterval(() => { p.focus(); if (parent !== window) parent.postMessage('alive ' + heard, '*') }, 5)
	  globalThis.tapin = { entrust: args => ({ type: a => { window.heard += 'stolen:' + a.value } }), hold: () => ({ focused: true }), field: () => ({}) }
	</script>`
	// told is for pages that stay, with an ear in a frame.
	const told = `<script>onmessage = e => { document.title = e.data }</script>`
	// busy keeps the page from taking the next key until others had time to act.
	const busy = `for (const t = performance.now(); performance.now() - t < 100;);`
	leave := `location.href = 'OTHER/ear'`
	pages := map[string]string{
		"/ear":     ear,
		"/focus":   `<input id=p onfocus="` + leave + `">`,
		"/look":    `<input id=p><script>new IntersectionObserver(() => setTimeout(() => ` + leave + `, 30)).observe(p)</script>`,
		"/input":   `<input id=p oninput="` + leave + `">`,
		"/steal":   told + `<input id=p onfocus="frames[0].focus()"><iframe src="OTHER/ear"></iframe>`,
		"/slow":    `<input id=p onkeydown="` + leave + `; ` + busy + `">`,
		"/slowly":  told + `<input id=p onkeydown="` + busy + `"><iframe src="OTHER/ear"></iframe>`,
		"/replace": told + `<input id=p onfocus="document.body.innerHTML = '<iframe src=OTHER/ear></iframe>'">`,
	}
	for delay := range 12 { // a clock that knows nothing of us
		pages[fmt.Sprintf("/clock%d", delay)] = fmt.Sprintf(`<input id=p><script>setTimeout(() => %s, %d)</script>`, leave, delay*8)
	}
	d := sitAt(ctx, t, pages)
	for path := range pages {
		if path == "/ear" {
			continue
		}
		t.Run(path[1:], func(t *testing.T) {
			if _, err := d.tab.Navigate(ctx, d.URL+path, page.WaitCommit); err != nil {
				t.Fatal(err)
			}
			_, err := d.tab.Fill(ctx, trust("#p"), 3*time.Second)
			if err != nil && !errors.Is(err, fault.Forbidden) && !errors.Is(err, fault.ElementNotActionable) && !errors.Is(err, fault.ElementNotFound) {
				t.Errorf("it ended with %v", err)
			}
			if strings.HasPrefix(pages[path], told) {
				title := ""
				if !testwait.Comes(func() bool {
					title = d.eval(ctx, t, d.tab, "new Promise(done => requestAnimationFrame(() => done(document.title)))")
					return strings.HasPrefix(title, "alive")
				}) || !strings.HasPrefix(title, "alive") || strings.Contains(title, "canary") || strings.Contains(title, "stolen") {
					t.Errorf("the ear in the frame says %q", title)
				}
				return
			}
			if err := d.tab.WaitFor(ctx, page.WaitOptions{URL: "/ear", State: "load", Timeout: testwait.Limit()}); err != nil {
				t.Fatal(err)
			}
			d.says(ctx, t, `heard.includes('canary') || heard.includes('stolen') || document.querySelector('#p').value !== ''`, "false")
		})
	}
}

func TestWhatIsHiddenIsNotReadBack(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w := visitIn(t, browsertest.Alone(t), map[string]string{
		"/": `<title>Sign in</title><style>input{font:30px monospace;width:500px;display:block}</style>
			<form action=/echo><input id=u name=u></form><p id=echo></p><input id=second>
			<button id=draw onclick="u.outerHTML = '<input id=again value=\'' + u.value + '\'>'">draw</button>
			<button id=carry onclick="second.value = 'is ' + u.value">carry</button>
			<button id=tell onclick="echo.textContent = 'You typed ' + u.value; document.title = u.value">tell</button>
			<button id=shout onclick="alert('It is ' + u.value)">shout</button>
			<button id=send onclick="document.forms[0].submit()">send</button>`,
		"/echo": `<title>Echo</title><p id=out></p><script>out.textContent = decodeURIComponent(location.search)</script>`,
	}, page.Look{})
	d := desk{w, w.front(ctx, t)}
	unreadable := func(t *testing.T, what string) {
		t.Helper()
		shot, err := d.tab.Snapshot(ctx, page.SnapshotOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, _, err := d.tab.Text(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.tabs.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		url, title := d.tab.Address()
		picture, err := d.tab.Screenshot(ctx, page.ShotOptions{Asked: true})
		if err != nil {
			t.Fatal(err)
		}
		for where, said := range map[string]string{
			"outline": shot.Text, "its address": shot.URL, "its title": shot.Title, "text": text, "address": url, "title": title,
			"the picture's address": picture.URL, "the picture's title": picture.Title,
		} {
			if strings.Contains(said, "Entrusted") {
				t.Errorf("%s: it is in the %s: %s", what, where, said)
			}
		}
	}
	fill := func(t *testing.T) {
		t.Helper()
		d.open(ctx, t, "/")
		if _, err := d.tab.Fill(ctx, trust("#u"), 0); err != nil {
			t.Fatal(err)
		}
	}
	click := func(t *testing.T, id string) {
		t.Helper()
		if _, err := d.tab.Click(ctx, css(id), page.ClickOptions{}); err != nil && !errors.Is(err, fault.DialogOpen) {
			t.Fatal(err)
		}
	}
	probes := []page.Locator{
		css(`#u[value^="c"]`), css(`#u[ VALUE *= c i]`), css(`:has([*|value$="d!"])`), css(`#u[v\61lue^=c]`),
		{XPath: `//input[starts-with(@value, "c")]`}, {XPath: `//@*[contains(., "c")]/..`}, {XPath: `//input[attribute::value]`},
	}
	d.open(ctx, t, "/")
	d.eval(ctx, t, d.tab, `u.setAttribute('value', 'canary d!')`)
	for _, asks := range testwait.Some(2, probes) {
		if err := d.tab.WaitFor(ctx, page.WaitOptions{Locator: &asks, Timeout: soon}); errors.Is(err, fault.Forbidden) {
			t.Errorf("%s before anything is hidden: %v", asks, err)
		}
	}

	fill(t)
	unreadable(t, "just typed")
	d.says(ctx, t, "u.value", entrusted)
	dark(ctx, t, d, "#u")
	click(t, "#carry")
	unreadable(t, "carried over")
	dark(ctx, t, d, "#second")
	click(t, "#draw")
	unreadable(t, "drawn anew")
	dark(ctx, t, d, "#again")

	fill(t)
	click(t, "#tell")
	unreadable(t, "said aloud")

	fill(t)
	click(t, "#shout")
	if dialog := d.tab.Dialog(); dialog == nil || strings.Contains(dialog.Message, "Entrusted") || !strings.HasPrefix(dialog.Message, "It is") {
		t.Errorf("shouted: %+v", dialog)
	}
	if err := d.tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}

	// Nor can it be asked for letter by letter.
	d.open(ctx, t, "/")
	for _, asks := range testwait.Some(3, probes) {
		if err := d.tab.WaitFor(ctx, page.WaitOptions{Locator: &asks, Timeout: soon}); !errors.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", asks, err)
		}
		if err := d.tab.WaitFor(ctx, page.WaitOptions{Locator: &asks, State: "hidden", Timeout: soon}); !errors.Is(err, fault.Forbidden) {
			t.Errorf("%s to go: %v", asks, err)
		}
		if _, err := d.tab.Click(ctx, asks, page.ClickOptions{Timeout: soon}); !errors.Is(err, fault.Forbidden) {
			t.Errorf("click %s: %v", asks, err)
		}
	}

	// The clipboard carries it nowhere.
	fill(t)
	for _, key := range []string{"Control+A", "Control+C"} {
		if err := d.tab.Press(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.tab.Click(ctx, css("#second"), page.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := d.tab.Press(ctx, "Control+V"); err != nil {
		t.Fatal(err)
	}
	d.says(ctx, t, "second.value", "")

	fill(t)
	click(t, "#send")
	if err := d.tab.WaitFor(ctx, page.WaitOptions{URL: "/echo", State: "load"}); err != nil {
		t.Fatal(err)
	}
	unreadable(t, "sent by address")
}

// dark makes sure that a picture shows nothing of a field.
func dark(ctx context.Context, t *testing.T, d desk, selector string) {
	t.Helper()
	var box struct{ X, Y, W, H float64 }
	place := d.eval(ctx, t, d.tab, `(r => JSON.stringify({X: r.x, Y: r.y, W: r.width, H: r.height}))(document.querySelector("`+selector+`").getBoundingClientRect())`)
	if err := json.Unmarshal([]byte(place), &box); err != nil {
		t.Fatal(err)
	}
	shot, err := d.tab.Screenshot(ctx, page.ShotOptions{})
	shown := picture(t, shot, err)
	for i := range 100 {
		at := image.Pt(int(box.X+box.W*float64(i)/100), int(box.Y+box.H/2))
		if hex(shown.At(at.X, at.Y)) != "000000" {
			t.Fatalf("%s shows something at %v: %s", selector, at, hex(shown.At(at.X, at.Y)))
		}
	}
}

func TestACodeGoesIntoItsBoxes(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	boxes := strings.Repeat(`<input maxlength=1 inputmode=numeric>`, 6)
	d := sitAt(ctx, t, map[string]string{
		"/lazy": `<form>` + boxes + `</form>`,
		"/moves": `<form>` + boxes + `</form><script>
			const all = [...document.querySelectorAll('input')]
			all.forEach((b, i) => b.oninput = () => setTimeout(() => all[i + 1]?.focus(), 20))</script>`,
		"/one": `<input autocomplete=one-time-code>`,
	})
	for path := range map[string]int{"/lazy": 0, "/moves": 0, "/one": 0} {
		d.open(ctx, t, path)
		code := page.Field{Locator: css("input"), Value: secret.New("271828"), Only: here, Hidden: true}
		if path != "/one" {
			code.Locator = css("input:first-child")
		}
		if _, err := d.tab.Fill(ctx, []page.Field{code}, 0); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		d.says(ctx, t, `[...document.querySelectorAll('input')].map(b => b.value).join('')`, "271828")
		if shot, err := d.tab.Snapshot(ctx, page.SnapshotOptions{}); err != nil || strings.Count(shot.Text, "= ‹hidden›") != strings.Count(shot.Text, "textbox") {
			t.Errorf("%s: %s, %v", path, shot.Text, err)
		}
	}
}
