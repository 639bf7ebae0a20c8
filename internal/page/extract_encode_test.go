package page

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Whatever stands in a table, its rows are valid JSON within the limit, nothing
// of a row is lost, and only rows at the end are left out.
func TestRowsAreWholeWhateverIsInThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.StringN(0, 20, -1), 1, 6)
		g := grid{Rows: rapid.SliceOfN(cells, 1, 30).Draw(t, "rows")}
		if rapid.Bool().Draw(t, "header") {
			g.Names = rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "a 2", "2", "column 1", "__proto__", "\u2028\"<"}), 1, 6).Draw(t, "names")
		}
		most := rapid.IntRange(leastChars, 2000).Draw(t, "most")
		raw, cut, err := g.encode(most)
		if err != nil {
			t.Fatal(err)
		}
		var rows []json.RawMessage
		if err := json.Unmarshal(raw, &rows); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if n := utf8.RuneCount(raw); n > most && len(rows) > 1 || cut != (len(rows) < len(g.Rows)) || len(rows) == 0 {
			t.Fatalf("%d rows of %d in %d characters, cut %v", len(rows), len(g.Rows), n, cut)
		}
		for i, raw := range rows {
			var values []string
			if g.Names == nil {
				err = json.Unmarshal(raw, &values)
			} else {
				var object map[string]string
				err = json.Unmarshal(raw, &object)
				for _, v := range object {
					values = append(values, v)
				}
			}
			want := map[string]int{}
			for _, cell := range g.Rows[i] {
				want[cell]++
			}
			for _, v := range values {
				want[v]--
			}
			for cell, left := range want {
				if left > 0 || err != nil {
					t.Fatalf("%q is not in row %d: %s, %v", cell, i, raw, err)
				}
			}
		}
	})
}
