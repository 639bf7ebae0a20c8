package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// The pages everything is measured on, made here so that a run needs no network.
var sitePages = map[string]func() string{
	"light": func() string {
		return `<h1>A light page</h1><p>Some text, a <a href="#">link</a> and a <button>button</button>.</p>`
	},
	"heavy": heavyPage, "form": formPage, "images": imagesPage, "list": listPage,
	"animating": func() string {
		return `<h1>Always moving</h1><canvas id=c width=600 height=300></canvas><div id=b></div>
<style>#b{width:80px;height:80px;background:#06c;animation:go 2s linear infinite}@keyframes go{to{transform:translateX(900px) rotate(360deg)}}</style>
<script>const p = c.getContext("2d"); let n = 0; const draw = () => { n++; p.fillStyle = "hsl(" + n % 360 + " 80% 50%)"; p.fillRect(n * 7 % 600, n * 3 % 300, 60, 60); requestAnimationFrame(draw) }; draw()</script>`
	},
	"spa": func() string {
		return `<nav><a href="#/one" id=one>One</a> <a href="#/two" id=two>Two</a></nav><main id=view></main>
<script>let shown = 0
const render = async () => {
  const name = location.hash.slice(2) || "one", items = await (await fetch("/api?of=" + name)).json()
  view.innerHTML = "<h1>View " + name + "</h1><p>shown " + ++shown + "</p><ul>" + items.map(i => "<li><a href='#/" + i + "'>" + i + "</a> <button>Open</button></li>").join("") + "</ul>"
}
addEventListener("hashchange", render); render()</script>`
	},
	"pulse": func() string {
		return `<body style="margin:0;background:red"><script>let n = 0; onmousedown = () => { document.body.style.background = n++ % 2 ? "red" : "blue" }
const move = until => { document.body.style.background = "hsl(" + n++ % 360 + " 80% 50%)"; if (performance.now() < until) requestAnimationFrame(() => move(until)); else rest() }
const rest = () => fetch("/moving").then(() => move(performance.now() + 2000))
rest()</script>`
	},
}

func page(title, body string) string {
	return `<!doctype html><html lang=en><meta charset=utf-8><title>` + title + `</title>
<style>body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto}label{display:block}td{padding:2px 8px}</style>` + body
}

// heavyPage has some 2,900 elements: a table as an administration shows it.
func heavyPage() string {
	var b strings.Builder
	b.WriteString("<h1>Orders</h1><table><thead><tr><th>Order<th>Customer<th>State<th>Total<th>What</tr></thead><tbody>")
	for i := range 260 {
		fmt.Fprintf(&b, `<tr><td><a href="#o%d">#%d</a><td><span>Customer %d</span><td><span class=chip>paid</span><td>$%d.00<td><button>Edit</button> <button>Refund</button></tr>`, i, 1000+i, i, i*17)
	}
	return b.String() + "</tbody></table>"
}

// formPage says of itself what was done to it, so that it can be checked.
func formPage() string {
	var b strings.Builder
	b.WriteString(`<h1>Checkout</h1><button type=button id=go>Continue</button> <button type=button>Cancel</button><p id=said>pressed 0</p><p id=typed></p><form>`)
	for i, label := range []string{"First name", "Last name", "Company", "Street", "City", "Postal code", "Phone", "Email", "Card number", "Expiry"} {
		fmt.Fprintf(&b, `<label for=f%d>%s</label><input id=f%d name=f%d>`, i, label, i, i)
	}
	b.WriteString(`<label>Country <select><option>Austria<option>Denmark<option>France</select></label>
<label><input type=checkbox> I accept the <a href="#terms">terms</a></label></form>
<script>let n = 0; go.onclick = () => said.textContent = "pressed " + ++n; f0.oninput = () => typed.textContent = "typed " + f0.value</script>`)
	return b.String()
}

func imagesPage() string {
	var b strings.Builder
	b.WriteString("<h1>Pictures</h1>")
	for i := range 48 {
		fmt.Fprintf(&b, `<img src="/image?n=%d" width=200 height=150 alt="Picture %d"> `, i, i)
	}
	return b.String()
}

func listPage() string {
	var b strings.Builder
	b.WriteString("<h1>Everything</h1><ul>")
	for i := range 1500 {
		fmt.Fprintf(&b, `<li><a href="#i%d">Entry number %d</a> with a few words about it</li>`, i, i)
	}
	return b.String() + "</ul>"
}

// picture is noise, which no encoder can make small.
var picture = sync.OnceValue(func() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 200, 150))
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same noise each time
	for y := range 150 {
		for x := range 200 {
			v := uint8(r.UintN(64))
			img.Set(x, y, color.RGBA{uint8(x), uint8(y), v, 255})
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // into memory: there is nothing to fail
	return b.Bytes()
})

// serveSite serves the pages. Nothing may be cached: the tenth visit costs what
// the first did.
func serveSite() *httptest.Server {
	made := map[string][]byte{}
	for name, make := range sitePages {
		made["/"+name] = []byte(page(name, make()))
	}
	moving := make(chan struct{})
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		switch body, ok := made[r.URL.Path]; {
		case ok:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(body)
		case r.URL.Path == "/image":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write(picture())
		case r.URL.Path == "/move": // one page that pulses does not stop for two seconds
			select {
			case moving <- struct{}{}:
			case <-r.Context().Done():
			}
		case r.URL.Path == "/moving":
			select {
			case <-moving:
			case <-r.Context().Done():
			}
		case r.URL.Path == "/api":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`["a","b","c","d","e","f","g","h"]`))
		default:
			http.NotFound(w, r)
		}
	}))
}
