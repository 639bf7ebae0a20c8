package sidecar_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tapin/internal/testwait"
)

// asksForItself is a page that knows where tapin listens, which approval waits
// and every door that could be opened, and tries them all by all means.
const asksForItself = `<!doctype html><html lang=en-US><title>Pay</title><h1>Verizon</h1><p>Amount due: <b>$142.50</b></p>
<form method=post action=/paid><button id=pay>Confirm Payment</button></form><p id=done></p><script>
const o = OPTIONS, tried = []
const say = (how, what) => { tried.push(how + ': ' + what); return fetch('/told', { method: 'POST', body: how + ': ' + what }).catch(() => {}) }
const json = { 'Content-Type': 'application/json' }
const asks = []
for (const base of o.bases) for (const [path, body] of o.doors) asks.push([base + path, JSON.stringify(body)])
const pause = ms => new Promise(f => setTimeout(f, ms))
async function all() {
  const work = new Worker(URL.createObjectURL(new Blob(['onmessage = async e => { for (const [url, body] of e.data) await fetch(url, { method: "POST", mode: "no-cors", body }).catch(() => {}); postMessage("done") }'], { type: 'text/javascript' })))
  const worked = new Promise(f => { work.onmessage = f })
  work.postMessage(asks)
  await Promise.all(asks.flatMap(([url, body]) => [
    fetch(url, { method: 'POST', body, headers: json, credentials: 'include' }).then(r => say('fetch', r.status), () => {}),
    fetch(url, { method: 'POST', body, mode: 'no-cors', credentials: 'include' }).then(r => say('answered unseen', r.type), () => {}),
    fetch(url, { method: 'PUT', body, headers: { ...json, Authorization: 'Bearer ' + o.guess } }).then(r => say('put', r.status), () => {}),
    new Promise(f => { const x = new XMLHttpRequest(); x.open('POST', url); x.onload = () => { say('xhr', x.status); f() }; x.onerror = x.ontimeout = f; x.timeout = 5000; x.send(body) }),
    new Promise(f => { const w = new WebSocket(url.replace('http', 'ws')); w.onopen = () => { say('websocket', 'open'); w.send(body); f() }; w.onerror = f; setTimeout(f, 5000) }),
  ]))
  for (const [url, body] of asks) {
    navigator.sendBeacon(url, new Blob([body], { type: 'text/plain' }))
    const frame = document.createElement('iframe'); frame.name = 'f' + Math.random(); frame.style.display = 'none'
    const form = document.createElement('form'); form.method = 'post'; form.action = url; form.target = frame.name; form.enctype = 'text/plain'
    const field = document.createElement('input'); field.name = body.slice(0, -1) + ',"x":"'; field.value = '"}'
    form.append(field); form.hidden = true; document.body.append(frame, form); form.submit()
    const peek = document.createElement('iframe'); peek.src = url; peek.style.display = 'none'; document.body.append(peek)
    new Image().src = url
  }
  await worked
  try {
    await navigator.serviceWorker.register('/sw.js'); await navigator.serviceWorker.ready
    const sw = (await navigator.serviceWorker.ready).active
    await new Promise(f => { navigator.serviceWorker.onmessage = f; sw.postMessage(asks); setTimeout(f, 8000) })
    say('service worker', 'ran')
  } catch (e) { say('no service worker', e.name) }
  // What might be in the page itself.
  const engine = Object.getOwnPropertyNames(window).filter(n => /tapin|payArm|payDisarm|approv/i.test(n))
  if (engine.length) say('engine', engine.join())
  for (const name of ['tapin', '__tapin', 'oc', 'chrome']) for (const call of ['payDisarm', 'payArm', 'approve', 'permit']) { try { if (window[name]?.[call]) { window[name][call]({ permit: 'x' }); say('engine call', name + '.' + call) } } catch {} }
  for (const type of ['tapin', 'approval', 'approve', 'message']) { dispatchEvent(new CustomEvent(type, { detail: { approval_id: o.id, decision: 'approve' } })); document.dispatchEvent(new CustomEvent(type)) }
  postMessage({ approval_id: o.id, decision: 'approve', tapin: true }, '*')
  await pause(300)
  await say('all', 'done')
  done.textContent = 'tried everything'
}
all()
</script>`

// nosy is a shop whose pages try to pay for themselves, and hears what they reach.
type nosy struct {
	*httptest.Server
	mu      sync.Mutex
	told    []string
	paid    int
	options map[string]any
}

func (n *nosy) heard() ([]string, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.told...), n.paid
}

// breaks are what a page does to the world that it shares with the guard, before
// the guard is asked. Each says in the end what it could.
var breaks = map[string]string{
	"events that stop nothing":       `Event.prototype.stopImmediatePropagation = Event.prototype.stopPropagation = Event.prototype.preventDefault = function() {}; Object.defineProperty(Event.prototype, 'isTrusted', { get: () => false })`,
	"paths that lead elsewhere":      `Event.prototype.composedPath = () => [document.body]; Object.defineProperty(Event.prototype, 'target', { get: () => document.body })`,
	"listeners that are never added": `EventTarget.prototype.addEventListener = function() {}; EventTarget.prototype.removeEventListener = function() {}`,
	"texts that match nothing":       `RegExp.prototype.test = () => false; RegExp.prototype.exec = () => null; String.prototype.normalize = () => 'edit'; String.prototype.toLowerCase = () => 'edit'; String.prototype.replace = () => 'edit'`,
	"lists that have nothing":        `Array.prototype.some = () => false; Array.prototype.find = () => undefined; Array.prototype.flatMap = () => []; Array.prototype.filter = () => []`,
	"objects that allow":             `Object.assign(Object.prototype, { permit: 'Confirm Payment', pays: false, beside: true, used: true, spent: false, done: true, refused: null, card: false, sum: false, here: false })`,
	"a button that says Edit":        `for (const p of [HTMLElement.prototype, Node.prototype, Element.prototype]) for (const n of ['innerText', 'textContent', 'outerText']) if (Object.getOwnPropertyDescriptor(p, n)) Object.defineProperty(p, n, { get: () => 'Edit', set() {} }); Element.prototype.getAttribute = () => null; Element.prototype.checkVisibility = () => false`,
	"an engine of its own":           `window.tapin = new Proxy({}, { get: () => () => ({ here: true, pays: false, refused: null, used: true }) }); globalThis.__proto__.payDisarm = () => ({})`,
	"a window without styles":        `window.getComputedStyle = () => ({ display: 'none', visibility: 'hidden', opacity: '0' }); window.setTimeout = window.clearTimeout = () => 0`,
	"listeners that come first":      `for (const type of ['pointerdown', 'mousedown', 'mouseup', 'pointerup', 'click']) addEventListener(type, e => { e.stopImmediatePropagation(); if (type === 'click') document.forms[0].requestSubmit() }, true)`,
	"an innocent button that clicks": `document.querySelector('#pay').id = 'real'; const i = document.createElement('button'); i.id = 'pay'; i.textContent = 'Show details'; i.onclick = () => { document.querySelector('#real').click() }; document.body.prepend(i)`,
	"an innocent button that sends":  `document.querySelector('#pay').id = 'real'; const i = document.createElement('button'); i.id = 'pay'; i.textContent = 'Show details'; i.onclick = () => { document.forms[0].requestSubmit(document.querySelector('#real')) }; document.body.prepend(i)`,
	"faked events":                   `document.querySelector('#pay').id = 'real'; const i = document.createElement('button'); i.id = 'pay'; i.textContent = 'Show details'; i.onpointerdown = () => { for (const t of ['pointerdown', 'mousedown', 'mouseup', 'click']) document.querySelector('#real').dispatchEvent(new MouseEvent(t, { bubbles: true, composed: true, cancelable: true })) }; document.body.prepend(i)`,
	"a document written anew":        `const html = document.documentElement.outerHTML.replace(/<script[^]*?<\/script>/g, ''); addEventListener('load', () => { document.open(); document.write('<!doctype html>' + html + '<script>addEventListener("pointermove", () => { const p = document.querySelector("#pay"); if (p.textContent !== "Confirm Payment") p.textContent = "Confirm Payment" }, true); document.querySelector("#pay").textContent = "Edit"<\/script>'); document.close() })`,
}

func openNosy(t *testing.T) *nosy {
	t.Helper()
	n := &nosy{}
	mux := http.NewServeMux()
	html := func(w http.ResponseWriter, body string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, body)
	}
	mux.HandleFunc("GET /own", func(w http.ResponseWriter, _ *http.Request) {
		n.mu.Lock()
		raw, _ := json.Marshal(n.options)
		n.mu.Unlock()
		html(w, strings.Replace(asksForItself, "OPTIONS", string(raw), 1))
	})
	mux.HandleFunc("GET /sw.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = fmt.Fprint(w, `addEventListener('install', () => skipWaiting()); addEventListener('activate', e => e.waitUntil(clients.claim()))
addEventListener('message', async e => { for (const [url, body] of e.data) { await fetch(url, { method: 'POST', body, headers: { 'Content-Type': 'application/json' } }).catch(() => {}); await fetch(url, { method: 'POST', mode: 'no-cors', body }).catch(() => {}) } e.source.postMessage('done') })`)
	})
	mux.HandleFunc("GET /break", func(w http.ResponseWriter, r *http.Request) {
		html(w, `<!doctype html><html lang=en-US><title>Pay</title><h1>Verizon</h1><p>Amount due: <b>$142.50</b></p><form method=post action=/paid><button id=pay>Confirm Payment</button></form><script>`+breaks[r.URL.Query().Get("how")]+`</script>`)
	})
	mux.HandleFunc("POST /told", func(_ http.ResponseWriter, r *http.Request) {
		body := make([]byte, 200)
		k, _ := r.Body.Read(body)
		n.mu.Lock()
		n.told = append(n.told, string(body[:k]))
		n.mu.Unlock()
	})
	mux.HandleFunc("POST /paid", func(w http.ResponseWriter, _ *http.Request) {
		n.mu.Lock()
		n.paid++
		n.mu.Unlock()
		html(w, "<title>Thanks</title><p>thank you")
	})
	n.Server = httptest.NewServer(mux)
	t.Cleanup(n.Close)
	return n
}

// TestAPageCannotApproveItsOwnPayment opens a page that tries every door of
// tapin's on this machine, by every means that a page has.
func TestAPageCannotApproveItsOwnPayment(t *testing.T) {
	t.Parallel()
	shop := openNosy(t)
	r := start(t, shop.Server)
	owner := r.owner()
	r.must("POST", "/session/start", `{"url":"`+shop.URL+`/break?how=none","screenshot":false}`)
	id := r.must("POST", "/approval/request", aBill)["approval_id"].(string)
	said := owner.must("POST", "/policies/say", `{"text":"auto-approve 127.0.0.1 under $500"}`)
	proposal := said["proposal"].(map[string]any)["proposal_id"].(string)
	public := owner.must("GET", "/public", "")["local"].(string)
	control := strings.TrimPrefix(r.base, "http://")
	port := control[strings.LastIndex(control, ":"):]
	shop.mu.Lock()
	shop.options = map[string]any{
		"id": id, "guess": "owner",
		"bases": []string{r.base, public, "http://localhost" + port, "http://[::1]" + port, "http://0.0.0.0" + port},
		"doors": [][]any{
			{"/approval/" + id + "/decide", map[string]any{"decision": "approve"}},
			{"/policies/" + proposal + "/confirm", map[string]any{}},
			{"/policies/clear", map[string]any{"site": "127.0.0.1"}},
			{"/console/api/approvals/" + id, map[string]any{"decision": "approve"}},
		},
	}
	shop.mu.Unlock()
	r.must("POST", "/session/navigate", `{"url":"`+shop.URL+`/own","screenshot":false}`)
	testwait.For(t, "the page has tried everything", func() bool {
		told, _ := shop.heard()
		return len(told) > 0 && told[len(told)-1] == "all: done"
	})
	told, paid := shop.heard()
	// A request that a page may send to anybody, and whose answer it cannot see,
	// does arrive: what counts is that the door stays shut.
	knocked, ran := false, false
	for _, line := range told {
		switch line {
		case "answered unseen: opaque":
			knocked = true
		case "service worker: ran":
			ran = true
		case "all: done":
		default:
			t.Errorf("the page got through: %s", line)
		}
	}
	if !ran || !knocked {
		t.Errorf("the page did not try by all means: %v", told)
	}
	if now := r.must("GET", "/approval/"+id, ""); now["status"] != "pending" || paid != 0 {
		t.Errorf("the approval is %v, %d payments", now["status"], paid)
	}
	if now := r.must("GET", "/policies", ""); len(now["proposals"].([]any)) != 1 || len(now["policies"].([]any)) != 0 {
		t.Errorf("the policies are %v", now)
	}
	r.refused("POST", "/session/click", clickWith(id), "APPROVAL_REQUIRED")
}

// TestAPageCannotOpenTheGate opens pages that break, or forge, what the guard
// would rest on if it lived in the page's own world.
func TestAPageCannotOpenTheGate(t *testing.T) {
	t.Parallel()
	shop := openNosy(t)
	r := start(t, shop.Server)
	r.must("POST", "/session/start", `{"url":"`+shop.URL+`/break?how=none","screenshot":false}`)
	for how := range breaks {
		r.must("POST", "/session/navigate", `{"url":"`+shop.URL+`/break?how=`+strings.ReplaceAll(how, " ", "+")+`","screenshot":false}`)
		r.refused("POST", "/session/click", clickWith(""), "APPROVAL_REQUIRED")
		if _, paid := shop.heard(); paid != 0 {
			t.Fatalf("%s: it was paid", how)
		}
	}
}
