package oneshot

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
)

// messy is a page as they are: unclosed tags, a table with spans and a table in
// it, hidden text, a cookie banner, scripts that come late, entities.
const messy = `<title>Prices &amp; terms — Caf\u00e9</title>
<div id=banner style="position:fixed;inset:auto 0 0">We use cookies <button>OK</button></div>
<nav><a href="/">Home</a> <a href="/b">B</a></nav>
<main><h1>Prices <small>2026</small></h1><p class=intro>All prices in&nbsp;EUR,<br>VAT <b>incl</b>uded.
<p style="display:none">SECRET-HIDDEN
<table id=prices><caption>Fees</caption><thead><tr><th rowspan=2>Plan<th colspan=2>Price<tr><th>Month<th>Year</thead>
<tr><td>Free<td colspan=2>0
<tr><td rowspan=2>Pro<td>9.50<td>95
<tr><td>12.50 <i>(team)</i><td>125 <table><tr><td>nested</table>
</table>
<ul class=items><li data-sku=a1><h3>Pen</h3><span class=price>1.20</span><span class=tag>new</span><span class=tag>red</span>
<li data-sku=b2><h3>Ink</h3><span class=tag>blue</span></ul>
<article><h2>How it works</h2><p>First you <a href="/sign-up">sign up</a>, then you wait. It takes a <em>moment</em>, and while you wait there is nothing to do but to read this text, which is long enough to be an article.</p>
<p>Second paragraph with <code>code</code>, and a list, so that whoever looks for the main content finds it here and not in the navigation around it.</p><ol><li>one<li>two</ol></article></main>
<footer>Imprint</footer><script>setTimeout(() => document.querySelector(".intro").append(" Late."), 200)</script>`

func TestEachFormOfInstructionOnAMessyPage(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	mux := http.NewServeMux()
	html(mux, "/", strings.ReplaceAll(messy, `\u00e9`, "é"))
	w := newWorld(t, mux, func(o *Options) { o.Warm = 2 })
	w.Begin()
	for instruction, want := range map[string]string{
		"selector: h1":                        `Prices 2026`,
		"css: .intro":                         "All prices in EUR,\nVAT included. Late.",
		"selector: .items; li; h3":            "Pen\nInk",
		"selector: nav; a@href":               "SITE/\nSITE/b",
		"xpath: //li[@data-sku='b2']/h3":      "Ink",
		"xpath: //main; .//span[1]":           "1.20\nblue",
		"table: #prices":                      `[{"Plan":"Free","Price / Month":"0","Price / Year":"0"},{"Plan":"Pro","Price / Month":"9.50","Price / Year":"95"},{"Plan":"Pro","Price / Month":"12.50 (team)","Price / Year":"125 nested"}]`,
		"json: {title: h1, sku: li@data-sku}": `{"title":"Prices 2026","sku":"a1"}`,
		`json: {items: ["li[data-sku]", {name: h3, price: .price, tags: [.tag], sku: "@data-sku"}]}`: `{"items":[{"name":"Pen","price":"1.20","tags":["new","red"],"sku":"a1"},{"name":"Ink","price":null,"tags":["blue"],"sku":"b2"}]}`,
		"selector: article; markdown": "## How it works\n\nFirst you [sign up](SITE/sign-up), then you wait. It takes a *moment*, and while you wait there is nothing to do but to read this text, which is long enough to be an article.\n\nSecond paragraph with `code`, and a list, so that whoever looks for the main content finds it here and not in the navigation around it.\n\n1. one\n2. two",
	} {
		t.Run(instruction, func(t *testing.T) {
			t.Parallel()
			got, err := w.Extract(ctx, ExtractCall{Call: w.at("/"), Instruction: instruction})
			if err != nil {
				t.Fatal(err)
			}
			text, ok := got.Content.(string)
			if raw, isJSON := got.Content.(json.RawMessage); isJSON {
				text = string(raw)
			} else if !ok {
				t.Fatalf("%T", got.Content)
			}
			if text = strings.ReplaceAll(text, w.site.URL, "SITE"); text != want {
				t.Errorf("got\n%s\nwant\n%s", text, want)
			}
			if got.Title != "Prices & terms — Café" {
				t.Errorf("the title is %q", got.Title)
			}
		})
	}
	t.Run("article", func(t *testing.T) {
		t.Parallel()
		got, err := w.Extract(ctx, ExtractCall{Call: w.at("/"), Instruction: "article"})
		if text := fmt.Sprint(got.Content); err != nil || !strings.Contains(text, "First you [sign up]") || strings.Contains(text, "Imprint") || strings.Contains(text, "cookies") {
			t.Errorf("%v %v", got.Content, err)
		}
	})
	t.Run("hidden text is left out", func(t *testing.T) {
		t.Parallel()
		got, err := w.Extract(ctx, ExtractCall{Call: w.at("/")})
		if text := fmt.Sprint(got.Content); err != nil || strings.Contains(text, "SECRET-HIDDEN") || !strings.Contains(text, "Late.") {
			t.Errorf("%v %v", got.Content, err)
		}
	})
	for _, instruction := range []string{"selector: .nowhere", "xpath: //nowhere", "selector: main; .nowhere", "table: #nowhere", "json: {a: .nowhere}"} {
		t.Run(instruction+" finds nothing", func(t *testing.T) {
			t.Parallel()
			_, err := w.Extract(ctx, ExtractCall{Call: w.at("/"), Instruction: instruction})
			if f := wantCode(t, err, fault.EmptyExtraction); !strings.Contains(f.Details(), "nowhere") {
				t.Errorf("it says %q", f.Details())
			}
		})
	}
}
