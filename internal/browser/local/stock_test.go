package local

import (
	"testing"
	"testing/synctest"
	"time"
)

// making is a room that keeps browsers and is making one.
func making(t *testing.T) *spares {
	t.Helper()
	s := &spares{}
	s.keep(Stock{Follow: time.Minute, Vacant: true})
	if _, _, begun := s.begin(); !begun {
		t.Fatal("none is being made")
	}
	return s
}

func TestOneThatTakesTooLongIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := making(t), time.Now()
		if inst := s.pop(t.Context()); inst != nil {
			t.Error("it was given one that is not made yet")
		}
		if waited := time.Since(began); waited != spareAwaited {
			t.Errorf("it waited for %s", waited)
		}
		late := &instance{}
		if s.put(late) {
			t.Error("it was given to somebody who waits no longer")
		}
		if s.pop(t.Context()) != late {
			t.Error("who came next was not given it")
		}
	})
}

func TestWhoWaitsForOneThatCannotBeMadeIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := making(t), time.Now()
		go func() {
			time.Sleep(time.Second)
			s.put(nil)
		}()
		if inst := s.pop(t.Context()); inst != nil || time.Since(began) != time.Second {
			t.Errorf("%v was given after %s", inst, time.Since(began))
		}
	})
}

func TestOneThatComesAsNobodyWaitsAnyLongerIsForOthers(t *testing.T) {
	s, made := making(t), &instance{}
	_, coming := s.claim()
	if !s.put(made) {
		t.Fatal("who waits was not given it")
	}
	if left := s.waive(coming); left != nil || len(s.ready) != 1 || s.ready[0] != made {
		t.Errorf("%v is left over, %v are ready", left, s.ready)
	}
	// Where none are kept any longer there is nobody to leave it to.
	s = making(t)
	_, coming = s.claim()
	s.put(made)
	s.news = nil
	if left := s.waive(coming); left != made || len(s.ready) != 0 {
		t.Errorf("%v is left over, %v are ready", left, s.ready)
	}
}
