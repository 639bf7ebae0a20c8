package page_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/money"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// exhibit is one page of the corpus: what is on it, and what we ought to see.
type exhibit struct {
	name string
	html string
	Acts []struct {
		On   string `json:"on"`
		Key  string `json:"key"`
		Pays bool   `json:"pays"`
	} `json:"acts"`
	Total string `json:"total"` // "142.50 USD", "ambiguous", or "" for none
}

func exhibits(t *testing.T, half string) []exhibit {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "payment", half, "*.html"))
	if err != nil {
		t.Fatal(err)
	}
	var out []exhibit
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(raw), "\n")
		e := exhibit{name: half + "/" + strings.TrimSuffix(filepath.Base(file), ".html"), html: string(raw)}
		if err := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(head, "<!-- "), " -->")), &e); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, e)
	}
	return out
}

// score counts what was seen rightly.
type score struct{ hits, misses, alarms int }

func (s score) recall() float64    { return ratio(s.hits, s.hits+s.misses) }
func (s score) precision() float64 { return ratio(s.hits, s.hits+s.alarms) }

func ratio(a, b int) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}

func (s *score) add(want, got bool) bool {
	switch {
	case want && got:
		s.hits++
	case want:
		s.misses++
	case got:
		s.alarms++
	}
	return want == got
}

// unsighted are the pages that were made without sight of the patterns. The
// first of them is tried in every run, the others by make test-long.
var unsighted = []string{"blind", "fresh", "second", "third", "fourth", "fifth"}

func TestPagesThatTakeMoneyAreKnownFromThoseThatDoNot(t *testing.T) {
	t.Parallel()
	seen := exhibits(t, "seen")
	if blind := exhibits(t, unsighted[0]); len(seen)+len(blind) < 80 || len(blind) < len(seen) {
		t.Fatalf("%d pages, and %d of them made without sight of the patterns", len(seen)+len(blind), len(blind))
	}
	for i, name := range append([]string{"seen"}, unsighted...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if i > 1 {
				browsertest.Long(t)
			}
			tryAll(t, name, exhibits(t, name))
		})
	}
}

// tryAll looks at every page of a half and tries everything on it.
func tryAll(t *testing.T, name string, half []exhibit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*testwait.Limit())
	defer cancel()
	pages := map[string]string{}
	for _, e := range half {
		pages["/"+e.name] = e.html + stays
	}
	d := sitAt(ctx, t, pages)
	var guard, total score
	for _, e := range half {
		d.open(ctx, t, "/"+e.name)
		read, err := d.tab.Totals(ctx, nil)
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		if !countTotal(t, &total, e, read) {
			t.Logf("total of %s: %s %s (%q), want %q; seen %v", e.name, read.Decision, read.Total, read.Label, e.Total, read.Seen)
		}
		for i, act := range e.Acts {
			if i > 0 && !d.unmoved(e) {
				d.open(ctx, t, "/"+e.name)
			}
			if got := pays(ctx, t, d.tab, act.On, act.Key); !guard.add(act.Pays, got) {
				t.Logf("guard on %s %s: pays %v, want %v", e.name, act.On, got, act.Pays)
			}
		}
	}
	t.Logf("%s (%d pages): guard recall %.3f precision %.3f; total recall %.3f precision %.3f", name, len(half), guard.recall(), guard.precision(), total.recall(), total.precision())
	if guard.recall() < .95 || guard.precision() < .9 || total.recall() < .95 || total.precision() < .9 {
		t.Errorf("the %s half is not known well enough", name)
	}
}

// stays keeps a page where it is after the guard has heard what was done: what a
// form or a link leads to would come up while the next page is opened.
const stays = `<script>
addEventListener('submit', e => e.preventDefault())
addEventListener('click', e => { if (e.composedPath().some(n => n.localName === 'a')) e.preventDefault() })
</script>`

// unmoved tells that the page is as it was opened: nothing in it can change it,
// and it did not go elsewhere.
func (d desk) unmoved(e exhibit) bool {
	address, _ := d.tab.Address()
	return address == d.URL+"/"+e.name && !moves.MatchString(e.html)
}

var moves = regexp.MustCompile(`<script|\son[a-z]+=|<dialog|<details|<iframe|href="?#`)

// countTotal holds a reading against the truth. A wrong total is both a miss
// and a false alarm; to call ambiguous what is not is a miss.
func countTotal(t *testing.T, s *score, e exhibit, read page.Totals) bool {
	t.Helper()
	switch e.Total {
	case "ambiguous":
		return s.add(true, read.Decision == page.TotalAmbiguous)
	case "":
		return s.add(false, read.Decision == page.TotalRead)
	}
	major, code, _ := strings.Cut(e.Total, " ")
	want, err := money.Of(major, code)
	if err != nil {
		t.Fatal(err)
	}
	if read.Decision == page.TotalRead && read.Total != want {
		s.alarms++
	}
	return s.add(true, read.Decision == page.TotalRead && read.Total == want)
}

// pays does something as an agent would and tells whether it was stopped.
func pays(ctx context.Context, t *testing.T, tab *page.Tab, selector, key string) bool {
	t.Helper()
	asked := false
	ctx = page.Guarded(ctx, page.Guarding{Permit: func(context.Context, page.Intent) error {
		asked = true
		return fault.New(fault.ApprovalRequired, "test", "no")
	}})
	var err error
	if key != "" {
		if _, err = tab.Click(ctx, css(selector), page.ClickOptions{}); err == nil {
			err = tab.Press(ctx, key)
		}
	} else {
		_, err = tab.Click(ctx, css(selector), page.ClickOptions{Timeout: testwait.Limit()})
	}
	if stopped := fault.Of(err) != nil && fault.Of(err).Code == fault.ApprovalRequired; stopped != asked {
		t.Fatalf("%s: asked %v, and then %v", selector, asked, err)
	}
	if err != nil && !asked {
		t.Errorf("%s could not be tried: %v", selector, err)
	}
	return asked
}
