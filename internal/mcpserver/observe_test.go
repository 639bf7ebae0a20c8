package mcpserver_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestALongPageIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	body.WriteString(`<!doctype html><title>Long</title>`)
	for i := range 900 {
		fmt.Fprintf(&body, "<p>Paragraph number %d of many, with enough words to fill a line of the outline.</p><button>Button %d</button>", i, i)
	}
	s := site(t, map[string]string{"/": body.String()})
	c := open(t, s).overPipes(t, nil, nil)
	text, data := c.must("browser_navigate", map[string]any{"url": s.URL})
	if page(data)["truncated"] != true || len(text) > 9_500 {
		t.Fatalf("%d bytes, truncated %v", len(text), page(data)["truncated"])
	}
	gap := regexp.MustCompile(`… \d+ more \(offset (\d+)\)`)
	seen := map[string]bool{}
	offset := 0
	for range 40 {
		text, _ := c.must("browser_snapshot", map[string]any{"offset": offset})
		for _, m := range regexp.MustCompile(`button: (Button \d+)`).FindAllStringSubmatch(text, -1) {
			seen[m[1]] = true
		}
		m := gap.FindStringSubmatch(text)
		if m == nil {
			break
		}
		offset, _ = strconv.Atoi(m[1])
	}
	if len(seen) != 900 {
		t.Errorf("%d of 900 buttons were reached", len(seen))
	}
	if text, _ := c.must("browser_snapshot", map[string]any{"offset": 1_000_000}); strings.Contains(text, "Button") {
		t.Errorf("past its end the page has %.300q", text)
	}
}

func TestAPageIsOpenedWithoutItsOutline(t *testing.T) {
	t.Parallel()
	s := site(t, map[string]string{"/": `<!doctype html><title>Short</title><button onclick="this.textContent = 'Pressed'">Press</button>`})
	c := open(t, s).overPipes(t, nil, nil)
	for range 2 { // in a new session, and in one that is there
		text, data := c.must("browser_navigate", map[string]any{"url": s.URL, "outline": false})
		if !strings.Contains(text, "title: Short") || strings.Contains(text, "Press") || page(data)["kind"] != nil {
			t.Errorf("without its outline: %s", text)
		}
	}
	if text, _ := c.must("browser_click", map[string]any{"target": "button"}); !strings.Contains(text, "button focused: Pressed") {
		t.Errorf("what nobody has seen is told whole: %s", text)
	}
}

// What is told after a navigation is the page, not how it differs from the last.
func TestAnotherPageIsToldAsItIs(t *testing.T) {
	t.Parallel()
	rows := func(word string) string {
		var b strings.Builder
		for i := range 400 {
			fmt.Fprintf(&b, "<p>%s %d is one of many lines of this page</p>", word, i)
		}
		return `<!doctype html><title>` + word + `</title><a href="/two">Further</a>` + b.String()
	}
	s := site(t, map[string]string{"/one": rows("First"), "/two": rows("Second")})
	c := open(t, s).overPipes(t, nil, nil)
	c.must("browser_navigate", map[string]any{"url": s.URL + "/one"})
	for _, way := range []func() (string, map[string]any){
		func() (string, map[string]any) {
			return c.must("browser_navigate", map[string]any{"url": s.URL + "/two"})
		},
		func() (string, map[string]any) {
			c.must("browser_navigate", map[string]any{"url": s.URL + "/one"})
			return c.must("browser_click", map[string]any{"target": "a"})
		},
	} {
		if text, data := way(); page(data)["kind"] != "snapshot" || strings.Contains(text, "First") || !strings.Contains(text, "> Second 0 is one") {
			t.Errorf("%v: %.600s", page(data)["kind"], text)
		}
	}
}

func TestAnActionTellsWhatItChanged(t *testing.T) {
	t.Parallel()
	s := site(t, map[string]string{"/": `<!doctype html><title>Tasks</title>
<ul>` + strings.Repeat("<li>An old task with <a href=#>details</a></li>", 60) + `</ul>
<button onclick="document.body.insertAdjacentHTML('beforeend', '<button>Undo</button>'); this.textContent = 'Added'">Add</button>
<button onclick="this.remove()">Dismiss</button>
<button onclick="document.title = 'Late'; setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<p>It has arrived</p>'), 100)">Fetch</button>
<button onclick="void 0">Idle</button>`})
	c := open(t, s).overPipes(t, nil, nil)
	c.must("browser_navigate", map[string]any{"url": s.URL})
	for _, st := range []struct {
		click, says     string
		new, same, gone float64
	}{
		{"Add", "+ [", 1, 1, 0},
		{"Dismiss", "- [", 0, 0, 1},
		{"Fetch", "+ > It has arrived", 1, 0, 0},
	} {
		text, data := c.must("browser_click", map[string]any{"text": st.click})
		p := page(data)
		count := func(name string) float64 { n, _ := p[name].(float64); return n }
		if p["kind"] != "changes" || !strings.Contains(text, st.says) || count("appeared") != st.new || count("changed") != st.same || count("vanished") != st.gone {
			t.Errorf("%s: %v", st.click, text)
		}
		if strings.Contains(text, "An old task") || len(text) > 600 {
			t.Errorf("%s tells what did not change: %s", st.click, text)
		}
	}
	if text, data := c.must("browser_click", map[string]any{"text": "Idle"}); page(data)["kind"] != "unchanged" || !strings.Contains(text, "Nothing on the page has changed") {
		t.Errorf("nothing changed, and the answer is %s", text)
	}
}
