package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tapin/internal/layout"
	"tapin/internal/store"
)

// cared is a home with two saved logins and a hand-off on each of two sites.
type cared struct {
	*world
	sites map[string]string // where each login belongs to
	hands map[string]string
}

// taskWord is in what the agent asked for on a site.
const taskWord = "canary-of-"

func newCared(t *testing.T) *cared {
	t.Helper()
	w := newWorld(t)
	c := &cared{world: w, hands: map[string]string{}, sites: map[string]string{
		"bank": strings.Replace(w.site.URL, "127.0.0.1", "localhost", 1), "shop": w.site.URL,
	}}
	c.up()
	for name, at := range c.sites {
		c.must("agent", "POST", "/session/start", map[string]any{"url": at + "/login", "context": name, "screenshot": false})
		c.hands[name] = c.must("agent", "POST", "/handoff/start", map[string]any{"reason": "login", "task": taskWord + name}).text("handoff_id")
		c.must("owner", "POST", "/handoff/"+c.hands[name]+"/finish", map[string]any{})
		if got := c.must("agent", "POST", "/session/stop", map[string]any{}); got.body["context_saved"] != true {
			t.Fatalf("the login %s: %v", name, got.body)
		}
	}
	c.ends()
	return c
}

func (c *cared) ends() {
	c.t.Helper()
	if out, err := c.tapin("down"); err != nil {
		c.t.Fatalf("down: %v\n%s", err, out)
	}
}

// in is a copy of the home for another test.
func (c *cared) in(t *testing.T) *cared {
	t.Helper()
	w := newWorld(t)
	w.site = c.site
	if out, err := exec.Command("cp", "-a", c.home+"/.", w.home).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	return &cared{world: w, sites: c.sites, hands: c.hands}
}

// has checks that a login comes back into a browser, and that its hand-off is
// still known.
func (c *cared) has(name string) error {
	round := fmt.Sprint(rand.Uint64())
	began := c.ask("agent", "POST", "/session/start", map[string]any{"url": c.sites[name] + "/login?round=" + round, "context": name, "screenshot": false})
	_, cookie := c.site.loaded(round)
	if !began.ok() || began.body["context_restored"] != true || !cookie {
		return fmt.Errorf("the login %s: %d %v, its cookie: %v", name, began.code, began.body, cookie)
	}
	if got := c.must("agent", "POST", "/session/stop", map[string]any{}); !got.ok() {
		return fmt.Errorf("the session of %s: %v", name, got.body)
	}
	if got := c.ask("agent", "GET", "/handoff/"+c.hands[name], nil); got.text("status") != "FINISHED" || got.text("task") != taskWord+name {
		return fmt.Errorf("the hand-off of %s: %d %v", name, got.code, got.body)
	}
	return nil
}

// left are the files that have one of these words, in their names or in them.
func (c *cared) left(words ...string) (files []string) {
	_ = filepath.WalkDir(c.home, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(c.home, path)
		if kind, ok := layout.Of(name); err != nil || d.IsDir() || ok && kind.Class == layout.Runtime {
			return nil //nolint:nilerr // it went away meanwhile
		}
		raw, _ := os.ReadFile(path)
		for _, word := range words {
			if bytes.Contains(raw, []byte(word)) || strings.Contains(name, word) {
				files = append(files, name)
				break
			}
		}
		return nil
	})
	return files
}

// keys are the files that hold a key which seals.
func (c *cared) keys() []string {
	var keys []string
	for _, name := range c.left("AGE-SECRET-KEY") {
		if raw, err := os.ReadFile(filepath.Join(c.home, name)); err == nil && bytes.HasPrefix(raw, []byte("AGE-SECRET-KEY")) {
			keys = append(keys, name)
		}
	}
	return keys
}

// care is a command that changes all of a home, and what must be true once tapin
// was started again, whether it was killed or not.
type care struct {
	name string
	args []string
	so   func(c *cared, done bool) error
}

var cares = []care{
	{"a new key", []string{"vault", "rekey"}, func(c *cared, _ bool) error {
		for name := range c.sites {
			if err := c.has(name); err != nil {
				return err
			}
		}
		if keys := c.keys(); len(keys) != 1 {
			return fmt.Errorf("the keys %v are left", keys)
		}
		return nil
	}},
	{"a site forgotten", []string{"forget", "localhost", "--yes"}, func(c *cared, done bool) error {
		if err := c.has("shop"); err != nil {
			return err
		}
		left := c.left("localhost", taskWord+"bank")
		if len(left) == 0 {
			for _, path := range []string{"/contexts/bank", "/handoff/" + c.hands["bank"]} {
				if got := c.ask("agent", "GET", path, nil); got.text("error") != "NOT_FOUND" {
					return fmt.Errorf("what was forgotten is still known: %s: %d %v", path, got.code, got.body)
				}
			}
			return nil
		}
		if done {
			return fmt.Errorf("there is still something in %v", left)
		}
		if err := c.has("bank"); err != nil {
			return fmt.Errorf("it is neither forgotten nor whole: something is in %v, and %w", left, err)
		}
		return nil
	}},
}

// TestChaosOfCare kills the commands that change all of a home: in the chaos at
// every single step of every file that they write, each in a copy of the home
// of its own. The next start makes it what was before or what is after.
func TestChaosOfCare(t *testing.T) {
	t.Parallel()
	home := newCared(t)
	full := os.Getenv("TAPIN_CHAOS") != ""
	var kills, before atomic.Int32
	t.Run("kills", func(t *testing.T) {
		for _, how := range cares {
			t.Run(how.name, func(t *testing.T) {
				t.Parallel()
				for _, step := range store.Steps() {
					if !full && step != store.Named {
						continue
					}
					for nth, done := 1, false; !done; nth++ {
						if !full {
							nth += rand.IntN(4)
						}
						c := home.in(t)
						c.arm(failpoint{Change: anyChange, Step: step, Nth: nth, Round: nth})
						out, err := c.tapin(how.args...)
						done = err == nil
						if _, dead := os.Stat(struck(c.failpoint())); dead == nil == done || !full && !done && nth > 24 {
							t.Fatalf("%s %d: killed %v, and %v\n%s", step, nth, dead == nil, err, out)
						}
						if err := os.Remove(c.failpoint()); err != nil && !errors.Is(err, fs.ErrNotExist) {
							t.Fatal(err)
						}
						c.up()
						if err := how.so(c, done); err != nil {
							t.Fatalf("%s %d, killed %v: %v\n%s", step, nth, !done, err, c.logs())
						}
						if got := c.must("agent", "GET", "/health", nil); got.text("status") != "ok" {
							t.Fatalf("%s %d: /health says %v", step, nth, got.body)
						}
						if how.name == "a site forgotten" && len(c.left("localhost")) > 0 {
							before.Add(1)
						}
						c.ends()
						if err := c.whole(false); err != nil {
							t.Fatal(err)
						}
						if err := os.RemoveAll(c.home); err != nil {
							t.Fatal(err)
						}
						if !done {
							kills.Add(1)
						}
						done = done || !full
					}
				}
			})
		}
	})
	t.Logf("%d kills; %d times nothing was forgotten yet", kills.Load(), before.Load())
}
