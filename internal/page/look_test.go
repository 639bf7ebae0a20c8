package page_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

func TestPasskeysAreDeclinedAtOnce(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/":      document(`<title>home</title>`),
		"/frame": document(`<script>onmessage = e => eval(e.data).then(x => parent.postMessage(x, "*"))</script>`),
	})
	const get = `navigator.credentials.get({publicKey: {challenge: new Uint8Array(16), timeout: 300000}}).then(() => "got one", e => e.name)`
	const known = `navigator.credentials.get({publicKey: {challenge: new Uint8Array(16), timeout: 300000, allowCredentials: [{type: "public-key", id: new Uint8Array(16)}]}}).then(() => "got one", e => e.name)`
	create := func(verify, resident string) string {
		return `navigator.credentials.create({publicKey: {challenge: new Uint8Array(16), rp: {name: "x"}, user: {id: new Uint8Array(8), name: "a", displayName: "a"},
			pubKeyCredParams: [{type: "public-key", alg: -7}, {type: "public-key", alg: -257}], timeout: 300000,
			authenticatorSelection: {userVerification: "` + verify + `", residentKey: "` + resident + `"}}}).then(() => "made one", e => e.name)`
	}
	tab := s.front(ctx, t)
	// Another site on the way: the new renderer declines too.
	for _, address := range []string{s.URL + "/", s.localhost() + "/"} {
		if _, err := tab.Navigate(ctx, address, page.WaitLoad); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range map[string]string{
		"a passkey": get, "a known passkey": known, "a passkey of the device": strings.Replace(known, "id:", `transports: ["internal"], id:`, 1),
		"a passkey of a telephone": strings.Replace(known, "id:", `transports: ["hybrid"], id:`, 1), "a passkey beside the form": strings.Replace(get, "{", `{mediation: "conditional", `, 1),
		"a new one": create("preferred", "preferred"), "a new one without a check": create("discouraged", "discouraged"),
		"a new resident one": create("required", "required"), "a new platform one": strings.Replace(create("required", "required"), "userVerification", `authenticatorAttachment: "platform", userVerification`, 1),
		"a passkey in a frame": `new Promise(r => { const f = document.createElement("iframe"); f.allow = "publickey-credentials-get"; f.src = "/frame"
			f.onload = () => { onmessage = e => r(e.data); f.contentWindow.postMessage(` + "`" + get + "`" + `, "*") }; document.body.append(f) })`,
	} {
		ends(t, name, func() {
			if got := s.eval(ctx, t, tab, script); got != "NotAllowedError" {
				t.Errorf("%s: the page was told %q", name, got)
			}
		})
	}
	asked := page.Question{Kind: page.AskPasskey, Origin: s.localhost()}
	if err := s.tabs.Refresh(ctx); err != nil || !slices.Contains(tab.Pending(), asked) {
		t.Errorf("nobody is told: %+v, %v", tab.Pending(), err)
	}
	ofPasskey := func(what page.Surprise) bool {
		return what.Kind == page.SurprisePasskey && what.Tab == tab.ID() && *what.Question == asked
	}
	s.hears(t, "the passkey", ofPasskey)
	told := 0
	s.heardOf(func(what page.Surprise) bool {
		if ofPasskey(what) {
			told++
		}
		return false
	})
	if told != 1 {
		t.Errorf("the passkeys of one page were told %d times", told)
	}
	if got := s.eval(ctx, t, tab, `navigator.credentials.get + "" + PublicKeyCredential`); !strings.Contains(got, "function get() { [native code] }function PublicKeyCredential() { [native code] }") {
		t.Errorf("the page can see %q", got)
	}
}

func TestAPasskeyIsToldOfThoughNobodyAsks(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{"/": document(`<title>home</title>`)})
	tab := s.front(ctx, t)
	if _, err := tab.Navigate(ctx, s.localhost()+"/", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	s.eval(ctx, t, tab, `PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable()`)
	if err := s.tabs.Refresh(ctx); err != nil || len(tab.Pending()) > 0 {
		t.Fatalf("who only asks whether there could be one was noted: %+v, %v", tab.Pending(), err)
	}
	s.eval(ctx, t, tab, `navigator.credentials.get({publicKey: {challenge: new Uint8Array(16)}}).catch(e => e.name)`)
	testwait.For(t, "the news of the passkey", func() bool {
		return s.heardOf(func(what page.Surprise) bool {
			return what.Kind == page.SurprisePasskey && what.Tab == tab.ID() && what.Question.Origin == s.localhost()
		})
	})
	if _, err := tab.Navigate(ctx, s.URL+"/", page.WaitLoad); err != nil || len(tab.Pending()) > 0 {
		t.Errorf("the next page is still asked: %+v, %v", tab.Pending(), err)
	}
}

func TestATelephoneLooksLikeOne(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	var mu sync.Mutex
	hints := map[string]http.Header{}
	note := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			hints[r.URL.Path] = r.Header.Clone()
			mu.Unlock()
			if strings.HasSuffix(r.URL.Path, ".js") {
				w.Header().Set("Content-Type", "text/javascript")
			}
			document(body)(w, r)
		}
	}
	const told = `[navigator.userAgent, navigator.userAgentData.mobile, navigator.userAgentData.platform].join("|")`
	s := perform(t, page.Look{Mobile: true, Locale: "de-CH"}, map[string]http.HandlerFunc{
		"/":      note(`<title>t</title><meta name=viewport content="width=device-width">`),
		"/top":   note(`<title>top</title><iframe src="OTHER/frame"></iframe><script>onmessage = e => document.title = e.data</script>`),
		"/frame": note(`<script>top.postMessage([` + told + `, navigator.maxTouchPoints, matchMedia("(pointer: coarse)").matches, Intl.NumberFormat().resolvedOptions().locale].join("|"), "*")</script>`),
		"/w.js":  note(`postMessage(` + told + `)`),
	})
	tab := s.front(ctx, t)
	if _, err := tab.Navigate(ctx, s.localhost()+"/", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		`navigator.userAgent.replace(/Chrome\/\d+/, "Chrome/N")`:                  "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/N.0.0.0 Mobile Safari/537.36",
		`navigator.userAgentData.mobile + " " + navigator.userAgentData.platform`: "true Android",
		`navigator.userAgentData.brands.some(b => b.brand == "Chromium")`:         "true",
		`navigator.platform`: "Linux armv81",
		`navigator.maxTouchPoints + " " + ("ontouchstart" in window)`:                         "5 true",
		`matchMedia("(pointer: coarse)").matches + " " + matchMedia("(hover: none)").matches`: "true true",
		`screen.width + "x" + screen.height + "@" + devicePixelRatio + " " + innerWidth`:      "390x844@3 390",
		`screen.orientation.type`:    "portrait-primary",
		`navigator.languages.join()`: "de-CH,de",
		`navigator.userAgentData.getHighEntropyValues(["model", "formFactors"]).then(v => v.model != "")`: "true",
		`new Promise(r => new Worker("/w.js").onmessage = e => r(e.data)).then(x => x === ` + told + `)`:  "true",
	} {
		if got := s.eval(ctx, t, tab, script); got != want {
			t.Errorf("%s is %q, not %q", script, got, want)
		}
	}
	s.open(ctx, t, "/top")
	testwait.For(t, "the frame of another site", func() bool { return s.title(ctx, t) != "top" })
	if got := s.title(ctx, t); !strings.Contains(got, "Mobile Safari") || !strings.HasSuffix(got, "|true|Android|5|true|de-CH") {
		t.Errorf("a frame says %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	for path, h := range hints {
		if !strings.Contains(h.Get("User-Agent"), "Mobile Safari") || strings.Contains(h.Get("User-Agent"), "Headless") {
			t.Errorf("%s was asked for by %q", path, h.Get("User-Agent"))
		}
	}
	if got := hints["/"]; got.Get("Sec-Ch-Ua-Mobile") != "?1" || got.Get("Sec-Ch-Ua-Platform") != `"Android"` || !strings.HasPrefix(got.Get("Accept-Language"), "de-CH,de") {
		t.Errorf("the page was asked for with %v", got)
	}
}
