package logins

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	// writerHome makes the test binary a writer that is to be killed.
	writerHome = "TAPIN_TEST_LOGINS_WRITER"
	// writerEnd is a step, and how often it is reached before the writer kills itself.
	writerEnd = "TAPIN_TEST_LOGINS_END"
)

// inside are the steps of the write itself, from the first file to the last.
var inside = []string{"previous", "sealed", "record", "manifest read", "manifest temp", "manifest compare", "manifest renamed"}

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerHome); dir != "" {
		fmt.Fprintln(os.Stderr, saveForever(dir, os.Getenv(writerEnd)))
		os.Exit(1)
	}
	browsertest.Main(m, nil)
}

// numbered is a state that tells whether it is whole: every value is its number.
func numbered(n int) browser.State {
	mark := strconv.Itoa(n)
	s := browser.State{Origins: []browser.OriginState{{Origin: "https://chase.com", Databases: []byte(strings.Repeat(mark+" ", 40_000))}}}
	for range 200 {
		s.Cookies = append(s.Cookies, browser.Cookie{Name: "n", Value: secret.New(mark), Domain: "chase.com", Path: "/"})
	}
	return s
}

func numberOf(s browser.State) (int, error) {
	n, err := strconv.Atoi(s.Cookies[0].Value.Reveal())
	if err != nil || plain(s) != plain(numbered(n)) {
		return 0, fmt.Errorf("the state is not whole (%w)", err)
	}
	return n, nil
}

// saveForever saves one login again and again, and begins a further one each
// time. It prints the steps as it comes to them, and what is acknowledged.
func saveForever(dir, end string) error {
	ctx := context.Background()
	home, err := store.Open(dir, nil)
	if err != nil {
		return err
	}
	r := New(home, openVault(ctx, nil, home), nil)
	endAt, times, _ := strings.Cut(end, "*")
	left, _ := strconv.Atoi(times)
	r.at = func(step string) {
		fmt.Println("step", step)
		if step == endAt {
			if left--; left <= 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
	}
	session := fmt.Sprintf("ses_%d", os.Getpid())
	state, found, err := r.Checkout(ctx, "chase", session)
	if err != nil {
		return err
	}
	n := 0
	if found {
		if n, err = numberOf(state); err != nil {
			return err
		}
	}
	for {
		n++
		if _, err := r.Save(ctx, "chase", session, numbered(n), SaveOptions{Domain: "chase.com"}); err != nil {
			return err
		}
		fmt.Println("saved", n)
		further := fmt.Sprintf("login-%d", n)
		if saved, err := r.Save(ctx, further, session, sample(further), SaveOptions{}); err != nil || saved.Manifest != nil {
			return fmt.Errorf("%w; %w", err, saved.Manifest)
		}
		fmt.Println("began", further)
		if n%2 == 0 { // as another session, so that the one before is kept
			if err := r.Release(ctx, "chase", session); err != nil {
				return err
			}
			session += "x"
			if _, _, err := r.Checkout(ctx, "chase", session); err != nil {
				return err
			}
		}
		fmt.Println("step idle")
	}
}

func TestChaosAKillDuringASaveLeavesTheOldLoginOrTheNew(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	rounds := 4
	if s := os.Getenv("TAPIN_CHAOS"); s != "" {
		n, err := strconv.Atoi(s)
		must(t, err)
		rounds = max(200, n)
	}
	r := newRoom(t, seed)
	hit := map[string]int{}
	saved, began := 0, []string{}
	for i := range rounds {
		end := ""
		if i%2 == 0 {
			end = fmt.Sprintf("%s*%d", inside[i/2%len(inside)], 1+rand.N(6))
		}
		step := killWriter(t, r.home.Path(), end, &saved, &began)
		hit[step]++
		n := checkAfterKill(t, r, saved, began)
		saved = max(saved, n)
		if t.Failed() {
			t.Fatalf("in round %d, after a kill in %q", i, step)
		}
	}
	within := 0
	for _, step := range slices.Sorted(maps.Keys(hit)) {
		t.Logf("%4d kills in %q", hit[step], step)
		if slices.Contains(inside, step) {
			within += hit[step]
		}
	}
	t.Logf("%d kills, %d saves, %d logins; %d%% of the kills inside the write", rounds, saved, len(began), within*100/rounds)
	if within*100 < rounds*30 {
		t.Error("less than 30% of the kills were inside the write")
	}
}

// killWriter runs a writer until it is killed, by itself or a random moment
// after its first save, and returns the step that it was in.
func killWriter(t *testing.T, dir, end string, saved *int, began *[]string) (step string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerHome+"="+dir, writerEnd+"="+end)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	first := true
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		switch what {
		case "step":
			step = rest
		case "saved":
			n, err := strconv.Atoi(rest)
			must(t, err)
			if n != *saved+1 && !first {
				t.Errorf("saved %d after %d", n, *saved)
			}
			*saved = n
			if first && end == "" {
				time.AfterFunc(rand.N(40*time.Millisecond), func() { _ = cmd.Process.Kill() })
			}
			first = false
		case "began":
			*began = append(*began, rest)
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the writer was not killed but ended: %v", err)
	}
	return step
}

// checkAfterKill looks at everything as the next process would.
func checkAfterKill(t *testing.T, r *Room, saved int, began []string) int {
	t.Helper()
	home, err := store.Open(r.home.Path(), nil) // sweeps what the dead left
	must(t, err)
	defer home.Close()
	again := New(home, r.vault, nil)
	before := read(t, again.Manifest())
	for _, line := range []string{"# .claude/state/browser-contexts.yaml", "# Last time cookies were confirmed valid", "notes: \"Primary checking\""} {
		if !strings.Contains(before, line) {
			t.Errorf("%q is gone from the manifest:\n%s", line, before)
		}
	}
	if _, err := again.Reconcile(t.Context(), nil); err != nil {
		t.Errorf("reconcile: %v", err)
	}
	named := map[string]bool{}
	for _, e := range entriesOf(t, read(t, again.Manifest())) {
		named[e.Name] = e.Problem == nil
	}
	for _, name := range append([]string{"verizon", "chase"}, began...) {
		if !named[name] {
			t.Errorf("the entry of %s is lost", name)
		}
	}
	for _, name := range began[max(0, len(began)-3):] {
		if v, _, err := again.peek(name); v == nil || err != nil || plain(v.State) != plain(sample(name)) {
			t.Errorf("%s cannot be read: %v", name, err)
		}
	}
	if saved == 0 {
		return 0
	}
	state, found, err := again.Checkout(t.Context(), "chase", "ses_check")
	if err != nil || !found {
		t.Fatalf("neither the old login nor the new: %v", err)
	}
	must(t, again.Release(t.Context(), "chase", "ses_check"))
	n, err := numberOf(state)
	if err != nil || n < saved || n > saved+1 {
		t.Errorf("saved was %d, and it holds %d: %v", saved, n, err)
	}
	if _, _, aside, err := again.files("chase"); err != nil || len(aside) > 0 {
		t.Errorf("damaged: %v, %v", aside, err)
	}
	return n
}

// cutOff is what stops an operation at a step: what is on the disk then is what
// a kill would leave.
type cutOff struct{}

func TestWhatAKillInterruptsIsFinishedAtTheNextStart(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*Room) error{
		"delete": func(r *Room) error { _, err := r.Delete(context.Background(), "chase", nil); return err },
		"rename": func(r *Room) error { return r.Rename(context.Background(), "chase", "bank") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for stopAt := 1; ; stopAt++ {
				r := newRoom(t, seed)
				for _, session := range []string{"ses_1", "ses_2"} {
					save(t, r, "chase", session, session)
					must(t, r.Release(t.Context(), "chase", session))
				}
				must(t, r.Verified(t.Context(), "chase", ByOwner))
				steps := 0
				r.at = func(string) {
					if steps++; steps == stopAt {
						panic(cutOff{})
					}
				}
				cut := interrupted(t, r, do)
				again := New(r.home, r.vault, nil)
				_, err := again.Reconcile(t.Context(), nil)
				must(t, err)
				checkInterrupted(t, again, name, cut && stopAt == 1)
				if !cut {
					if stopAt < 6 {
						t.Errorf("it took %d steps only", stopAt)
					}
					return
				}
			}
		})
	}
}

func TestASaveThatIsCutOffAnywhereLeavesALogin(t *testing.T) {
	t.Parallel()
	for stopAt := 1; ; stopAt++ {
		r := newRoom(t, seed)
		save(t, r, "chase", "ses_1", "old")
		must(t, r.Release(t.Context(), "chase", "ses_1"))
		_, _, err := r.Checkout(t.Context(), "chase", "ses_2")
		must(t, err)
		must(t, os.WriteFile(r.Manifest(), []byte(seed), 0o600)) // so that there is something to write
		var steps []string
		r.at = func(step string) {
			if steps = append(steps, step); len(steps) == stopAt {
				panic(cutOff{})
			}
		}
		cut := interrupted(t, r, func(r *Room) error {
			_, err := r.Save(context.Background(), "chase", "ses_2", sample("new"), SaveOptions{})
			return err
		})
		again := New(r.home, r.vault, nil)
		_, err = again.Reconcile(t.Context(), nil)
		must(t, err)
		got, found, err := again.Checkout(t.Context(), "chase", "ses_3")
		must(t, err)
		if state := plain(got); !found || state != plain(sample("old")) && state != plain(sample("new")) || !cut && state != plain(sample("new")) {
			t.Errorf("cut off at %v: found %v", steps, found)
		}
		if e := entriesOf(t, read(t, r.Manifest())); len(e) != 2 || e[1].Notes != "Primary checking" {
			t.Errorf("cut off at %v: the manifest says %+v", steps, e)
		}
		if !cut {
			for _, step := range inside {
				if !slices.Contains(steps, step) {
					t.Errorf("a save has no step %q: %v", step, steps)
				}
			}
			return
		}
	}
}

func interrupted(t *testing.T, r *Room, do func(*Room) error) (cut bool) {
	t.Helper()
	defer func() {
		switch trouble := recover(); trouble {
		case nil:
		case cutOff{}:
			cut = true
		default:
			panic(trouble)
		}
	}()
	must(t, do(r))
	return false
}

// checkInterrupted makes sure that an operation happened as a whole, or, before
// its first step, not at all.
func checkInterrupted(t *testing.T, r *Room, what string, notAtAll bool) {
	t.Helper()
	files, err := r.home.List(folder)
	must(t, err)
	var named []string
	for _, e := range entriesOf(t, read(t, r.Manifest())) {
		named = append(named, e.Name)
	}
	name := map[string]string{"delete": "", "rename": "bank"}[what]
	if notAtAll {
		name = "chase"
	}
	wantFiles, wantNames := []string(nil), []string{"verizon"}
	if name != "" {
		wantFiles, wantNames = []string{name + ".age", name + ".age.1", name + ".json"}, append(wantNames, name)
		if info := get(t, r, name); !info.Saved || info.VerifiedHow != ByOwner || info.Notes != "Primary checking" {
			t.Errorf("%s is %+v", name, info)
		}
		if _, found, err := r.Checkout(t.Context(), name, "ses_3"); err != nil || !found {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !slices.Equal(files, wantFiles) || !slices.Equal(named, wantNames) {
		t.Errorf("files %v, named %v", files, named)
	}
}
