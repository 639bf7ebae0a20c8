package logins

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

const origin = "https://www.chase.com"

func TestAnExportReadsBackAsItWas(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_770_000_000_123)
	got, err := Export(sample("a"), ExportOptions{
		Origin: origin, CapturedAt: at, UserAgent: "Mozilla/5.0", Viewport: &Viewport{390, 844}, HTTPAuth: &HTTPAuth{"me", secret.New(canary)},
	})
	must(t, err)
	if got.StorageKeys != 1 || !cmp.Equal(got.NotCarried, []string{"indexedDB"}) || got.Skipped != 0 {
		t.Errorf("got %+v", got)
	}
	e, err := Verify(got.Raw)
	must(t, err)
	want := sample("a")
	want.Origins[0].Databases = nil
	want.Origins = want.Origins[:1]
	want.Cookies[0], want.Cookies[1] = want.Cookies[1], want.Cookies[0] // .chase.com is before www.chase.com
	if diff := cmp.Diff(plain(want), plain(e.State())); diff != "" {
		t.Error(diff)
	}
	if e.CapturedAt != at.UTC() || e.UserAgent != "Mozilla/5.0" || *e.Viewport != (Viewport{390, 844}) || e.HTTPAuth.Password.Reveal() != canary || len(e.Integrity) != 64 {
		t.Errorf("got %+v", e)
	}
	if printed := fmt.Sprintf("%v %+v %#v", e, e, got.Envelope); strings.Contains(printed, canary) {
		t.Errorf("it prints: %s", printed)
	}
	// The form is the contract's: canonical, and the sum is over all but itself.
	if canonical, err := jcs.Transform(got.Raw); err != nil || !bytes.Equal(canonical, got.Raw) {
		t.Errorf("it is not canonical: %v", err)
	}
	rest := bytes.Replace(got.Raw, []byte(`"integrity":"`+e.Integrity+`",`), nil, 1)
	if sum := sha256.Sum256(rest); hex.EncodeToString(sum[:]) != e.Integrity {
		t.Error("the integrity is not the SHA-256 of the rest")
	}

	later, err := Export(sample("a"), ExportOptions{Origin: origin, CapturedAt: at, NoStorage: true})
	must(t, err)
	if later.Envelope.Local != nil || later.Envelope.Session != nil || bytes.Contains(later.Raw, []byte("Storage")) {
		t.Error("storage was to be left out")
	}
}

func TestAnExportHoldsWhatItsOriginSees(t *testing.T) {
	t.Parallel()
	now := time.Now()
	jar := map[string]browser.Cookie{
		"own host":                 {Domain: "www.chase.com"},
		"domain above":             {Domain: ".chase.com"},
		"other host":               {Domain: "chase.com"},
		"other host's domain":      {Domain: ".secure.chase.com"},
		"other site":               {Domain: ".example.com"},
		"name that ends alike":     {Domain: ".ase.com"},
		"public suffix":            {Domain: ".com"},
		"secure":                   {Domain: "www.chase.com", Secure: true},
		"expired":                  {Domain: "www.chase.com", Expires: float64(now.Add(-time.Hour).Unix())},
		"partitioned here":         {Domain: "www.chase.com", Secure: true, Partition: &browser.PartitionKey{TopLevelSite: "https://chase.com"}},
		"partitioned elsewhere":    {Domain: "www.chase.com", Secure: true, Partition: &browser.PartitionKey{TopLevelSite: "https://news.example"}},
		"no browser would take it": {Domain: "www.chase.com", SameSite: "None"},
	}
	var s browser.State
	for name, c := range jar {
		c.Name, c.Value, c.Path = strings.ReplaceAll(name, " ", "-"), secret.New("v"), "/"
		s.Cookies = append(s.Cookies, c)
	}
	for scheme, want := range map[string][]string{
		"https": {"domain-above", "own-host", "partitioned-here", "secure"},
		"http":  {"domain-above", "own-host"},
	} {
		got, err := Export(s, ExportOptions{Origin: scheme + "://www.chase.com", CapturedAt: now})
		must(t, err)
		var names []string
		for _, c := range got.Envelope.Cookies {
			names = append(names, c.Name)
		}
		if !cmp.Equal(names, want) || got.Skipped != 1 {
			t.Errorf("%s sees %v and skips %d", scheme, names, got.Skipped)
		}
	}
	s.Cookies[0] = browser.Cookie{Name: "n", Value: secret.New("v"), Domain: "localhost", Path: "/", Secure: true}
	if got, err := Export(s, ExportOptions{Origin: "http://localhost:8080"}); err != nil || len(got.Envelope.Cookies) != 1 {
		t.Errorf("on this machine: %+v, %v", got.Envelope.Cookies, err)
	}
}

// anyEnvelope draws a state that an origin could have, and exports it.
func anyEnvelope(t *rapid.T) Exported {
	text := rapid.StringOf(rapid.Rune())
	token := rapid.StringMatching(`[A-Za-z0-9_-]{1,12}`)
	items := func(label string) []browser.Item {
		keys := rapid.SliceOfNDistinct(text, 0, 6, rapid.ID[string]).Draw(t, label)
		out := []browser.Item{}
		for _, k := range keys {
			out = append(out, browser.Item{Key: secret.New(k), Value: secret.New(text.Draw(t, "value"))})
		}
		return out
	}
	s := browser.State{Origins: []browser.OriginState{{Origin: origin, Local: items("local"), Session: items("session")}}}
	for range rapid.IntRange(0, 6).Draw(t, "cookies") {
		c := browser.Cookie{
			Name: token.Draw(t, "name"), Value: secret.New(token.Draw(t, "value")), Domain: rapid.SampledFrom([]string{"www.chase.com", ".chase.com"}).Draw(t, "domain"),
			Path: rapid.SampledFrom([]string{"/", "/a", "/ü"}).Draw(t, "path"), Expires: rapid.SampledFrom([]float64{0, 4e9, 4.5e9 + 0.123456}).Draw(t, "expires"),
			HTTPOnly: rapid.Bool().Draw(t, "http"), Secure: true, SameSite: rapid.SampledFrom([]string{"", "Lax", "None"}).Draw(t, "sameSite"),
			SourcePort: rapid.SampledFrom([]int64{0, -1, 443}).Draw(t, "port"),
		}
		if rapid.Bool().Draw(t, "partitioned") {
			c.Partition = &browser.PartitionKey{TopLevelSite: "https://chase.com", CrossSiteAncestor: rapid.Bool().Draw(t, "ancestor")}
		}
		s.Cookies = append(s.Cookies, c)
	}
	s.Cookies = unique(s.Cookies)
	got, err := Export(s, ExportOptions{Origin: origin, CapturedAt: time.UnixMilli(1_770_000_000_000)})
	if err != nil {
		t.Fatal(err)
	}
	// Whatever order the browser tells them in.
	rand.Shuffle(len(s.Cookies), func(i, j int) { s.Cookies[i], s.Cookies[j] = s.Cookies[j], s.Cookies[i] })
	for _, items := range [][]browser.Item{s.Origins[0].Local, s.Origins[0].Session} {
		rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
	again, err := Export(s, ExportOptions{Origin: origin, CapturedAt: time.UnixMilli(1_770_000_000_000)})
	if err != nil || !bytes.Equal(got.Raw, again.Raw) {
		t.Fatalf("two exports of the same state differ (%v):\n%s\n%s", err, got.Raw, again.Raw)
	}
	return got
}

func unique(cookies []browser.Cookie) []browser.Cookie {
	seen, out := map[string]bool{}, []browser.Cookie{}
	for _, c := range cookies {
		if id := c.Domain + c.Path + c.Name + partition(c); !seen[id] {
			seen[id] = true
			out = append(out, c)
		}
	}
	return out
}

func TestAnyExportReadsBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got := anyEnvelope(t)
		again, err := got.Envelope.Encode()
		if err != nil || !bytes.Equal(again, got.Raw) {
			t.Fatalf("%v\n%s\n%s", err, got.Raw, again)
		}
	})
}

func TestTheOrderOfMembersDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got := anyEnvelope(t)
		e, err := Verify(shuffled(got.Raw))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := e.Encode(); err != nil || !bytes.Equal(again, got.Raw) {
			t.Fatalf("%v\n%s", err, again)
		}
	})
}

// shuffled writes the same JSON with its members in another order, and blanks.
func shuffled(raw []byte) []byte {
	var members map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &members) != nil {
		return raw
	}
	var parts []string
	for k, v := range members { // in any order
		key, _ := json.Marshal(k)
		parts = append(parts, string(key)+" :\n "+string(shuffled(v)))
	}
	rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return []byte("{ " + strings.Join(parts, " ,\t") + "}")
}

func TestAnyChangeOfOneByteIsRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := bytes.Clone(anyEnvelope(t).Raw)
		i := rapid.IntRange(0, len(raw)-1).Draw(t, "place")
		old := raw[i]
		raw[i] = rapid.Byte().Filter(func(b byte) bool { return b != old }).Draw(t, "byte")
		e, err := Verify(raw)
		if err == nil {
			// Only the case of an escape's digits says the same in other bytes.
			if again, _ := e.Encode(); len(again) == len(raw) && strings.EqualFold(string(again[i]), string(raw[i])) && bytes.Contains(again[max(0, i-5):i], []byte(`\u`)) {
				return
			}
			t.Fatalf("byte %d from %q to %q was not noticed:\n%s", i, old, raw[i], raw)
		}
	})
}

// resign gives a changed envelope the integrity that a forger would.
func resign(t testing.TB, v map[string]any) []byte {
	t.Helper()
	delete(v, "integrity")
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := jcs.Transform(data)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(canonical)
	v["integrity"] = hex.EncodeToString(sum[:])
	data, err = json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func valid(t testing.TB) map[string]any {
	t.Helper()
	got, err := Export(sample("a"), ExportOptions{Origin: origin, CapturedAt: time.UnixMilli(1_770_000_000_123)})
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(got.Raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestHostileEnvelopesAreRefusedForWhatTheyAre(t *testing.T) {
	t.Parallel()
	type members = map[string]any
	with := func(change func(v members)) func(testing.TB) []byte {
		return func(t testing.TB) []byte {
			v := valid(t)
			change(v)
			return resign(t, v)
		}
	}
	cookie := func(name string, value any) func(testing.TB) []byte {
		return with(func(v members) { v["cookies"].([]any)[1].(members)[name] = value })
	}
	plain := func(s string) func(testing.TB) []byte { return func(testing.TB) []byte { return []byte(s) } }
	text := func(old, replacement string) func(testing.TB) []byte {
		return func(t testing.TB) []byte {
			raw, err := json.Marshal(valid(t))
			must(t.(*testing.T), err)
			if !bytes.Contains(raw, []byte(old)) {
				t.Fatalf("there is no %s in %s", old, raw)
			}
			return bytes.Replace(raw, []byte(old), []byte(replacement), 1)
		}
	}
	for name, tt := range map[string]struct {
		raw  func(testing.TB) []byte
		want fault.Code
	}{
		"nothing":                      {plain(``), fault.InvalidRequest},
		"null":                         {plain(`null`), fault.InvalidRequest},
		"a list":                       {plain(`[]`), fault.InvalidRequest},
		"a text":                       {plain(`"envelope"`), fault.InvalidRequest},
		"an empty object":              {plain(`{}`), fault.InvalidRequest},
		"two objects":                  {func(t testing.TB) []byte { return append(resign(t, valid(t)), "{}"...) }, fault.InvalidRequest},
		"broken off":                   {func(t testing.TB) []byte { return resign(t, valid(t))[:100] }, fault.InvalidRequest},
		"10 MB and a byte":             {plain(`"` + strings.Repeat("a", MaxEnvelope) + `"`), fault.PayloadTooLarge},
		"nested without end":           {plain(strings.Repeat(`[`, 1<<20)), fault.InvalidRequest},
		"nested objects":               {plain(strings.Repeat(`{"cookies":`, 5000) + `1` + strings.Repeat(`}`, 5000)), fault.InvalidRequest},
		"a list in a cookie":           {cookie("value", []any{[]any{[]any{}}}), fault.InvalidRequest},
		"not UTF-8":                    {text(`"lang"`, "\"la\xff\""), fault.InvalidRequest},
		"half a character":             {text(`"lang"`, `"la\ud800"`), fault.InvalidRequest},
		"the other half":               {text(`"lang"`, `"la\udc00"`), fault.InvalidRequest},
		"the halves the wrong way":     {text(`"lang"`, `"la\udc00\ud800"`), fault.InvalidRequest},
		"a number beyond all":          {text(`"capturedAt":1770000000123`, `"capturedAt":1e400`), fault.InvalidRequest},
		"another version":              {with(func(v members) { v["version"] = 2 }), fault.InvalidRequest},
		"a version in words":           {with(func(v members) { v["version"] = "1" }), fault.InvalidRequest},
		"no version":                   {with(func(v members) { delete(v, "version") }), fault.InvalidRequest},
		"version in capitals":          {with(func(v members) { v["Version"] = v["version"]; delete(v, "version") }), fault.InvalidRequest},
		"no cookies":                   {with(func(v members) { delete(v, "cookies") }), fault.InvalidRequest},
		"cookies that are null":        {with(func(v members) { v["cookies"] = nil }), fault.InvalidRequest},
		"a cookie that is null":        {with(func(v members) { v["cookies"] = []any{nil} }), fault.InvalidRequest},
		"an unknown member":            {with(func(v members) { v["extra"] = 1 }), fault.InvalidRequest},
		"__proto__":                    {with(func(v members) { v["__proto__"] = members{} }), fault.InvalidRequest},
		"a member twice":               {text(`"version":1`, `"version":1,"version":1`), fault.InvalidRequest},
		"a member twice, once escaped": {text(`"version":1`, `"version":1,"vers\u0069on":1`), fault.InvalidRequest},
		"a storage key twice":          {text(`"sessionStorage":{}`, `"sessionStorage":{"a":"1","a":"2"}`), fault.InvalidRequest},
		"a storage of numbers":         {with(func(v members) { v["localStorage"] = members{"a": 1} }), fault.InvalidRequest},
		"a storage that is a list":     {with(func(v members) { v["localStorage"] = []any{} }), fault.InvalidRequest},
		"a time before all":            {with(func(v members) { v["capturedAt"] = -1 }), fault.InvalidRequest},
		"a time with a fraction":       {with(func(v members) { v["capturedAt"] = 1.5 }), fault.InvalidRequest},
		"a user agent of two lines":    {with(func(v members) { v["userAgent"] = "a\r\nX: b" }), fault.InvalidRequest},
		"a user agent of nothing":      {with(func(v members) { v["userAgent"] = "" }), fault.InvalidRequest},
		"a viewport of 0":              {with(func(v members) { v["viewport"] = members{"width": 0, "height": 1} }), fault.InvalidRequest},
		"half a viewport":              {with(func(v members) { v["viewport"] = members{"width": 10} }), fault.InvalidRequest},
		"a password of two lines":      {with(func(v members) { v["httpAuth"] = members{"username": "a", "password": "b\nc"} }), fault.InvalidRequest},

		"another integrity": {func(t testing.TB) []byte {
			v := valid(t)
			v["integrity"] = strings.Repeat("0", 64)
			return encoded(t, v)
		}, fault.IntegrityMismatch},
		"no integrity":       {func(t testing.TB) []byte { v := valid(t); delete(v, "integrity"); return encoded(t, v) }, fault.InvalidRequest},
		"an empty integrity": {func(t testing.TB) []byte { v := valid(t); v["integrity"] = ""; return encoded(t, v) }, fault.IntegrityMismatch},
		"integrity in capitals": {func(t testing.TB) []byte {
			v := valid(t)
			v["integrity"] = strings.ToUpper(v["integrity"].(string))
			return encoded(t, v)
		}, fault.IntegrityMismatch},
		"a changed value": {text(canary+"en", canary+"de"), fault.IntegrityMismatch},
		"a cookie taken out": {func(t testing.TB) []byte {
			v := valid(t)
			v["cookies"] = v["cookies"].([]any)[:1]
			return encoded(t, v)
		}, fault.IntegrityMismatch},
		"a storage taken out":      {func(t testing.TB) []byte { v := valid(t); delete(v, "localStorage"); return encoded(t, v) }, fault.IntegrityMismatch},
		"another origin, unsigned": {text(`"origin":"https://www.chase.com"`, `"origin":"https://evil.example"`), fault.IntegrityMismatch},

		"a script for an origin":      {with(func(v members) { v["origin"] = "javascript:alert(1)" }), fault.InvalidRequest},
		"a file for an origin":        {with(func(v members) { v["origin"] = "file:///etc/passwd" }), fault.InvalidRequest},
		"data for an origin":          {with(func(v members) { v["origin"] = "data:text/html,x" }), fault.InvalidRequest},
		"an origin of nowhere":        {with(func(v members) { v["origin"] = "null" }), fault.InvalidRequest},
		"an origin with a path":       {with(func(v members) { v["origin"] = origin + "/" }), fault.InvalidRequest},
		"an origin with a query":      {with(func(v members) { v["origin"] = origin + "?a" }), fault.InvalidRequest},
		"an origin with a name":       {with(func(v members) { v["origin"] = "https://a@www.chase.com" }), fault.InvalidRequest},
		"an origin in capitals":       {with(func(v members) { v["origin"] = "https://WWW.chase.com" }), fault.InvalidRequest},
		"an origin with its port":     {with(func(v members) { v["origin"] = origin + ":443" }), fault.InvalidRequest},
		"an origin with a NUL":        {with(func(v members) { v["origin"] = origin + "\x00" }), fault.InvalidRequest},
		"an origin of a socket":       {with(func(v members) { v["origin"] = "wss://www.chase.com" }), fault.InvalidRequest},
		"an origin as a number":       {with(func(v members) { v["origin"] = "https://2130706433" }), fault.InvalidRequest},
		"the cookies of another site": {with(func(v members) { v["origin"] = "https://evil.example" }), fault.OriginMismatch},

		"a cookie for another site":           {cookie("domain", ".evil.example"), fault.OriginMismatch},
		"a cookie for a host beside":          {cookie("domain", "secure.chase.com"), fault.OriginMismatch},
		"a cookie for a host below":           {cookie("domain", ".a.www.chase.com"), fault.OriginMismatch},
		"a cookie for all of com":             {cookie("domain", ".com"), fault.OriginMismatch},
		"a cookie for a name that ends alike": {cookie("domain", ".ase.com"), fault.OriginMismatch},
		"a cookie for no domain":              {cookie("domain", ""), fault.InvalidRequest},
		"a cookie for a dot":                  {cookie("domain", "."), fault.InvalidRequest},
		"a cookie in capitals":                {cookie("domain", ".CHASE.com"), fault.OriginMismatch},
		"a partition of another site":         {cookie("partitionKey", members{"topLevelSite": "https://news.example", "hasCrossSiteAncestor": false}), fault.OriginMismatch},
		"a partition without a site":          {cookie("partitionKey", members{"hasCrossSiteAncestor": false}), fault.InvalidRequest},
		"__Host- for hosts below":             {cookie("domain", ".chase.com"), fault.InvalidRequest},
		"__Host- under a path":                {cookie("path", "/a"), fault.InvalidRequest},
		"__Host- that is not secure":          {cookie("secure", false), fault.InvalidRequest},
		"__host- in small letters":            {with(func(v members) { c := v["cookies"].([]any)[1].(members); c["name"], c["path"] = "__host-id", "/a" }), fault.InvalidRequest},
		"__Secure- that is not": {with(func(v members) {
			v["cookies"] = []any{members{"name": "__Secure-a", "value": "b", "domain": "www.chase.com", "path": "/", "httpOnly": false, "secure": false}}
		}), fault.InvalidRequest},
		"a name in the value": {with(func(v members) {
			v["cookies"] = []any{members{"name": "", "value": "__Host-a=b", "domain": "www.chase.com", "path": "/", "httpOnly": false, "secure": false}}
		}), fault.InvalidRequest},
		"a NUL in a name":              {cookie("name", "a\x00b"), fault.InvalidRequest},
		"a NUL in a value":             {cookie("value", "a\x00b"), fault.InvalidRequest},
		"a line break in a value":      {cookie("value", "a\r\nSet-Cookie: b"), fault.InvalidRequest},
		"a second attribute":           {cookie("value", "a; Domain=.com"), fault.InvalidRequest},
		"an equals sign in a name":     {cookie("name", "__Host-a=b"), fault.InvalidRequest},
		"a value without end":          {cookie("value", strings.Repeat("a", 5000)), fault.InvalidRequest},
		"a path that is none":          {cookie("path", "x"), fault.InvalidRequest},
		"an expiry of never":           {cookie("expires", 1e15), fault.InvalidRequest},
		"an expiry of 0":               {cookie("expires", 0), fault.InvalidRequest},
		"an expiry before all":         {cookie("expires", -1), fault.InvalidRequest},
		"a sameSite of its own":        {cookie("sameSite", "Sometimes"), fault.InvalidRequest},
		"a sameSite of nothing":        {cookie("sameSite", ""), fault.InvalidRequest},
		"a priority of its own":        {cookie("priority", "Highest"), fault.InvalidRequest},
		"a port beyond all":            {cookie("sourcePort", 65536), fault.InvalidRequest},
		"secure in words":              {cookie("secure", "true"), fault.InvalidRequest},
		"a member that no cookie has":  {cookie("size", 12), fault.InvalidRequest},
		"a cookie twice":               {with(func(v members) { c := v["cookies"].([]any); v["cookies"] = append(c, c[0]) }), fault.InvalidRequest},
		"more cookies than a jar":      {with(func(v members) { v["cookies"] = make([]any, maxCookies+1) }), fault.InvalidRequest},
		"secure cookies without https": {with(func(v members) { v["origin"] = "http://www.chase.com" }), fault.OriginMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := Verify(tt.raw(t))
			if !errors.Is(err, tt.want) || fault.Of(err).Code != tt.want {
				t.Errorf("got %v", err)
			}
			if err != nil && (strings.Contains(err.Error(), canary) || fault.Of(err).Advice() == "") {
				t.Errorf("it says %q", err)
			}
			_ = e
		})
	}
	if _, err := Verify(resign(t, valid(t))); err != nil {
		t.Fatalf("the one that all of these are made from: %v", err)
	}
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAnEnvelopeCostsNoMoreThanItsSize(t *testing.T) {
	browsertest.Long(t)
	// Not parallel: it measures.
	const keys = 20_000
	many := func(n int, key func(int) string) browser.State {
		items := make([]browser.Item, n)
		for i := range items {
			items[i] = browser.Item{Key: secret.New(key(i)), Value: secret.New("v")}
		}
		return browser.State{Origins: []browser.OriginState{{Origin: origin, Local: items}}}
	}
	for name, key := range map[string]func(int) string{
		"in order":   func(i int) string { return fmt.Sprintf("%06d", i) },
		"backwards":  func(i int) string { return fmt.Sprintf("%06d", keys-i) },
		"surrogates": func(i int) string { return string(rune([]int{0xE000, 0x10000}[i%2]+i/2%0x1000)) + fmt.Sprint(i) },
	} {
		began := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := Export(many(keys, key), ExportOptions{Origin: origin})
		runtime.ReadMemStats(&after)
		if err != nil || len(got.Envelope.Local) != keys {
			t.Errorf("%s: %v", name, err)
		}
		// Backwards is what the canonical writer takes in linear time.
		members, err := encodeStorage(many(keys, key).Origins[0].Local)
		must(t, err)
		dec := json.NewDecoder(bytes.NewReader(members))
		_, err = dec.Token()
		must(t, err)
		for last, n := "", 0; dec.More(); n++ {
			k, err := dec.Token()
			must(t, err)
			if n > 0 && compareUTF16(k.(string), last) >= 0 {
				t.Fatalf("%s: %q comes after %q", name, k, last)
			}
			last = k.(string)
			_, err = dec.Token() // its value
			must(t, err)
		}
		t.Logf("%s: %d keys, %d bytes, %v, %d MiB allocated", name, keys, len(got.Raw), time.Since(began).Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	tooMany := many(maxStorageKeys+1, func(i int) string { return fmt.Sprint(i) })
	if _, err := Export(tooMany, ExportOptions{Origin: origin}); !errors.Is(err, fault.PayloadTooLarge) {
		t.Errorf("one key too many: %v", err)
	}
	large := browser.State{Origins: []browser.OriginState{{Origin: origin, Local: []browser.Item{{Key: secret.New("k"), Value: secret.New(strings.Repeat("x", MaxEnvelope))}}}}}
	if _, err := Export(large, ExportOptions{Origin: origin}); !errors.Is(err, fault.PayloadTooLarge) {
		t.Errorf("10 MB and more: %v", err)
	}
}

func TestKeysAreComparedByTheUnitsOfUTF16(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.SampledFrom([]rune{'a', 'b', 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if got, want := compareUTF16(a, b), slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))); got != want {
			t.Fatalf("%q and %q: %d, not %d", a, b, got, want)
		}
	})
}

// porter seals as the vault does. The vault of this home opens what is its own.
type porter struct{ identity *age.X25519Identity }

func newPorter(t *testing.T) porter {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	must(t, err)
	return porter{id}
}

func (p porter) Recipient() string { return p.identity.Recipient().String() }

func (p porter) SealTo(recipients []string, name, origin string, plain []byte) (string, error) {
	var to []age.Recipient
	for _, r := range recipients {
		one, err := age.ParseX25519Recipient(r)
		if err != nil {
			return "", fault.New(fault.InvalidRequest, "seal", "not a recipient")
		}
		to = append(to, one)
	}
	return p.seal(name, origin, plain, to...)
}

func (porter) seal(name, origin string, plain []byte, to ...age.Recipient) (string, error) {
	var out bytes.Buffer
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, to...)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(w, "%s %s\n%s", name, origin, plain)
	err = errors.Join(err, w.Close(), a.Close())
	return out.String(), err
}

func (p porter) SealWithPassphrase(pass secret.Text, name, origin string, plain []byte) (string, error) {
	to, err := age.NewScryptRecipient(pass.Reveal())
	if err != nil {
		return "", err
	}
	to.SetWorkFactor(10)
	return p.seal(name, origin, plain, to)
}

func (porter) open(name, origin string, sealed []byte, id age.Identity) ([]byte, error) {
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), id)
	var out bytes.Buffer
	if err == nil {
		_, err = out.ReadFrom(r)
	}
	plain, ok := bytes.CutPrefix(out.Bytes(), []byte(name+" "+origin+"\n"))
	if err != nil || !ok {
		return nil, fault.New(fault.IntegrityMismatch, "open", "it does not open")
	}
	return plain, nil
}

func (p porter) Open(name, origin string, sealed []byte) ([]byte, error) {
	return p.open(name, origin, sealed, p.identity)
}

func (p porter) OpenWithPassphrase(pass secret.Text, name, origin string, sealed []byte) ([]byte, error) {
	id, err := age.NewScryptIdentity(pass.Reveal())
	if err != nil {
		return nil, err
	}
	return p.open(name, origin, sealed, id)
}

func TestASealedEnvelopeOpensForItsRecipientsAlone(t *testing.T) {
	t.Parallel()
	here, there, elsewhere := newPorter(t), newPorter(t), newPorter(t)
	raw := resign(t, valid(t))
	pass := secret.New("correct horse battery staple")
	none := secret.Text{}
	for name, tt := range map[string]struct {
		options *SealOptions
		opens   map[string]bool
		pass    secret.Text
	}{
		"this tapin":         {nil, map[string]bool{"here": true}, none},
		"another":            {&SealOptions{Recipients: []string{there.Recipient()}}, map[string]bool{"there": true}, none},
		"both":               {&SealOptions{Recipients: []string{here.Recipient(), there.Recipient()}}, map[string]bool{"here": true, "there": true}, none},
		"a passphrase":       {&SealOptions{Passphrase: pass}, map[string]bool{"here": true, "there": true, "elsewhere": true}, pass},
		"a passphrase, none": {&SealOptions{Passphrase: pass}, nil, none},
		"a passphrase wrong": {&SealOptions{Passphrase: pass}, nil, secret.New("x")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sealed, err := Seal(here, raw, tt.options)
			must(t, err)
			if bytes.Contains(sealed, []byte(canary)) || !bytes.Contains(sealed, []byte(origin)) || !bytes.Contains(sealed, []byte("BEGIN AGE")) {
				t.Errorf("sealed: %s", sealed)
			}
			for who, p := range map[string]porter{"here": here, "there": there, "elsewhere": elsewhere} {
				e, was, err := Unseal(p, sealed, tt.pass)
				if (err == nil) != tt.opens[who] || !was {
					t.Errorf("%s: %v", who, err)
				}
				if err == nil && e.Origin != origin {
					t.Errorf("%s reads %s", who, e.Origin)
				}
			}
		})
	}
	if _, err := Seal(here, raw, &SealOptions{Passphrase: pass, Recipients: []string{here.Recipient()}}); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("both: %v", err)
	}
	if _, err := Seal(here, []byte("{}"), nil); err == nil {
		t.Error("what is no envelope was sealed")
	}
	if e, was, err := Unseal(here, raw, none); err != nil || was || e.Origin != origin {
		t.Errorf("a plain one: %v", err)
	}
}

func TestASealedEnvelopeCannotBeBentToAnotherOrigin(t *testing.T) {
	t.Parallel()
	p := newPorter(t)
	sealed, err := Seal(p, resign(t, valid(t)), nil)
	must(t, err)
	for name, bent := range map[string][]byte{
		"another origin":    bytes.Replace(sealed, []byte(origin), []byte("https://evil.example"), 1),
		"no origin":         bytes.Replace(sealed, []byte(`"origin":"`+origin+`",`), nil, 1),
		"a script":          bytes.Replace(sealed, []byte(origin), []byte("javascript:alert(1)"), 1),
		"another version":   bytes.Replace(sealed, []byte(`"version":1`), []byte(`"version":2`), 1),
		"an unknown member": bytes.Replace(sealed, []byte(`"version":1`), []byte(`"version":1,"cookies":[]`), 1),
		"a member twice":    bytes.Replace(sealed, []byte(`"version":1`), []byte(`"version":1,"version":1`), 1),
		"a changed letter":  bytes.Replace(sealed, []byte("AGE ENCRYPTED FILE"), []byte("AGE ENCRYPTED BILE"), 1),
		"cut off":           append(sealed[:len(sealed)-200:len(sealed)-200], `"}`...),
		"sealed as null":    []byte(`{"version":1,"origin":"` + origin + `","recipients":[],"sealed":null}`),
	} {
		if _, was, err := Unseal(p, bent, secret.Text{}); err == nil || !was && name != "cut off" {
			t.Errorf("%s: %v", name, err)
		}
	}
	other, err := p.SealTo([]string{p.Recipient()}, "context chase", origin, resign(t, valid(t)))
	must(t, err)
	if _, _, err := Unseal(p, encoded(t, wireSealed{1, origin, []string{p.Recipient()}, other}), secret.Text{}); !errors.Is(err, fault.IntegrityMismatch) {
		t.Errorf("what was sealed for another purpose: %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(resign(f, valid(f)))
	f.Add([]byte(`{"version":1,"sealed":"x","origin":"https://a.example","recipients":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := Verify(raw)
		if err != nil {
			if code := fault.Of(err).Code; code == fault.Internal {
				t.Fatalf("it fails inside: %v", err)
			}
			return
		}
		again, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := Verify(again); err != nil || twice.Integrity != e.Integrity {
			t.Fatalf("what was accepted is refused: %v", err)
		}
		if host, err := readOrigin(e.Origin); err != nil || host.allowsAll(e.Cookies) != nil {
			t.Fatalf("a cookie of another: %v", err)
		}
	})
}
