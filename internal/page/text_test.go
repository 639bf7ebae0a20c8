package page_test

import (
	"fmt"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
)

// What nobody can see is no text of the page, however much there is of it, and
// takes no room from what can be seen.
func TestWordsOutOfReachAreNoText(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	unseen := func(by int) string { return strings.Repeat(fmt.Sprintf("unseen%d ", by), 3000) }
	slotted := func(style string) string {
		return `<x-box><span>slotted ` + style + `</span></x-box><script>{
			const box = document.currentScript.previousElementSibling
			box.attachShadow({mode: "open"}).innerHTML = '<div style="` + style + `"><slot></slot></div>'
		}</script>`
	}
	w := visit(t, map[string]string{
		"/": `<body><div style="position:absolute;left:-9999px;width:200px">` + unseen(1) + `</div>
			<div style="position:absolute;top:-99999px">` + unseen(2) + `</div>
			<div style="font-size:0">` + unseen(3) + `</div>
			<div style="overflow:hidden;width:0;height:0">` + unseen(4) + `</div>
			<div style="display:none">` + unseen(5) + `</div>
			<p>seen first</p>` +
			slotted("overflow:hidden;height:0") + slotted("position:absolute;left:-5000px") + slotted("color:black") +
			`<p>seen last</p>`,
	}, page.Look{})
	tab := w.front(ctx, t)
	if _, err := tab.Navigate(ctx, w.URL+"/", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{0, 200} {
		text, truncated, err := tab.Text(ctx, limit)
		if err != nil || truncated || strings.Contains(text, "unseen") {
			t.Errorf("of %d characters: %q, %v, %v", limit, text, truncated, err)
		}
		for _, part := range []string{"seen first", "slotted color:black", "seen last"} {
			if !strings.Contains(text, part) {
				t.Errorf("of %d characters %q is missing: %q", limit, part, text)
			}
		}
		if strings.Contains(text, "slotted overflow") || strings.Contains(text, "slotted position") {
			t.Errorf("of %d characters, what a slot hides is in it: %q", limit, text)
		}
	}
}
