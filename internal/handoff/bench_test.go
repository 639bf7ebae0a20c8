package handoff

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tapin/bench/timing"
	"tapin/internal/event"
	"tapin/internal/store"
)

// past fills a home with hand-offs that are over, as if they had all been.
// Writing each durably would take an hour; what is on the disk is the same.
func past(b *testing.B, path string, count int) {
	b.Helper()
	home, err := store.Open(path, nil)
	must(b, err)
	archive, err := event.OpenArchive(home, nil, folder)
	must(b, err)
	rec := aRecord(func(r *Record) { r.Status, r.FinishedBy = Finished, Owner })
	must(b, archive.Write("hof_template", rec))
	meta, err := home.Read(archive.File("hof_template", "meta.json"))
	must(b, err)
	must(b, archive.Forget("hof_template"))
	list := filepath.Join(path, folder, "list")
	must(b, os.MkdirAll(list, 0o700))
	var lines []byte
	for n := range count {
		id := store.NewID("hof")
		dir := filepath.Join(path, folder, id)
		must(b, os.MkdirAll(dir, 0o700))
		must(b, os.WriteFile(filepath.Join(dir, "meta.json"), meta, 0o600))
		lines = fmt.Appendf(lines, `{"n":%d,"id":%q,"at":%q}`+"\n", n+1, id, noon.Format(time.RFC3339))
		if (n+1)%256 == 0 || n+1 == count {
			must(b, os.WriteFile(filepath.Join(list, fmt.Sprintf("%012d.jsonl", n/256)), lines, 0o600))
			lines = nil
		}
	}
	must(b, archive.Close())
	must(b, home.Close())
}

// BenchmarkPast compares what a start of the sidecar, a page of the list and a
// hand-off cost when many came before with when few did, turn by turn.
func BenchmarkPast(b *testing.B) {
	paths := [2]string{b.TempDir(), b.TempDir()}
	past(b, paths[0], 100)
	past(b, paths[1], 100_000)
	compare := func(name string, do func(i int)) {
		b.Run(name, func(b *testing.B) {
			var took timing.Rounds[time.Duration]
			for b.Loop() {
				took.Begin()
				for i, size := range []string{"few", "many"} {
					began := time.Now()
					do(i)
					took.Add(size, time.Since(began))
				}
				took.End()
			}
			median := func(size string) float64 { return float64(timing.Quantile(took.Counted()[size], 0.5)) }
			b.ReportMetric(median("many")/median("few"), "many/few")
		})
	}
	compare("open", func(i int) { benchHouse(b, paths[i]).moveOut() })
	houses := [2]*house{benchHouse(b, paths[0]), benchHouse(b, paths[1])}
	defer houses[0].moveOut()
	defer houses[1].moveOut()
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
