package site_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/idna"

	"tapin/internal/fault"
	"tapin/internal/site"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   string
		want site.Site
	}{
		"a host":                         {"www.example.com", "example.com"},
		"a URL":                          {"https://user:pw@www.Example.com:8443/a?b#c", "example.com"},
		"a host with port":               {"www.example.com:8443", "example.com"},
		"a suffix of two labels":         {"shop.example.co.uk", "example.co.uk"},
		"a private suffix":               {"someone.github.io", "someone.github.io"},
		"below a private suffix":         {"a.someone.github.io", "someone.github.io"},
		"a private suffix itself":        {"github.io", "github.io"},
		"a public suffix itself":         {"co.uk", "co.uk"},
		"a final dot":                    {"www.example.com.", "example.com"},
		"an international name":          {"https://www.BÜCHER.example", "xn--bcher-kva.example"},
		"sharp s as browsers read it":    {"straße.de", "xn--strae-oqa.de"},
		"an ideographic full stop":       {"www。example。com", "example.com"},
		"full-width letters":             {"ｗｗｗ.example.com", "example.com"},
		"localhost":                      {"http://localhost:3849/", "localhost"},
		"below localhost":                {"app.localhost", "app.localhost"},
		"one label":                      {"nas", "nas"},
		"an IPv4 address":                {"http://127.0.0.1:80", "127.0.0.1"},
		"an IPv4 address with a dot":     {"127.0.0.1.", "127.0.0.1"},
		"an IPv6 address":                {"http://[::1]:80/", "::1"},
		"an IPv6 address, long":          {"[0:0:0:0:0:0:0:1]", "::1"},
		"an IPv6 address without []":     {"::1", "::1"},
		"an IPv4 address within an IPv6": {"[::ffff:1.2.3.4]", "::ffff:102:304"},
		"an underscore":                  {"a_b.example.com", "example.com"},
	} {
		got, err := site.Of(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("%s: Of(%q) = %q, %v", name, tt.in, got, err)
		}
	}
}

func TestWhatIsNoAddressIsRefusedUnquoted(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", ".", "..", "a..b", ".a", "exa mple.com", "example.com/path", "user@example.com", "https://", "https:///x", "https://:80",
		"http://a:99999", "http://a:x", "127.1", "0x7f.0.0.1", "2130706433", "1.2.3.4.5", "256.1.1.1", "127.0.0.01", "0x", "[::1", "[::1%25eth0]", "[1.2.3.4]", "::1%eth0",
		strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 130) + "com", strings.Repeat("ü", 1<<20), "xn--zzzzzzz--.com", "a\x00b.com", "a%00b.com", "a\\b.com", "https://a.com\\@b.com", "\u202eexample.com",
	} {
		got, err := site.Of(in)
		if !errors.Is(err, fault.InvalidURL) || got != "" {
			t.Errorf("Of(%q) = %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "example.com", "//example.com", "file:///etc/passwd", "data:text/html,x", "about:blank", "https:example.com", "https://", "javascript:alert(1)", "https://127.1/"} {
		got, err := site.Origin(in)
		if !errors.Is(err, fault.InvalidURL) || got != "" {
			t.Errorf("Origin(%q) = %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"https://a b/?token=canary", "https://127.1/canary", "canary://x", "https://x:canary/", "\x7fhttps://canary"} {
		if _, err := site.Origin(in); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("Origin(%q): %v", in, err)
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://example.com":                 "https://example.com",
		"HTTPS://user:pw@Example.COM:443/a?b": "https://example.com",
		"http://example.com:80":               "http://example.com",
		"http://example.com:":                 "http://example.com",
		"http://example.com:443":              "http://example.com:443",
		"https://example.com:08443":           "https://example.com:8443",
		"wss://example.com:443/socket":        "wss://example.com",
		"https://bücher.example/":             "https://xn--bcher-kva.example",
		"http://[0:0::1]:8080/":               "http://[::1]:8080",
		"http://[::ffff:1.2.3.4]/":            "http://[::ffff:102:304]",
		"https://example.com./":               "https://example.com.", // browsers keep it apart
	} {
		got, err := site.Origin(in)
		if err != nil || got != want {
			t.Errorf("Origin(%q) = %q, %v", in, got, err)
		}
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		a, b         string
		site, origin bool
	}{
		"one address twice":        {"https://a.example.com/x", "https://a.example.com:443/y", true, true},
		"two hosts of one site":    {"https://a.example.com", "https://b.example.com", true, false},
		"two schemes":              {"http://example.com", "https://example.com", true, false},
		"neighbours on a platform": {"https://a.github.io", "https://b.github.io", false, false},
		"a name within a name":     {"https://example.com", "https://notexample.com", false, false},
		"two that cannot be read":  {"https://", "https://", false, false},
	} {
		if got := site.Same(tt.a, tt.b); got != tt.site {
			t.Errorf("%s: Same is %v", name, got)
		}
		if got := site.SameOrigin(tt.a, tt.b); got != tt.origin {
			t.Errorf("%s: SameOrigin is %v", name, got)
		}
	}
}

func TestDisplayShowsUnicodeOnlyIfItIsSafe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in    string
		shown bool
	}{
		"German":                            {"bücher.de", true},
		"Polish":                            {"żółw.pl", true},
		"Russian":                           {"россия.рф", true},
		"Greek":                             {"ελλάδα.gr", true},
		"Japanese, three scripts and Latin": {"東京タワーです.jp", true},
		"Korean":                            {"한국.kr", true},
		"Arabic":                            {"مثال.com", true},
		"digits beside letters":             {"книги24-7.com", true},
		"apple in Cyrillic":                 {"аррӏе.com", false},
		"epic in Cyrillic":                  {"еріс.com", false},
		"one Cyrillic letter in Latin":      {"pаypal.com", false},
		"one Greek letter in Latin":         {"gοogle.com", false},
		"a dotless i":                       {"ıcloud.com", false},
		"an accent on its own":              {"g\u0332oogle.com", false},
		"Latin in Han":                      {"a中.com", false},
		"a script we cannot judge":          {"ᏣᎳᎩ.com", false},
	} {
		ascii, err := idna.Lookup.ToASCII(tt.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := ascii
		if tt.shown {
			want = tt.in
		}
		if got := site.Display(site.Site(ascii)); got != want {
			t.Errorf("%s: %s is shown as %s", name, ascii, got)
		}
	}
	for _, plain := range []site.Site{"example.com", "127.0.0.1", "::1", "localhost", "xn--.com", "xn--zzzzzzz--.com"} {
		if got := site.Display(plain); got != string(plain) {
			t.Errorf("%s is shown as %s", plain, got)
		}
	}
}

func FuzzOf(f *testing.F) {
	for _, s := range []string{"www.example.com", "https://[::1]:80/", "BÜCHER.example.", "127.0.0.1", "a.github.io", "xn--bcher-kva.de", "::ffff:1.2.3.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := site.Of(in)
		if err != nil {
			return
		}
		again, err := site.Of(string(s))
		if err != nil || again != s {
			t.Fatalf("the site of %q is %q, whose site is %q, %v", in, s, again, err)
		}
		if strings.ToLower(string(s)) != string(s) || strings.ContainsAny(string(s), "/@%\\ []") {
			t.Fatalf("the site of %q is %q", in, s)
		}
		shown, err := site.Of(site.Display(s))
		if err != nil || shown != s {
			t.Fatalf("%q is shown as %q, which is %q, %v", s, site.Display(s), shown, err)
		}
	})
}

func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"https://example.com", "http://[::1]:8080", "https://a.b:0443/x", "ws://bücher.example."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		o, err := site.Origin(in)
		if err != nil {
			return
		}
		again, err := site.Origin(o)
		if err != nil || again != o || !site.SameOrigin(in, o) {
			t.Fatalf("the origin of %q is %q, whose origin is %q, %v", in, o, again, err)
		}
	})
}
