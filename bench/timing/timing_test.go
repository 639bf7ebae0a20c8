package timing

import (
	"slices"
	"testing"
	"time"
)

func TestOnlyRoundsOfACalmMachineCount(t *testing.T) {
	for _, each := range []struct {
		name string
		held []float64 // in each round
		want []int     // the rounds that count
	}{
		{"calm all the time", []float64{0, 0.01, 0.02}, []int{0, 1, 2}},
		{"mostly", []float64{0, 0.5, 0, 0, 0.03}, []int{0, 2, 3}},
		{"hardly ever: the calmer half", []float64{0.9, 0, 0.7, 0.2, 0.8}, []int{1, 3, 2}},
		{"never, and always alike", []float64{0.3, 0.3, 0.3, 0.3}, []int{0, 1}},
		{"one round", []float64{0.4}, []int{0}},
		{"none", nil, nil},
	} {
		var r Rounds[int]
		for i, held := range each.held {
			r.all = append(r.all, round[int]{got: map[string][]int{"one": {i}, "other": {i, i}}, held: held})
		}
		got := r.Counted()
		if !slices.Equal(got["one"], each.want) || len(got["other"]) != 2*len(each.want) {
			t.Errorf("%s: counted %v, want %v", each.name, got, each.want)
		}
		if all, left := r.Played(); all != len(each.held) || left != len(each.held)-len(each.want) {
			t.Errorf("%s: %d rounds, %d left out", each.name, all, left)
		}
	}
}

func TestARoundIsWhatWasGotInIt(t *testing.T) {
	var r Rounds[float64]
	for i := range 3 {
		r.Begin()
		if i > 0 { // in the first one nobody gets anything
			r.Add("one", float64(i))
			r.Add("one", float64(10*i))
		}
		r.End()
	}
	if all, _ := r.Played(); all != 2 || len(r.all[1].got["one"]) != 2 || r.all[1].got["one"][1] != 20 {
		t.Errorf("%d rounds: %v", all, r.all)
	}
}

func TestQuantileLiesBetween(t *testing.T) {
	all := []time.Duration{40, 10, 30, 20}
	for q, want := range map[float64]time.Duration{0: 10, 0.5: 25, 1: 40} {
		if got := Quantile(all, q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
	if all[0] != 40 {
		t.Error("what was given is in another order now")
	}
	if got := Quantile([]float64{2}, 0.95); got != 2 {
		t.Errorf("of one it is %v", got)
	}
}

func TestTicksGrow(t *testing.T) {
	then := Now()
	if then.All == 0 {
		t.Skip("this system does not tell")
	}
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; { // short: it only passes time
	}
	if now := Since(then); now.All < 1 || now.Busy+now.Held < 1 || now.Busy+now.Held > now.All {
		t.Errorf("after 50 ms of work: %+v", now)
	}
}

func TestTurnsAreSpreadOverABeat(t *testing.T) {
	for turns := 2; turns < 100; turns++ {
		var phases []time.Duration
		for n := range turns {
			phases = append(phases, phase(n))
		}
		slices.Sort(phases)
		for i, at := range append(phases, beat)[1:] {
			if gap := at - phases[i]; gap > 2*beat/time.Duration(turns) {
				t.Fatalf("of %d turns none begins for %s of %s", turns, gap, beat)
			}
		}
	}
}
