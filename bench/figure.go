package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tapin/bench/timing"
)

// figure is what one participant got in one row.
type figure struct {
	Median float64 `json:"median"`
	Best   float64 `json:"best,omitempty"` // the fastest round, which a busy machine disturbs least
	P95    float64 `json:"p95,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"` // to the floor of the row
	Rounds int     `json:"rounds,omitempty"`
}

// The ways a target can end.
const (
	met     = "met"
	missed  = "MISSED"
	bounded = "bounded" // nobody reaches it
)

// verdict is one target of a row and what came of it.
type verdict struct {
	What   string  `json:"what"`
	Got    float64 `json:"got"`
	Limit  float64 `json:"limit"`
	Least  bool    `json:"least,omitempty"` // the limit is the least that will do
	Result string  `json:"result"`
	Why    string  `json:"why,omitempty"`
}

// atMost judges a figure that must not be larger.
func atMost(what string, got, limit float64) verdict {
	v := verdict{What: what, Got: got, Limit: limit, Result: met}
	if !(got <= limit) {
		v.Result = missed
	}
	return v
}

// atLeast judges a figure that must not be smaller.
func atLeast(what string, got, limit float64) verdict {
	v := verdict{What: what, Got: got, Limit: limit, Least: true, Result: met}
	if !(got >= limit) {
		v.Result = missed
	}
	return v
}

func (v verdict) String() string {
	sign := "≤"
	if v.Least {
		sign = "≥"
	}
	return fmt.Sprintf("%s %s, wanted %s %s: %s", v.What, brief(v.Got), sign, brief(v.Limit), v.Result)
}

// row is one line of the table.
type row struct {
	Group    string            `json:"group"`
	Name     string            `json:"name"`
	Unit     string            `json:"unit"`
	Floor    string            `json:"floor,omitempty"` // what ratios are to
	Figures  map[string]figure `json:"figures,omitempty"`
	Verdicts []verdict         `json:"verdicts,omitempty"`
	Listed   bool              `json:"listed"` // the target table has it
	Note     string            `json:"note,omitempty"`
	Played   int               `json:"played,omitempty"`   // rounds
	Left     int               `json:"left_out,omitempty"` // those of them that do not count
}

// rounds are how long everybody took.
type rounds = timing.Rounds[time.Duration]

// from fills in what came of the rounds; floor is whom the others are compared with.
func (r row) from(played *rounds, floor string) row {
	r.Figures = figuresOf(played.Counted(), floor)
	r.Played, r.Left = played.Played()
	return r
}

// figuresOf condenses durations; floor is whom the others are compared with.
func figuresOf(took map[string][]time.Duration, floor string) map[string]figure {
	figures := map[string]figure{}
	base := 0.0
	if len(took[floor]) > 0 {
		base = ms(timing.Quantile(took[floor], 0.5))
	}
	for who, all := range took {
		if len(all) == 0 {
			continue
		}
		f := figure{Median: ms(timing.Quantile(all, 0.5)), Best: ms(slices.Min(all)), P95: ms(timing.Quantile(all, 0.95)), Rounds: len(all)}
		if base > 0 {
			f.Ratio = f.Median / base
		}
		figures[who] = f
	}
	return figures
}

func ms(d time.Duration) float64 { return timing.Milliseconds(d) }

// brief is a figure with as many digits as it deserves.
func brief(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
