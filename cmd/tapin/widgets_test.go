package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// widgets is a site of small tasks, one a page. Ids, classes and the order of
// everything whose order means nothing are others each time a page is asked for.
// What was done arrives at the site itself: nothing a page shows is taken for it.
type widgets struct {
	random *rand.Rand

	mu   sync.Mutex
	done map[string]string // task → what was sent in the end
}

func newWidgets(seed uint64) *widgets {
	return &widgets{random: rand.New(rand.NewPCG(seed, 7)), done: map[string]string{}}
}

// ServeHTTP serves the page of a task, or takes down what was done.
func (s *widgets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	task := strings.Trim(r.URL.Path, "/")
	if r.Method == http.MethodPost {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			_ = r.ParseForm()
		}
		s.done[task] = r.FormValue("did")
		_, _ = fmt.Fprint(w, "ok")
		return
	}
	body := s.page(task, r)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if body == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = fmt.Fprintf(w, `<!doctype html><title>%s</title><style>body{font:16px sans-serif}</style>
<script>async function did(what) { await fetch('/%s', {method: 'POST', body: new URLSearchParams({did: what})}); document.querySelector('output').textContent = 'Recorded' }
const val = (name, root) => (root ?? document).querySelector('[data-n=' + name + ']').value</script>
<main>%s</main><output></output>`, task, task, s.scramble(body))
}

// any puts parts in an order of chance.
func (s *widgets) any(parts ...string) string {
	parts = slices.Clone(parts)
	s.random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, "\n")
}

// scramble gives every element that asks for one an id that means nothing.
func (s *widgets) scramble(body string) string {
	for strings.Contains(body, " ID ") {
		body = strings.Replace(body, " ID ", fmt.Sprintf(` id="x%x" class="c%x" `, s.random.Uint32(), s.random.Uint32()), 1)
	}
	return body
}

func (s *widgets) each(names []string, format string) string {
	var parts []string
	for _, name := range names {
		parts = append(parts, strings.ReplaceAll(format, "NAME", name))
	}
	return s.any(parts...)
}

func (s *widgets) page(task string, r *http.Request) string {
	switch task {
	case "text":
		return s.any(`<label>First name <input ID data-n=first></label>`, `<label>Last name <input ID data-n=last></label>`, `<label>Nickname <input ID></label>`) +
			`<button ID onclick="did(val('first') + ' ' + val('last'))">Save</button>`
	case "select":
		return `<label>Delivery <select ID data-n=d>` + s.each([]string{"Standard", "Express", "Pick-up", "Courier"}, `<option value="NAME!">NAME</option>`) + `</select></label>
<button ID onclick="did(val('d'))">Choose</button>`
	case "radio":
		return `<fieldset><legend>Seat</legend>` + s.each([]string{"Window", "Aisle", "Middle"}, `<label><input type=radio name=s value=NAME ID> NAME</label>`) + `</fieldset>
<button ID onclick="did(document.querySelector(':checked').value)">Book</button>`
	case "checkbox":
		return s.each([]string{"Cheese", "Olives", "Onions", "Basil"}, `<label><input type=checkbox value=NAME ID> NAME</label>`) +
			`<label><input type=checkbox value=News checked ID> Send me news</label>
<button ID onclick="did([...document.querySelectorAll(':checked')].map(e => e.value).sort().join())">Order</button>`
	case "date":
		return s.any(`<label>Arrival <input type=date ID data-n=in></label>`, `<label>Departure <input type=date ID data-n=out></label>`) +
			`<button ID onclick="did(val('in') + '/' + val('out'))">Reserve</button>`
	case "slider":
		return `<label>Volume <input type=range min=0 max=100 step=5 value=20 ID data-n=v></label><button ID onclick="did(val('v'))">Apply</button>`
	case "combobox":
		return `<label ID>City <input role=combobox aria-expanded=false aria-autocomplete=list aria-controls=opts data-n=c oninput="fill(this.value)"></label><ul role=listbox id=opts></ul>
<script>let cities = '` + strings.ReplaceAll(s.each([]string{"Vienna", "Vilnius", "Venice", "Verona", "Vigo"}, "NAME"), "\n", " ") + `'.split(/\s+/)
function fill(typed) { const at = document.querySelector('#opts'), box = document.querySelector('[role=combobox]')
  const hits = typed ? cities.filter(c => c.toLowerCase().startsWith(typed.toLowerCase())) : []; box.setAttribute('aria-expanded', String(hits.length > 0))
  at.innerHTML = hits.map(c => '<li role=option onclick="did(this.textContent)">' + c + '</li>').join('') }</script>`
	case "menu":
		return `<button ID aria-haspopup=menu onclick="document.querySelector('[role=menu]').hidden ^= 1">Actions</button><div role=menu hidden>` +
			s.each([]string{"Rename", "Archive", "Delete"}, `<div role=menuitem tabindex=-1 ID onclick="did('NAME')">NAME</div>`) + `</div>`
	case "tabs":
		return `<div role=tablist>` + s.each([]string{"Profile", "Billing", "Security"}, `<button role=tab ID onclick="document.querySelectorAll('[role=tabpanel]').forEach(p => p.hidden = p.dataset.p !== 'NAME')">NAME</button>`) + `</div>` +
			s.each([]string{"Profile", "Billing", "Security"}, `<div role=tabpanel aria-label=NAME hidden data-p=NAME><button ID onclick="did('NAME')">Download</button></div>`)
	case "modal":
		return `<button ID onclick="document.querySelector('dialog').showModal()">Delete account</button><p>Some text</p>
<dialog ID><h2>Are you sure?</h2>` + s.any(`<button ID onclick="did('deleted')">Yes, delete</button>`, `<button ID onclick="this.closest('dialog').close()">Keep it</button>`) + `</dialog>`
	case "upload":
		return `<label>Invoice <input type=file ID data-n=f></label><button ID onclick="document.querySelector('input').files[0].text().then(did)">Send</button>`
	case "table":
		return `<table><caption>Orders</caption><tr><th>Order<th>Total<th></tr>` +
			s.each([]string{"1041", "1042", "1043", "1044"}, `<tr><td>NAME<td>9.90<td><button ID onclick="did('refund NAME')">Refund</button></tr>`) + `</table>`
	case "pagination":
		return `<ul></ul>` + s.any(`<button ID onclick="go(-1)">Previous</button>`, `<button ID onclick="go(1)">Next</button>`) + `
<script>let at = 0; const where = ` + fmt.Sprint(2+s.random.IntN(3)) + `
function go(d) { at = Math.max(0, at + d); document.querySelector('ul').innerHTML = [0, 1, 2].map(i => '<li><button onclick="did(this.textContent)">' + (at === where && i === 1 ? 'Item Q-77' : 'Item ' + at + i) + '</button>').join('') }
go(0)</script>`
	case "drag":
		return s.each([]string{"Milk", "Bread"}, `<div ID role=button aria-label="NAME card" draggable=true style="width:90px;height:30px;border:1px solid" ondragstart="event.dataTransfer.setData('text/plain', 'NAME')">NAME card</div>`) +
			s.each([]string{"Bought", "Wanted"}, `<div ID role=button aria-label="NAME list" style="width:200px;height:60px;border:1px solid" ondragover="event.preventDefault()" ondrop="event.preventDefault(); did(event.dataTransfer.getData('text/plain') + ' in NAME')">NAME list</div>`)
	case "iframe":
		return `<p>Pay below</p><iframe title="Card form" srcdoc="` + s.any(`<label>Holder <input></label>`, `<label>Reference <input data-n=r></label>`) +
			`<button onclick='parent.did(document.querySelector(&quot;[data-n=r]&quot;).value)'>Confirm</button>" width=400 height=200></iframe>`
	case "shadow":
		return `<div ID data-h></div><script>const root = document.querySelector('[data-h]').attachShadow({mode: 'closed'})
root.innerHTML = '<label>Coupon <input></label><button>Redeem</button>'
root.querySelector('button').onclick = () => did(root.querySelector('input').value)</script>`
	case "editable":
		return `<div ID contenteditable role=textbox aria-label="Message" aria-multiline=true style="min-height:60px;border:1px solid"></div>
<button ID onclick="did(document.querySelector('[contenteditable]').innerText.trim())">Send</button>`
	case "infinite":
		return `<div style="height:300px;overflow:auto" data-l tabindex=0 role=list aria-label=Entries></div><script>let n = 0; const list = document.querySelector('[data-l]')
function more() { for (let i = 0; i < 10; i++) { n++; list.insertAdjacentHTML('beforeend', '<div role=listitem style="height:40px"><button onclick="did(this.textContent)">Entry ' + n + '</button></div>') } }
more(); list.onscroll = () => { if (list.scrollTop + 340 > list.scrollHeight && n < 200) more() }</script>`
	case "search":
		return s.any(`<label>Search <input type=search ID data-n=q></label>`, `<label>Colour <select ID data-n=c><option>Any`+s.each([]string{"Red", "Blue"}, `<option>NAME`)+`</select></label>`) + `<ul></ul>
<script>const all = ['Red kettle', 'Blue kettle', 'Red mug', 'Blue mug']
function show() { document.querySelector('ul').innerHTML = all.filter(a => a.toLowerCase().includes(val('q').toLowerCase()) && (val('c') === 'Any' || a.startsWith(val('c')))).map(a => '<li><a href="javascript:did(\'' + a + '\')">' + a + '</a>').join('') }
document.oninput = show; show()</script>`
	}
	return s.wizard(task, r)
}

// wizard is a form over three documents, of which the second wants a person.
func (s *widgets) wizard(task string, r *http.Request) string {
	q := r.URL.Query()
	switch task {
	case "wizard":
		return `<form action=/wizard-2>` + s.any(`<label>Company <input ID name=company></label>`, `<label>Country <select ID name=country>`+s.each([]string{"Austria", "Chile"}, `<option>NAME`)+`</select></label>`) + `<button ID>Continue</button></form>`
	case "wizard-2":
		return `<h1>Are you a person?</h1><form action=/wizard-3><input type=hidden name=so-far value="` + q.Get("company") + ` in ` + q.Get("country") + `">
<label>I am a person <input type=checkbox required name=person value=yes ID></label><button ID>Go on</button></form>`
	case "wizard-3":
		if q.Get("person") != "yes" {
			return ""
		}
		return `<h1>Check</h1><p>` + q.Get("so-far") + `</p><script>history.replaceState(null, '', '/wizard')</script><button ID onclick="fetch('/wizard', {method: 'POST', body: new URLSearchParams({did: '` + q.Get("so-far") + `'})}).then(() => document.querySelector('output').textContent = 'Recorded')">Finish</button>`
	}
	return ""
}
