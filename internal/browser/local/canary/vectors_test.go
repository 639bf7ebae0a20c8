package canary

import (
	"strings"
)

// vector is one way by which a page opens a connection. In its texts @HOST@ is
// the canary's host and port, @SITE@ the page's own origin, @SECURE@ the same
// over TLS, @BASE@ the folder of the vector's files, @ROW@ its number,
// and @ADDR@ and @PORT@ the canary's address and port apart.
type vector struct {
	name   string
	js     string            // run in the vector's page; its promise ends when the page knows the outcome
	html   string            // or a document, for what only the parser or a header starts
	header map[string]string // of the document
	files  map[string]string // served under @BASE@
	window bool              // needs a window of its own, a frame will not do
	blind  bool              // the page never learns the outcome
	never  string            // why the browser opens no connection even when it may
	opens  bool              // it starts something that the browser keeps waiting until tapin has seen to it
	nests  bool              // a document of the canary's is in a frame; one of another site has a process of its own, and waits like that

	host string // how the canary is spelled; empty means both loopback addresses in turn
	via  string // the canary's address; empty means 127.0.0.1
	rule string // which refuses it; empty means loopback
	udp  bool   // WebRTC that would go over UDP if the browser were not told otherwise
	pair bool   // the page comes from the canary's own host and port, before the name moves
}

const (
	sameOrigin  = "the browser takes such scripts from the page's own origin only"
	noUDP       = "WebRTC and QUIC have no UDP beside the proxy"
	noPings     = "the browser is started with --no-pings"
	notForPages = "the browser lets no page go there"
	privately   = "the browser does so in its default context only, which tapin never uses"
	noScheme    = "the browser does not speak it"
)

// requests are what a page does without leaving.
var requests = []vector{
	{name: "fetch", js: `return fetch("http://@HOST@/")`},
	{name: "fetch of https", js: `return fetch("https://@HOST@/")`},
	{name: "fetch with a preflight", js: `return fetch("http://@HOST@/", {method: "PUT", headers: {"X-A": "1"}, body: "{}"})`},
	{name: "fetch POST without CORS", js: `return fetch("http://@HOST@/", {method: "POST", mode: "no-cors", body: "a=1"})`},
	{name: "fetch with keepalive", js: `return fetch("http://@HOST@/", {keepalive: true, mode: "no-cors"})`},
	{name: "fetch redirected by 301", js: `return fetch("/redirect/301/@ROW@")`},
	{name: "fetch redirected by 302", js: `return fetch("/redirect/302/@ROW@")`},
	{name: "fetch POST redirected by 307", js: `return fetch("/redirect/307/@ROW@", {method: "POST", body: "a=1"})`},
	{name: "fetch POST redirected by 308", js: `return fetch("/redirect/308/@ROW@", {method: "POST", body: "a=1"})`},
	{name: "fetch redirected from https", js: `return fetch("@SECURE@/redirect/302/@ROW@?s=https")`},
	{name: "fetch later", js: `fetchLater("https://@HOST@/", {activateAfter: 0})`, blind: true, window: true},
	{name: "XMLHttpRequest", js: `return new Promise(r => { const x = new XMLHttpRequest; x.onloadend = r; x.open("GET", "http://@HOST@/"); x.send() })`},
	{name: "synchronous XMLHttpRequest", js: `const x = new XMLHttpRequest; x.open("POST", "http://@HOST@/", false); x.send("a")`},
	{name: "sendBeacon", js: `navigator.sendBeacon("http://@HOST@/", "a")`, blind: true},
	{name: "EventSource", js: `return ends(new EventSource("http://@HOST@/"))`},
	{name: "WebSocket", js: `return ends(new WebSocket("ws://@HOST@/"))`},
	{name: "WebSocket over TLS", js: `return ends(new WebSocket("wss://@HOST@/"))`},
	{name: "WebSocketStream", js: `return new WebSocketStream("ws://@HOST@/").opened`},

	{name: "image", js: `return add("img", {src: "http://@HOST@/"})`},
	{name: "image redirected", js: `return add("img", {src: "/redirect/302/@ROW@"})`},
	{name: "image set", js: `return add("img", {srcset: "http://@HOST@/ 1x"})`},
	{name: "image button", js: `return add("input", {type: "image", src: "http://@HOST@/"})`},
	{name: "image under another base", js: `document.head.innerHTML = '<base href="http://@HOST@/">'; return add("img", {src: "x"})`},
	{name: "image in inline SVG", js: `document.body.innerHTML = '<svg><image href="http://@HOST@/"/></svg>'; return new Promise(r => { const i = document.querySelector("image"); i.onload = i.onerror = r })`},
	{name: "table background", js: `document.body.innerHTML = '<table background="http://@HOST@/"><tr><td>a</table>'`, blind: true},
	{name: "script", js: `return add("script", {src: "http://@HOST@/a.js"})`},
	{name: "module script", js: `return add("script", {type: "module", src: "http://@HOST@/a.js"})`},
	{name: "dynamic import", js: `return import("http://@HOST@/a.js")`},
	{name: "import map", js: `document.head.innerHTML = ""; const m = document.createElement("script"); m.type = "importmap"; m.text = '{"imports":{"bird":"http://@HOST@/a.js"}}'; document.head.append(m); return import("bird")`},
	{name: "stylesheet", js: `return add("link", {rel: "stylesheet", href: "http://@HOST@/a.css"})`},
	{name: "stylesheet import", js: `style('@import "http://@HOST@/a.css";')`, blind: true},
	{name: "background of a style", js: `style('body { background: url(http://@HOST@/a.png) }')`, blind: true},
	{name: "font", js: `return new FontFace("bird", "url(http://@HOST@/a.woff2)").load()`},
	{name: "video", window: true, js: `return add("video", {src: "http://@HOST@/a.mp4", preload: "auto"})`},
	{name: "video poster", js: `add("video", {poster: "http://@HOST@/a.png"})`, blind: true},
	{name: "audio", window: true, js: `return add("audio", {src: "http://@HOST@/a.mp3", preload: "auto"})`},
	{name: "captions", js: `document.body.innerHTML = '<video crossorigin><track default kind=captions src="http://@HOST@/a.vtt"></video>'; const k = document.querySelector("track"); k.track.mode = "showing"; return new Promise(r => { k.onload = k.onerror = r })`},
	{name: "object", js: `return add("object", {data: "http://@HOST@/"})`},
	{name: "embed", js: `add("embed", {src: "http://@HOST@/", type: "text/html"})`, blind: true},
	{name: "paint worklet", js: `return CSS.paintWorklet.addModule("http://@HOST@/a.js")`},
	{name: "audio worklet", opens: true, js: `return new OfflineAudioContext(1, 1, 8000).audioWorklet.addModule("http://@HOST@/a.js")`},

	{name: "frame", nests: true, js: `return add("iframe", {src: "http://@HOST@/"})`},
	{name: "frame over https", opens: true, js: `return add("iframe", {src: "https://@HOST@/"})`},
	{name: "frame redirected", nests: true, js: `return add("iframe", {src: "/redirect/307/@ROW@"})`},
	{name: "frame in a frame", nests: true, js: `return add("iframe", {srcdoc: '<iframe src="http://@HOST@/"></iframe>'})`},
	{name: "image in a written frame", js: `return add("iframe", {srcdoc: '<img src="http://@HOST@/">'})`},
	{name: "fetch in a sandboxed frame", js: `return add("iframe", {sandbox: "allow-scripts", srcdoc: '<script>fetch("http://@HOST@/")<\/script>'})`, blind: true},
	{name: "fetch in a blob frame", js: `return add("iframe", {src: URL.createObjectURL(new Blob(['<script>fetch("http://@HOST@/")<\/script>'], {type: "text/html"}))})`, blind: true},
	{name: "fetch in a data frame", js: `return add("iframe", {src: 'data:text/html,<script>fetch("http://@HOST@/")<\/script>'})`, blind: true},
	{name: "meta refresh in a frame", js: `add("iframe", {srcdoc: '<meta http-equiv="refresh" content="0;url=http://@HOST@/">'})`, blind: true},
	{name: "form POST into a frame", js: `document.body.innerHTML = '<iframe name=f></iframe><form method=post target=f action="http://@HOST@/"><input name=a value=1></form>'; document.forms[0].submit()`, blind: true},
	{name: "fenced frame", js: `document.createElement("fencedframe").config; const f = document.createElement("fencedframe"); f.src = "https://@HOST@/"; document.body.append(f)`, blind: true, never: noScheme},
	{name: "portal", js: `const p = document.createElement("portal"); p.src = "http://@HOST@/"; document.body.append(p)`, blind: true, never: noScheme},

	{name: "worker script", js: `return ends(new Worker("http://@HOST@/a.js"))`, never: sameOrigin},
	{name: "worker script redirected", js: `return ends(new Worker("/redirect/302/@ROW@"))`, never: sameOrigin},
	{name: "fetch in a worker", opens: true, js: `return says(new Worker(blob('fetch("http://@HOST@/").finally(() => postMessage(1))')))`},
	{name: "importScripts in a worker", opens: true, js: `return says(new Worker(blob('try { importScripts("http://@HOST@/a.js") } finally { postMessage(1) }')))`},
	{name: "import in a module worker", opens: true, js: `return ends(new Worker(blob('import "http://@HOST@/a.js"'), {type: "module"}))`, blind: true},
	{name: "WebSocket in a worker", opens: true, js: `return says(new Worker(blob('new WebSocket("ws://@HOST@/").onerror = () => postMessage(1)')))`},
	{name: "EventSource in a worker", opens: true, js: `return says(new Worker(blob('const e = new EventSource("http://@HOST@/"); e.onerror = () => { e.close(); postMessage(1) }')))`},
	{name: "worker in a worker", opens: true, js: `return says(new Worker(blob('const w = new Worker(URL.createObjectURL(new Blob([\'fetch("http://@HOST@/").finally(() => postMessage(1))\']))); w.onmessage = () => postMessage(1)')))`},
	{name: "shared worker script", js: `return ends(new SharedWorker("http://@HOST@/a.js"))`, never: sameOrigin},
	{name: "fetch in a shared worker", opens: true, js: `return says(new SharedWorker(blob('onconnect = e => fetch("http://@HOST@/").finally(() => e.ports[0].postMessage(1))')).port)`},
	{name: "service worker script", js: `return navigator.serviceWorker.register("http://@HOST@/a.js")`, never: sameOrigin},
	{
		name: "fetch in a service worker", opens: true, js: `return active("@BASE@")`,
		files: map[string]string{"sw.js": `oninstall = e => e.waitUntil(fetch("http://@HOST@/").catch(() => 0))`},
	},
	{
		name: "importScripts in a service worker", opens: true, js: `return active("@BASE@")`,
		files: map[string]string{"sw.js": `importScripts("http://@HOST@/a.js")`},
	},
	{
		name: "service worker that answers for a page", opens: true, js: `await active("@BASE@"); return add("iframe", {src: "@BASE@page.html"})`,
		files: map[string]string{
			"sw.js":     `onactivate = e => e.waitUntil(clients.claim()); onfetch = e => e.respondWith(fetch("http://@HOST@/", {mode: "no-cors"}))`,
			"page.html": `<!doctype html><title>never shown</title>`,
		},
	},

	{name: "prefetch", js: `add("link", {rel: "prefetch", href: "http://@HOST@/"}, document.head)`, blind: true},
	{name: "preload", js: `return add("link", {rel: "preload", as: "image", href: "http://@HOST@/"}, document.head)`},
	{name: "module preload", js: `return add("link", {rel: "modulepreload", href: "http://@HOST@/a.js"}, document.head)`},
	{name: "preconnect", js: `add("link", {rel: "preconnect", href: "https://@HOST@/"}, document.head)`, blind: true, never: privately},
	{name: "DNS prefetch", js: `add("link", {rel: "dns-prefetch", href: "http://@HOST@/"}, document.head)`, blind: true, never: "names are the proxy's business: there is nothing to look up"},
	{name: "preload by a header", html: `<title>a</title>`, header: map[string]string{"Link": `<http://@HOST@/>; rel=preload; as=image`}},
	{name: "report of a broken policy", html: `<img src="data:,">`, header: map[string]string{"Content-Security-Policy": `img-src 'none'; report-uri http://@HOST@/`}},
	{
		name: "report to an endpoint", html: `<img src="data:,">`, header: map[string]string{
			"Reporting-Endpoints": `bird="https://@HOST@/"`, "Content-Security-Policy": `img-src 'none'; report-to bird`,
		}, never: "reports are gathered for longer than a test lasts",
	},
	{name: "download", js: `const a = document.createElement("a"); a.href = "http://@HOST@/"; a.download = "x"; document.body.append(a); a.click()`, blind: true},
	{name: "ping of a link", js: `document.body.innerHTML = '<a ping="http://@HOST@/" href="#x">a</a>'; document.querySelector("a").click()`, blind: true, never: noPings},
	{
		name: "HLS playlist", window: true, js: `return add("video", {src: "@BASE@list.m3u8", preload: "auto", muted: "", autoplay: ""})`, blind: true,
		files: map[string]string{"list.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nhttp://@HOST@/a.ts\n#EXT-X-ENDLIST\n"},
	},
	{name: "payment method", js: `return new PaymentRequest([{supportedMethods: "https://@HOST@/pay"}], {total: {label: "a", amount: {currency: "USD", value: "1"}}}).canMakePayment()`, blind: true},
	{name: "WebTransport", js: `return new WebTransport("https://@HOST@/").ready`, never: noUDP},
	{name: "WebRTC STUN", js: `return gather({urls: "stun:@HOST@"})`, udp: true, never: noUDP},
	{name: "WebRTC TURN over UDP", js: `return gather({urls: "turn:@HOST@?transport=udp", username: "a", credential: "a"})`, udp: true, never: noUDP},
	{name: "WebRTC peer over UDP", js: `return meet("udp", "@ADDR@ @PORT@ typ host")`, blind: true, udp: true, never: noUDP},
	{name: "WebRTC peer over TCP", js: `return meet("tcp", "@ADDR@ @PORT@ typ host tcptype passive")`, blind: true},
	{name: "WebRTC TURN over TCP", js: `return gather({urls: "turn:@HOST@?transport=tcp", username: "a", credential: "a"})`, blind: true},
	{name: "WebRTC TURN over TLS", js: `return gather({urls: "turns:@HOST@?transport=tcp", username: "a", credential: "a"})`, blind: true},
}

// departures are what needs a window of its own.
var departures = []vector{
	{name: "location", js: `location = "http://@HOST@/"`},
	{name: "location over https", js: `location = "https://@HOST@/"`},
	{name: "location with a password in it", js: `location = "http://user:pass@@HOST@/"`},
	{name: "location that asks for a password", js: `location = "http://@HOST@/401"`},
	{name: "location replaced", js: `location.replace("http://@HOST@/")`},
	{name: "navigation object", js: `navigation.navigate("http://@HOST@/")`},
	{name: "location redirected by 301", js: `location = "/redirect/301/@ROW@"`},
	{name: "location redirected by 302", js: `location = "/redirect/302/@ROW@"`},
	{name: "location redirected from https", js: `location = "@SECURE@/redirect/302/@ROW@"`},
	{name: "location redirected from https to https", js: `location = "@SECURE@/redirect/307/@ROW@?s=https"`},
	{name: "meta refresh", html: `<meta http-equiv="refresh" content="0;url=http://@HOST@/">`},
	{name: "refresh header", html: `<title>a</title>`, header: map[string]string{"Refresh": `0;url=http://@HOST@/`}},
	{name: "form POST", js: `document.body.innerHTML = '<form method=post action="http://@HOST@/"><input name=a value=1></form>'; document.forms[0].submit()`},
	{name: "popup", opens: true, js: `open("http://@HOST@/")`},
	{name: "popup without opener", opens: true, js: `open("http://@HOST@/", "_blank", "noopener")`},
	{name: "link with a target", opens: true, js: `const a = document.createElement("a"); a.href = "http://@HOST@/"; a.target = "_blank"; document.body.append(a); a.click()`},
	{name: "icon", html: `<link rel="icon" href="http://@HOST@/a.png">`},
	{name: "manifest", html: `<link rel="manifest" href="http://@HOST@/a.json">`, never: privately},
	{name: "speculative prefetch", js: `return speculate("prefetch", "http://@HOST@/")`},
	{name: "speculative prerender", opens: true, js: `return speculate("prerender", "http://@HOST@/")`, window: true},
	{name: "federated login", js: `return navigator.credentials.get({identity: {providers: [{configURL: "https://@HOST@/a.json", clientId: "a"}]}})`},
	{name: "source view opened by a page", js: `location = "view-source:http://@HOST@/"`, never: notForPages},
	{name: "file opened by a page", js: `location = "file://@HOST@/etc/hostname"`, never: notForPages},
	{name: "browser page opened by a page", js: `location = "chrome://@HOST@/"`, never: notForPages},
	{name: "ftp", js: `location = "ftp://@HOST@/"`, never: noScheme},
	{name: "name that moves to this machine", pair: true, js: `return fetch("/again")`, host: "rebind-@ROW@.test", via: "::1"},
	{name: "name that moves, into a frame", pair: true, js: `return add("iframe", {src: "/again"})`, host: "rebind-@ROW@.test", via: "::1"},
	{name: "name that moves, for a WebSocket", pair: true, js: `return ends(new WebSocket("ws://" + location.host + "/again"))`, host: "rebind-@ROW@.test", via: "::1"},
}

// spelled is how a page goes to such an address.
const spelled = `return add("iframe", {src: "http://@HOST@/", title: "spelled"})`

// anyRule stands where the rule depends on the machine.
const anyRule = "any"

// spellings are addresses of this machine, as a person or an agent might give them.
var spellings = []vector{
	{name: "127.0.0.1", host: "127.0.0.1"},
	{name: "two numbers", host: "127.1"},
	{name: "one number", host: "2130706433"},
	{name: "one hexadecimal number", host: "0x7f000001"},
	{name: "octal", host: "0177.0.0.1"},
	{name: "mixed bases", host: "0x7f.0.0.01"},
	{name: "wide digits", host: "１２７.０.０.１"},
	{name: "escaped digits", host: "%31%32%37.0.0.1"},
	{name: "a dot at the end", host: "127.0.0.1."},
	{name: "localhost", host: "localhost", rule: "private-name"},
	{name: "localhost with a dot", host: "localhost.", rule: "private-name"},
	{name: "LOCALHOST", host: "LOCALHOST", rule: "private-name"},
	{name: "below localhost", host: "foo.localhost", rule: "private-name"},
	{name: "::1", host: "[::1]", via: "::1"},
	{name: "::1 in full", host: "[0:0:0:0:0:0:0:1]", via: "::1"},
	{name: "IPv4 in IPv6", host: "[::ffff:127.0.0.1]"},
	{name: "IPv4 in IPv6 in full", host: "[0:0:0:0:0:ffff:7f00:1]"},
	{name: "0.0.0.0", host: "0.0.0.0", rule: "unspecified"},
	{name: "zero", host: "0", rule: "unspecified"},
	{name: "::", host: "[::]", via: "::1", rule: "unspecified"},
	{name: "the machine's name", host: "@MACHINE@", rule: "private-name"},
	{name: "an address of the machine", host: "@OWN4@", via: "@OWN4@", rule: anyRule},
	{name: "an IPv6 address of the machine", host: "@OWN6@", via: "@OWN6@", rule: anyRule},
	{name: "a name for 127.0.0.1", host: "v4loop.test"},
	{name: "a name for ::1", host: "v6loop.test", via: "::1"},
	{name: "a name for IPv4 in IPv6", host: "mapped.test"},
	{name: "a name for 0.0.0.0", host: "zero.test", rule: "unspecified"},
	{name: "a name with a public address too", host: "mixed-loop.test"},
	{name: "a name with both loopback addresses", host: "mixed-families.test"},
}

// table is every vector, once for each address it is tried on.
func table() []vector {
	var out []vector
	for _, v := range requests {
		four, six := v, v
		four.name += " over IPv4"
		four.host = "127.0.0.1"
		six.name += " over IPv6"
		six.host, six.via = "[::1]", "::1"
		six.opens = v.opens || v.nests // the page is at the IPv4 address
		out = append(out, four, six)
	}
	for _, v := range departures {
		v.window = true
		v.blind = v.blind || !v.pair
		if v.host == "" {
			v.host = "127.0.0.1"
		}
		out = append(out, v)
	}
	for _, v := range spellings {
		v.name = "address written as " + v.name
		v.js = spelled
		out = append(out, v)
	}
	for i := range out {
		if out[i].via == "" {
			out[i].via = loop4.String()
		}
		if out[i].rule == "" {
			out[i].rule = "loopback"
		}
		out[i].blind = out[i].blind || out[i].js == ""
	}
	return out
}

func (v vector) overIPv6() bool { return strings.Contains(v.via, ":") }
