package insight

import (
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tapin/internal/store"
)

// anew is how to have the same records counted without a file.
func (p *place) anew(t *testing.T) func() *Room {
	t.Helper()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	return func() *Room { return New(home, p.feed, p.archive, nil) }
}

// TestTheFiguresGoOnFromAnyFile has every end follow on every other, of the same
// site, reason and day, with the file written and read, or lost, in between.
func TestTheFiguresGoOnFromAnyFile(t *testing.T) {
	t.Parallel()
	between := map[string]func(r *Room, p *place) *Room{
		"nothing":   func(r *Room, _ *place) *Room { return r },
		"a restart": func(r *Room, p *place) *Room { r.save(); return p.room(nil) },
		"a kill":    func(_ *Room, p *place) *Room { return p.room(nil) },
	}
	for name, what := range between {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlace(t)
				r, anew := p.room(nil), p.anew(t)
				var open []string
				for _, first := range append(Ends(), "") {
					for _, second := range append(Ends(), "") {
						for _, met := range []bool{false, true} {
							for i, end := range []string{first, second} {
								id := p.came(time.Hour, "bank.example", "login", end, func(h *Handoff) {
									if met == (i == 0) {
										h.Met = time.Time{}
									}
									h.Takeover = end == Lost && met
								})
								if end == "" {
									open = append(open, id)
								}
								look(t, r, 7)
								r = what(r, p)
							}
						}
						if len(open) > 0 {
							p.change(open[0], func(h *Handoff) { h.End = second })
							if second != "" {
								open = open[1:]
							}
						}
						p.pay(func(pay *Payment) { pay.Paid, pay.Sum.Currency, pay.Sum.Minor = second == Unblocked, "EUR", 5 })
						p.tell(t, "approval.requested")
						if diff := gocmp.Diff(look(t, anew(), 7), look(t, r, 7)); diff != "" {
							t.Fatalf("%q after %q: counted anew they are others (-anew +saved):\n%s", second, first, diff)
						}
					}
				}
			})
		})
	}
}

func TestAFileThatThisProgramHasNotWrittenIsCountedAnew(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":           `null`,
		"an empty one":      `{}`,
		"no days":           `{"version":1}`,
		"a day of nothing":  `{"version":1,"handoffs":{"place":1},"days":{"2000-01-01":null}}`,
		"a day of none":     `{"version":1,"handoffs":{"place":1},"days":{"yesterday":{}}}`,
		"a count of no end": `{"version":1,"handoffs":{"place":1},"days":{"2000-01-01":{"cells":[{"site":"bank.example","reason":"login"}]}}}`,
		"a count of null":   `{"version":1,"handoffs":{"place":1},"days":{"2000-01-01":{"cells":[null]}}}`,
		"another version":   `{"version":2,"handoffs":{"place":1},"days":{}}`,
		"a list":            `[]`,
		"one of more":       `{"version":1,"handoffs":{"place":1000},"days":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if err := p.home.Write(file, []byte(text)); err != nil {
				t.Fatal(err)
			}
			p.came(0, "bank.example", "login", Aborted)
			r := p.room(nil)
			if diff := gocmp.Diff(look(t, p.anew(t)(), 7), look(t, r, 7)); diff != "" {
				t.Error(diff)
			}
			r.save()
			if diff := gocmp.Diff(look(t, r, 7), look(t, p.room(nil), 7)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTheFileOfTheFirstVersionIsUsed has what was written without the times that
// there were none of.
func TestTheFileOfTheFirstVersionIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.came(time.Hour, "bank.example", "login", Aborted, func(h *Handoff) { h.Met = time.Time{} })
		day := time.Now().UTC().Add(-time.Hour).Format(time.DateOnly)
		text := `{"version":1,"handoffs":{"place":1},"payments":{},"days":{"` + day + `":{"cells":[{"site":"bank.example","reason":"login","ends":{"aborted":1}}]}}}`
		if err := p.home.Write(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		p.came(time.Hour, "bank.example", "login", Unblocked)
		got := look(t, p.room(nil), 7).Handoffs
		if got.Aborted != 1 || got.Unblocked != 1 || got.TimeToHuman.Count != 1 || got.TimeToDone.Count != 1 {
			t.Errorf("%+v", got)
		}
		if p.read() != 1 {
			t.Errorf("%d records were read of one that is new", p.read())
		}
	})
}
