package logins

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/fault"
	"tapin/internal/store"
)

const seed = `# .claude/state/browser-contexts.yaml
contexts:
  verizon:
    browserbase_context_id: "ctx_abc123"
    last_used: "2026-02-06"
    last_verified: "2026-02-06"     # Last time cookies were confirmed valid (no login needed)
    domain: "verizon.com"
    notes: "the owner's account"
    payment_approval:               # Optional blanket approval
      max_amount: 200
      auto_approve: true
  chase:
    browserbase_context_id: "ctx_def456"
    last_used: "2026-02-01"
    last_verified: "2026-02-01"
    domain: "chase.com"
    notes: "Primary checking"
`

func TestTheManifestIsReadAsThePeopleWhoWriteItMeanIt(t *testing.T) {
	t.Parallel()
	got := entriesOf(t, seed)
	day := func(s string) Moment {
		return (&entryReader{document: docOf(t, `contexts: {a: {last_used: "`+s+`"}}`), path: []string{"contexts", "a"}}).moment("last_used")
	}
	want := []Entry{
		{
			Name: "verizon", BrowserbaseContextID: "ctx_abc123", Domain: "verizon.com", Notes: "the owner's account",
			LastUsed: day("2026-02-06"), LastVerified: day("2026-02-06"), Policy: &Policy{MaxAmount: "200", AutoApprove: true},
		},
		{Name: "chase", BrowserbaseContextID: "ctx_def456", Domain: "chase.com", Notes: "Primary checking", LastUsed: day("2026-02-01"), LastVerified: day("2026-02-01")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m := day("2026-02-06"); !m.Day || m.String() != "2026-02-06" {
		t.Errorf("a day is read as %v", m)
	}
	if m := day("2026-02-06T12:30:00+02:00"); m.Day || m.String() != "2026-02-06T10:30:00Z" {
		t.Errorf("a time is read as %v", m)
	}

	rich := entriesOf(t, `
base: &limits {max_amount: 142.50, currency: USD, monthly_budget: "500", expires: 2027-01-01}
contexts:
  a: {provider: local, payment_approval: *limits, check: {url: "https://a.example/me", text: Log out}}
  b: &b
    domain: b.example
    future_key: [1, 2]
  c:
    <<: *b
    notes: its own
  d:
`)
	if len(rich) != 4 || rich[0].Problem != nil || rich[0].Policy.MaxAmount != "142.50" || rich[0].Policy.Currency != "USD" || rich[0].Check.Text != "Log out" {
		t.Errorf("aliases: %+v", rich)
	}
	if rich[2].Domain != "b.example" || rich[2].Notes != "its own" || rich[3].Name != "d" {
		t.Errorf("merges: %+v", rich)
	}
}

func TestABrokenManifestIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text, place, says string
	}{
		"no YAML":                     {"contexts:\n  a: [1\n", ":2:6", ""},
		"a tab as indent":             {"contexts:\n\ta: 1\n", ":2:", ""},
		"the same login twice":        {"contexts:\n  a: {}\n  a: {}\n", ":3:3", "already defined"},
		"two that differ in case":     {"contexts:\n  Chase: {}\n  chase: {}\n", ":2:", "upper and lower case"},
		"a list of logins":            {"contexts:\n  - a\n", ":", "logins"},
		"a word for all":              {"contexts: none\n", ":1:11", "by their names"},
		"a list for a file":           {"- a\n", ":1:1", "key: value"},
		"a second document":           {"contexts: {}\n---\nb: 1\n", ":3:", "second document"},
		"an alias of nothing":         {"contexts:\n  a: *b\n", ":2:", "anchor"},
		"an alias inside itself":      {"a: &x [*x]\n", ":1:", "anchor"},
		"a bomb of aliases":           {bomb(), ":", "too"},
		"a NUL in a name":             {"contexts:\n  \"a\\0b\": {}\n", ":2:3", "no name has"},
		"a lone carriage return":      {"contexts:\r  a: {}\n", ":1:10", "not text"},
		"a byte that is no text":      {"contexts:\n  a\xff: {}\n", ":2:4", "not text"},
		"longer than a manifest gets": {"# " + strings.Repeat("x", maxManifest), ":1:1", "1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "m.yaml")
			must(t, os.WriteFile(path, []byte(tt.text), 0o600))
			b := &book{path: path, at: func(string) {}}
			_, err := b.entries()
			if !errors.Is(err, fault.InvalidRequest) || !strings.Contains(err.Error(), "m.yaml"+tt.place) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
			err = b.update(t.Context(), func(d *document) (*document, error) { return d.set(text("x"), "contexts", "a", "domain") })
			if err == nil {
				t.Error("it was written to")
			}
			if after, _ := os.ReadFile(path); string(after) != tt.text {
				t.Errorf("it was changed:\n%s", after)
			}
		})
	}
}

// A manifest in the home is a file of the home like any other.
func TestAManifestThatCannotBeReadIsToldOf(t *testing.T) {
	t.Parallel()
	home, err := store.Open(t.TempDir(), nil)
	must(t, err)
	t.Cleanup(func() { _ = home.Close() })
	path := filepath.Join(home.Path(), "browser-contexts.yaml")
	b := &book{path: path, at: func(string) {}, home: home}
	for text, readable := range map[string]bool{"contexts: {a: {}}\n": true, "\xfe\x00{": false, "- a\n": false, "contexts:\n  a: [1\n": false} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := b.entries()
		if (err == nil) != readable || !readable && !errors.Is(err, fault.Unreadable) {
			t.Errorf("%q: %v", text, err)
		}
		if damages := home.Damages(); (len(damages) == 0) != readable {
			t.Errorf("%q: it tells of %v", text, damages)
		}
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	return b.String()
}

func TestAProblemOfOneLoginIsNotTheOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, says string }{
		"a date that is none":         {`{last_used: yesterday}`, "last_used must be a day"},
		"a day that does not exist":   {`{last_verified: "2026-02-30"}`, "last_verified must be a day"},
		"an amount in words":          {`{payment_approval: {max_amount: lots}}`, "max_amount must be an amount"},
		"a negative amount":           {`{payment_approval: {max_amount: -5}}`, "max_amount must be an amount"},
		"an amount that is not":       {`{payment_approval: {max_amount: .inf}}`, "max_amount must be an amount"},
		"yes for true":                {`{payment_approval: {auto_approve: "true"}}`, "true or false"},
		"a currency that is a sign":   {`{payment_approval: {currency: "$"}}`, "three letters"},
		"a policy of one word":        {`{payment_approval: always}`, "key: value"},
		"a provider nobody has":       {`{provider: aws}`, "local, browserbase or cdp"},
		"a domain with a path":        {`{domain: "chase.com/x"}`, "must be a domain"},
		"notes that are a list":       {`{notes: [a]}`, "single value"},
		"a check of both":             {`{check: {url: "https://a.example", text: a, selector: b}}`, "one of them"},
		"a check of neither":          {`{check: {url: "https://a.example"}}`, "one of them"},
		"a check of a script":         {`{check: {url: "javascript:alert(1)", text: a}}`, "check.url"},
		"a word in place of a login":  {`none`, "a login must hold"},
		"a list in place of a login":  {`[]`, "a login must hold"},
		"dates in a map":              {`{last_used: {day: 1}}`, "single value"},
		"a number in place of a date": {`{last_used: 20260206}`, "last_used must be a day"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := entriesOf(t, "contexts:\n  good: {domain: chase.com}\n  bad: "+tt.body+"\n")
			if len(got) != 2 || got[0].Problem != nil || got[1].Problem == nil || !strings.Contains(got[1].Problem.Error(), tt.says) || !strings.Contains(got[1].Problem.Error(), ".yaml:3:") {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got := entriesOf(t, "contexts: {\"../etc\": {}, 'my bank': {}, ok: {}}"); got[0].Problem == nil || got[1].Problem == nil || got[2].Problem != nil {
		t.Errorf("names: %+v", got)
	}
}

// awkward are manifests that a tool which prints trees would rearrange.
var awkward = map[string]string{
	"the seed's": seed,
	"comments, blanks, anchors, unknown keys": `# mine


contexts:   # all of them

  # the bank
  chase:    # do not touch
      # four more spaces here
      domain:   chase.com   # no quotes
      last_used:    2026-02-01      # plain
      x-team: {who: [a, "b"], 'quoted key': ~}

      notes: |
        several lines
          # not a comment

        end
      payment_approval: &limits { max_amount: 10.50, auto_approve: false }  # shared
      # a comment at the end

  # the shop
  shop:
    payment_approval: *limits
    last_used: '2026-01-01'
    last_verified: "2026-01-01T10:00:00Z"

settings:
- a
- b: {c: d}
`,
	"CRLF":                strings.ReplaceAll(seed, "\n", "\r\n"),
	"a byte order mark":   "\ufeff" + seed,
	"no final line break": strings.TrimSuffix(seed, "\n"),
	"flow style":          `{contexts: {chase: {last_used: "2026-02-01", domain: 'chase.com', é: "ü"}, shop: {}}, other: 1} # end`,
	"flow on lines": `contexts: {
    chase: { domain: chase.com, # why
      last_used: 2026-02-01, },
    shop: {
      notes: "a, b: {c}"
    }
  }
`,
	"logins without values": "contexts:\n  chase:\n  shop: ~\n  third: {}\n  last: null   # nothing\n",
	"lists at the key":      "contexts:\n  chase:\n    tags:\n    - a\n    - b\n    domain: chase.com\n  shop:\n    tags:\n    - c\n",
	"a date from an alias":  "day: &d 2026-01-01\ncontexts:\n  chase:\n    last_used: *d\n  shop: {last_used: *d}\n",
	"tags":                  "contexts:\n  chase:\n    last_used: !!str 2026-01-01   # tagged\n    domain: !!str chase.com\n",
	"a folded note":         "contexts:\n  chase:\n    last_used: >-\n      2026-01-01\n    notes: >\n      a\n      b\n\n  shop: {}\n",
	"a quoted key":          "contexts:\n  \"chase\": {domain: chase.com}\n  'shop':\n    domain: shop.example\n  \"123\":\n    domain: n.example\n",
	"empty":                 "",
	"only comments":         "# nothing yet\n",
	"only the key":          "contexts:\n",
	"an empty map":          "contexts: {}   # none yet\n",
	"other keys":            "version: 3\nteam: a",
}

func TestAfterTenWritesADiffShowsOnlyOurLines(t *testing.T) {
	t.Parallel()
	for name, before := range awkward {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "m.yaml")
			must(t, os.WriteFile(path, []byte(before), 0o640))
			b := &book{path: path, at: func(string) {}}
			for day := range 10 {
				at := fmt.Sprintf("2026-03-%02d", day+1)
				for _, login := range []string{"chase", "shop", "new-one"} {
					for _, field := range []string{"last_used", "last_verified"} {
						must(t, b.update(t.Context(), func(d *document) (*document, error) { return d.set(text(at), "contexts", login, field) }))
					}
				}
			}
			data, err := os.ReadFile(path)
			must(t, err)
			after := string(data)
			if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 {
				t.Errorf("its mode became %v", info.Mode())
			}
			for _, e := range entriesOf(t, after) {
				switch e.Name {
				case "chase", "shop", "new-one":
					if e.Problem != nil || e.LastUsed.String() != "2026-03-10" || e.LastVerified.String() != "2026-03-10" {
						t.Errorf("%s is %+v", e.Name, e)
					}
				}
			}
			for _, line := range missingLines(before, after) {
				if !strings.Contains(line, "last_") && line != "      2026-01-01" && !strings.Contains(before, "contexts: {") && !oneLiner(line) {
					t.Errorf("a line that is not ours is gone: %q\n%s", line, after)
				}
			}
			if crlf := strings.Count(after, "\r\n"); strings.Contains(before, "\r\n") && crlf != strings.Count(after, "\n") {
				t.Errorf("line breaks are mixed:\n%q", after)
			}
			if strings.HasSuffix(before, "\n") != strings.HasSuffix(after, "\n") && before != "" {
				t.Errorf("the end of the file changed: %q", after[len(after)-20:])
			}
			// Everything else says what it said, comments included.
			old, now := docOf(t, before), docOf(t, after)
			for k, l := range old.leaves {
				own := strings.Contains(k, "\x00last_") || l.kind == kindNull || l.kind == kindMap
				if got := now.leaves[k]; !own && (got.kind != l.kind || got.text != l.text) {
					t.Errorf("%q became %+v", k, got)
				}
			}
			for line := range strings.Lines(before) {
				if _, comment, ok := strings.Cut(line, " # "); ok && !strings.Contains(after, strings.TrimRight(comment, "\r\n")) {
					t.Errorf("the comment %q is gone:\n%s", comment, after)
				}
			}
			same, err := docOf(t, after).set(text("2026-03-10"), "contexts", "chase", "last_used")
			if err != nil || same.String() != after {
				t.Error("writing what is there changed something")
			}
		})
	}
}

// oneLiner tells lines on which a whole login stands, which its dates join.
func oneLiner(line string) bool {
	return strings.Contains(line, "{") || strings.Contains(line, "shop: ~") || strings.Contains(line, "null") || strings.HasPrefix(line, "team:") || strings.HasPrefix(line, "    notes: \"Primary")
}

// missingLines are the lines of before that after does not have in their order.
func missingLines(before, after string) []string {
	var missing []string
	rest := strings.Split(after, "\n")
	for _, line := range strings.Split(before, "\n") {
		found := false
		for i, other := range rest {
			if other == line {
				rest, found = rest[i+1:], true
				break
			}
		}
		if !found {
			missing = append(missing, line)
		}
	}
	return missing
}

func TestAWriteChangesItsOwnLineAlone(t *testing.T) {
	t.Parallel()
	d := docOf(t, awkward["comments, blanks, anchors, unknown keys"])
	after, err := d.set(text("2026-05-05"), "contexts", "chase", "last_used")
	must(t, err)
	want := strings.Replace(d.String(), "2026-02-01      # plain", "2026-05-05      # plain", 1)
	if diff := cmp.Diff(want, after.String()); diff != "" {
		t.Error(diff)
	}
	after, err = d.set(text("it's \"mine\"\n"), "contexts", "shop", "last_used")
	must(t, err)
	if got := after.leaves[key("contexts", "shop", "last_used")].text; got != "it's \"mine\"\n" {
		t.Errorf("quotes: %q", got)
	}
	after, err = d.set(number("99.50"), "contexts", "chase", "payment_approval", "monthly_budget")
	if err == nil {
		t.Errorf("a map that another login shares was changed:\n%s", after)
	}
	after, err = d.set(boolean(true), "contexts", "new", "payment_approval", "auto_approve")
	must(t, err)
	if !strings.Contains(after.String(), "\n  new:\n    payment_approval:\n      auto_approve: true\n") {
		t.Errorf("got\n%s", after)
	}
}

func TestALoginIsRemovedAndRenamedInItsPlace(t *testing.T) {
	t.Parallel()
	for name, before := range awkward {
		d := docOf(t, before)
		for _, login := range d.children("contexts") {
			gone, err := d.remove("contexts", login)
			shared := login == "chase" && strings.Contains(before, "*limits")
			if shared {
				if err == nil {
					t.Errorf("%s: %s was removed, and with it what another shares", name, login)
				}
			} else if err != nil || gone.has(key("contexts", login)) || len(gone.children("contexts")) != len(d.children("contexts"))-1 {
				t.Errorf("%s: remove %s: %v\n%s", name, login, err, gone)
			}
			renamed, err := d.rename("null", "contexts", login)
			if err != nil || !cmp.Equal(renamed.under([]string{"contexts", "null"}), d.under([]string{"contexts", login}), cmp.AllowUnexported(leaf{})) {
				t.Errorf("%s: rename %s: %v\n%s", name, login, err, renamed)
			}
		}
	}
	d := docOf(t, seed)
	gone, err := d.remove("contexts", "verizon")
	must(t, err)
	if want := seed[:strings.Index(seed, "  verizon")] + seed[strings.Index(seed, "  chase"):]; gone.String() != want {
		t.Errorf("got\n%s", gone)
	}
}

func TestWritersNeverLoseALogin(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.yaml")
	must(t, os.WriteFile(path, []byte(seed), 0o600))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			b := &book{path: path, at: func(string) {}}
			for i := range 10 {
				if err := b.update(t.Context(), func(d *document) (*document, error) {
					return d.set(text("2026-01-01"), "contexts", fmt.Sprintf("w%d-%d", w, i), "last_used")
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := len(entriesOf(t, read(t, path))); got != 42 {
		t.Errorf("%d logins of 42 are left", got)
	}
}

func TestAnEditorThatSavesInBetweenIsNotOverwritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.yaml")
	must(t, os.WriteFile(path, []byte(seed), 0o600))
	saves := 0
	b := &book{path: path, at: func(step string) {
		if step == "manifest compare" && saves < 3 {
			saves++
			must(t, os.WriteFile(path, []byte(read(t, path)+fmt.Sprintf("  edited%d: {}\n", saves)), 0o600))
		}
	}}
	must(t, b.update(t.Context(), func(d *document) (*document, error) {
		return d.set(text("2026-09-09"), "contexts", "chase", "last_used")
	}))
	after := read(t, path)
	if got := entriesOf(t, after); len(got) != 5 || !strings.Contains(after, "2026-09-09") {
		t.Errorf("something is lost:\n%s", after)
	}
	saves = -1000
	if err := b.update(t.Context(), func(d *document) (*document, error) { return d.set(text("x"), "contexts", "z", "notes") }); !errors.Is(err, fault.Busy) {
		t.Errorf("an editor that never ends: %v", err)
	}
}

func TestALinkedManifestStaysALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "link.yaml")
	must(t, os.WriteFile(file, []byte(seed), 0o600))
	must(t, os.Symlink(file, link))
	b := &book{path: link, at: func(string) {}}
	must(t, b.update(t.Context(), func(d *document) (*document, error) { return d.set(text("x"), "contexts", "z", "notes") }))
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(read(t, file), "z:") {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("something was left behind: %v", left)
	}
}

func TestAnyManifestKeepsWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString(rapid.SampledFrom([]string{"", "# top\n", "a: 1\n", "\n\n"}).Draw(t, "top"))
		b.WriteString("contexts:\n")
		for i := range rapid.IntRange(1, 4).Draw(t, "logins") {
			fmt.Fprintf(&b, "  l%d:%s\n", i, rapid.SampledFrom([]string{"", " # c"}).Draw(t, "tail"))
			for j := range rapid.IntRange(1, 4).Draw(t, "keys") {
				b.WriteString(rapid.SampledFrom([]string{"", "\n", "    # note\n", "  # out\n"}).Draw(t, "gap"))
				fmt.Fprintf(&b, "    k%d: %s\n", j, rapid.SampledFrom([]string{"1", "a b", "'q'", `"d\n"`, "{x: 1, y: [2]}", "|\n      text\n\n      more", "[a,\n      b]", "", "~", "\n    - i\n    - j"}).Draw(t, "value"))
			}
		}
		before := b.String()
		d, err := readDocument("m", []byte(before))
		if err != nil {
			t.Skip(err)
		}
		name := rapid.SampledFrom([]string{"l0", "l1", "n"}).Draw(t, "login")
		field := rapid.SampledFrom([]string{"k0", "k1", "last_used"}).Draw(t, "field")
		after, err := d.set(text(rapid.String().Filter(printable).Draw(t, "text")), "contexts", name, field)
		if err != nil {
			t.Fatalf("%v\n%s", err, before)
		}
		for line := range strings.Lines(before) {
			if strings.Contains(line, "#") && !bytes.Contains([]byte(after.String()), []byte(strings.TrimSpace(line))) {
				t.Fatalf("%q is gone:\n%s", line, after)
			}
		}
	})
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f })
}

func FuzzTheManifestReader(f *testing.F) {
	for _, s := range awkward {
		f.Add(s)
	}
	f.Add(bomb())
	f.Fuzz(func(t *testing.T, s string) {
		d, err := readDocument("m", []byte(s))
		if err != nil {
			return
		}
		if d.String() != s {
			t.Fatal("what was read is not what was written")
		}
		if _, err := d.entries(); err != nil {
			return
		}
		for _, name := range d.children("contexts") {
			if gone, err := d.remove("contexts", name); err == nil && gone.has(key("contexts", name)) {
				t.Fatalf("%q was removed and is there", name)
			}
			if renamed, err := d.rename("other-name", "contexts", name); err == nil && !renamed.has(key("contexts", "other-name")) {
				t.Fatalf("%q was renamed and is gone", name)
			}
			if _, err := d.set(boolean(true), "contexts", name, "payment_approval", "auto_approve"); err != nil && fault.Of(err).Code == fault.Internal {
				t.Fatal(err)
			}
		}
		after, err := d.set(text("2026-01-01"), "contexts", "chase", "last_used")
		if err != nil {
			return
		}
		if l := after.leaves[key("contexts", "chase", "last_used")]; l.text != "2026-01-01" {
			t.Fatalf("written, but it says %+v", l)
		}
	})
}

func entriesOf(t *testing.T, s string) []Entry {
	t.Helper()
	got, err := docOf(t, s).entries()
	must(t, err)
	return got
}

func docOf(t *testing.T, s string) *document {
	t.Helper()
	d, err := readDocument("m.yaml", []byte(s))
	must(t, err)
	return d
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
