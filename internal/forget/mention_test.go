package forget

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"testing"

	"tapin/internal/site"
)

// spellings are ways in which a text gets into a file.
var spellings = map[string]func(string) string{
	"plain": func(s string) string { return s },
	"JSON":  func(s string) string { raw, _ := json.Marshal(s); return string(raw) },
	"JSON of JSON": func(s string) string {
		raw, _ := json.Marshal(s)
		raw, _ = json.Marshal(string(raw))
		return string(raw)
	},
	"a quoted text":   strconv.Quote,
	"ASCII of Go":     strconv.QuoteToASCII,
	"percent":         url.QueryEscape,
	"percent twice":   func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"percent in JSON": func(s string) string { raw, _ := json.Marshal(url.QueryEscape(s)); return string(raw) },
}

func TestASiteIsFoundInEverySpelling(t *testing.T) {
	t.Parallel()
	for at, forms := range map[site.Site][]string{
		"chase.example":         {"chase.example", "CHASE.example", "www.chase.example"},
		"xn--bcher-kva.example": {"xn--bcher-kva.example", "bücher.example", "BÜCHER.example", "bu\u0308cher.example", "shop.bücher.example"},
		"xn--fsqu00a.example":   {"例子.example", "请登录例子.example", "例子。example"},
	} {
		m := mentionOf(Wish{Site: at})
		for _, form := range forms {
			for _, frame := range []string{
				"%s", "Please log in to\n%s", "to\t%s", "<%s>", "&%s", "https://%s/a?b", "https://me@%s:8443", "%s...", "%s.", "Is it %s? Yes.", "请登录%s。",
				"credential-%s-login", "credential-%s-totp", ".%s", "-%s-", "--site=%s", "a=%s&b=", "'%s'", "(%s)", "%s…", "%s_1", "see %s...and go",
			} {
				text := fmt.Sprintf(frame, form)
				for how, spell := range spellings {
					if !m.raw([]byte(spell(text))) {
						t.Errorf("%s is not found in %s (%s)", at, spell(text), how)
					}
				}
			}
		}
	}
	if m := mentionOf(Wish{Site: "chase.example"}); !m.raw([]byte(`{"chase.example":1}`)) || !m.raw([]byte("set CHASE_EXAMPLE_LOGIN")) {
		t.Error("a key, or a variable, is no mention")
	}
}

func TestWhatOnlyLooksLikeASiteIsOfOthers(t *testing.T) {
	t.Parallel()
	for at, texts := range map[site.Site][]string{
		"chase.example":         {"purchase.example", "my-chase.example", "chase.example.net", "chase.example-shop.net", "chase.examples", "chase-example", "notcredential-chase.example", "pürchase.example", "PURCHASE_EXAMPLE_LOGIN"},
		"github.io":             {"someone.github.io"},
		"127.0.0.1":             {"10.127.0.0.1", "127.0.0.1.example", "127.0.0.12"},
		"::1":                   {"fe80::1", "[::1:2]", "::12"},
		"xn--bcher-kva.example": {"hörbücher.example", "bucher.example"},
	} {
		m := mentionOf(Wish{Site: at})
		for _, text := range texts {
			for how, spell := range spellings {
				if m.raw([]byte(spell(text))) {
					t.Errorf("%s is found in %s (%s)", at, spell(text), how)
				}
			}
		}
	}
}
