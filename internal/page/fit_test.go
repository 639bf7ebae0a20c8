package page

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	proto "github.com/chromedp/cdproto/cdp"
	"pgregory.net/rapid"
)

func TestAnOutlineFitsAndCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) outlineLine {
			if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
				return outlineLine{More: rapid.IntRange(1, 500).Draw(t, "more")}
			}
			return outlineLine{
				Depth: rapid.IntRange(0, 6).Draw(t, "depth"), Seen: rapid.Bool().Draw(t, "seen"),
				Text: "> " + strings.Repeat("ä", rapid.IntRange(1, 60).Draw(t, "length")),
			}
		}), 0, 80).Draw(t, "lines")
		limit := rapid.IntRange(leastChars, 3000).Draw(t, "limit")
		text, truncated := fit(lines, limit)
		if utf8.RuneCountInString(text) > limit {
			t.Fatalf("%d characters, not %d", utf8.RuneCountInString(text), limit)
		}
		all, told, unseen := 0, 0, false
		for _, l := range lines {
			all += max(1, l.More)
		}
		for line := range strings.SplitSeq(text, "\n") {
			var n int
			if _, err := fmt.Sscanf(line, "… %d more", &n); err == nil {
				told += n
				unseen = true
			} else if line != "" {
				told++
			}
		}
		if told != all || truncated != unseen {
			t.Fatalf("%d of %d accounted for, truncated %v:\n%s", told, all, truncated, text)
		}
	})
}

func TestAnOutlineIsReadOnFromItsGaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lines []outlineLine
		for i := range rapid.IntRange(0, 80).Draw(t, "lines") {
			i++
			lines = append(lines, outlineLine{
				Depth: rapid.IntRange(0, 6).Draw(t, "depth"), Seen: rapid.Bool().Draw(t, "seen"),
				Text: fmt.Sprintf("> %d %s", i, strings.Repeat("ä", rapid.IntRange(1, 60).Draw(t, "length"))),
			})
		}
		limit := rapid.IntRange(3*leastChars, 3000).Draw(t, "limit")
		seen := map[int]bool{}
		for todo := []int{0}; len(todo) > 0; {
			offset := todo[0]
			todo = todo[1:]
			text, truncated := fitFrom(lines, limit, offset)
			if utf8.RuneCountInString(text) > limit {
				t.Fatalf("%d characters, not %d", utf8.RuneCountInString(text), limit)
			}
			gaps := 0
			for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
				var n, at int
				if _, err := fmt.Sscanf(line, "… %d more (offset %d)", &n, &at); err == nil {
					gaps++
					if seen[at] {
						continue
					}
					for i := at; i < at+n; i++ {
						if i > len(lines) || i < offset {
							t.Fatalf("a gap of %d at %d in %d lines", n, at, len(lines))
						}
					}
					todo = append(todo, at)
				} else if _, err := fmt.Sscanf(strings.TrimSpace(line), "> %d", &n); err == nil {
					seen[n] = true
				}
			}
			if truncated != (gaps > 0) || offset > 0 && offset <= len(lines) && !strings.Contains(text, fmt.Sprintf("> %d ", offset)) {
				t.Fatalf("from %d, truncated %v:\n%s", offset, truncated, text)
			}
		}
		if len(seen) != len(lines) {
			t.Fatalf("%d of %d lines were reached", len(seen), len(lines))
		}
	})
}

func TestANumberIsNeverGivenTwice(t *testing.T) {
	t.Parallel()
	r := newRefs()
	main, child := proto.FrameID("main"), proto.FrameID("child")
	if r.from(main, false) != 1 || r.from(child, false) != 1 {
		t.Fatal("a new tab does not begin at 1")
	}
	r.given(main, 12)
	r.given(main, 7)
	if got := r.from(main, false); got != 13 {
		t.Errorf("the next document begins at %d", got)
	}
	if got := r.from("of an earlier client", true); got < 10_000 {
		t.Errorf("where others may have given numbers, it begins at %d", got)
	}
	r.forget([]frame{{id: main}})
	if len(r.next) != 1 || r.from(main, false) != 13 {
		t.Errorf("of the frames that are gone remains %v", r.next)
	}
}

// A new process gives the worlds of its documents the same numbers again.
func TestAWorldIsEquippedInItsOwnDocumentOnly(t *testing.T) {
	t.Parallel()
	f := &frames{main: "main", all: map[proto.FrameID]*frame{}}
	enter := func() frame {
		of, _ := f.get("main")
		asked, _ := f.entering(of)
		f.entered(of, asked, 7)
		of, _ = f.get("main")
		return of
	}
	f.put("main", "", nil)
	before := enter()
	f.put("main", "", nil)
	f.equipped(before, hands) // the engine was on its way when the page moved on
	if after := enter(); before.world != 7 || after.world != 7 || f.equipment(after) != core {
		t.Error("what was sent to the document before counts as sent to this one")
	}
	f.equipped(enter(), eyes)
	if after, _ := f.get("main"); f.equipment(after) != eyes {
		t.Error("a document that has a part of the engine is not known to have it")
	}
}

func FuzzParseRef(f *testing.F) {
	for _, ref := range []string{"e1", "f2e7", "[e12]", "f1e1", "fe", "e-1", "e", "", "f99999999999999999999e1", "e1e2"} {
		f.Add(ref)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		no, n, ok := parseRef(ref)
		if !ok {
			return
		}
		said := fmt.Sprintf("e%d", n)
		if no > 1 {
			said = fmt.Sprintf("f%de%d", no, n)
		}
		if again, m, ok := parseRef(said); !ok || again != no || m != n || n < 1 || no < 1 {
			t.Errorf("%q is %s, which is %d, %d, %v", ref, said, again, m, ok)
		}
	})
}
