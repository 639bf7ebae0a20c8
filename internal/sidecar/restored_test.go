package sidecar

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tapin/internal/layout"
	"tapin/internal/store"
)

// lives says of everything that a backup carries what it allows or begins in the
// next life of its home, and who sees to that.
var lives = map[string]string{
	"**.damaged-*": "nothing reads it",
	"schema":       "nothing", "counters/epoch": "raised", "install.id": "nothing", "forget.json": "goes on: the owner wanted it gone",
	"config.yaml": "settings of then, as it says", "config.draft.yaml": "nothing until it is saved",
	"agent.token": "tokens of then, as it says", "owner.token": "as above", "tokens/*.token": "as above",
	"credentials.json": "names only", "webhook.key": "signs, opens nothing", "handoffs/fingerprint.key": "compares, opens nothing",
	"browser-contexts.yaml": "its policies are proposals, which wait for a word", "contexts/*.age": "opened by sessions that an agent begins",
	"contexts/*.age.1": "as above", "contexts/*.json": "uses end with the next start: no session is there",
	"handoffs/open/*": "ended", "handoffs/list/*.jsonl": "nothing", "handoffs/*/meta.json": "ended", "handoffs/*/events.jsonl": "nothing",
	"handoffs/*/*.png": "nothing", "handoffs/*/*.jpeg": "nothing", "todos/*.json": "tried again by the owner's word alone",
	"policies.json": "policies to be confirmed again, what was cleared void", "approvals/open/*": "lapsed", "approvals/*.json": "lapsed",
	"task-runs/open/*": "told once more that it ended", "task-runs/list/*.jsonl": "nothing", "task-runs/*/meta.json": "goes on by an agent's call alone",
	"task-runs/*/events.jsonl": "nothing",
	"owners.json":              "owners of then, as it says; codes and who waits dropped", "inbox/state.json": "raised", "inbox/*.json": "dropped",
	"telegram/progress.json": "keeps messages from being read twice", "journal/journal-*.jsonl": "nothing", "usage.json": "a month's limit counts from then",
}

func TestOfEverythingInABackupItIsDecidedWhatItAllows(t *testing.T) {
	t.Parallel()
	for _, k := range layout.Kinds() {
		care, _ := layout.CareOf(k)
		if _, ok := lives[k.Pattern]; ok != care.Carried {
			t.Errorf("%s (%s) is carried: %v; decided: %v", k.Name, k.Pattern, care.Carried, ok)
		}
	}
}

func restoredHome(t *testing.T, files map[string]string) (*store.Home, Void) {
	t.Helper()
	home, err := store.Open(filepath.Join(t.TempDir(), "home"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	for name, content := range files {
		path := filepath.Join(home.Path(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	void, _, err := Restored(home, time.Now(), 7)
	if err != nil {
		t.Fatalf("such a backup cannot be restored: %v", err)
	}
	return home, void
}

func TestARestoredHomeAllowsNothingThatWasAllowed(t *testing.T) {
	t.Parallel()
	home, void := restoredHome(t, map[string]string{
		"policies.json": `{"version":3,"policies":null,"cleared":[{"site":"example.com","label":"","at":"2026-11-19T00:00:00Z"}]}`,
		"owners.json": `{"version":2,"owners":[{"id":1}],"codes":[{"digest":"x","until":"2099-01-01T00:00:00Z"}],
			"waiting":[{"id":2,"at":"2026-11-19T00:00:00Z"}]}`,
	})
	if void.Cleared != 1 || void.Invited != 2 || len(void.Unreadable) != 0 {
		t.Errorf("it says %+v", void)
	}
	for name, words := range map[string][]string{"policies.json": {"example.com"}, "owners.json": {"codes", "waiting"}} {
		raw, err := home.Read(name)
		if err != nil || !json.Valid(raw) {
			t.Fatal(err)
		}
		for _, word := range words {
			if strings.Contains(string(raw), word) {
				t.Errorf("%s still has %s: %s", name, word, raw)
			}
		}
	}
	if raw, _ := home.Read("owners.json"); !strings.Contains(string(raw), `"id":1`) {
		t.Errorf("the owner is gone: %s", raw)
	}
}

// TestAHomeWithDamagedFilesCanBeRestored has each file that a restore reads cut
// off: it grants nothing, lies aside, and is named.
func TestAHomeWithDamagedFilesCanBeRestored(t *testing.T) {
	t.Parallel()
	const approval, handoff = "apr_01JD0000000000000000000000", "hof_01JD0000000000000000000000"
	damaged := map[string]string{
		"policies.json": `{"version":3,"clea`, "owners.json": "", "inbox/state.json": "{", "approvals/" + approval + ".json": "{",
		"handoffs/" + handoff + "/meta.json": "{", "usage.json": "x",
	}
	files := map[string]string{"approvals/open/" + approval: "", "handoffs/open/" + handoff: "", "inbox/000000000007.json": `{"seq":7}`}
	for name, content := range damaged {
		files[name] = content
	}
	home, void := restoredHome(t, files)
	for name := range damaged {
		i := slices.IndexFunc(void.Unreadable, func(u Unread) bool { return u.File == name && u.Why != "" })
		if i < 0 {
			t.Errorf("%s is not named: %+v", name, void.Unreadable)
			continue
		}
		left := name == "usage.json" || strings.HasSuffix(name, "meta.json") // they grant nothing as they are
		if aside := void.Unreadable[i].Aside; (aside == "") != left {
			t.Errorf("%s is aside as %q", name, aside)
		} else if there, err := home.Exists(name + strings.TrimPrefix(aside, name)); err != nil || !there {
			t.Errorf("%s is lost: %v", name, err)
		}
	}
	if raw, err := home.Read("inbox/state.json"); err != nil || !strings.Contains(string(raw), `"last":1`) || len(raw) < 25 {
		t.Errorf("numbers go on from %s, %v", raw, err)
	}
}
