package timing

import (
	"slices"
	"testing"
	"time"
)

func of(held ...int) *Turns[int] {
	t := &Turns[int]{}
	for i, h := range held {
		t.all = append(t.all, turn[int]{i, h})
	}
	return t
}

func TestOnlyTurnsThatNothingHeldUpCount(t *testing.T) {
	for _, each := range []struct {
		name string
		held []int
		want []int
	}{
		{"none held up", []int{0, 0, 0}, []int{0, 1, 2}},
		{"a few", []int{0, 5, 0, 0, 1}, []int{0, 2, 3}},
		{"most: the half in which least was", []int{9, 0, 7, 2, 8}, []int{1, 3, 2}},
		{"all alike", []int{3, 3, 3, 3}, []int{0, 1}},
		{"one", []int{4}, []int{0}},
		{"nothing measured", nil, nil},
	} {
		turns := of(each.held...)
		if got := turns.Counted(); !slices.Equal(got, each.want) || turns.Left() != len(each.held)-len(each.want) {
			t.Errorf("%s: counted %v, %d left out; want %v", each.name, got, turns.Left(), each.want)
		}
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
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; { //nolint:revive // something to do
	}
	if now := Since(then); now.All < 1 || now.Busy+now.Held < 1 || now.Busy+now.Held > now.All {
		t.Errorf("after 50 ms of work: %+v", now)
	}
}
