package sidecar

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/forget"
	"tapin/internal/layout"
	"tapin/internal/logins"
	"tapin/internal/secret"
	"tapin/internal/site"
	"tapin/internal/store"
	"tapin/internal/vault"
)

const (
	forgottenSite = "canary-bank.test"
	forgottenWord = "canary-word" // what a record of it says besides
	otherSite     = "other-shop.test"
	otherWord     = "other-word"
)

// forgetOptions are a world without a keychain.
func forgetOptions() *vault.Options {
	return &vault.Options{Keyring: noKeychain{}, Getenv: func(string) string { return "" }}
}

type noKeychain struct{}

var errNoKeychain = errors.New("there is no keychain")

func (noKeychain) Get(string, string) (string, error) { return "", errNoKeychain }
func (noKeychain) Set(string, string, string) error   { return errNoKeychain }
func (noKeychain) Delete(string, string) error        { return errNoKeychain }

// seedSites puts something of two sites into a file of every kind that may have
// something of one.
func seedSites(t *testing.T, path string) {
	t.Helper()
	h, err := store.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	write := func(name, content string) {
		t.Helper()
		if err := h.Write(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []struct{ site, word, id string }{{forgottenSite, forgottenWord, "0canary0"}, {otherSite, otherWord, "0other0"}} {
		origin, hof, apr, run, ses := "https://app."+of.site, "hof_"+of.id, "apr_"+of.id, "run_"+of.id, "ses_"+of.id
		record := fmt.Sprintf(`{"handoff_id":%q,"session_id":%q,"task":%q,"before":{"origin":%q}}`, hof, ses, of.word, origin)
		about := fmt.Sprintf(`{"handoff_id":%q,"text":%q}`, hof, of.word) // names the site by its record alone
		for name, content := range map[string]string{
			"handoffs/" + hof + "/meta.json": record, "handoffs/" + hof + "/events.jsonl": about + "\n", "handoffs/" + hof + "/photo.age": "sealed " + of.word,
			"handoffs/" + hof + "/before.png": "picture " + of.word, "handoffs/" + hof + "/after.jpeg": "picture " + of.word,
			"todos/todo_" + of.id + ".json": about, "inbox/" + map[string]string{forgottenSite: "000000000001", otherSite: "000000000002"}[of.site] + ".json": about,
			"approvals/" + apr + ".json": fmt.Sprintf(`{"approval_id":%q,"payee":%q,"site":%q}`, apr, of.word, of.site), "approvals/" + apr + ".crop": "sealed " + of.word,
			"task-runs/" + run + "/meta.json":    fmt.Sprintf(`{"run_id":%q,"goal":%q,"evidence":[{"kind":"handoff","ref":%q,"summary":%q}]}`, run, of.word, hof, origin),
			"task-runs/" + run + "/events.jsonl": fmt.Sprintf(`{"id":%q,"data":%q}`, run, of.word) + "\n",
			"sessions/" + ses + ".json":          fmt.Sprintf(`{"session_id":%q,"origins":[%q]}`, ses, origin), "sessions/" + ses + ".state": "sealed " + of.word, "sessions/" + ses + ".undo": "sealed " + of.word,
			"links/lnk_" + of.id + ".json": fmt.Sprintf(`{"session_id":%q,"who":%q}`, ses, of.word), "downloads/" + ses + "/bill.pdf": of.word, "received/" + ses + "/photo": of.word,
			"telegram/cards/" + hof + ".json": about, "telegram/queue/e" + of.id + ".json": fmt.Sprintf(`{"text":"%s %s"}`, of.word, of.site),
			"wakes/open/" + hof + "-3.json": about, "letters/wak_" + of.id + "-1.json": about,
			"crashes/" + of.id + ".json": fmt.Sprintf(`{"why":"%s %s"}`, of.word, of.site), "crashes/.new-" + of.id: of.word + " " + of.site,
			"contexts/" + of.word + ".json":                               fmt.Sprintf(`{"version":1,"name":%q,"noticed":%q}`, of.word, of.site),
			"handoffs/" + hof + "/meta.json.damaged-20261119T170340.123Z": record,
		} {
			write(name, content)
		}
	}
	both := func(line string) string {
		return fmt.Sprintf(line+"\n", 1, otherSite, otherWord) + fmt.Sprintf(line+"\n", 2, forgottenSite, forgottenWord)
	}
	write("events/00000000000000000001.jsonl", both(`{"seq":%d,"id":"x","version":1,"type":"a","data":{"origin":"https://%s","task":%q}}`))
	write("journal/journal-2026-11-19.jsonl", both(`{"n":%d,"origin":"https://%s/","outcome":%q}`))
	write("logs/sidecar.log", both(`n=%d host=%s said=%q`))
	members := strings.ReplaceAll(strings.TrimSpace(both(`{"n":%d,"site":%q,"label":%q}`)), "\n", ",")
	write("policies.json", `{"version":3,"policies":[`+members+`],"cleared":[`+members+`]}`)
	write("policies.json.before", `{"version":2,"policies":[`+members+`]}`)
	write("figures.json", `{"version":1,"days":{"2026-11-19":{"cells":[`+members+`]}}}`)
	write("telegram/progress.json", `{"offset":7,"now":{"update":6,"what":{"text":"`+forgottenWord+` `+forgottenSite+`"}}}`)
	write("browser-contexts.yaml", "# mine\ncontexts:\n  "+forgottenWord+":\n    domain: "+forgottenSite+"\n  "+otherWord+":\n    domain: "+otherSite+"\n")
	write("troubles.json", `[{"why":"`+forgottenWord+` `+forgottenSite+`"}]`)
	write("config.yaml", "max_sessions: 2\n")
	seedLogins(t, h)
}

// seedLogins saves a login of each site; that of the other has something of both.
func seedLogins(t *testing.T, h *store.Home) {
	t.Helper()
	keys, err := vault.Open(t.Context(), h, forgetOptions())
	if err != nil {
		t.Fatal(err)
	}
	room := logins.New(h, keys, nil)
	for name, sites := range map[string][]string{forgottenWord: {forgottenSite}, otherWord: {otherSite, forgottenSite}} {
		var state browser.State
		for _, s := range sites {
			state.Cookies = append(state.Cookies, browser.Cookie{Name: "c", Value: secret.New("of " + s), Domain: "." + s, Path: "/"})
		}
		if _, _, err := room.Checkout(t.Context(), name, "ses_1"); err != nil {
			t.Fatal(err)
		}
		if _, err := room.Save(t.Context(), name, "ses_1", state, logins.SaveOptions{Domain: sites[0]}); err != nil {
			t.Fatal(err)
		}
	}
}

// leftOf are the files that still have something of a site, and how often.
func leftOf(t *testing.T, path string, words ...string) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(path, file)
		var raw []byte
		if !d.IsDir() {
			if raw, err = os.ReadFile(file); err != nil {
				return err
			}
		}
		for _, word := range words {
			if n := bytes.Count(raw, []byte(word)) + strings.Count(filepath.Base(name), word); n > 0 {
				found[name] += n
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkForgotten checks that nothing of the one site is there, and all of the other.
func checkForgotten(path string, before map[string]int, t *testing.T) error {
	t.Helper()
	if left := leftOf(t, path, forgottenSite, forgottenWord, "0canary0"); len(left) > 0 {
		return fmt.Errorf("there is still %v", left)
	}
	after := leftOf(t, path, otherSite, otherWord, "0other0")
	for name, n := range before {
		if after[name] != n && !strings.HasSuffix(name, ".before") { // the version before is of the whole file
			return fmt.Errorf("of the other site %s had %d, and has %d", name, n, after[name])
		}
	}
	h, err := store.Open(path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	keys, err := vault.Open(t.Context(), h, forgetOptions())
	if err != nil {
		return err
	}
	room := logins.New(h, keys, nil)
	if _, err := room.Reconcile(t.Context(), nil); err != nil {
		return err
	}
	state, found, err := room.Checkout(t.Context(), otherWord, "ses_2")
	if err != nil || !found || len(state.Cookies) != 1 || state.Cookies[0].Domain != "."+otherSite {
		return fmt.Errorf("the other login has %+v, %v, %w", state.Cookies, found, err)
	}
	if _, err := room.Get(t.Context(), forgottenWord); !errors.Is(err, fault.NotFound) {
		return fmt.Errorf("the login is still known: %w", err)
	}
	return nil
}

func forgetFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "tapin") // no power is cut here, and disks are slow
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func TestNothingOfAForgottenSiteIsAnywhereAndAllOfTheOthersIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(forgetFolder(t), "home")
	seedSites(t, path)
	before := leftOf(t, path, otherSite, otherWord, "0other0")
	canaries := leftOf(t, path, forgottenSite, forgottenWord, "0canary0")
	for _, k := range layout.Kinds() { // a kind that nobody seeded is one that nobody looked for
		how, _ := layout.ForgettingOf(k)
		if how == layout.ForgetNothing || k.Name == "credential names" || k.Name == "manifest draft" || strings.HasPrefix(k.Name, "open ") || k.Pattern == "contexts/*.age.1" {
			continue
		}
		some := false
		for name := range canaries {
			if of, ok := layout.Of(name); ok && of.Pattern == k.Pattern {
				some = true
			}
		}
		if !some {
			t.Errorf("nothing of the site was put into a %s (%s)", k.Name, k.Pattern)
		}
	}
	h, err := store.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	done, err := ForgetSite(t.Context(), h, config.Default(), forgetOptions(), site.Site(forgottenSite), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = h.Close()
	if err := checkForgotten(path, before, t); err != nil {
		t.Error(err)
	}
	for kind, want := range map[string]int{"hand-off": 1, "approval": 1, "run": 1, "journal": 1, "feed": 1, "saved login": 1, "part of another login": 1, "message": 1} {
		if done.Removed[kind] != want {
			t.Errorf("it says that of %s %d went", kind, done.Removed[kind])
		}
	}
	if _, err := os.Stat(filepath.Join(path, "events", "00000000000000000003.jsonl")); err != nil {
		t.Errorf("the numbers of the feed may be given twice: %v", err)
	}
	if len(done.Left)+len(done.Remains) > 0 {
		t.Errorf("it says that there is left %v, %v", done.Left, done.Remains)
	}
}

// TestChaosOfForgetting cuts it off before every fifth change: TAPIN_CHAOS
// before every single one. The next start finishes it.
func TestChaosOfForgetting(t *testing.T) {
	t.Parallel()
	folder := forgetFolder(t)
	seeded := filepath.Join(folder, "seeded")
	seedSites(t, seeded)
	before := leftOf(t, seeded, otherSite, otherWord, "0other0")
	all := leftOf(t, seeded, forgottenSite, forgottenWord, "0canary0")
	untouched, finished := 0, 0
	stride := 5
	if os.Getenv("TAPIN_CHAOS") != "" {
		stride = 1
	}
	for at := 0; ; at += stride {
		path := filepath.Join(folder, strconv.Itoa(at))
		if err := os.CopyFS(path, os.DirFS(seeded)); err != nil {
			t.Fatal(err)
		}
		closeToOthers(t, path)
		changes, dead := 0, false
		h, err := store.Open(path, &store.Options{Guard: func(string) error {
			if changes++; changes > at {
				dead = true
				return errors.New("killed")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = ForgetSite(t.Context(), h, config.Default(), forgetOptions(), site.Site(forgottenSite), false, nil)
		_ = h.Close()
		if !dead && err != nil {
			t.Fatalf("after %d changes: %v", at, err)
		}
		next, err := store.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		noted, err := forget.Noted(next)
		if err != nil {
			t.Fatal(err)
		}
		if dead && len(noted) == 0 && len(leftOf(t, path, forgottenSite, forgottenWord, "0canary0")) == len(all) {
			untouched++
		} else {
			if err := finishForgetting(t.Context(), next, config.Default(), forgetOptions()); err != nil {
				t.Fatalf("after %d changes: %v", at, err)
			}
			if err := checkForgotten(path, before, t); err != nil {
				t.Fatalf("after %d changes: %v", at, err)
			}
			finished++
		}
		_ = next.Close()
		_ = os.RemoveAll(path)
		if !dead {
			break
		}
	}
	if untouched < 1 || finished < 5 {
		t.Errorf("%d before, %d after", untouched, finished)
	}
}

// closeToOthers gives copied files the mode that the home's have.
func closeToOthers(t *testing.T, path string) {
	t.Helper()
	_ = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(file, 0o700)
		}
		return errors.Join(err, os.Chmod(file, 0o600))
	})
}

func TestWhatIsNotOverIsNotForgottenUnasked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(forgetFolder(t), "home")
	seedSites(t, path)
	h, err := store.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	if err := h.Write("handoffs/open/hof_0canary0", nil); err != nil {
		t.Fatal(err)
	}
	before := len(leftOf(t, path, forgottenSite, forgottenWord))
	_, err = ForgetSite(t.Context(), h, config.Default(), forgetOptions(), site.Site(forgottenSite), false, nil)
	if !errors.Is(err, fault.SessionActive) || len(leftOf(t, path, forgottenSite, forgottenWord)) != before {
		t.Fatalf("got %v", err)
	}
	if _, err = ForgetSite(t.Context(), h, config.Default(), forgetOptions(), site.Site(forgottenSite), true, nil); err != nil {
		t.Fatal(err)
	}
	if left := leftOf(t, path, forgottenSite, forgottenWord, "0canary0"); len(left) > 0 {
		t.Errorf("there is still %v", left)
	}
}
