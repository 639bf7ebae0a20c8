package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tapin/internal/testwait"
)

// promised is what was answered, and so has to last.
type promised struct {
	session  string
	hands    map[string]*hand
	tried    map[string]bool   // tasks of hand-offs that were asked for
	taken    int               // takeovers that were asked for
	notes    []string          // what the owner said to the agent
	heard    int               // of those
	inbox    int               // how far the agent has read
	runs     map[string]string // their states
	logins   map[string]bool   // that were saved; whether with the cookie of this test
	links    map[string]string
	revoked  map[string]string
	payments map[string]string // by approval, for which round
	done     map[string]bool   // to-dos
	cursors  map[string]int64  // cursors
	scanned  map[string]int64  // how far logs were read
}

func nothingPromised() promised {
	return promised{
		hands: map[string]*hand{}, tried: map[string]bool{}, runs: map[string]string{}, logins: map[string]bool{}, links: map[string]string{},
		revoked: map[string]string{}, payments: map[string]string{}, done: map[string]bool{}, cursors: map[string]int64{}, scanned: map[string]int64{},
	}
}

// hand is a hand-off as it was last answered.
type hand struct {
	id, task, reason, status, by string
	owner, held                  bool
	judged                       bool // its end was looked for, and told once
}

func (k *promised) running() (out []*hand) {
	for _, h := range k.hands {
		if h.status == "RUNNING" {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b *hand) int { return strings.Compare(a.id, b.id) })
	return out
}

func (k *promised) hand(id string) hand {
	if h := k.hands[id]; h != nil {
		return *h
	}
	return hand{}
}

func (k *promised) tries(task string) {
	if task == "" {
		k.taken++
	} else {
		k.tried[task] = true
	}
}

// note takes what was answered about a hand-off. An end that was answered
// before has to stand.
func (k *promised) note(got answer) error {
	id := got.text("handoff_id")
	now := &hand{id: id, task: got.text("task"), reason: got.text("reason"), status: got.text("status"), by: got.text("finished_by"), owner: got.text("started_by") == "owner"}
	if v, ok := got.body["verified"].(map[string]any); ok {
		now.held = v["held"] == true
	}
	if before := k.hands[id]; before != nil {
		if before.status != "RUNNING" && (before.status != now.status || before.by != now.by || before.held != now.held) {
			return fmt.Errorf("%s was answered as %+v, and is %v", id, *before, got.body)
		}
		now.judged = before.judged
	}
	k.hands[id] = now
	return nil
}

// figure is as what a hand-off is counted, by what the documentation says.
func (h *hand) figure() string {
	switch {
	case h.status == "RUNNING":
		return "running"
	case h.status == "TIMED_OUT":
		return "expired"
	case h.status == "FINISHED" && (h.by == "owner" || h.held):
		return "unblocked"
	case h.status == "FINISHED" || h.by == "agent":
		return "abandoned"
	case h.by == "owner":
		return "aborted"
	}
	return "lost"
}

// begun takes over what a life begins with.
func (l *lives) begun(grown bool) {
	l.t.Helper()
	for _, h := range l.all("/handoffs", "handoffs") {
		if err := l.note(answer{200, h}); err != nil {
			l.fail("%v", err)
		}
		l.tries(l.hand(h["handoff_id"].(string)).task)
	}
	for _, r := range l.all("/task-runs", "runs") {
		l.runs[r["run_id"].(string)] = r["status"].(string)
	}
	if !grown {
		return
	}
	facts := firstFacts(l.t)
	for id, status := range facts.Ends {
		if got := l.hand(id).status; got != status {
			l.fail("the first version left %s as %s, and it is %q", id, status, got)
		}
	}
	approvals := l.all("/approvals", "approvals")
	if len(l.hands) != facts.Handoffs || len(l.runs) != facts.Runs || len(approvals) != facts.Approvals {
		l.fail("of the first version there are %d hand-offs, %d runs, %d approvals; want %+v", len(l.hands), len(l.runs), len(approvals), facts)
	}
	l.notes = append(l.notes, facts.Message)
	l.logins[facts.Login] = false
}

// all reads a list to its end.
func (l *lives) all(path, name string) (out []map[string]any) {
	l.t.Helper()
	for cursor := ""; ; {
		got := l.must("agent", "GET", path+"?limit=100&cursor="+url.QueryEscape(cursor), nil)
		out = append(out, list(got.body[name])...)
		if cursor = got.text("next"); cursor == "" {
			return out
		}
	}
}

func list(v any) (out []map[string]any) {
	all, _ := v.([]any)
	for _, one := range all {
		if m, ok := one.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func decoded(raw []byte) (out map[string]any) {
	_ = json.Unmarshal(raw, &out)
	return out
}

// judge looks at everything after a round.
func (l *lives) judge() {
	l.t.Helper()
	for _, look := range []func() error{l.isWell, l.handsLast, l.wordsLast, l.figuresHold, l.paymentsHold, l.runsLast, l.linksHold, l.cursorsGoOn} {
		var err error
		// What is told and counted follows what is written.
		if !testwait.Comes(func() bool { err = look(); return err == nil || errors.Is(err, errNever) }) || err != nil {
			l.fail("%v", err)
		}
	}
	if l.n%10 == 9 {
		l.search()
	}
}

// errNever is what no waiting mends.
var errNever = errors.New("it is so")

func never(format string, args ...any) error {
	return errors.Join(fmt.Errorf(format, args...), errNever)
}

// isWell looks at what tapin says of itself, at its logs and its files.
func (l *lives) isWell() error {
	got, err := l.try("agent", "GET", "/health", nil, "")
	if err != nil || got.text("status") != "ok" || len(list(got.body["troubles"])) > 0 {
		return fmt.Errorf("/health says %d %v, %w", got.code, got.body, err)
	}
	for _, name := range []string{"daemon.log", "sidecar.log"} {
		raw, _ := os.ReadFile(filepath.Join(l.home, "logs", name))
		from := l.from(name, int64(len(raw)))
		for _, word := range []string{"panic", "DATA RACE", "fatal error", "nil map", "goroutine "} {
			if i := bytes.Index(raw[from:], []byte(word)); i >= 0 {
				return never("%s has %q: %.2000s", name, word, raw[int(from)+max(0, i-200):])
			}
		}
		l.scanned[name] = int64(len(raw))
	}
	if found := l.crashes(); len(found) > 0 {
		return never("there are crash reports: %v", found)
	}
	return l.whole(true)
}

// from is where the reading of a log goes on.
func (l *lives) from(name string, size int64) int64 {
	if from := l.scanned[name]; from <= size {
		return from
	}
	return 0
}

// handsLast compares the hand-offs with what was answered: each has one
// beginning and, once it is over, one end, told once.
func (l *lives) handsLast() error {
	got, err := l.gets("agent", "GET", "/handoffs?limit=50", nil)
	if err != nil {
		return err
	}
	seen, tasks, taken := map[string]bool{}, map[string]string{}, 0
	for _, h := range list(got.body["handoffs"]) {
		one := answer{200, h}
		id, task := one.text("handoff_id"), one.text("task")
		if one.text("started_by") == "owner" {
			taken++
		} else if !l.tried[task] {
			return never("nobody has asked for %s, %q", id, task)
		} else if tasks[task] != "" {
			return never("%s and %s are one hand-off, %q", id, tasks[task], task)
		}
		tasks[task], seen[id] = id, true
		if err := l.note(one); err != nil {
			return errors.Join(err, errNever)
		}
	}
	if taken > l.taken {
		return never("%d takeovers, and %d were asked for", taken, l.taken)
	}
	for id, h := range l.hands {
		if h.judged {
			continue
		}
		if !seen[id] {
			return never("%s was answered, and is lost: %+v", id, *h)
		}
		if err := l.toldOnce(h); err != nil {
			return err
		}
		h.judged = h.status != "RUNNING"
	}
	return nil
}

// toldOnce looks at what the feed was told of a hand-off, as its own log has it
// and as the feed has it.
func (l *lives) toldOnce(h *hand) error {
	ends := map[string]int{}
	for _, files := range []string{"handoffs/" + h.id + "/events.jsonl", "events/*.jsonl"} {
		told := map[string]int{}
		found, _ := filepath.Glob(filepath.Join(l.home, files))
		for _, file := range found {
			raw, _ := os.ReadFile(file)
			for line := range bytes.Lines(raw) {
				var e struct {
					Type, ID string
					Event    struct{ Type, ID string }
				}
				_ = json.Unmarshal(line, &e)
				if e.ID == h.id || e.Event.ID == h.id {
					told[e.Type+e.Event.Type]++
				}
			}
		}
		over := 0
		for _, how := range []string{"finished", "cancelled", "timed_out"} {
			over += told["handoff."+how]
		}
		if told["handoff.started"] > 1 || over > 1 {
			return never("%s, %s: told %v", h.id, files, told)
		}
		if want := h.status != "RUNNING"; told["handoff.started"] != 1 || (over == 1) != want || want && told["handoff."+strings.ToLower(h.status)] != 1 {
			return fmt.Errorf("%s is %s; %s tell %v", h.id, h.status, files, told)
		}
		ends[files] = over
	}
	return nil
}

// wordsLast looks whether what the owner said came to the agent, once and in order.
func (l *lives) wordsLast() error {
	if pending := l.bot.Pending(); pending != "" {
		return fmt.Errorf("the chat waits for %s", pending)
	}
	got, err := l.gets("agent", "GET", fmt.Sprintf("/inbox?after=%d", l.inbox), nil)
	if err != nil {
		return err
	}
	for _, m := range list(got.body["messages"]) {
		seq, _ := m["seq"].(float64)
		if m["kind"] == "message" {
			if l.heard == len(l.notes) || m["text"] != l.notes[l.heard] {
				return never("the agent reads %q; %d were read of %q", m["text"], l.heard, l.notes)
			}
			l.heard++
		}
		if int(seq) <= l.inbox {
			return never("message %v came after %d", seq, l.inbox)
		}
		l.inbox = int(seq)
	}
	if l.heard != len(l.notes) {
		return fmt.Errorf("the agent has read %d of %d: %q is missing", l.heard, len(l.notes), l.notes[l.heard])
	}
	return nil
}

// figuresHold compares the figures with what was played. Those of days that are
// still to come are not told.
func (l *lives) figuresHold() error {
	if l.days < l.latest {
		return nil
	}
	got, err := l.gets("owner", "GET", "/analytics?days=90", nil)
	if err != nil {
		return err
	}
	want := map[string]int{"asked": 0, "running": 0, "unblocked": 0, "expired": 0, "aborted": 0, "abandoned": 0, "lost": 0}
	reasons, taken := map[string]int{}, 0
	for _, h := range l.hands {
		switch {
		case !h.owner:
			want["asked"]++
			want[h.figure()]++
			reasons[h.reason]++
		case h.status != "RUNNING":
			taken++
		}
	}
	of, _ := got.body["handoffs"].(map[string]any)
	for name, n := range want {
		if of[name] != float64(n) {
			return fmt.Errorf("the figures say %v, and there were %v", of, want)
		}
	}
	for _, r := range list(got.body["reasons"]) {
		if name, _ := r["reason"].(string); r["asked"] != float64(reasons[name]) {
			return fmt.Errorf("of %s there were %d, and the figures say %v", name, reasons[name], r)
		}
	}
	if got.body["takeovers"] != float64(taken) {
		return fmt.Errorf("%d were taken over, and the figures say %v", taken, got.body["takeovers"])
	}
	return nil
}

// paymentsHold compares the grants with the shop's own books.
func (l *lives) paymentsHold() error {
	for id, round := range l.payments {
		got, err := l.gets("agent", "GET", "/approval/"+id, nil)
		if err != nil {
			return err
		}
		switch paid, status, outcome := l.shop.payments(round), got.text("status"), got.text("outcome"); {
		case paid > 1:
			return never("%s paid %d times", id, paid)
		case paid == 1 && status != "used":
			return never("%s is %s, and was paid", id, status)
		case status == "used" && paid == 0 && outcome == "confirmed":
			return never("%s is called paid, and was not", id)
		case status == "used" && outcome == "":
			return fmt.Errorf("nobody says what became of %s", id)
		case status != "pending" && status != "approved":
			delete(l.payments, id)
		}
	}
	return nil
}

func (l *lives) runsLast() error {
	for id, status := range l.runs {
		got, err := l.gets("agent", "GET", "/task-run/"+id, nil)
		if err != nil {
			return errors.Join(err, errNever)
		}
		if now := got.text("status"); status != "RUNNING" && now != status {
			return never("the run %s was answered as %s, and is %s", id, status, now)
		} else if now != "RUNNING" {
			delete(l.runs, id)
		}
	}
	return nil
}

// linksHold knocks with links that are ended.
func (l *lives) linksHold() error {
	if len(l.revoked) == 0 {
		return nil
	}
	public, err := l.gets("owner", "GET", "/public", nil)
	if err != nil {
		return err
	}
	base, err := url.Parse(public.text("local"))
	if err != nil {
		return err
	}
	for id, open := range l.revoked {
		at, err := url.Parse(open)
		if err != nil {
			return err
		}
		at.Host = base.Host
		code, _, err := l.claims(at.String())
		if err != nil {
			return err
		}
		if code == http.StatusOK {
			return never("the link %s lets in, and was ended", id)
		}
		delete(l.revoked, id)
	}
	return nil
}

// cursorsGoOn looks at how far others were read, which only ever grows.
func (l *lives) cursorsGoOn() error {
	for _, file := range []string{"telegram/cursor.json", "telegram/progress.json", "wakes/cursor.json", "inbox/state.json"} {
		raw, err := os.ReadFile(filepath.Join(l.home, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for name, value := range decoded(raw) {
			n, ok := value.(float64)
			if !ok {
				continue
			}
			if before := l.cursors[file+" "+name]; int64(n) < before {
				return never("%s: %s went from %d back to %d", file, name, before, int64(n))
			}
			l.cursors[file+" "+name] = int64(n)
		}
	}
	return nil
}

// search looks for what was typed, and for the tokens, in every file.
func (l *lives) search() {
	l.t.Helper()
	words := []string{canary}
	for _, who := range []string{"agent", "owner"} {
		token, err := os.ReadFile(filepath.Join(l.home, who+".token"))
		if err != nil {
			l.fail("%v", err)
		}
		words = append(words, strings.TrimSpace(string(token)))
	}
	_ = filepath.WalkDir(l.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".token") || strings.HasPrefix(path, filepath.Join(l.home, "run")+"/") {
			return nil //nolint:nilerr // it went away meanwhile
		}
		raw, _ := os.ReadFile(path)
		for i, word := range words {
			if bytes.Contains(raw, []byte(word)) {
				l.fail("secret %d is in %s", i, path)
			}
		}
		return nil
	})
}

// account looks at the whole life, and has the figures counted anew.
func (l *lives) account() {
	l.t.Helper()
	if err := l.settle(); err != nil {
		l.fail("%v", err)
	}
	l.judge()
	l.search()
	found := map[string]bool{}
	for _, h := range l.all("/handoffs", "handoffs") {
		found[h["handoff_id"].(string)] = true
	}
	for id := range l.hands {
		if !found[id] {
			l.fail("%s is lost", id)
		}
	}
	if len(found) != len(l.hands) {
		l.fail("there are %d hand-offs, and %d were answered", len(found), len(l.hands))
	}
	saved := l.must("owner", "GET", "/analytics?days=90", nil)
	l.down()
	if err := os.Remove(filepath.Join(l.home, "figures.json")); err != nil {
		l.fail("%v", err)
	}
	l.start()
	l.recovered()
	delete(saved.body, "logins") // are not in that file, and the session that just ended may have saved one
	var anew answer
	if !testwait.Comes(func() bool {
		anew = l.must("owner", "GET", "/analytics?days=90", nil)
		delete(anew.body, "logins")
		return maps.EqualFunc(saved.body, anew.body, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
	}) {
		for name, before := range saved.body {
			if now := anew.body[name]; fmt.Sprint(before) != fmt.Sprint(now) {
				l.t.Errorf("the figures' %s were %v, and counted anew they are %v", name, before, now)
			}
		}
		l.fail("the figures, counted anew, are others")
	}
}
