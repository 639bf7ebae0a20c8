package browser_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tapin/internal/browser"
)

func TestWhichCookiesAnOriginCanSee(t *testing.T) {
	t.Parallel()
	under := func(site string, crossSite bool) *browser.PartitionKey {
		return &browser.PartitionKey{TopLevelSite: site, CrossSiteAncestor: crossSite}
	}
	for name, tt := range map[string]struct {
		cookie browser.Cookie
		origin string
		want   bool
	}{
		"its own":                                {browser.Cookie{Domain: "app.bank.test"}, "https://app.bank.test", true},
		"its own, on another port":               {browser.Cookie{Domain: "app.bank.test"}, "https://app.bank.test:8443", true},
		"its own, under any path":                {browser.Cookie{Domain: "app.bank.test", Path: "/deep"}, "https://app.bank.test", true},
		"that of the domain above":               {browser.Cookie{Domain: ".bank.test"}, "https://app.bank.test", true},
		"that of its own domain":                 {browser.Cookie{Domain: ".app.bank.test"}, "https://app.bank.test", true},
		"a host-only one of the host above":      {browser.Cookie{Domain: "bank.test"}, "https://app.bank.test", false},
		"that of a host below":                   {browser.Cookie{Domain: ".app.bank.test"}, "https://bank.test", false},
		"that of a neighbour":                    {browser.Cookie{Domain: "login.bank.test"}, "https://app.bank.test", false},
		"that of a name that only ends alike":    {browser.Cookie{Domain: ".bank.test"}, "https://evilbank.test", false},
		"a secure one over TLS":                  {browser.Cookie{Domain: "bank.test", Secure: true}, "https://bank.test", true},
		"a secure one in the clear":              {browser.Cookie{Domain: "bank.test", Secure: true}, "http://bank.test", false},
		"a secure one on this machine":           {browser.Cookie{Domain: "localhost", Secure: true}, "http://localhost:8080", true},
		"a secure one at a loopback address":     {browser.Cookie{Domain: "127.0.0.1", Secure: true}, "http://127.0.0.1:8080", true},
		"one of an address":                      {browser.Cookie{Domain: "10.0.0.1"}, "http://10.0.0.1", true},
		"one of an address's end":                {browser.Cookie{Domain: ".0.0.1"}, "http://10.0.0.1", false},
		"one of an IPv6 address":                 {browser.Cookie{Domain: "[::1]"}, "http://[::1]:8080", true},
		"one that says no domain but a dot":      {browser.Cookie{Domain: "."}, "http://bank.test", false},
		"one that says no domain":                {browser.Cookie{}, "http://bank.test", false},
		"partitioned, under itself":              {browser.Cookie{Domain: "app.bank.test", Partition: under("https://bank.test", false)}, "https://app.bank.test", true},
		"partitioned, under another site":        {browser.Cookie{Domain: "app.bank.test", Partition: under("https://shop.test", true)}, "https://app.bank.test", false},
		"partitioned, under itself in the clear": {browser.Cookie{Domain: "bank.test", Partition: under("http://bank.test", false)}, "https://bank.test", false},
		"partitioned, inside a foreign frame":    {browser.Cookie{Domain: "bank.test", Partition: under("https://bank.test", true)}, "https://bank.test", false},
		"any, for no origin":                     {browser.Cookie{Domain: "bank.test"}, "null", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.cookie.VisibleTo(tt.origin); got != tt.want {
				t.Errorf("%s sees it: %v, want %v", tt.origin, got, tt.want)
			}
		})
	}
}

func FuzzWhatAnOriginSeesIsItsOwn(f *testing.F) {
	f.Add("app.bank.test", "https://app.bank.test")
	f.Add(".bank.test", "https://evil-bank.test")
	f.Add("[::1]", "http://[::1]")
	f.Fuzz(func(t *testing.T, domain, origin string) {
		hostOnly := browser.Cookie{Domain: domain, Partition: nil}
		secure := hostOnly
		secure.Secure = true
		if secure.VisibleTo(origin) && !hostOnly.VisibleTo(origin) {
			t.Fatalf("%q: being secure made %q visible", origin, domain)
		}
		apart := hostOnly
		apart.Partition = &browser.PartitionKey{TopLevelSite: "https://elsewhere.test"}
		if apart.VisibleTo(origin) && !hostOnly.VisibleTo(origin) {
			t.Fatalf("%q: being partitioned made %q visible", origin, domain)
		}
	})
}

func TestTheOrderOfCookiesDependsOnNothingElse(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"", "a", "b", "/", "/a"})
	rapid.Check(t, func(t *rapid.T) {
		jar := rapid.SliceOf(rapid.Custom(func(t *rapid.T) browser.Cookie {
			c := browser.Cookie{Name: word.Draw(t, "name"), Domain: word.Draw(t, "domain"), Path: word.Draw(t, "path")}
			if rapid.Bool().Draw(t, "partitioned") {
				c.Partition = &browser.PartitionKey{TopLevelSite: word.Draw(t, "site"), CrossSiteAncestor: rapid.Bool().Draw(t, "foreign")}
			}
			return c
		})).Draw(t, "jar")
		a, b := slices.Clone(jar), slices.Clone(jar)
		slices.Reverse(b)
		slices.SortFunc(a, browser.CompareCookies)
		slices.SortFunc(b, browser.CompareCookies)
		for i := range a {
			if browser.CompareCookies(a[i], b[i]) != 0 {
				t.Fatalf("sorted from the other end, the jar differs at %d", i)
			}
		}
	})
}

func TestWhenACookieHasExpired(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for expires, want := range map[float64]bool{0: false, 999.9: true, 1000: true, 1000.1: false, 1: true} {
		if got := (browser.Cookie{Expires: expires}).HasExpired(now); got != want {
			t.Errorf("expired at %v: %v, want %v", expires, got, want)
		}
	}
}
