package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"tapin/internal/store"
)

// writes are what is written in each transition, in order; what is written
// twice stands there twice. The chaos fails when it sees a write that is not
// among them.
var writes = map[string][]string{
	inStart: {
		"write sessions/ses*.json", "write sessions/ses*.json", "write sessions/ses*.state", "write handoffs/open/hof*", "append to handoffs/list/*.jsonl",
		"write handoffs/hof*/photo.age", "write handoffs/hof*/meta.json", "write contexts/bank.json", "append to handoffs/hof*/events.jsonl",
		"append to events/*.jsonl", "write handoffs/hof*/meta.json",
	},
	inTyping: {"write sessions/ses*.json", "write sessions/ses*.json", "append to journal/journal-*.jsonl"},
	inPark: {
		"write handoffs/hof*/meta.json", "write sessions/ses*.state", "write contexts/bank.age", "write contexts/bank.json", "write sessions/ses*.json",
		"append to events/*.jsonl", "append to handoffs/hof*/events.jsonl", "append to events/*.jsonl", "write handoffs/hof*/meta.json",
	},
	inResume: {
		"write sessions/ses*.json", "write sessions/ses*.json", "write sessions/ses*.json", "append to events/*.jsonl",
		"write handoffs/hof*/meta.json", "append to handoffs/hof*/events.jsonl", "append to events/*.jsonl", "write handoffs/hof*/meta.json",
	},
	inFinish: {
		"write handoffs/hof*/meta.json", "write contexts/bank.age", "write contexts/bank.json", "remove sessions/ses*.state",
		"write task-runs/open/run*", "write task-runs/run*/meta.json", "append to task-runs/run*/events.jsonl", "append to events/*.jsonl",
		"write task-runs/run*/meta.json", "remove task-runs/open/run*", "remove handoffs/hof*/photo.age", "append to handoffs/hof*/events.jsonl",
		"append to events/*.jsonl", "write handoffs/hof*/meta.json", "remove handoffs/open/hof*",
		"create wakes/open/hof*.json", "write wakes/cursor.json", "remove wakes/open/hof*.json",
	},
	inCancel: {
		"write handoffs/hof*/meta.json", "write contexts/bank.age", "write contexts/bank.json", "remove sessions/ses*.state", "remove handoffs/hof*/photo.age",
		"append to handoffs/hof*/events.jsonl", "append to events/*.jsonl", "write handoffs/hof*/meta.json", "remove handoffs/open/hof*", "write wakes/cursor.json",
	},
	inAbort: {
		"write handoffs/hof*/meta.json", "write contexts/bank.age", "write contexts/bank.json", "write contexts/bank.json", "remove sessions/ses*.state",
		"write sessions/ses*.json", "append to events/*.jsonl", "remove sessions/ses*.json", "remove sessions/open/ses*", "remove links/lnk*.json", "remove handoffs/hof*/photo.age",
		"append to handoffs/hof*/events.jsonl", "append to events/*.jsonl", "write handoffs/hof*/meta.json", "remove handoffs/open/hof*",
		"create wakes/open/hof*.json", "write wakes/cursor.json", "remove wakes/open/hof*.json",
	},
	inTimeout: {
		"write handoffs/hof*/meta.json", "write contexts/bank.age.1", "write contexts/bank.age", "write contexts/bank.json", "write contexts/bank.json",
		"remove sessions/ses*.state", "write sessions/ses*.json", "append to events/*.jsonl", "remove sessions/ses*.json", "remove sessions/open/ses*",
		"remove links/lnk*.json", "write todos/todo*.json", "remove handoffs/hof*/photo.age", "append to handoffs/hof*/events.jsonl", "append to events/*.jsonl",
		"write handoffs/hof*/meta.json", "remove handoffs/open/hof*", "create wakes/open/hof*.json", "write wakes/cursor.json", "remove wakes/open/hof*.json",
	},
	inNext: {"append to journal/journal-*.jsonl", "write sessions/ses*.json"},
	inRecovery: {
		"write reach.json", "remove control.addr", "write counters/epoch", "write sessions/ses*.json", "remove handoffs/hof*", "append to events/*.jsonl", "write control.addr",
	},
}

// elsewhere are written between the rounds, when a home, a session or a run
// begins, or a session is gone before its login was ever saved: their own rooms let
// processes die there.
var elsewhere = []string{
	"write schema", "create agent.token", "create owner.token", "create vault.key", "write vault.source", "create handoffs/fingerprint.key",
	"create install.id", "write figures.json", "write sessions/open/ses*", "write links/lnk*.json", "append to task-runs/list/*.jsonl",
	"remove contexts/bank.json",
}

// stepsOf are the steps that a change goes through.
func stepsOf(change string) []store.Step {
	switch kind, _, _ := strings.Cut(change, " "); {
	case kind == "remove":
		return []store.Step{store.Removed, store.FolderKept}
	case strings.Contains(change, "journal"):
		return []store.Step{store.HalfWritten, store.Written}
	case kind == "append":
		return []store.Step{store.HalfWritten, store.Written, store.Synced}
	}
	return []store.Step{store.HalfWritten, store.Written, store.Synced, store.Named, store.FolderKept}
}

// failpoints are all instants of a transition at which a process can die.
func failpoints(moment string) []failpoint {
	var out []failpoint
	seen := map[string]int{}
	for _, change := range writes[moment] {
		seen[change]++
		for _, step := range stepsOf(change) {
			out = append(out, failpoint{Change: change, Step: step, Nth: seen[change]})
		}
	}
	return out
}

// isNamed reports whether there is a failpoint in that change.
func isNamed(change string) bool {
	for _, all := range writes {
		if slices.Contains(all, change) {
			return true
		}
	}
	return slices.Contains(elsewhere, change)
}

// arm has the next process die that comes to a failpoint.
func (w *world) arm(at failpoint) {
	w.t.Helper()
	_ = os.Remove(struck(w.failpoint()))
	raw, err := json.Marshal(at)
	if err == nil {
		err = os.WriteFile(w.failpoint()+".new", raw, 0o600)
	}
	if err == nil {
		err = os.Rename(w.failpoint()+".new", w.failpoint())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// traceWrites has the processes of this world note what they write.
func (w *world) traceWrites() {
	w.t.Helper()
	if err := os.WriteFile(traceOf(w.failpoint()), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// traced are the changes that were made since.
func (w *world) traced() []string {
	w.t.Helper()
	raw, err := os.ReadFile(traceOf(w.failpoint()))
	if err != nil {
		w.t.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(string(raw)), "\n")
	slices.Sort(all)
	return slices.Compact(all)
}
