package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tapin/internal/layout"
)

// What can become of a file.
const (
	isMissing    = "missing"
	isEmpty      = "empty"
	isHalf       = "half"
	isGarbage    = "garbage"
	isSwapped    = "another of its kind"
	isOlder      = "as an older one wrote it"
	isUnreadable = "unreadable"
	isFolder     = "a folder in its place"
)

var damages = []string{isMissing, isEmpty, isHalf, isGarbage, isSwapped, isOlder, isUnreadable, isFolder}

// refusals are the kinds without which nobody may go on: what was promised
// under a number, and what the owner has forbidden, is not known then.
var refusals = []string{"schema", "counter", "settings"}

// absent are the kinds that a home may have which the well-used one has not.
var absent = map[string]string{
	"put aside":          "nothing of it is damaged yet",
	"settings draft":     "nobody is in the middle of an edit",
	"manifest draft":     "nobody writes the manifest",
	"credential names":   "the keychain has no credential",
	"session undo":       "no import is under way",
	"saved login before": "no later session has saved the login",
	"usage":              "no browser is billed",
	"open run":           "what a run has to tell is told",
	"letter":             "what the daemon has to tell is told",
	"chat answer":        "everything is said",
	"hand-off photo":     "it is delivered",
	"public address":     "no tunnel has told one",
	"download":           "no page gave a file",
	"upload":             "nobody sent one",
	"browser":            "none runs",
	"control address":    "tapin does not run",
	"way for phones":     "tapin does not run",
	"write under way":    "nobody writes",
	"tunnel settings":    "there is no tunnel",
	"site to forget":     "none is being forgotten",
	"change of the key":  "the key is not being changed",
	"crash report":       "nothing crashed",
	"left out":           "nothing crashed",
	"daemon's troubles":  "the daemon has none",
	"mark of a restore":  "no home is being unpacked",
	"swap of a restore":  "no home is being restored",
	"home to be":         "no home is being restored",
	"home before":        "no home was restored where it is mounted",
	"demo shop key":      "the demo has a home of its own",
	"demo shop port":     "the demo has a home of its own",
	"demo phone":         "the demo has a home of its own",
}

// wellUsed is a home in which everything was done that leaves a file, and in
// which nothing runs any more.
func wellUsed(t *testing.T) *payer {
	t.Helper()
	p := &payer{talk: newTalk(t, "on_resume.webhook=http://127.0.0.1:9/", "max_sessions=3", "public_url=https://tapin.example.com"), shop: newCashier(t)}
	p.forgiven = "message is not modified" // what a card showed is lost with it
	p.shop.due["august"] = "$142.50"
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(p.home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("browser-contexts.yaml", "contexts:\n  verizon:\n    domain: 127.0.0.1\n")
	write("config.yaml", "retention:\n  logs: 14d\n")
	p.up()
	if out, err := p.tapin("token", "new", "claude"); err != nil {
		t.Fatal(err, out)
	}
	p.must("owner", "POST", "/owners/pair", nil)
	p.must("owner", "POST", "/console/sign-in", nil)
	run := p.must("agent", "POST", "/task-run/start", map[string]any{"goal": "pay the bill"}).text("run_id")
	p.must("agent", "POST", "/session/start", map[string]any{"url": p.site.URL + "/bank", "context": "bank", "screenshot": false})
	first := p.handsOver(map[string]any{"reason": "login", "capture_screenshot": true, "run_id": run})
	p.must("owner", "POST", "/handoff/"+first+"/finish", nil)
	p.must("agent", "POST", "/task-run/"+run+"/complete", map[string]any{"status": "COMPLETED"})
	p.must("agent", "POST", "/task-run/start", map[string]any{"goal": "go on"})
	p.bill("august")
	paid := p.asks("142.50", "pending")
	p.question("Verizon bill is $142.50 — okay to confirm?")
	p.says("yes")
	p.hears(paid, "approved", "owner")
	p.clicks("august", paid)
	p.says("auto-approve Verizon payments under $20")
	p.reads("Approve by myself from now on")
	p.handsOver(map[string]any{"reason": "captcha", "timeout_ms": 1000})
	p.within("a to-do", func() bool {
		todos, _ := p.must("owner", "GET", "/todos", nil).body["todos"].([]any)
		return len(todos) > 0
	})
	p.must("agent", "POST", "/browser/screenshot", map[string]any{"url": p.site.URL + "/read"})
	p.says("please use the blue card next time")
	p.within("a message for the agent", func() bool {
		all, _ := p.must("agent", "GET", "/inbox", nil).body["messages"].([]any)
		return len(all) > 0
	})

	// What is left open: a payment that nobody answers, and a person who has no time now.
	p.must("agent", "POST", "/session/start", map[string]any{"screenshot": false})
	p.shop.due["september"] = "$12.50"
	p.bill("september")
	p.asks("12.50", "pending")
	parked := p.handsOver(map[string]any{"reason": "2fa"})
	p.must("agent", "POST", "/handoff/"+parked+"/park", nil)
	p.settled()
	p.must("owner", "GET", "/analytics", nil)
	if out, err := p.tapin("down"); err != nil {
		t.Fatal(err, out)
	}
	return p
}

// damaged is what became of one file.
type damaged struct {
	kind   layout.Kind
	file   string
	damage string
	holds  string // what it holds then; "" for a folder, or none
}

func (d damaged) String() string { return d.file + " " + d.damage }

// ruin is a copy of a well-used home in which files are damaged.
type ruin struct {
	*world
	damaged []damaged
	whole   map[string]string // the other files that exist nowhere else
	tokens  map[string]string
}

// filesOf are the files of a home by their kind, sorted, without what belongs to processes.
func filesOf(t testing.TB, home string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	_ = filepath.WalkDir(home, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(home, file)
			if k, ok := layout.Of(name); ok {
				found[k.Name] = append(found[k.Name], name)
			}
		}
		return nil
	})
	return found
}

func (r *ruin) file(name string) string { return filepath.Join(r.home, name) }

// copyOf copies the home, and damages files in it.
func copyOf(t testing.TB, from *payer, wanted []damaged) *ruin {
	t.Helper()
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	r := &ruin{world: &world{t: t, home: home, site: from.site, set: from.set, env: slices.Clone(from.env)}, whole: map[string]string{}, tokens: map[string]string{}}
	t.Cleanup(func() {
		endAll(home)
		for _, file := range []string{home, home + ".unreadable"} {
			_ = os.RemoveAll(file)
		}
	})
	r.env = append(r.env, unreadableFile+"="+home+".unreadable")
	if out, err := exec.Command("cp", "-a", from.home+"/.", home).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	for _, who := range []string{"agent", "owner"} {
		raw, err := os.ReadFile(r.file(who + ".token"))
		if err != nil {
			t.Fatal(err)
		}
		r.tokens[who] = strings.TrimSpace(string(raw))
	}
	all := filesOf(t, home)
	for _, d := range wanted {
		r.damage(&d, all[d.kind.Name])
		r.damaged = append(r.damaged, d)
	}
	for _, files := range all {
		for _, name := range files {
			k, _ := layout.Of(name)
			if (k.Class == layout.Truth || k.Class == layout.Key) && !slices.ContainsFunc(r.damaged, func(d damaged) bool { return d.file == name }) {
				raw, _ := os.ReadFile(r.file(name))
				r.whole[name] = string(raw)
			}
		}
	}
	return r
}

// damage does to a file what is wanted.
func (r *ruin) damage(d *damaged, ofKind []string) {
	r.t.Helper()
	file := r.file(d.file)
	before, err := os.ReadFile(file)
	must := func(err error) {
		if err != nil {
			r.t.Fatal(err)
		}
	}
	must(err)
	put := func(content []byte) {
		d.holds = string(content)
		must(os.WriteFile(file, content, 0o600))
	}
	switch d.damage {
	case isMissing:
		must(os.Remove(file))
	case isEmpty:
		put(nil)
	case isHalf:
		put(before[:len(before)/2])
	case isGarbage:
		put(bytes.Repeat([]byte("\xfe\x00garbage {"), 1+len(before)/10))
	case isSwapped:
		i := slices.Index(ofKind, d.file)
		other, err := os.ReadFile(r.file(ofKind[(i+1)%len(ofKind)]))
		if err != nil { // a folder by now
			other = before
		}
		put(other)
	case isOlder:
		put(older(before))
	case isUnreadable:
		list, err := os.OpenFile(r.home+".unreadable", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		must(err)
		_, err = fmt.Fprintln(list, d.file)
		must(errors.Join(err, list.Close()))
		d.holds = string(before)
	case isFolder:
		must(os.Remove(file))
		must(os.MkdirAll(filepath.Join(file, "inside"), 0o700))
	}
}

// older is a file as a writer may have left it that knew of less: without any
// list or map in it.
func older(content []byte) []byte {
	var v map[string]any
	if json.Unmarshal(content, &v) != nil {
		return content
	}
	maps.DeleteFunc(v, func(_ string, member any) bool {
		switch member.(type) {
		case map[string]any, []any, nil:
			return true
		}
		return false
	})
	out, err := json.Marshal(v)
	if err != nil {
		return content
	}
	return out
}

// as asks with the token that the home had before anything was damaged.
func (r *ruin) as(who, method, path string, body any) (answer, error) {
	address, err := os.ReadFile(r.file("control.addr"))
	if err != nil {
		return answer{}, err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequest(method, "http://"+strings.TrimSpace(string(address))+path, bytes.NewReader(raw))
	if err != nil {
		return answer{}, err
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+r.tokens[who])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err = io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	got := answer{code: resp.StatusCode}
	return got, json.Unmarshal(raw, &got.body)
}

// lives starts tapin in the ruin, plays a hand-off to its end, and compares
// what was whole, and what is damaged, with what it was.
func (r *ruin) lives() {
	r.t.Helper()
	r.up()
	who := "agent"
	if slices.ContainsFunc(r.damaged, func(d damaged) bool { return d.kind.Name == "token" }) {
		who = "owner"
	}
	health := r.asked("agent", "GET", "/health", nil)
	troubles, _ := health.body["troubles"].([]any)
	told, _ := json.Marshal(troubles)
	if (len(troubles) > 0) != (health.text("status") == "degraded") {
		r.t.Errorf("health is %q with %s", health.text("status"), told)
	}
	for _, d := range r.damaged {
		if d.told() && !strings.Contains(string(told), d.file) {
			r.t.Errorf("%s: /health does not say so: %s", d, told)
		}
	}
	session := r.asked(who, "POST", "/session/start", map[string]any{"url": r.site.URL + "/again", "screenshot": false}).text("session_id")
	id := r.asked(who, "POST", "/handoff/start", map[string]any{"reason": "login", "session_id": session}).text("handoff_id")
	ended := r.asked(who, "POST", "/handoff/"+id+"/finish", map[string]any{})
	if ended.text("status") != "FINISHED" {
		r.t.Errorf("the hand-off ended as %v", ended.body)
	}
	r.asked(who, "POST", "/sessions/"+session+"/stop", map[string]any{})
	if out, err := r.tapin("down"); err != nil {
		r.t.Errorf("down: %v\n%s", err, out)
	}
	log, _ := os.ReadFile(r.file("logs/daemon.log"))
	// Once for the home itself, once now.
	if n := bytes.Count(log, []byte("started a sidecar")); n != 2 && !slices.ContainsFunc(r.damaged, func(d damaged) bool { return d.kind.Name == "log" }) {
		r.t.Errorf("%d sidecars were started", n)
	}
	r.kept()
}

func (r *ruin) asked(who, method, path string, body any) answer {
	r.t.Helper()
	got, err := r.as(who, method, path, body)
	if err != nil || !got.ok() {
		r.t.Fatalf("%v: %s %s: %d %v, %v\n%s", r.damaged, method, path, got.code, got.body, err, r.logs())
	}
	return got
}

// told reports whether a damage is one that tapin must have noticed when it serves.
func (d damaged) told() bool {
	noticed := []string{
		"figures", "policies", "owners", "console", "inbox state", "token", "owner token", "vault source", "installation",
		"login record", "session",
	}
	switch d.damage {
	case isGarbage, isUnreadable, isFolder, isEmpty, isHalf:
		return slices.Contains(noticed, d.kind.Name)
	}
	return false
}

// kept checks what tapin has left behind.
func (r *ruin) kept() {
	r.t.Helper()
	// What ends as it should goes: what was open may be over, what was to be told is told.
	goes := []string{"open session", "open hand-off", "open approval", "open run", "session", "session state", "letter", "chat answer", "message", "link"}
	for name := range r.whole {
		k, _ := layout.Of(name)
		if _, err := os.Stat(r.file(name)); err != nil && !slices.Contains(goes, k.Name) {
			r.t.Errorf("with %v: %s is gone, which was whole", r.damaged, name)
		}
	}
	for _, d := range r.damaged {
		if d.kind.Class != layout.Truth && d.kind.Class != layout.Key || strings.HasPrefix(d.kind.Name, "open ") {
			continue
		}
		info, err := os.Stat(r.file(d.file))
		switch d.damage {
		case isFolder:
			aside, _ := filepath.Glob(r.file(d.file) + layout.DamagedMark + "*")
			if err == nil && info.IsDir() || len(aside) > 0 {
				continue
			}
			r.t.Errorf("%s: it is gone, or a file: %v", d, err)
		case isGarbage, isUnreadable:
			files, _ := filepath.Glob(r.file(d.file) + "*")
			if !slices.ContainsFunc(files, func(file string) bool {
				raw, err := os.ReadFile(file)
				return err == nil && strings.HasPrefix(string(raw), d.holds)
			}) {
				r.t.Errorf("%s: what it held is gone; there is %v", d, files)
			}
		}
	}
}

// TestChaosOfFiles shows that tapin serves whatever became of the files of its
// home: every kind that a well-used home has, in every state that a disk or a
// person can leave it in, many at once. What only exists there stays as it is.
func TestChaosOfFiles(t *testing.T) {
	t.Parallel()
	p := wellUsed(t)
	has := laidOut(t, p.home)
	all := filesOf(t, p.home)
	var kinds []layout.Kind
	for _, k := range layout.Kinds() {
		if _, listed := absent[k.Name]; !has[k.Name] && !listed {
			t.Errorf("the home has no %s (%s), and nobody says why", k.Name, k.Pattern)
		}
		if has[k.Name] && k.Class != layout.Runtime && !slices.Contains(refusals, k.Name) && !slices.ContainsFunc(kinds, func(o layout.Kind) bool { return o.Name == k.Name }) {
			kinds = append(kinds, k)
		}
	}
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("TAPIN_CHAOS_SEED"), 10, 64); err == nil {
		seed = n
	}
	const groups = 4
	type round struct{ group, turn int }
	var rounds []round
	for turn := range damages {
		for group := range groups {
			rounds = append(rounds, round{group, turn})
		}
	}
	if os.Getenv("TAPIN_CHAOS") == "" {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(rounds), func(i, j int) { rounds[i], rounds[j] = rounds[j], rounds[i] })
		rounds = rounds[:1]
	}
	t.Logf("seed %d: %d kinds, %d starts", seed, len(kinds), len(rounds))
	began, cells := time.Now(), 0
	for _, at := range rounds {
		var wanted []damaged
		for i, k := range kinds {
			if i%groups != at.group {
				continue
			}
			files := all[k.Name]
			file := files[int(seed>>8%uint64(len(files)))%len(files)]
			wanted = append(wanted, damaged{kind: k, file: file, damage: damages[(i/groups+at.turn)%len(damages)]})
		}
		cells += len(wanted)
		t.Run(fmt.Sprintf("%d-%d", at.group, at.turn), func(t *testing.T) {
			t.Log(wanted)
			copyOf(t, p, wanted).lives()
		})
	}
	t.Logf("%d cells in %d starts, %v", cells, len(rounds), time.Since(began).Round(time.Second))
	t.Run("refusals", func(t *testing.T) { refusesToGuess(t, p) })
}

// refusesToGuess shows that without its numbers, or with those of a newer
// program, tapin does not start, says why, and changes nothing.
func refusesToGuess(t *testing.T, p *payer) {
	for file, contents := range map[string][]string{
		"schema":         {"", "x", "99"},
		"counters/epoch": {"", "x", "/"},
		"config.yaml":    {"\xfe{", "nonsense: 1"},
	} {
		for _, content := range contents {
			r := copyOf(t, p, nil)
			if content == "/" {
				if err := errors.Join(os.Remove(r.file(file)), os.Mkdir(r.file(file), 0o700)); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(r.file(file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			before := treeOf(t, r.home)
			out, err := r.tapin("up", "--background", "--no-check")
			if code := (*exec.ExitError)(nil); !errors.As(err, &code) || !strings.Contains(out, path.Base(file)) && !strings.Contains(out, "schema") || !strings.Contains(out, "→") && !strings.Contains(out, "hint") && len(strings.Split(strings.TrimSpace(out), "\n")) < 2 {
				t.Errorf("%s with %q: %v\n%s", file, content, err, out)
			}
			if after := treeOf(t, r.home); after != before {
				t.Errorf("%s with %q: something has changed", file, content)
			}
			said, _ := r.tapin("doctor")
			if !strings.Contains(said, path.Base(file)) && !strings.Contains(said, "schema") {
				t.Errorf("%s with %q: the doctor says\n%s", file, content, said)
			}
		}
	}
}

// treeOf is a sum over the names and contents of all files.
func treeOf(t testing.TB, home string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(home, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(sum, file, d.Type())
		if d.Type().IsRegular() {
			raw, err := os.ReadFile(file)
			_, _ = sum.Write(raw)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
