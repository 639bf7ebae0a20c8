package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// passphrase is that of the backups of a life.
const passphrase = "four words and a number 4"

// backsUp makes a backup while a step is under way, and often while the sidecar
// is killed in the middle of it. Restored in another home, it has all that was
// answered before it began, and nothing in it goes on.
func (l *lives) backsUp(s step) {
	l.t.Helper()
	before := l.promised
	before.hands, before.runs, before.logins = map[string]*hand{}, maps.Clone(l.runs), maps.Clone(l.logins)
	for id, h := range l.hands {
		one := *h
		before.hands[id] = &one
	}
	other := newWorld(l.t, "pool.follow=0")
	defer func() {
		endAll(other.home)
		_ = os.RemoveAll(other.home)
	}()
	file, words := other.home+".backup", other.home+".passphrase"
	defer func() { _, _ = os.Remove(file), os.Remove(words) }()
	if err := os.WriteFile(words, []byte(passphrase+"\n"), 0o600); err != nil {
		l.fail("%v", err)
	}
	wait := time.Duration(l.dice.ExpFloat64() * float64(100*time.Millisecond))
	killed := l.dice.IntN(2) == 0
	l.meanwhile(s, func(over <-chan struct{}) {
		select {
		case <-over:
		case <-time.After(wait): // short: when in the step it begins is a matter of the seed
		}
		made := make(chan error, 1)
		go func() {
			out, err := l.tapin("backup", file, "--passphrase-file", words)
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			made <- err
		}()
		if killed {
			time.Sleep(wait) // short: when in the backup is a matter of the seed
			l.strike("sidecar")
		}
		if err := <-made; err != nil {
			l.fail("backup: %v", err)
		}
	})
	if out, err := other.tapin("restore", file, "--passphrase-file", words); err != nil {
		l.fail("restore: %v\n%s", err, out)
	}
	other.up()
	other.serving()
	if err := before.restored(other); err != nil {
		l.fail("restored: %v\n%s", err, other.logs())
	}
	if out, err := other.tapin("down"); err != nil {
		l.fail("down of the restored home: %v\n%s", err, out)
	}
}

// restored compares a restored home with what was answered before its backup.
func (k *promised) restored(w *world) error {
	if got := w.must("agent", "GET", "/health", nil); got.text("status") != "ok" || got.body["active_session"] != nil {
		return fmt.Errorf("/health says %v", got.body)
	}
	for id, h := range k.hands {
		got := w.ask("agent", "GET", "/handoff/"+id, nil)
		now, by := got.text("status"), got.text("finished_by")
		switch {
		case !got.ok():
			return fmt.Errorf("%s is lost: %v", id, got.body)
		case now == "RUNNING":
			return fmt.Errorf("%s runs again", id)
		case h.status != "RUNNING" && (now != h.status || by != h.by):
			return fmt.Errorf("%s was answered as %+v, and is %v", id, *h, got.body)
		}
	}
	for id, status := range k.runs {
		if got := w.ask("agent", "GET", "/task-run/"+id, nil); !got.ok() || status != "RUNNING" && got.text("status") != status {
			return fmt.Errorf("the run %s was answered as %s, and is %v", id, status, got.body)
		}
	}
	for _, a := range list(w.must("agent", "GET", "/approvals?limit=100", nil).body["approvals"]) {
		if a["status"] == "pending" || a["status"] == "approved" {
			return fmt.Errorf("it still allows something: %v", a)
		}
	}
	for name := range k.logins {
		if got := w.ask("agent", "GET", "/contexts/"+name, nil); !got.ok() || got.body["in_use"] == true {
			return fmt.Errorf("the login %s is lost or in use: %v", name, got.body)
		}
		if _, err := os.Stat(filepath.Join(w.home, "contexts", name+".age")); err != nil {
			return err
		}
	}
	return w.whole(false)
}
