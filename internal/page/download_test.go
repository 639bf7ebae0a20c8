package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestNamesOfDownloadsAreHarmless(t *testing.T) {
	t.Parallel()
	for suggested, want := range map[string]string{
		"report.pdf":                      "report.pdf",
		"../../etc/passwd":                "passwd",
		`..\\..\\autorun.inf`:             "autorun.inf",
		".bashrc":                         "bashrc",
		"...":                             "download",
		"":                                "download",
		"-rf":                             "rf",
		"a\x00b\nc.txt":                   "abc.txt",
		"invoice\u202efdp.exe":            "invoicefdp.exe",
		"what?.txt":                       "what_.txt",
		"con.txt":                         "_con.txt",
		"trailing. ":                      "trailing",
		"Überweisung März.pdf":            "Überweisung März.pdf",
		strings.Repeat("ä", 200) + ".pdf": strings.Repeat("ä", 58) + ".pdf",
	} {
		if got := fileName(suggested); got != want {
			t.Errorf("%q becomes %q, not %q", suggested, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		got := fileName(rapid.String().Draw(t, "name"))
		switch {
		case got == "", len(got) > maxFileName+1, !utf8.ValidString(got), strings.ContainsAny(got, "/\\\x00"), strings.HasPrefix(got, "."):
			t.Fatalf("it becomes %q", got)
		case strings.ContainsFunc(got, unicode.IsControl), filepath.Base(got) != got, !filepath.IsLocal(got):
			t.Fatalf("it becomes %q", got)
		case fileName(got) != got:
			t.Fatalf("%q becomes %q", got, fileName(got))
		}
	})
}

func TestAFileIsNamedWithoutReplacingAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, body string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("a.txt", "old")
	if got := giveName(write("guid-1", "new"), "guid-1", "a.txt"); got != filepath.Join(dir, "a (2).txt") {
		t.Errorf("it is at %s", got)
	}
	if body, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(body) != "old" {
		t.Errorf("the older file holds %q", body)
	}
	// What the browser says is not taken for more than it is.
	elsewhere := filepath.Join(dir, "nowhere", "guid-2")
	for path, id := range map[string]string{elsewhere: "guid-2", filepath.Join(dir, "a.txt"): "guid-3", "": "guid-4"} {
		if got := giveName(path, id, "b.txt"); got != path {
			t.Errorf("%s became %s", path, got)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "a.txt"), filepath.Join(dir, "guid-5")); err != nil {
		t.Fatal(err)
	}
	if path := filepath.Join(dir, "guid-5"); giveName(path, "guid-5", "c.txt") != path {
		t.Error("a link was taken for a download")
	}
}

func TestAddressesAreShownBare(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][2]string{
		"https://ann:secret@example.com:8443/a/b?token=1#x": {"https://example.com:8443", "https://example.com:8443/a/b"},
		"http://example.com?token=1":                        {"http://example.com", "http://example.com"},
		"blob:https://example.com/8d0c":                     {"", "blob:https://example.com"},
		"data:text/plain,secret":                            {"", "data:"},
		"about:blank":                                       {"", "about:"},
		"%zz":                                               {"", ""},
	} {
		if got := bareAddress(address); got != want[1] {
			t.Errorf("%s becomes %q, not %q", address, got, want[1])
		}
		if got := originOf(address); want[0] != "" && got != want[0] {
			t.Errorf("the origin of %s is %q, not %q", address, got, want[0])
		}
	}
}
