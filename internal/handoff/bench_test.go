package handoff

import (
	"os"
	"testing"
	"time"

	"tapin/bench/timing"
)

// BenchmarkPast compares what a page of the list and a hand-off cost in a home where
// many have been with one where few have, turn by turn. The benchmark of the whole
// program makes the homes, and names them in the environment.
func BenchmarkPast(b *testing.B) {
	var houses [2]*house
	for i, name := range []string{"TAPIN_FEW", "TAPIN_MANY"} {
		path := os.Getenv(name)
		if path == "" {
			b.Skip("no homes to compare: make bench names them")
		}
		houses[i] = benchHouse(b, path)
		defer houses[i].moveOut()
	}
	compare := func(name string, do func(i int)) {
		b.Run(name, func(b *testing.B) {
			var took timing.Rounds[time.Duration]
			for round := range b.N {
				took.Begin()
				for turn := range houses {
					i := (round + turn) % len(houses)
					began := time.Now()
					do(i)
					took.Add([]string{"few", "many"}[i], time.Since(began))
				}
				took.End()
			}
			median := func(size string) float64 { return timing.Milliseconds(timing.Quantile(took.Counted()[size], 0.5)) }
			b.ReportMetric(median("few"), "few-ms")
			b.ReportMetric(median("many"), "many-ms")
			b.ReportMetric(median("many")/median("few"), "many/few")
		})
	}
	compare("list", func(i int) {
		page, err := houses[i].List(b.Context(), Filter{})
		if err != nil || len(page.Handoffs) != 50 {
			b.Fatal(len(page.Handoffs), err)
		}
	})
	compare("start and finish", func(i int) {
		rec, err := houses[i].Start(b.Context(), StartOptions{By: Agent, Reason: Login})
		must(b, err)
		_, err = houses[i].Finish(b.Context(), Owner, rec.ID, false)
		must(b, err)
	})
}

func benchHouse(b *testing.B, path string) *house {
	b.Helper()
	h, err := moveIn(b, path, newTheatre(), &runs{}, nil, nil)
	must(b, err)
	return h
}
