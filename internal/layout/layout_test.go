package layout_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tapin/internal/layout"
)

func TestEveryFileHasItsKind(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"figures.json": "figures",
		"figures.json.damaged-20261119T170340.123Z":      "put aside",
		"contexts/bank.age.damaged-20261119T170340.123Z": "put aside",
		"contexts/bank.age.damaged-me.age":               "saved login", // a login may have such a name
		"owners.json.before":                             "version before",
		"contexts/bank.age":                              "saved login",
		"contexts/bank.age.1":                            "saved login before",
		"handoffs/open/hof_1":                            "open hand-off",
		"handoffs/hof_1/meta.json":                       "hand-off",
		"handoffs/list/000000000000.jsonl":               "list of hand-offs",
		"run/ses_1-1/profile/Default/Preferences":        "browser",
		"demo/handoffs/hof_1/meta.json":                  "hand-off",
		"demo/phone/owner/profile/x":                     "demo phone",
		"inbox/state.json":                               "inbox state",
		"inbox/000000000001.json":                        "message",
		"links/public":                                   "public address",
		"somewhere/else.json":                            "",
		"handoffs/hof_1/deeper/meta.json":                "",
		".before":                                        "",
		"handoffs/hof_1/meta.json.damaged-yesterday":     "",
	} {
		kind, ok := layout.Of(name)
		if kind.Name != want || ok != (want != "") {
			t.Errorf("%s is %q, want %q", name, kind.Name, want)
		}
	}
	if name, aside := layout.Original("a/b.json.damaged-20261119T170340.123Z"); name != "a/b.json" || !aside {
		t.Errorf("the name before was %q, %v", name, aside)
	}
}

func TestKindsAreDescribed(t *testing.T) {
	t.Parallel()
	patterns := map[string]bool{}
	for _, k := range layout.Kinds() {
		if k.Name == "" || k.Pattern == "" || k.Class == "" || len(k.About) < 10 || k.About[len(k.About)-1] != '.' {
			t.Errorf("%+v is not described", k)
		}
		if patterns[k.Pattern] {
			t.Errorf("%s is listed twice", k.Pattern)
		}
		patterns[k.Pattern] = true
	}
}

// The page that people read has the same list.
func TestTheDocumentationListsTheKinds(t *testing.T) {
	t.Parallel()
	const page, head = "../../docs/running.md", "| file | kind | class | |\n|---|---|---|---|\n"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), head)
	_, after, ends := strings.Cut(rest, "\n\n") // the table ends where a line is empty
	if !found || !ends {
		t.Fatalf("%s has no place for the list", page)
	}
	var rows strings.Builder
	for _, k := range layout.Kinds() {
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", k.Pattern, k.Name, k.Class, k.About)
	}
	whole := before + head + rows.String() + "\n" + after
	if whole == string(raw) {
		return
	}
	if os.Getenv("TAPIN_TEST_WRITE_DOCS") == "" {
		t.Fatalf("the list in %s is not that of the program; TAPIN_TEST_WRITE_DOCS=1 go test ./internal/layout writes it", page)
	}
	if err := os.WriteFile(page, []byte(whole), 0o644); err != nil { //nolint:gosec // a page for everybody
		t.Fatal(err)
	}
}
