package sidecar_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// What people type on phones arrives in the page exactly, through the phone's
// own keyboard and controls: in a plain field, a masked one, a rich one, and one
// in a frame of another site. The page says what stands in it.
func TestWhatIsTypedOnAPhoneArrivesExactly(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := testwait.Context(t)
	var mu sync.Mutex
	now := map[string]string{}
	var site *httptest.Server
	const tell = `<script>for (const el of document.querySelectorAll("[aria-label]")) el.addEventListener("input", () =>
  fetch("/now?" + el.ariaLabel, {method: "POST", body: el.value ?? el.innerText, keepalive: true}))</script>`
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch {
		case r.Method == http.MethodPost:
			raw, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			now[r.URL.RawQuery] = string(raw)
		case r.URL.Path == "/inner":
			_, _ = io.WriteString(w, `<!doctype html><body style="margin:0"><input aria-label=inner style="width:380px;height:44px;font-size:18px">`+tell)
		default:
			_, _ = fmt.Fprintf(w, `<!doctype html><title>t</title><style>body{font:18px sans-serif} main>*{display:block;width:380px;height:44px;margin:24px 0;font:18px sans-serif;border:1px solid}</style>
<main style="position:absolute;left:440px;top:40px"><input aria-label=plain><input aria-label=mask><div aria-label=rich contenteditable></div><iframe src="%s/inner" style="border:0"></iframe></main>
<script>document.querySelector("[aria-label=mask]").addEventListener("input", e => { e.target.value = e.target.value.replace(/\D/g, "").replace(/(.{4})(?=.)/g, "$1 ") })</script>%s`,
				strings.Replace(site.URL, "127.0.0.1", "localhost", 1), tell)
		}
	}))
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	host := strings.TrimPrefix(site.URL, "http://")
	r := start(t, site, "egress.allow="+host+","+strings.Replace(host, "127.0.0.1", "localhost", 1))
	r.must("POST", "/session/start", `{"url":"`+site.URL+`/","screenshot":false}`)
	r.must("POST", "/handoff/start", `{"reason":"other"}`)
	phone, _ := r.tapIn(ctx, browsertest.Network{})
	phone.seen()

	stands := func(in, want string) {
		t.Helper()
		var got string
		if !testwait.Comes(func() bool {
			mu.Lock()
			defer mu.Unlock()
			got = strings.TrimRight(strings.ReplaceAll(now[in], "\u00a0", " "), "\n")
			return got == want
		}) {
			t.Errorf("in %s stands %.120q (%d), not %.120q (%d)", in, got, len(got), want, len(want))
		}
	}
	empty := func(in string) {
		t.Helper()
		phone.All()
		phone.Key("Backspace")
		stands(in, "")
	}
	const pasted = 2000
	long := strings.Repeat("Zwölf Boxkämpfer jagen Viktor quer. ", 60)[:pasted]
	long = strings.ToValidUTF8(long, "")
	for _, in := range []string{"plain", "rich", "inner"} {
		phone.into(field(in))
		phone.Until("the field having the focus", fmt.Sprintf(`document.activeElement.ariaLabel === %q`, in))
		phone.Type("Grüße, ÄÖÜ ß")
		stands(in, "Grüße, ÄÖÜ ß")
		empty(in)
		// Chinese, composed and then chosen.
		for _, c := range []string{"n", "ni", "nih", "niha", "nihao"} {
			phone.Compose(c)
		}
		phone.Insert("你好")
		stands(in, "你好")
		empty(in)
		phone.Type("مرحبا بالعالم")
		stands(in, "مرحبا بالعالم")
		empty(in)
		phone.Insert("👍🏽")
		phone.Type(" ok ")
		phone.Insert("👩🏿‍🚀")
		stands(in, "👍🏽 ok 👩🏿‍🚀")
		empty(in)
		// A keyboard that corrects what was typed replaces the word.
		phone.Compose("thw")
		phone.Insert("the")
		phone.Type(" end")
		stands(in, "the end")
		empty(in)
		phone.Type(strings.Repeat("x", 30))
		for range 20 {
			phone.Key("Backspace")
		}
		stands(in, strings.Repeat("x", 10))
		empty(in)
		phone.Insert(long)
		stands(in, long)
		empty(in)
	}
	phone.into(field("mask"))
	phone.Until("the mask having the focus", `document.activeElement.ariaLabel === "mask"`)
	phone.Type("4242a4242b12")
	stands("mask", "4242 4242 12")
	phone.Until("what the page made of it, on the phone", `document.activeElement.value === "4242 4242 12"`)
	for range 3 {
		phone.Key("Backspace")
	}
	stands("mask", "4242 424")
}
