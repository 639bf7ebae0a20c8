package handoff

import (
	"testing"
	"time"

	"tapin/internal/page"
)

func TestAWordThatIsHeardTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	rec := h.begin(StartOptions{Timeout: 10 * time.Minute, Verify: []page.Condition{{URL: "/home"}}})
	once, other := Once(t.Context(), "message 1"), Once(t.Context(), "message 2")
	first, err := h.Extend(once, Owner, rec.ID, 5*time.Minute)
	must(t, err)
	again, err := h.Extend(once, Owner, rec.ID, 5*time.Minute)
	must(t, err)
	if !again.Deadline.Equal(first.Deadline) || !first.Deadline.After(rec.Deadline) || again.Version != first.Version {
		t.Errorf("%v became %v and then %v", rec.Deadline, first.Deadline, again.Deadline)
	}
	more, err := h.Extend(other, Owner, rec.ID, 5*time.Minute)
	must(t, err)
	if !more.Deadline.After(first.Deadline) {
		t.Error("another word was not heard")
	}
	done := Once(t.Context(), "message 3")
	for range 2 {
		got, err := h.Finish(done, Owner, rec.ID, false)
		must(t, err)
		if got.Status != Running || got.Attempts != 2 {
			t.Errorf("a done that did not hold: %s, %d attempts", got.Status, got.Attempts)
		}
	}
	h.stage.loggedIn()
	ended, err := h.Finish(Once(t.Context(), "message 4"), Owner, rec.ID, false)
	must(t, err)
	late, err := h.Extend(once, Owner, rec.ID, 5*time.Minute)
	must(t, err)
	if ended.Status != Finished || late.Version != ended.Version {
		t.Errorf("%+v", late)
	}
}
