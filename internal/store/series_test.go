package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestASeriesIsReadFromItsEndAndForgottenFromItsBeginning(t *testing.T) {
	t.Parallel()
	const size = 4
	rapid.Check(t, func(rt *rapid.T) {
		h, err := Open(t.TempDir(), nil)
		must(t, err)
		defer h.Close()
		s, err := h.openSeries("list", size)
		must(t, err)
		var model []Entry // oldest first
		last := uint64(0)
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			for range rapid.SampledFrom([]int{0, 1, 2, size - 1, size, size + 1}).Draw(rt, "appended") {
				last++
				e, err := s.Append(fmt.Sprintf("id%d", last), time.Unix(int64(last), 0))
				must(t, err)
				if e.Seq != last {
					rt.Fatalf("got number %d, want %d", e.Seq, last)
				}
				model = append(model, e)
			}
			if rapid.Bool().Draw(rt, "drops") {
				oldest, droppable, err := s.Oldest()
				must(t, err)
				must(t, s.DropOldest())
				if droppable {
					model = model[len(oldest):]
				}
			}
			if rapid.Bool().Draw(rt, "reopens") {
				must(t, s.Close())
				s, err = h.openSeries("list", size)
				must(t, err)
			}
			before := uint64(rapid.IntRange(0, int(last)+3).Draw(rt, "before"))
			limit := rapid.SampledFrom([]int{1, 3, 5, 100}).Draw(rt, "limit")
			got, err := s.Before(before, limit)
			must(t, err)
			var want []Entry
			for i := len(model) - 1; i >= 0 && len(want) < limit; i-- {
				if before == 0 || model[i].Seq < before {
					want = append(want, model[i])
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatal(diff)
			}
			got, err = s.After(before, limit)
			must(t, err)
			want = nil
			for _, e := range model {
				if e.Seq > before && len(want) < limit {
					want = append(want, e)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatal(diff)
			}
		}
		must(t, s.Close())
	})
}

// What a power cut or a bad disk leaves at the end of the newest file gives no number twice.
func TestASeriesGoesOnAfterItsLastWholeEntry(t *testing.T) {
	t.Parallel()
	const size = 4
	for _, tail := range []string{"", `{"n":7,"id":"id7"`, `{"n":7,"id":"id7"}`, "\x00\x00\n", "{\"n\":7}\n", "{\"n\":2,\"id\":\"id2\"}\n"} {
		h, err := Open(t.TempDir(), nil)
		must(t, err)
		defer h.Close()
		must(t, h.Write("list/000000000001.jsonl", []byte(`{"n":5,"id":"id5"}`+"\n"+`{"n":6,"id":"id6"}`+"\n"+tail)))
		s, err := h.openSeries("list", size)
		must(t, err)
		if e, err := s.Append("next", time.Unix(1, 0)); err != nil || e.Seq != 7 {
			t.Errorf("after %q: number %d, %v", tail, e.Seq, err)
		}
		must(t, s.Close())
	}
}

var errDead = errors.New("dead")

func TestAGuardedDiskChangesNothing(t *testing.T) {
	t.Parallel()
	dead := false
	h, err := Open(t.TempDir(), &Options{Guard: func(string) error {
		if dead {
			return errDead
		}
		return nil
	}})
	must(t, err)
	defer h.Close()
	must(t, h.Write("a", []byte("1")))
	log, err := h.OpenLog("log.jsonl", nil)
	must(t, err)
	defer log.Close()
	must(t, log.Append([]byte(`1`)))
	dead = true
	for what, err := range map[string]error{
		"write": h.Write("a", []byte("2")), "create": h.Create("b", nil), "remove": h.Remove("a"),
		"remove all": h.RemoveAll("a"), "append": log.Append([]byte(`2`)),
	} {
		if err != errDead { //nolint:errorlint // it is handed through as it is
			t.Errorf("%s: %v", what, err)
		}
	}
	data, err := h.Read("a")
	must(t, err)
	if size, err := log.Size(); string(data) != "1" || size != 2 || err != nil {
		t.Errorf("read %q and %d bytes of log, %v", data, size, err)
	}
}
