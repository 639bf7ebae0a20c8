package trouble_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/trouble"
)

func TestTheListSaysWhatIsWrongNowAndSinceWhen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b trouble.Board
		if got := b.List(); len(got) != 0 {
			t.Fatalf("a new board lists %v", got)
		}
		began := time.Now().UTC()
		b.Set("room figures", trouble.Trouble{What: "figures", State: trouble.Restarting})
		time.Sleep(time.Minute)
		b.Set("file x", trouble.Trouble{What: "login", State: trouble.Unreadable})
		b.Set("room figures", trouble.Trouble{What: "figures", State: trouble.Restarting, Details: "again"})
		got := b.List()
		if len(got) != 2 || got[0].What != "figures" || got[0].Details != "again" || !got[0].Since.Equal(began) {
			t.Fatalf("got %+v, want the figures first, since %v", got, began)
		}
		b.Set("room figures", trouble.Trouble{What: "figures", State: trouble.GivenUp})
		if got := b.List(); got[1].State != trouble.GivenUp && got[0].State != trouble.GivenUp || len(got) != 2 {
			t.Fatalf("a new state does not replace the one before: %+v", got)
		}
		b.Clear("room figures")
		b.Clear("room figures")
		if got := b.List(); len(got) != 1 || got[0].What != "login" {
			t.Fatalf("got %+v after the figures are well again", got)
		}
	})
}
