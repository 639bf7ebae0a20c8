package sidecar_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"tapin/internal/browser/browsertest"
	"testing"
)

// ownersManifest is as people write: with remarks, gaps, anchors, keys of their
// own, and more than one way to write the same.
const ownersManifest = `# my logins - do not touch the comments!

x-defaults: &defaults
  notes: "shared: note"   # used below
  team: [ada, 'bob']


contexts:
  # the bank
  bank:
    <<: *defaults
    domain:   127.0.0.1      # not the real one
    last_used: 2026-01-02T03:04:05Z   # exact, please
    last_verified: "2026-01-02T03:04:05Z"
    colour: 0x1F
    payment_approval: {max_amount: 200, currency: EUR, auto_approve: false}

  'shop':   # quoted
    {domain: 127.0.0.1, mood: good}
  idle:
    notes: |
      nobody uses this

      # and this is no comment
    last_used: 2020-02-02

# the end
custom:
  - keep: me
`

func TestTenWritesOfOursLeaveTheOwnersLinesAlone(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	r := start(t, site.Server)
	manifest := filepath.Join(r.dir, "browser-contexts.yaml")
	if err := os.WriteFile(manifest, []byte(ownersManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	for i := range 10 {
		name := []string{"bank", "shop", "new"}[i%3]
		r.must("POST", "/session/start", `{"context":"`+name+`","url":"`+site.URL+`/login","screenshot":false}`)
		if stopped := r.must("POST", "/session/stop", `{"verified":true}`); stopped["context_saved"] != true {
			t.Fatalf("the stop says %v", stopped)
		}
		raw, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		written[string(raw)] = true
	}
	raw, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	before, after := strings.Split(ownersManifest, "\n"), strings.Split(string(raw), "\n")
	gone, come := difference(before, after), difference(after, before)
	for _, line := range gone {
		if !strings.Contains(line, "last_used: 2026-01-02") && !strings.Contains(line, "last_verified: \"2026") && !strings.Contains(line, "mood: good") {
			t.Errorf("gone: %q", line)
		}
	}
	for _, line := range come {
		ours := false
		for _, mark := range []string{"last_used:", "last_verified:", "new:", "domain:"} {
			ours = ours || strings.Contains(line, mark)
		}
		if !ours {
			t.Errorf("come: %q", line)
		}
	}
	for _, keep := range []string{"# exact, please", "# not the real one", "# quoted", "mood: good", "<<: *defaults", "colour: 0x1F", "# and this is no comment", "  - keep: me"} {
		if !strings.Contains(string(raw), keep) {
			t.Errorf("%q is gone", keep)
		}
	}
	// Those that stay are in their order.
	kept := slices.DeleteFunc(slices.Clone(after), func(line string) bool { return slices.Contains(come, line) })
	want := slices.DeleteFunc(slices.Clone(before), func(line string) bool { return slices.Contains(gone, line) })
	if fmt.Sprint(kept) != fmt.Sprint(want) {
		t.Errorf("the order is another:\n%q\n%q", want, kept)
	}
	if len(written) < 4 {
		t.Errorf("only %d writes changed anything", len(written))
	}
}

// difference are the lines of a that are not in b.
func difference(a, b []string) (out []string) {
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, line)
		}
	}
	return out
}
