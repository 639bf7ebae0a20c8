package testwait_test

import (
	"testing"
	"time"

	"tapin/internal/testwait"
)

func TestPatienceEndsWhereItIsSaid(t *testing.T) {
	t.Setenv("TAPIN_TEST_WAIT", "20ms")
	began, looks := time.Now(), 0
	if testwait.Comes(func() bool { looks++; return false }) || looks < 2 || time.Since(began) < 20*time.Millisecond { // short: it must run out
		t.Errorf("after %d looks in %s", looks, time.Since(began))
	}
	for _, wrong := range []string{"", "soon", "-1s", "0"} {
		t.Setenv("TAPIN_TEST_WAIT", wrong)
		if got := testwait.Limit(); got < time.Minute { // short: nothing is waited for
			t.Errorf("%q is a limit of %s", wrong, got)
		}
	}
	looks = 0
	testwait.For(t, "the third look", func() bool { looks++; return looks == 3 })
}
