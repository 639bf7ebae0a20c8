package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tapin/internal/store"
	"tapin/internal/testwait"
)

// lived marks the copy of the test that has mounts of its own.
const lived = "TAPIN_TEST_LIVED"

// lives is a home that goes on being used, and what has to be true of it.
type lives struct {
	*talk
	shop *cashier
	seed uint64
	disk bool // the home has a disk of its own

	n       int        // the round
	dice    *rand.Rand // of this round
	struck  bool       // something was interrupted: answers may be missing
	k       int        // counts what has to have a name of its own in this round
	hits    map[string]int
	helped  int  // starts that needed a hand
	days    int  // by which the clock is ahead of where it began
	latest  int  // the most that it was
	restart int  // sidecars that died under this daemon
	mute    bool // nothing is said in the chat
	promised
}

// TestChaosOfHomesThatLive plays days in one home in minutes: sessions,
// hand-offs of every reason and end, payments, logins, links, runs and words in
// the chat, and after every few of them something comes in between: a restart, a
// kill, a clock that jumps, a disk that is full or cannot be written to. What
// must be true is read from outside. A life begins with the home of the first
// version; in full there are many, and every other one begins with nothing. In
// short a quarter of what comes in between does, which is a matter of the seed.
func TestChaosOfHomesThatLive(t *testing.T) {
	if os.Getenv(lived) == "" {
		t.Parallel()
		inOwnMounts(t)
		return
	}
	rounds, seed := len(interruptions)/4, uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS_LIVES")); err == nil && n > 0 {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("TAPIN_CHAOS_SEED"), 10, 64); err == nil {
		seed = n
	}
	first := 0
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS_ROUND")); err == nil {
		first, rounds = n, n+1
	}
	t.Logf("seed %d: repeat with TAPIN_CHAOS_SEED=%[1]d TAPIN_CHAOS_LIVES=%d, one round of it with TAPIN_CHAOS_ROUND too", seed, rounds)
	var mu sync.Mutex
	began, hits, hands := time.Now(), map[string]int{}, 0
	t.Run("lives", func(t *testing.T) {
		for from := first; from < rounds; from += roundsOfALife - from%roundsOfALife {
			t.Run(fmt.Sprintf("from round %d", from), func(t *testing.T) {
				t.Parallel()
				l := live(t, seed, from/roundsOfALife%2 == 0)
				for n, last := from, min(rounds, from-from%roundsOfALife+roundsOfALife); n < last; n++ {
					l.round(n)
				}
				l.account()
				l.leave()
				mu.Lock()
				defer mu.Unlock()
				hands += l.helped
				for name, count := range l.hits {
					hits[name] += count
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(hits)) {
		t.Logf("%5d × %s", hits[name], name)
	}
	took := time.Since(began)
	t.Logf("%d rounds in %v, %v a round; %d starts needed a hand", rounds-first, took.Round(time.Second), (took / time.Duration(rounds-first)).Round(time.Millisecond), hands)
}

// roundsOfALife is how many rounds one home is lived in, and livesAtOnce how many
// homes at the same time: a life mostly waits.
const (
	roundsOfALife = 100
	livesAtOnce   = 3
)

// inOwnMounts runs the test anew where it may mount a disk for the home, or as
// it is where that is not allowed: then the disk is never full.
func inOwnMounts(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChaosOfHomesThatLive$", "-test.v", "-test.timeout=0", fmt.Sprintf("-test.parallel=%d", livesAtOnce))
	cmd.Env = append(os.Environ(), lived+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	} else {
		t.Log("only root may mount: no disk is full, and none cannot be written to")
	}
	err := said(t, cmd)
	if errors.Is(err, syscall.EPERM) {
		t.Logf("this machine allows no mounts of one's own, so no disk is full, and none cannot be written to: %v", err)
		cmd = exec.CommandContext(t.Context(), os.Args[0], cmd.Args[1:]...)
		cmd.Env = append(os.Environ(), lived+"=1")
		err = said(t, cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// said runs a program and logs what it says as it says it.
func said(t *testing.T, cmd *exec.Cmd) error {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		t.Log(lines.Text())
	}
	return cmd.Wait()
}

// live moves into a new home, or into one of the first version.
func live(t *testing.T, seed uint64, grown bool) *lives {
	t.Helper()
	l := &lives{
		talk: newTalk(t, "pool.follow=0"), shop: newCashier(t), seed: seed,
		hits: map[string]int{}, promised: nothingPromised(),
	}
	l.forgiven = "message is not modified" // a process killed right after an edit repeats it
	if err := syscall.Mount("tmpfs", l.home, "tmpfs", 0, "size="+diskSize+",mode=0700"); err == nil {
		l.disk = true
	}
	if grown {
		l.unpack()
	}
	l.up()
	l.serving()
	l.begun(grown)
	return l
}

// leave moves out.
func (l *lives) leave() {
	l.t.Helper()
	if out, err := l.tapin("down"); err != nil {
		l.fail("down: %v\n%s", err, out)
	}
	endAll(l.home)
	if l.disk {
		if err := syscall.Unmount(l.home, syscall.MNT_DETACH); err != nil {
			l.t.Error(err)
		}
	}
}

// round is a handful of steps and one interruption, which comes between two of
// them or into the middle of one.
func (l *lives) round(n int) {
	l.t.Helper()
	l.n, l.k, l.struck = n, 0, false
	l.dice = rand.New(rand.NewPCG(l.seed, uint64(n))) //nolint:gosec // dice
	// Each kind once, before one comes again.
	order := rand.New(rand.NewPCG(l.seed, uint64(n/len(interruptions)))).Perm(len(interruptions)) //nolint:gosec // dice
	how := interruptions[order[n%len(interruptions)]]
	if how.disk && !l.disk {
		how = interruptions[0]
	}
	began := time.Now()
	count := 2 + l.dice.IntN(3)
	at := l.dice.IntN(count)
	var names []string
	for i := range count {
		s, since := l.pick(), time.Now()
		names = append(names, s.name)
		l.hits["step: "+s.name]++
		if i != at {
			if err := s.play(l); err != nil {
				l.fail("%s (of %s): %v", s.name, strings.Join(names, ", "), err)
			}
			names[len(names)-1] += fmt.Sprintf(" %.1f s", time.Since(since).Seconds())
			continue
		}
		names = append(names, "["+how.name+"]")
		l.hits["interruption: "+how.name]++
		how.strike(l, s)
		l.recovered()
		names[len(names)-1] += fmt.Sprintf(" %.1f s", time.Since(since).Seconds())
	}
	l.judge()
	l.t.Logf("round %d: %s; %v", n, strings.Join(names, ", "), time.Since(began).Round(time.Millisecond))
}

// pick draws a step by its weight.
func (l *lives) pick() step {
	all := 0
	for _, s := range steps {
		all += s.weight
	}
	at := l.dice.IntN(all)
	for _, s := range steps {
		if at -= s.weight; at < 0 {
			return s
		}
	}
	panic("unreachable")
}

// interruption is something that comes in between.
type interruption struct {
	name   string
	disk   bool // needs a disk of its own
	strike func(l *lives, s step)
}

var interruptions = []interruption{
	{"nothing", false, func(l *lives, s step) { l.calm(s) }},
	{"down and up", false, func(l *lives, s step) { l.calm(s); l.down(); l.start() }},
	{"sidecar killed", false, func(l *lives, s step) { l.kills(s, "sidecar") }},
	{"daemon killed", false, func(l *lives, s step) { l.kills(s, "daemon") }},
	{"daemon and sidecar killed", false, func(l *lives, s step) { l.kills(s, "daemon", "sidecar") }},
	{"browser killed", false, func(l *lives, s step) { l.kills(s, "browser") }},
	{"killed in a write", false, func(l *lives, s step) { l.dies(s) }},
	{"killed, and killed again", false, func(l *lives, s step) { l.kills(s, "daemon", "sidecar"); l.start(); l.strike("sidecar") }},
	{"a backup, restored elsewhere", false, func(l *lives, s step) { l.backsUp(s) }},
	{"the clock jumps ahead", false, func(l *lives, s step) { l.calm(s); l.jump(1 + l.dice.IntN(2)) }},
	{"the clock jumps back", false, func(l *lives, s step) { l.calm(s); l.jump(-1) }},
	{"the disk is full", true, func(l *lives, s step) { l.full(s) }},
	{"the disk cannot be written to", true, func(l *lives, s step) { l.calm(s); l.readOnly() }},
}

func (l *lives) calm(s step) {
	l.t.Helper()
	if err := s.play(l); err != nil {
		l.fail("%s: %v", s.name, err)
	}
}

// meanwhile does something while a step is under way, which is over afterwards.
func (l *lives) meanwhile(s step, strike func(over <-chan struct{})) {
	l.struck = true
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.play(l) // what became of it is read from outside
	}()
	strike(over)
	<-over
}

// kills kills parts at a random moment of a step.
func (l *lives) kills(s step, parts ...string) {
	l.t.Helper()
	wait := time.Duration(l.dice.ExpFloat64() * float64(150*time.Millisecond))
	l.meanwhile(s, func(over <-chan struct{}) {
		select {
		case <-over:
		case <-time.After(wait):
		}
		l.strike(parts...)
	})
}

func (l *lives) strike(parts ...string) {
	l.t.Helper()
	l.struck = true
	for _, part := range parts {
		l.kill(l.pids(part)...)
		if part == "sidecar" {
			l.restart++
		}
	}
}

// dies has whoever writes next but so many die in the middle of it.
func (l *lives) dies(s step) {
	l.t.Helper()
	steps := []store.Step{store.HalfWritten, store.Written, store.Synced, store.Named, store.FolderKept}
	at := failpoint{Change: anyChange, Step: steps[l.dice.IntN(len(steps))], Nth: 1 + l.dice.IntN(12), Round: l.n + 1}
	l.meanwhile(s, func(over <-chan struct{}) {
		l.arm(at)
		for {
			if _, err := os.Stat(struck(l.failpoint())); err == nil {
				break
			}
			select {
			case <-over:
			case <-time.After(2 * time.Millisecond): // short: how often it looks
				continue
			}
			break
		}
		_ = os.Remove(l.failpoint())
	})
	l.restart++
}

// down ends tapin in order.
func (l *lives) down() {
	l.t.Helper()
	if out, err := l.tapin("down"); err != nil {
		l.fail("down: %v\n%s", err, out)
	}
	l.restart = 0
}

// start starts tapin, or leaves the one that runs. It must not need a hand.
func (l *lives) start() {
	l.t.Helper()
	l.up()
	l.restart = 0
}

// recovered waits until it serves again, by itself.
func (l *lives) recovered() {
	l.t.Helper()
	_ = os.Remove(l.failpoint())
	if l.restart > 1 { // its pauses grow, and nobody waits for them here
		l.kill(l.pids("daemon")...)
	}
	l.within("a daemon or none", func() bool { return len(l.pids("daemon")) < 2 })
	if len(l.pids("daemon")) == 0 {
		l.start()
	}
	if !testwait.Comes(l.isServing) {
		l.helped++
		l.fail("it does not serve again by itself")
	}
}

func (l *lives) isServing() bool {
	if len(l.pids("sidecar")) != 1 {
		return false
	}
	got, err := l.try("agent", "GET", "/health", nil, "")
	return err == nil && got.ok()
}

// fail ends the test with what is known.
func (l *lives) fail(format string, args ...any) {
	l.t.Helper()
	l.t.Fatalf("round %d of seed %d: %s\n%s", l.n, l.seed, fmt.Sprintf(format, args...), l.logs())
}

// name is one that nothing else in this life has.
func (l *lives) name() string {
	l.k++
	return fmt.Sprintf("life %d.%d", l.n, l.k)
}
