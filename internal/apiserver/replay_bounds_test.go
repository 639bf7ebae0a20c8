package apiserver

import (
	"crypto/sha256"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/fault"
)

func TestKeysAreForgottenAfterADayAndNeverTooMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &replays{entries: map[replayKey]*replay{}}
		digest := sha256.Sum256(nil)
		claim := func(key string) (*replay, bool) {
			t.Helper()
			e, first, err := p.claim(replayKey{"agent", key}, digest)
			if err != nil {
				t.Fatal(err)
			}
			return e, first
		}
		e, first := claim("k")
		if !first {
			t.Fatal("a new key is not new")
		}
		p.settle(replayKey{"agent", "k"}, e, "ses_1", nil, false)
		time.Sleep(replayAge - time.Second)
		if e, first := claim("k"); first || e.result != "ses_1" {
			t.Fatal("the key was forgotten within a day")
		}
		time.Sleep(time.Second)
		if _, first := claim("k"); !first {
			t.Fatal("the key was not forgotten after a day")
		}
		for i := range maxReplays - 1 { // all under way, and k too
			claim(strconv.Itoa(i))
		}
		if _, _, err := p.claim(replayKey{"agent", "more"}, digest); !errors.Is(err, fault.Busy) {
			t.Fatalf("got %v", err)
		}
		p.settle(replayKey{"agent", "5"}, p.entries[replayKey{"agent", "5"}], "ses_2", nil, false)
		if _, first := claim("more"); !first || len(p.entries) != maxReplays || p.entries[replayKey{"agent", "5"}] != nil {
			t.Fatalf("%d entries", len(p.entries))
		}
	})
}
