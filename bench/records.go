package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// measureRecords is what a hundred thousand past hand-offs cost, beside a hundred,
// and on the way there.
func (b *bench) measureRecords(ctx context.Context) error {
	counts := []int{100, 1000, 10_000, 100_000}
	var all []string
	for _, count := range counts {
		home, err := b.homeWith(ctx, count)
		if err != nil {
			return err
		}
		defer b.tidying.Go(func() { removeHome(home) })
		all = append(all, home)
	}
	syscall.Sync() // so that nobody waits for what was only prepared
	homes := map[string]string{"few": all[0], "many": all[len(all)-1]}
	started, err := b.startAmongRecords(ctx, homes)
	if err != nil {
		return err
	}
	b.add(recordsRow("start-up", started["many"].Ratio, started))
	got, err := b.goBench(ctx, "./internal/handoff", "Past$", b.times(100), "TAPIN_FEW="+homes["few"], "TAPIN_MANY="+homes["many"])
	if err != nil {
		return err
	}
	for _, each := range []struct{ bench, name string }{{"Past/list", "list a page"}, {"Past/start_and_finish", "start and finish a new one"}} {
		m := got[each.bench]
		if m == nil {
			return fmt.Errorf("there is no benchmark %s", each.bench)
		}
		b.add(recordsRow(each.name, m["many/few"], map[string]figure{"few": {Median: m["few-ms"]}, "many": {Median: m["many-ms"], Ratio: m["many/few"]}}))
	}
	return b.growRecords(ctx, counts, all)
}

func recordsRow(what string, ratio float64, figures map[string]figure) row {
	return row{
		Group: "records", Name: "100,000 past hand-offs: " + what, Unit: "ms", Floor: "100 past hand-offs", Listed: true,
		Figures: figures, Verdicts: []verdict{atMost("to 100 past hand-offs", ratio, 1.5)},
	}
}

// startAmongRecords is how long tapin takes from the start of its process until it
// serves, in a home with few of them and in one with many.
func (b *bench) startAmongRecords(ctx context.Context, homes map[string]string) (map[string]figure, error) {
	var took rounds
	for round := range turns(2*b.rounds, 20*time.Second) {
		order := []string{"few", "many"}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		took.Begin()
		for _, who := range order {
			time.Sleep(rest)
			began := time.Now()
			s, err := startSidecarIn(ctx, homes[who], b.binary, "127.0.0.1:1")
			if err != nil {
				return nil, err
			}
			_, err = s.get(ctx, "/health")
			d := time.Since(began)
			s.end()
			if err != nil {
				return nil, err
			}
			if round > 0 {
				took.Add(who, d)
			}
		}
		took.End()
	}
	return figuresOf(took.Counted(), "few"), nil
}

// homeWith is a home in which that many hand-offs have been. One of them was; the
// others are copies of what it left.
func (b *bench) homeWith(ctx context.Context, count int) (home string, err error) {
	s, err := startSidecar(ctx, b.binary, "127.0.0.1:1")
	if err != nil {
		return "", err
	}
	id, err := s.handOffOnce(ctx)
	s.end()
	if err == nil {
		err = multiply(filepath.Join(s.home, "handoffs"), id, count)
	}
	if err != nil {
		_ = os.RemoveAll(s.home)
	}
	return s.home, err
}

// handOffOnce has a session with one hand-off in it begin and end.
func (s *sidecar) handOffOnce(ctx context.Context) (id string, err error) {
	if _, err := s.post(ctx, "/session/start", map[string]any{"screenshot": false}); err != nil {
		return "", err
	}
	if id, err = s.handOff(ctx); err != nil {
		return "", err
	}
	_, err = s.post(ctx, "/session/stop", map[string]any{})
	return id, err
}

// handOff has one hand-off begin and end.
func (s *sidecar) handOff(ctx context.Context) (id string, err error) {
	begun, err := s.post(ctx, "/handoff/start", map[string]any{"reason": "other", "instruction": "measure"})
	if err != nil {
		return "", err
	}
	id = fmt.Sprint(begun["handoff_id"])
	_, err = s.postAs(ctx, s.owner, "/handoff/"+id+"/finish", map[string]any{})
	return id, err
}

// multiply makes that many of the one hand-off in a folder. Its files are shared among
// the copies, as far as a disk lets so many names share one: new ones take minutes.
func multiply(folder, id string, count int) error {
	const (
		listed = 256    // in a file of the list
		shared = 50_000 // names of one file
	)
	entry, err := os.ReadFile(filepath.Join(folder, "list", fmt.Sprintf("%012d.jsonl", 0))) //nolint:gosec // a folder of our own
	if err != nil {
		return err
	}
	from := filepath.Join(folder, id)
	var list []byte
	for n := range count {
		copied := id
		if n > 0 {
			copied = fmt.Sprintf("%s%08d", id[:len(id)-8], n)
			to := filepath.Join(folder, copied)
			if n%shared == 0 {
				err, from = os.CopyFS(to, os.DirFS(from)), to
			} else {
				err = linkAll(from, to)
			}
			if err != nil {
				return err
			}
		}
		line := bytes.Replace(entry, []byte(`"n":1,`), fmt.Appendf(nil, `"n":%d,`, n+1), 1)
		list = append(list, bytes.ReplaceAll(line, []byte(id), []byte(copied))...)
		if (n+1)%listed == 0 || n+1 == count {
			if err := os.WriteFile(filepath.Join(folder, "list", fmt.Sprintf("%012d.jsonl", n/listed)), list, 0o600); err != nil { //nolint:gosec // a folder of our own
				return err
			}
			list = nil
		}
	}
	return nil
}

// recordFiles are what a record has.
var recordFiles = []string{"meta.json", "events.jsonl"}

// removeHome removes a home with its records. What they have is known: to look into
// each of so many takes more than twice as long.
func removeHome(home string) {
	records := filepath.Join(home, "handoffs")
	found, _ := os.ReadDir(records)
	for _, each := range found {
		record := filepath.Join(records, each.Name())
		for _, name := range recordFiles {
			_ = os.Remove(filepath.Join(record, name))
		}
		_ = os.Remove(record)
	}
	_ = os.RemoveAll(home)
}

// linkAll gives what a record has a second name.
func linkAll(from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, name := range recordFiles {
		if err := os.Link(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
