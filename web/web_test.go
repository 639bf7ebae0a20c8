package web

import (
	"bytes"
	"compress/gzip"
	"io"
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

func built(t *testing.T) *Site {
	t.Helper()
	site, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return site
}

var reference = regexp.MustCompile(`"(/assets/[^"]+)"`)

// needs lists what a page names in its markup: what is fetched at once.
func needs(t *testing.T, site *Site, page string) []string {
	t.Helper()
	f, ok := site.File(page)
	if !ok {
		t.Fatalf("there is no %s", page)
	}
	var names []string
	for _, m := range reference.FindAllSubmatch(f.Body, -1) {
		if name := strings.TrimPrefix(string(m[1]), "/"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func TestThePhonePageIsSmallEnoughForAPoorConnection(t *testing.T) {
	t.Parallel()
	site := built(t)
	for _, page := range []string{Live, Console} {
		total := 0
		for _, name := range append(needs(t, site, page), page) {
			f, _ := site.File(name)
			total += len(f.Gzip)
			if f.Gzip == nil {
				total += len(f.Body)
			}
		}
		t.Logf("%s: %d bytes compressed in %d files", page, total, len(needs(t, site, page))+1)
		if total > firstPaint {
			t.Errorf("%s: first paint takes %d bytes, more than %d", page, total, firstPaint)
		}
	}
}

func TestEveryReferenceLeadsToAnAsset(t *testing.T) {
	t.Parallel()
	site := built(t)
	seen := 0
	for _, name := range site.Names() {
		f, _ := site.File(name)
		for _, m := range reference.FindAllSubmatch(f.Body, -1) {
			seen++
			if _, ok := site.File(strings.TrimPrefix(string(m[1]), "/")); !ok {
				t.Errorf("%s refers to %s, which is not there", name, m[1])
			}
		}
		if bytes.Contains(f.Body, []byte(`"./`)) || bytes.Contains(f.Body, []byte(`"../`)) {
			t.Errorf("%s refers to a source by its path", name)
		}
	}
	if seen < 40 {
		t.Errorf("only %d references: the pages cannot be whole", seen)
	}
}

func TestAPageFetchesAllItsModulesAtOnce(t *testing.T) {
	t.Parallel()
	site := built(t)
	for _, page := range []string{Live, Console} {
		at := needs(t, site, page)
		for _, name := range at {
			f, _ := site.File(name)
			for _, m := range regexp.MustCompile(`(?m)^import [^"]*"/([^"]+)"`).FindAllSubmatch(f.Body, -1) {
				if !slices.Contains(at, string(m[1])) {
					t.Errorf("%s: %s imports %s, which is fetched only then", page, name, m[1])
				}
			}
		}
	}
}

func TestThePagesKeepToTheirPolicy(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|<style|\sstyle=|\son[a-z]+="|javascript:`)
	foreign := regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//`)
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|localStorage|sessionStorage|indexedDB|setAttribute\("style"`)
	for _, name := range built(t).Names() {
		f, _ := built(t).File(name)
		for what, found := range map[string][]byte{
			"inline script or style": inline.Find(f.Body), "another origin": foreign.Find(f.Body), "markup from strings, or something kept on the phone": markup.Find(f.Body),
		} {
			if found != nil {
				t.Errorf("%s has %s: %q", name, what, found)
			}
		}
	}
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "script-src 'self'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(Policy, want) {
			t.Errorf("the policy lacks %q", want)
		}
	}
	if strings.Contains(Policy, "unsafe") || strings.Contains(Policy, "*") {
		t.Errorf("the policy is lax: %s", Policy)
	}
}

func TestAnAssetsNameChangesWithWhatItImports(t *testing.T) {
	t.Parallel()
	pages := func(leaf string) fstest.MapFS {
		html := `<script type="module" src="main.js"></script>`
		return fstest.MapFS{
			"live/index.html": {Data: []byte(html)}, "live/main.js": {Data: []byte("// why\nimport { a } from \"../assets/a.js\";\nconst b = await import(\"./late.js\");\n")},
			"live/late.js": {Data: []byte("export const late = 1;\n")}, "assets/a.js": {Data: []byte(leaf)},
			"console/index.html": {Data: []byte(html)}, "console/main.js": {Data: []byte("1;\n")},
		}
	}
	one, err := build(pages("export const a = 1;\n"))
	if err != nil {
		t.Fatal(err)
	}
	same, err := build(pages("/** Says more. */\nexport const a = 1;\n"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := build(pages("export const a = 2;\n"))
	if err != nil {
		t.Fatal(err)
	}
	main := func(s *Site) string {
		return s.Names()[slices.IndexFunc(s.Names(), func(n string) bool {
			f, _ := s.File(n)
			return strings.HasPrefix(n, "assets/main") && bytes.Contains(f.Body, []byte("import"))
		})]
	}
	if main(one) == main(other) {
		t.Error("a module that imports something else has the same name: a browser would keep the old one")
	}
	if f, _ := one.File(main(one)); bytes.Contains(f.Body, []byte("why")) || !bytes.Contains(f.Body, []byte(`import("/assets/late.`)) {
		t.Errorf("not as it should be served: %s", f.Body)
	}
	if f, _ := one.File(Live); bytes.Contains(f.Body, []byte("late.")) {
		t.Error("what comes later is fetched at once")
	}
	if !bytes.Equal(bodyOf(t, one, Live), bodyOf(t, same, Live)) {
		t.Error("a comment makes another asset of the same code")
	}
}

func bodyOf(t *testing.T, s *Site, name string) []byte {
	t.Helper()
	body, err := fs.ReadFile(s, name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestABrokenPageIsNoticedWhenItIsBuilt(t *testing.T) {
	t.Parallel()
	page := &fstest.MapFile{Data: []byte(`<script type="module" src="main.js"></script>`)}
	for name, tt := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"a module that is not there":   {fstest.MapFS{"live/index.html": page, "live/main.js": {Data: []byte("import \"./gone.js\";\n")}}, "gone.js"},
		"modules in a circle":          {fstest.MapFS{"live/index.html": page, "live/main.js": {Data: []byte("import \"./b.js\";\n")}, "live/b.js": {Data: []byte("import \"./main.js\";\n")}}, "imports itself"},
		"a kind nobody knows":          {fstest.MapFS{"live/index.html": {Data: []byte(`<img src="a.exe">`)}, "live/a.exe": {Data: []byte("x")}}, "of no kind"},
		"a page that is not there":     {fstest.MapFS{}, "build the page live"},
		"a path that leads out of web": {fstest.MapFS{"live/index.html": {Data: []byte(`<img src="../../etc/a.svg">`)}}, "etc/a.svg"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := build(tt.files); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestASiteIsAFileSystem(t *testing.T) {
	t.Parallel()
	site := built(t)
	for _, name := range site.Names() {
		f, err := site.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil || info.Size() != int64(len(body)) || info.Name() != path.Base(name) || info.IsDir() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		file, _ := site.File(name)
		if !bytes.Equal(body, file.Body) || file.Tag == "" || file.Type == "" {
			t.Errorf("%s differs between its two ways", name)
		}
		if file.Gzip != nil {
			r, err := gzip.NewReader(bytes.NewReader(file.Gzip))
			if err != nil {
				t.Fatal(err)
			}
			if plain, err := io.ReadAll(r); err != nil || !bytes.Equal(plain, body) {
				t.Errorf("%s is not what it was compressed from: %v", name, err)
			}
		}
	}
	if _, err := site.Open("live/main.js"); err == nil {
		t.Error("sources can be opened")
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
