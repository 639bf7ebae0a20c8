package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/testwait"
)

// The moments of a hand-off at which something is killed. Those with something
// under way are transitions: the kill meets it somewhere between its first
// instruction and its answer, or at a failpoint of its writes.
const (
	inStart    = "start under way"
	started    = "started"
	inTyping   = "typing under way"
	worked     = "a person has worked"
	inPark     = "park under way"
	parked     = "parked"
	inResume   = "resume under way"
	resumed    = "resumed"
	inFinish   = "finish under way"
	finished   = "finished"
	inCancel   = "agent's cancel under way"
	inAbort    = "owner's abort under way"
	inTimeout  = "end by the clock under way"
	inNext     = "the agent's next step under way"
	inRecovery = "recovery under way"
)

// moments has the transitions more often: what is at rest is easily kept.
var moments = []string{
	inStart, inStart, started, inTyping, inTyping, worked, inPark, inPark, parked, inResume, inResume, resumed,
	inFinish, inFinish, inFinish, finished, inCancel, inAbort, inTimeout, inNext, inRecovery, inRecovery,
}

// chaos is the state of the test: a world, its dice, and what it has hit.
type chaos struct {
	*world
	seed    uint64
	dice    *rand.Rand               // of this round
	took    map[string]time.Duration // how long each transition lasts, about
	hits    map[string]int
	quiet   []string // hand-offs that the agent ended itself: nobody is woken for them
	awaited []string // those of which the agent has to hear
	rounds  int
	inside,
	total int
}

// TestChaosOfAHandoff kills daemon, sidecar, holder and browser at random
// moments of hand-offs, half of the time by a failpoint inside a write, and
// looks each time whether anything was lost, torn or doubled, whether somebody
// is locked out and whether something is left over.
func TestChaosOfAHandoff(t *testing.T) {
	c := &chaos{seed: uint64(time.Now().UnixNano()), rounds: 2, took: map[string]time.Duration{}, hits: map[string]int{}} //nolint:gosec // any number will do
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS")); err == nil && n > 0 {
		c.rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("TAPIN_CHAOS_SEED"), 10, 64); err == nil {
		c.seed = n
	}
	first, last := 0, c.rounds
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS_ROUND")); err == nil {
		first, last = n, n+1
	}
	t.Logf("seed %d: repeat with TAPIN_CHAOS_SEED=%[1]d TAPIN_CHAOS=%d, one round of it with TAPIN_CHAOS_ROUND too", c.seed, c.rounds)
	c.world = newWorld(t)
	c.settings("on_resume:\n  command: [/bin/sh, -c, 'echo $TAPIN_HANDOFF_ID >> " + c.woken() + "']\n")
	c.traceWrites()
	c.up()
	for n := first; n < last; n++ {
		if n > first && n%40 == 0 {
			// A daemon gives up a sidecar that is killed again and again; this one is not at fault.
			c.kill(c.pids("daemon")...)
			c.up()
		}
		c.round(n)
	}
	c.account()
}

// account tells what was hit, and finds out whether that was enough.
func (c *chaos) account() {
	c.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(c.hits)) {
		c.t.Logf("%4d × %s", c.hits[name], name)
	}
	share := 100 * c.inside / c.total
	c.t.Logf("%d rounds, %d %% of the kills inside a transition", c.total, share)
	if c.total >= 50 && share < 30 {
		c.t.Errorf("only %d %% of the kills were inside a transition", share)
	}
	for _, change := range c.traced() {
		if !isNamed(change) {
			c.t.Errorf("no failpoint is at: %s", change)
		}
	}
	var woken []string
	c.within("the waking of the agents", func() bool {
		woken = c.wakes()
		return !slices.ContainsFunc(c.awaited, func(id string) bool { return !slices.Contains(woken, id) })
	})
	for _, id := range c.quiet {
		if slices.Contains(woken, id) {
			c.t.Errorf("the agent was woken for %s, which it had ended itself", id)
		}
	}
}

// game is one round: what was asked for, and what was answered before the kill.
type game struct {
	*chaos
	n       int
	name    string
	moment  string
	session string
	run     string
	load    string // the page's name for itself, once it has spoken
	typed   string // what is in the field for certain
	typing  string // what may be, on top
	start   *answer
	end     *answer
	pause   *answer // of a park or a resume
	ending  string  // the status that an end under way leads to
	browser bool    // its browser was killed too
	at      *failpoint

	wasParked bool // as far as is known when it is judged
}

func (c *chaos) round(n int) {
	c.t.Helper()
	c.dice = rand.New(rand.NewPCG(c.seed, uint64(n))) //nolint:gosec // dice
	g := &game{chaos: c, n: n, name: strconv.Itoa(n), moment: moments[c.dice.IntN(len(moments))]}
	victim := []string{"sidecar", "sidecar", "sidecar", "daemon", "daemon and sidecar"}[c.dice.IntN(5)]
	if c.dice.IntN(5) == 0 && g.moment != parked && g.moment != inResume {
		g.browser = true
		victim += []string{" and browser", " and holder"}[c.dice.IntN(2)]
	}
	g.aim()
	g.prepare()
	inside := g.play(victim)
	c.total++
	label := g.moment
	if inside {
		c.inside++
	} else if strings.HasSuffix(label, "under way") {
		label += ", just over"
	}
	c.hits[label]++
	c.hits["killed: "+victim]++
	if g.at != nil {
		what := "failpoint: "
		if !inside {
			what = "failpoint not met: "
		}
		c.hits[what+g.at.String()]++
		label += ", at " + g.at.String()
	}
	c.t.Logf("round %d: %s killed, %s", n, victim, label)
	g.judge()
}

// aim chooses a failpoint for most of what is under way.
func (g *game) aim() {
	all := failpoints(g.moment)
	which, nth, use := g.dice.IntN(1<<16), 1+g.dice.IntN(2), g.dice.IntN(5) < 3 || g.moment == inRecovery
	if len(all) > 0 && use {
		g.at = &all[which%len(all)]
		g.at.Round = g.n
		if g.at.Nth == 0 {
			g.at.Nth = nth
		}
	}
}

// prepare makes sure that there is a session with the agent's page in it.
func (g *game) prepare() {
	g.t.Helper()
	status := g.must("agent", "GET", "/session/status", nil)
	if status.body["active"] != true {
		g.begin()
	}
	g.must("agent", "POST", "/session/navigate", map[string]any{"url": g.site.URL + "/login?round=" + g.name, "screenshot": false})
	g.site.forget()
	g.session = g.must("agent", "GET", "/session/status", nil).text("session_id")
	g.run = g.must("agent", "POST", "/task-run/start", map[string]any{"goal": "round " + g.name}).text("run_id")
}

// begin starts a session with a saved login, which each in turn has to itself.
func (w *world) begin() {
	w.t.Helper()
	w.must("agent", "POST", "/session/start", map[string]any{"screenshot": false, "context": "bank"})
}

// play goes up to the moment, and kills. It reports whether something was under
// way then.
func (g *game) play(victim string) bool {
	g.t.Helper()
	if g.moment == inStart {
		return g.meanwhile(victim, func() { g.start = g.heard("agent", "/handoff/start", g.wish(), "") })
	}
	got := g.must("agent", "POST", "/handoff/start", g.wish())
	g.start = &got
	end := func(who, how, leadsTo string) func() {
		g.ending = leadsTo
		return func() { g.end = g.heard(who, "/handoff/"+g.id()+"/"+how, map[string]any{}, "") }
	}
	switch g.moment {
	case started:
		return g.strike(victim)
	case inTimeout:
		g.ending = "TIMED_OUT"
		return g.meanwhile(victim, func() { _, _ = g.try("agent", "GET", "/handoff/"+g.id()+"?after=99&wait_ms=20000", nil, "") })
	case inCancel: // which is refused once a person is at work
		return g.meanwhile(victim, end("agent", "cancel", "CANCELLED"))
	case inRecovery:
		return g.twice(victim)
	}
	// What is typed goes through the page first, so that it is certain.
	g.typed = "ab"
	g.relay("ab", "")
	switch g.moment {
	case inTyping:
		g.typing = "cdefghijklmnop"
		return g.meanwhile(victim, func() { g.heard("owner", "/handoff/"+g.id()+"/type", map[string]any{"text": g.typing}, "k") })
	case worked:
		return g.strike(victim)
	case inPark, parked, inResume, resumed:
		return g.interrupted(victim)
	case inFinish:
		return g.meanwhile(victim, end("owner", "finish", "FINISHED"))
	case inAbort:
		return g.meanwhile(victim, end("owner", "cancel", "CANCELLED"))
	}
	end("owner", "finish", "FINISHED")()
	if g.end == nil || !g.end.ok() {
		g.t.Fatalf("finish: %+v", g.end)
	}
	if g.moment == finished {
		return g.strike(victim)
	}
	return g.meanwhile(victim, func() {
		g.heard("agent", "/session/navigate", map[string]any{"url": g.site.URL + "/next?round=n" + g.name, "screenshot": false}, "")
	})
}

// interrupted is a person who comes back later.
func (g *game) interrupted(victim string) bool {
	g.t.Helper()
	park := func() { g.pause = g.heard("owner", "/handoff/"+g.id()+"/park", map[string]any{}, "") }
	if g.moment == inPark {
		return g.meanwhile(victim, park)
	}
	if park(); g.pause == nil || !g.pause.ok() {
		g.t.Fatalf("park: %+v", g.pause)
	}
	if g.moment == parked {
		return g.strike(victim)
	}
	resume := func() { g.pause = g.heard("owner", "/handoff/"+g.id()+"/resume", map[string]any{}, "") }
	if g.moment == inResume {
		return g.meanwhile(victim, resume)
	}
	if resume(); g.pause == nil || !g.pause.ok() {
		g.t.Fatalf("resume: %+v", g.pause)
	}
	return g.strike(victim)
}

func (g *game) wish() map[string]any {
	wish := map[string]any{"reason": "login", "instruction": "Please log in", "run_id": g.run, "session_id": g.session}
	if g.moment == inTimeout {
		wish["timeout_ms"] = 1000
	}
	return wish
}

func (g *game) id() string { return g.start.text("handoff_id") }

// relay types into the page, and waits until the page has told of it.
func (g *game) relay(text, after string) {
	g.t.Helper()
	if got := g.ask("owner", "POST", "/handoff/"+g.id()+"/type", map[string]any{"text": text}); !got.ok() {
		g.t.Fatalf("round %s: typing for the owner: %d %v\n%s", g.name, got.code, got.body, g.logs())
	}
	g.within("the page's word of "+after+text, func() bool {
		load, value := g.site.field()
		g.load = load
		return strings.HasPrefix(value, after) && strings.HasSuffix(value, text)
	})
}

// heard is the answer to a request, or nil when there was none.
func (g *game) heard(who, path string, body any, key string) *answer {
	got, err := g.try(who, "POST", path, body, key)
	if err != nil {
		return nil
	}
	return &got
}

// meanwhile strikes while something is under way: at its failpoint if it has
// one, else at a random moment of the time that it takes.
func (g *game) meanwhile(victim string, request func()) bool {
	g.t.Helper()
	typical := g.took[g.moment]
	if typical == 0 {
		typical = 300 * time.Millisecond
	}
	wait := time.Duration(g.dice.Float64() * float64(typical))
	var over sync.WaitGroup
	done := make(chan struct{})
	targets := g.targets(victim)
	g.arm()
	began := time.Now()
	over.Go(func() {
		request()
		close(done)
	})
	inside := true
	if g.at != nil {
		inside = g.met(done)
	} else {
		time.Sleep(time.Until(began.Add(wait)))
		select {
		case <-done:
			inside = false
			g.took[g.moment] = max(50*time.Millisecond, time.Since(began)*3/4)
		default:
			g.took[g.moment] = typical * 11 / 10
		}
	}
	g.fell(victim, targets)
	over.Wait()
	g.recovered(targets)
	return inside
}

// afterwards is how long the daemon gets for what it writes after an answer.
const afterwards = 3 * time.Second

// met waits until a process has died of its failpoint; false means that the
// transition ended without coming there.
func (g *game) met(done <-chan struct{}) bool {
	var late <-chan time.Time
	for {
		if _, err := os.Stat(struck(g.failpoint())); err == nil {
			return true
		}
		select {
		case <-done:
			done, late = nil, time.After(afterwards)
		case <-late:
			return !g.disarm()
		case <-time.After(2 * time.Millisecond): // short: how often it looks
		}
	}
}

// arm has the next process die that comes to the failpoint.
func (g *game) arm() {
	g.t.Helper()
	_ = os.Remove(struck(g.failpoint()))
	if g.at != nil {
		g.world.arm(*g.at)
	}
}

// disarm reports whether nobody had died of it yet.
func (g *game) disarm() bool { return os.Remove(g.failpoint()) == nil }

// strike kills while nothing is under way.
func (g *game) strike(victim string) bool {
	g.t.Helper()
	targets := g.targets(victim)
	g.fell(victim, targets)
	g.recovered(targets)
	return false
}

// twice kills, and kills again whoever puts in order what the first kill left.
func (g *game) twice(victim string) bool {
	g.t.Helper()
	targets := g.targets(victim)
	g.arm()
	g.fell(victim, targets)
	serves := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		defer close(serves)
		if strings.Contains(victim, "daemon") {
			_, _ = g.tapin("up", "--background", "--no-check", "--allow-private")
		}
		testwait.Comes(func() bool {
			if got, err := g.try("agent", "GET", "/sessions", nil, ""); err == nil && got.ok() {
				return true
			}
			_, err := os.Stat(struck(g.failpoint()))
			return err == nil
		})
	})
	inside := g.met(serves)
	over.Wait()
	g.recovered(targets)
	return inside
}

func (g *game) targets(victim string) map[string][]int {
	var all map[string][]int
	// Who is about to run a program looks like its parent for a moment.
	g.within("one of each part", func() bool {
		all = map[string][]int{"sidecar": g.pids("sidecar"), "daemon": g.pids("daemon"), "browser": g.pids("browser"), "holder": g.holders()}
		for part, pids := range all {
			if len(pids) != 1 && (strings.Contains(victim, part) || part == "sidecar" || part == "daemon") {
				return false
			}
		}
		return true
	})
	return all
}

// fell kills the victims, in an order of chance. Who died of a failpoint is
// dead already.
func (g *game) fell(victim string, targets map[string][]int) {
	g.t.Helper()
	parts := strings.Split(victim, " and ")
	g.dice.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	var pids []int
	for _, part := range parts {
		pids = append(pids, targets[part]...)
	}
	g.kill(pids...)
}

func (g *game) recovered(targets map[string][]int) {
	g.t.Helper()
	if now := g.pids("daemon"); !slices.Equal(now, targets["daemon"]) || len(now) == 0 {
		g.up()
	}
	g.serving(targets["sidecar"]...)
	_ = os.Remove(g.failpoint())
}

// settings writes the settings of a world that is not up yet.
func (w *world) settings(text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.home, "config.yaml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// woken is the file in which woken agents leave the hand-off they were woken for.
func (w *world) woken() string { return w.home + ".woken" }

func (w *world) wakes() []string {
	w.t.Helper()
	raw, err := os.ReadFile(w.woken())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

// fail ends the test with everything that is known.
func (g *game) fail(format string, args ...any) {
	g.t.Helper()
	at := ""
	if g.at != nil {
		at = " at " + g.at.String()
	}
	g.t.Fatalf("round %s (%s%s, seed %d): %s\n%s", g.name, g.moment, at, g.seed, fmt.Sprintf(format, args...), g.logs())
}
