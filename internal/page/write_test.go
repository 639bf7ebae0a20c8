package page_test

import (
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// What is filled is put in as a whole; pages that want keys get them.
func TestFillingIsQuickAndStillHeard(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	const counts = `<script>let inputs = 0, keys = 0, found = '', trusted = true
addEventListener('input', e => { inputs++; trusted &&= e.isTrusted })
addEventListener('keydown', () => keys++)
addEventListener('keyup', e => { found = e.target.value })</script>`
	d := sitAt(ctx, t, map[string]string{
		"/plain":  counts + `<input id=f value="what was there">`,
		"/key":    counts + `<input id=f oninput="if (event.data?.length > 1) value = ''">`,
		"/mask":   counts + `<input id=f oninput="const d = value.replace(/\D/g, ''); value = d.length > 3 ? '(' + d.slice(0, 3) + ') ' + d.slice(3) : d">`,
		"/short":  counts + `<input id=f maxlength=4>`,
		"/steals": counts + `<input id=f onfocus="setTimeout(() => other.focus())"><input id=other>`,
	})
	for name, c := range map[string]struct{ path, text, is string }{
		"over what was there":              {"/plain", "Ada Lovelace", "Ada Lovelace"},
		"one character":                    {"/plain", "7", "7"},
		"letters that no key has":          {"/plain", "naïveté", "naïveté"},
		"a long one":                       {"/plain", long(2000), long(2000)},
		"a page that takes single keys":    {"/key", "4417", "4417"},
		"a page that sets it apart":        {"/mask", "5551234567", "(555) 1234567"},
		"a field for less":                 {"/short", "123456", "1234"},
		"a page that takes the focus away": {"/steals", "secret", "secret"},
	} {
		d.open(ctx, t, c.path)
		filled, err := d.tab.Fill(ctx, []page.Field{{Locator: css("#f"), Value: secret.New(c.text)}}, 0)
		if err != nil || len(filled) != 1 || !filled[0].OK {
			t.Errorf("%s: %v, %v", name, filled, err)
		}
		d.says(ctx, t, "f.value", c.is)
		d.says(ctx, t, "String(trusted)", "true")
		if c.path == "/plain" {
			d.says(ctx, t, "String(inputs === 1)", "true")
		}
		if c.path == "/plain" {
			d.says(ctx, t, "found", c.is)
		}
		if c.path == "/steals" {
			d.says(ctx, t, "other.value", "")
		}
	}
}

func long(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	return string(text)
}
