package page

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/browser"
	"tapin/internal/secret"
)

// TestOriginsReadTogetherReadAsOneByOne: however large they are, however little
// may be read, and whichever are too slow in company.
func TestOriginsReadTogetherReadAsOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 40), 0, 4), 1, atOnce).Draw(t, "parts")
		budget := rapid.IntRange(0, 200).Draw(t, "budget")
		shy := rapid.SliceOfN(rapid.IntRange(0, 3), len(sizes), len(sizes)).Draw(t, "shy")
		// read takes what fits, in order, as the script in the page does.
		read := func(i, budget int) originRead {
			got := originRead{origin: fmt.Sprint(i)}
			for n, size := range sizes[i] {
				if size > budget {
					got.left = append(got.left, fmt.Sprintf("%d: part %d is too large", i, n))
					continue
				}
				budget -= size
				got.state.Local = append(got.state.Local, browser.Item{Key: secret.New(""), Value: secret.New(fmt.Sprintf("%*d", size, n)[:size])})
			}
			return got
		}
		var want []originRead
		left := budget
		for i := range sizes {
			got := read(i, left)
			if shy[i] == 3 {
				got = originRead{origin: fmt.Sprint(i), err: errBroken}
			} else {
				left -= stateBytes(got.state)
			}
			want = append(want, got)
		}
		came := make([]atomic.Int32, len(sizes))
		origins := make([]string, len(sizes))
		got, rest := together(origins, budget, func(i, budget int) originRead {
			switch first := came[i].Add(1) == 1; {
			case shy[i] == 3:
				return originRead{origin: fmt.Sprint(i), err: errBroken}
			case shy[i] == 1 && first:
				return originRead{origin: fmt.Sprint(i), err: errors.New("no time")}
			case shy[i] == 2 && first:
				return originRead{origin: fmt.Sprint(i), left: []string{"localStorage: " + reason("slow")}}
			}
			return read(i, budget)
		}, func(error) bool { return false })
		same := cmp.AllowUnexported(originRead{}, secret.Text{})
		if diff := cmp.Diff(want, got, same, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" || rest != left {
			t.Errorf("%d is left and not %d; %s", rest, left, diff)
		}
	})
}

var errBroken = errors.New("it cannot be read")
