package web

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// firstPaint is what a phone may have to fetch before it sees the page, in
// compressed bytes: 30 KB, less what the headers take.
const firstPaint = 29_000

func built(t *testing.T) map[string][]byte {
	t.Helper()
	pages, err := Pages()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	err = fs.WalkDir(pages, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files[name], err = fs.ReadFile(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// atOnce lists what a page names in its markup: what is fetched at once.
func atOnce(files map[string][]byte, page string) []string {
	var names []string
	for _, m := range named.FindAllSubmatch(files[page], -1) {
		if name := beside(page, m[1]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func zipped(t *testing.T, body []byte) int {
	t.Helper()
	var small bytes.Buffer
	w, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return small.Len()
}

func TestThePhonePageIsSmallEnoughForAPoorConnection(t *testing.T) {
	t.Parallel()
	files := built(t)
	for _, page := range []string{"live/index.html", "console/index.html"} {
		need := append(atOnce(files, page), page)
		total := 0
		for _, name := range need {
			total += zipped(t, files[name])
		}
		t.Logf("%s: %d bytes compressed in %d files", page, total, len(need))
		if total > firstPaint || len(need) < 8 {
			t.Errorf("%s: first paint takes %d bytes in %d files, more than %d", page, total, len(need), firstPaint)
		}
	}
}

func TestAPageFetchesAllItsModulesAtOnceAndNoMore(t *testing.T) {
	t.Parallel()
	files := built(t)
	for _, page := range []string{"live/index.html", "console/index.html"} {
		at := atOnce(files, page)
		for _, name := range at {
			for _, m := range imported.FindAllSubmatch(files[name], -1) {
				if other := beside(name, m[1]); !slices.Contains(at, other) {
					t.Errorf("%s: %s imports %s, which is fetched only then", page, name, other)
				}
			}
		}
	}
	if slices.Contains(atOnce(files, "live/index.html"), "live/fields.js") {
		t.Error("what comes after the first picture is fetched before it")
	}
}

func TestThePagesKeepToAStrictPolicy(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|<style|\sstyle=|\son[a-z]+="|javascript:`)
	foreign := regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//`)
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|localStorage|sessionStorage|indexedDB|setAttribute\("style"`)
	for name, body := range built(t) {
		for what, found := range map[string][]byte{
			"inline script or style": inline.Find(body), "another origin": foreign.Find(body), "markup from strings, or something kept on the phone": markup.Find(body),
		} {
			if found != nil {
				t.Errorf("%s has %s: %q", name, what, found)
			}
		}
	}
}

func TestWhatOnlyReadersNeedIsNotServed(t *testing.T) {
	t.Parallel()
	pages, err := prepare(fstest.MapFS{
		"live/index.html": {Data: []byte(`<script type="module" src="main.js"></script>`)},
		"live/main.js":    {Data: []byte("// why\nimport { a } from \"../assets/a.js\";\n  /** @type {string} */\n  const b = /** @type {any} */ (a + \"https://x\");\n")},
		"assets/a.js":     {Data: []byte("/**\n * Says more.\n */\nexport const a = \"/x//y\";\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"live/index.html": "<link rel=\"modulepreload\" href=\"../assets/a.js\">\n<script type=\"module\" src=\"main.js\"></script>",
		"live/main.js":    "import { a } from \"../assets/a.js\";\nconst b = (a + \"https://x\");\n",
		"assets/a.js":     "export const a = \"/x//y\";\n",
	} {
		got, err := fs.ReadFile(pages, name)
		if err != nil || string(got) != want {
			t.Errorf("%s is served as %q, want %q (%v)", name, got, want, err)
		}
	}
}

func TestABrokenPageIsNoticedWhenItIsMadeReady(t *testing.T) {
	t.Parallel()
	page := &fstest.MapFile{Data: []byte(`<script type="module" src="main.js"></script>`)}
	js := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, tt := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"a module that is not there":       {fstest.MapFS{"live/index.html": page, "live/main.js": js("import \"./gone.js\";\n")}, "gone.js is not there"},
		"a later module that is not there": {fstest.MapFS{"live/index.html": page, "live/main.js": js("await import(\"./gone.js\");\n")}, "live/gone.js, which is not there"},
		"modules in a circle":              {fstest.MapFS{"live/index.html": page, "live/main.js": js("import \"./b.js\";\n"), "live/b.js": js("import \"./main.js\";\n")}, "imports itself"},
		"a style that is not there":        {fstest.MapFS{"live/index.html": js(`<link rel="stylesheet" href="live.css">`)}, "live/live.css, which is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := prepare(tt.files); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestNoFileIsLong(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(sources, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(name) != ".js" {
			return err
		}
		body, err := fs.ReadFile(sources, name)
		if n := bytes.Count(body, []byte("\n")); n > 500 {
			t.Errorf("%s has %d lines", name, n)
		}
		if !bytes.HasPrefix(body, []byte("// @ts-check\n")) {
			t.Errorf("%s is not checked for its types", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The modules that need no browser are tested by Node alone.
func TestThePagesHoldTheirProperties(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NOTHING WAS CHECKED of the pages' own modules: there is no node here")
	}
	out, err := exec.CommandContext(t.Context(), node, "--test", "test/geometry.test.js", "test/edit.test.js", "test/gestures.test.js", "test/screen.test.js").CombinedOutput()
	if err != nil {
		t.Errorf("node: %v\n%s", err, out)
	}
	if !regexp.MustCompile(`# pass [1-9]\d`).Match(out) {
		t.Errorf("hardly anything ran:\n%s", out)
	}
}
