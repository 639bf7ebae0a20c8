package sidecar_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/logins"
	"tapin/internal/secret"
)

// envelopeOf makes an envelope by hand, with an integrity that is right.
func envelopeOf(t *testing.T, origin string, cookies []browser.Cookie, local ...browser.Item) string {
	t.Helper()
	if cookies == nil {
		cookies = []browser.Cookie{}
	}
	raw, err := logins.Envelope{Origin: origin, CapturedAt: time.UnixMilli(1_700_000_000_000), Cookies: cookies, Local: append([]browser.Item{}, local...)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func cookie(name, value, domain string) browser.Cookie {
	return browser.Cookie{Name: name, Value: secret.New(value), Domain: domain, Path: "/"}
}

// Whatever comes as an envelope: refused with a code, nothing applied, and no
// more memory taken than the body itself is worth.
func TestHostileEnvelopesChangeNothing(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	p := startProcess(t, site.URL)
	p.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
	p.settled("logged in")
	const capturedAt, integrity = `"capturedAt":`, `"integrity":`
	unstamped := func() string {
		raw := p.envelope(`{}`)
		raw = raw[:strings.Index(raw, capturedAt)] + raw[strings.Index(raw, capturedAt)+len(capturedAt)+13:]
		return raw[:strings.Index(raw, integrity)] + raw[strings.Index(raw, integrity)+len(integrity)+66:]
	}
	before := unstamped()
	good := envelopeOf(t, site.URL, []browser.Cookie{cookie("sid", "forged", "127.0.0.1")}, browser.Item{Key: secret.New("token"), Value: secret.New("forged")})
	change := func(old, with string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("%s is not in %s", old, good)
		}
		return strings.Replace(good, old, with, 1)
	}
	floor, _ := p.memory()
	bodies := map[string]struct{ envelope, code string }{
		"one byte changed":             {change("forged", "f0rged"), "INTEGRITY_MISMATCH"},
		"huge":                         {`{"version":1,"x":"` + strings.Repeat("x", 30<<20) + `"}`, "PAYLOAD_TOO_LARGE"},
		"larger than an envelope":      {change(`"forged"`, `"`+strings.Repeat("x", 11<<20)+`"`), "PAYLOAD_TOO_LARGE"},
		"deep":                         {strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000), "INVALID_REQUEST"},
		"deep inside":                  {change(`"cookies":[`, `"cookies":[`+strings.Repeat("[", 50_000)+strings.Repeat("]", 50_000)+","), "INVALID_REQUEST"},
		"a member twice":               {change(`"version":1`, `"version":1,"version":1`), "INVALID_REQUEST"},
		"a key of storage twice":       {change(`"token":"forged"`, `"token":"a","token":"forged"`), "INVALID_REQUEST"},
		"a twin by escape":             {change(`"token":"forged"`, `"token":"forged","\u0074oken":"b"`), "INVALID_REQUEST"},
		"a list for an object":         {`[]`, "INVALID_REQUEST"},
		"a text":                       {`"envelope"`, "INVALID_REQUEST"},
		"null":                         {`null`, "INVALID_REQUEST"},
		"a number":                     {`1`, "INVALID_REQUEST"},
		"nothing in it":                {`{}`, "INVALID_REQUEST"},
		"a version to come":            {change(`"version":1`, `"version":2`), "INVALID_REQUEST"},
		"a time of 1e400":              {change(`1700000000000`, `1e400`), "INVALID_REQUEST"},
		"a time of -1":                 {change(`1700000000000`, `-1`), "INVALID_REQUEST"},
		"numbers for cookies":          {change(`"cookies":[`, `"cookies":[1,`), "INVALID_REQUEST"},
		"a number for a value":         {change(`"token":"forged"`, `"token":1`), "INVALID_REQUEST"},
		"half a character":             {change(`forged`, `\ud800`), "INVALID_REQUEST"},
		"the other half":               {change(`forged`, `\udc00x`), "INVALID_REQUEST"},
		"a NUL in a cookie":            {envelopeOf(t, site.URL, []browser.Cookie{cookie("sid", "a\x00b", "127.0.0.1")}), "INVALID_REQUEST"},
		"a line break in a cookie":     {envelopeOf(t, site.URL, []browser.Cookie{cookie("sid", "a\r\nSet-Cookie: b=c", "127.0.0.1")}), "INVALID_REQUEST"},
		"a javascript: origin":         {change(site.URL, "javascript:alert(1)"), "INVALID_REQUEST INTEGRITY_MISMATCH"},
		"a javascript: origin, signed": {forge(t, "javascript:alert(1)", ""), "INVALID_REQUEST"},
		"a file: origin":               {forge(t, "file:///etc/passwd", ""), "INVALID_REQUEST"},
		"an origin with a path":        {forge(t, site.URL+"/x", ""), "INVALID_REQUEST"},
		"an origin with a name":        {forge(t, "https://me:pw@chase.com", ""), "INVALID_REQUEST"},
		"a cookie of another site":     {forge(t, site.URL, "chase.com"), "ORIGIN_MISMATCH INVALID_REQUEST"},
		"a cookie of a public suffix":  {forge(t, "https://shop.co.uk", ".co.uk"), "ORIGIN_MISMATCH INVALID_REQUEST"},
		"a cookie of all of com":       {forge(t, "https://shop.com", ".com"), "ORIGIN_MISMATCH INVALID_REQUEST"},
		"our own port":                 {forge(t, p.base, ""), "BLOCKED_TARGET INVALID_URL"},
		"the metadata of a cloud":      {forge(t, "http://169.254.169.254", ""), "BLOCKED_TARGET"},
		"sealed nonsense":              {`{"version":1,"origin":"` + site.URL + `","recipients":["x"],"sealed":"age"}`, "INTEGRITY_MISMATCH INVALID_REQUEST FORBIDDEN"},
		"sealed and plain at once":     {change(`"version":1`, `"sealed":"age","version":1`), "INVALID_REQUEST"},
		"many cookies":                 {change(`"cookies":[`, `"cookies":[`+strings.Repeat(`{"name":"a","value":"b","domain":"127.0.0.1","path":"/","httpOnly":false,"secure":false},`, 5000)), "PAYLOAD_TOO_LARGE INVALID_REQUEST"},
	}
	peaks := map[string]int{}
	for name, tt := range bodies {
		_, answer, raw := p.do("POST", "/context/import", `{"envelope":`+tt.envelope+`}`)
		code, _ := answer["error"].(string)
		if answer["ok"] != false || code == "" || !strings.Contains(tt.code, code) || answer["hint"] == "" {
			t.Errorf("%s: %.300s, want %s", name, raw, tt.code)
		}
		if (code == "INTEGRITY_MISMATCH") != (answer["integrityError"] != nil) && name != "sealed nonsense" {
			t.Errorf("%s: %s and integrityError do not go together: %.300s", name, code, raw)
		}
		if len(raw) > 2048 || strings.Contains(string(raw), "forged") {
			t.Errorf("%s is repeated: %d bytes, %.300s", name, len(raw), raw)
		}
		_, saved, _ := p.do("POST", "/contexts/planted/import", `{"envelope":`+tt.envelope+`}`)
		if saved["ok"] == true && !strings.Contains(tt.code, "BLOCKED_TARGET") {
			t.Errorf("%s is saved: %v", name, saved)
		}
		_, peaks[name] = p.memory()
	}
	if after := unstamped(); after != before {
		t.Errorf("something was applied:\n%s\n%s", before, after)
	}
	_, most := p.memory()
	t.Logf("%d envelopes; memory %d MiB before, %d MiB at most", len(bodies), floor>>10, most>>10)
	// The longest body has 30 MiB; read, scanned and decoded it may take a few times that.
	if most-floor > 400<<10 {
		t.Errorf("they took %d MiB", (most-floor)>>10)
	}
	if files, _ := filepath.Glob(filepath.Join(p.dir, "contexts", "*.age")); len(files) > 1 {
		t.Errorf("saved: %v", files)
	}
}

// forge makes an envelope that nobody would export, with an integrity that is
// right: only what it says can give it away.
func forge(t *testing.T, origin, domain string) string {
	t.Helper()
	var cookies []browser.Cookie
	if domain != "" {
		cookies = append(cookies, cookie("sid", "forged", domain))
	}
	return envelopeOf(t, origin, cookies)
}

// Every kind of cookie, through an import, a saved login and an export.
func TestEveryKindOfCookieSurvivesImportSaveAndExport(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	r := start(t, site.Server, "egress.allow=*.example,"+strings.TrimPrefix(site.URL, "http://"))
	const origin = "https://shop.example"
	later := float64(time.Now().Add(100 * 24 * time.Hour).Unix())
	kind := func(c browser.Cookie, name, value string) browser.Cookie {
		c.Name, c.Value, c.Path = name, secret.New(value), "/"
		if c.Domain == "" {
			c.Domain = "shop.example"
		}
		c.Priority, c.SourceScheme, c.SourcePort = orElse(c.Priority, "Medium"), "Secure", 443
		return c
	}
	cookies := []browser.Cookie{
		kind(browser.Cookie{}, "host-only", "1"),
		kind(browser.Cookie{Domain: ".shop.example"}, "domain", "1"),
		kind(browser.Cookie{Domain: ".shop.example", Secure: true}, "__Secure-id", "1"),
		kind(browser.Cookie{Secure: true, HTTPOnly: true}, "__Host-id", "1"),
		kind(browser.Cookie{Secure: true, SameSite: "None", Partition: &browser.PartitionKey{TopLevelSite: "https://shop.example"}}, "__Host-parted", "1"),
		kind(browser.Cookie{Secure: true, SameSite: "None"}, "none", "1"),
		kind(browser.Cookie{SameSite: "Lax"}, "lax", "1"),
		kind(browser.Cookie{SameSite: "Strict"}, "strict", "1"),
		kind(browser.Cookie{Priority: "High"}, "high", "1"),
		kind(browser.Cookie{Priority: "Low"}, "low", "1"),
		kind(browser.Cookie{Expires: later}, "lasting", "1"),
		kind(browser.Cookie{}, "session", "1"),
		kind(browser.Cookie{}, "empty", ""),
		kind(browser.Cookie{}, "long", strings.Repeat("x", 4096-len("long"))),
		kind(browser.Cookie{}, "unicode", "żółć-日本-🍪"),
		kind(browser.Cookie{}, "json", `{"a":[1,"b"]}`),
	}
	for i := range 150 { // with the others less than the 180 that a browser keeps for a site
		cookies = append(cookies, kind(browser.Cookie{}, fmt.Sprintf("many-%03d", i), fmt.Sprint(i)))
	}
	expired := kind(browser.Cookie{Expires: 1_700_000_001}, "expired", "1")
	sent := envelopeOf(t, origin, append([]browser.Cookie{expired}, cookies...))
	want := envelopeOf(t, origin, cookies)

	r.must("POST", "/session/start", `{"context":"kinds","screenshot":false}`)
	_, got, _ := r.do("POST", "/context/import", `{"envelope":`+sent+`}`)
	if got["appliedCookies"] != float64(len(cookies)) {
		t.Errorf("the import says %v", got)
	}
	same(t, "in the session", want, r.owner().envelope(`{"origin":"`+origin+`","sealed":false,"includeStorage":false}`))
	if stopped := r.must("POST", "/session/stop", `{}`); stopped["context_saved"] != true {
		t.Fatalf("the stop says %v", stopped)
	}
	saved, err := json.Marshal(r.owner().must("POST", "/contexts/kinds/export", `{"origin":"`+origin+`","sealed":false,"includeStorage":false}`)["envelope"])
	if err != nil {
		t.Fatal(err)
	}
	same(t, "saved", want, string(saved))
	r.must("POST", "/session/start", `{"context":"kinds","screenshot":false}`)
	same(t, "in the next session", want, r.owner().envelope(`{"origin":"`+origin+`","sealed":false,"includeStorage":false}`))

	// More than a browser keeps, and one that it does not take: all or nothing.
	for name, bad := range map[string][]browser.Cookie{
		"a thousand":  thousand(kind),
		"one invalid": append(cookies[:len(cookies):len(cookies)], kind(browser.Cookie{Domain: "shop.example", Path: "/", Secure: false}, "__Host-bad", "1")),
	} {
		_, answer, raw := r.do("POST", "/context/import", `{"envelope":`+envelopeOf(t, origin, bad)+`}`)
		if answer["ok"] == true {
			t.Errorf("%s: %.300s", name, raw)
		}
		t.Logf("%s: %.300s", name, raw)
		same(t, "after "+name, want, r.owner().envelope(`{"origin":"`+origin+`","sealed":false,"includeStorage":false}`))
	}
}

func thousand(kind func(browser.Cookie, string, string) browser.Cookie) (all []browser.Cookie) {
	for i := range 1000 {
		all = append(all, kind(browser.Cookie{}, fmt.Sprintf("n%04d", i), "1"))
	}
	return all
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// same compares the cookies of two envelopes.
func same(t *testing.T, when, want, got string) {
	t.Helper()
	cookies := func(raw string) []string {
		var e struct{ Cookies []json.RawMessage }
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			t.Fatal(err)
		}
		out := make([]string, len(e.Cookies))
		for i, c := range e.Cookies {
			out[i] = canonicalOrder(t, c)
		}
		slices.Sort(out)
		return out
	}
	w, g := cookies(want), cookies(got)
	if len(w) != len(g) {
		t.Errorf("%s there are %d cookies, and were %d", when, len(g), len(w))
	}
	shown := 0
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] && shown < 3 {
			shown++
			t.Errorf("%s:\n%.300s\nwas\n%.300s", when, g[i], w[i])
		}
	}
}

// canonicalOrder writes a cookie with its members in order.
func canonicalOrder(t *testing.T, raw []byte) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// An import goes to its site by itself, wherever the tab is.
func TestAnImportGoesToItsSite(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	port := site.URL[strings.LastIndexByte(site.URL, ':')+1:]
	r := start(t, site.Server, "egress.allow=localhost:"+port+",127.0.0.1:"+port)
	r.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
	r.settled("logged in")
	envelope := r.envelope(`{}`)
	if !strings.Contains(envelope, `"sessionStorage"`) {
		t.Fatal("the envelope carries no sessionStorage")
	}
	r.must("POST", "/session/stop", `{}`)
	for _, at := range []string{"", `"url":"http://localhost:` + port + `/login",`} {
		r.must("POST", "/session/start", `{`+at+`"screenshot":false}`)
		r.must("POST", "/context/import", `{"envelope":`+envelope+`}`)
		if here := r.must("GET", "/session/status", "")["url"]; here != site.URL+"/" {
			t.Errorf("from %q it led to %v", at, here)
		}
		r.must("POST", "/session/stop", `{}`)
	}
	if len(site.strange) > 0 {
		t.Errorf("the site saw requests without the login: %v", site.strange)
	}
}
