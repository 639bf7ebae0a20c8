package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALockExcludesWithinAHomeAndAcrossHomes(t *testing.T) {
	t.Parallel()
	a := openHome(t)
	b, err := Open(a.Path(), nil)
	must(t, err)
	defer b.Close()

	var inside, n atomic.Int32
	var wg sync.WaitGroup
	for _, h := range []*Home{a, a, b, b} {
		wg.Go(func() {
			for range 20 {
				unlock, err := h.Lock(t.Context(), "x")
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two hold the lock")
				}
				n.Add(1)
				inside.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	if n.Load() != 80 {
		t.Errorf("locked %d times", n.Load())
	}
}

func TestTryLockDoesNotWait(t *testing.T) {
	t.Parallel()
	a := openHome(t)
	b, err := Open(a.Path(), nil)
	must(t, err)
	defer b.Close()

	if pid, held, err := a.LockHolder("x"); pid != 0 || held || err != nil {
		t.Errorf("a lock nobody ever took: %d, %v, %v", pid, held, err)
	}
	unlock, ok, err := a.TryLock("x")
	if err != nil || !ok {
		t.Fatalf("free lock: %v, %v", ok, err)
	}
	for _, h := range []*Home{a, b} {
		if _, ok, err := h.TryLock("x"); err != nil || ok {
			t.Errorf("held lock: %v, %v", ok, err)
		}
		if pid, held, err := h.LockHolder("x"); pid != os.Getpid() || !held || err != nil {
			t.Errorf("holder: %d, %v, %v", pid, held, err)
		}
	}
	unlock()
	unlock() // a second time must not free the next one's lock
	unlock2, ok, err := b.TryLock("x")
	if err != nil || !ok {
		t.Fatalf("freed lock: %v, %v", ok, err)
	}
	unlock()
	if _, ok, _ := a.TryLock("x"); ok {
		t.Error("an old unlock freed a new lock")
	}
	unlock2()
	if pid, held, err := a.LockHolder("x"); pid != 0 || held || err != nil {
		t.Errorf("after all: %d, %v, %v", pid, held, err)
	}
}

func TestProbingALockNeverMakesTryLockFail(t *testing.T) {
	t.Parallel()
	a := openHome(t)
	b, err := Open(a.Path(), nil)
	must(t, err)
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, _, err := b.LockHolder("x"); err != nil {
				t.Error(err)
			}
		}
	})
	for range 300 {
		unlock, ok, err := a.TryLock("x")
		if err != nil || !ok {
			t.Errorf("a free lock was not given: %v", err)
			break
		}
		unlock()
	}
	cancel()
	wg.Wait()
}

func TestWaitingForALockEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a := openHome(t)
	b, err := Open(a.Path(), nil)
	must(t, err)
	defer b.Close()
	unlock, err := a.Lock(t.Context(), "x")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, h := range []*Home{a, b} {
		if _, err := h.Lock(ctx, "x"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	unlock()
	unlock, err = b.Lock(t.Context(), "x")
	must(t, err)
	unlock()
}

func TestLockNamesArePlainWords(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".tmp", "a\x00b"} {
		if _, err := h.Lock(t.Context(), name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("lock %q: %v", name, err)
		}
		if _, _, err := h.TryLock(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("try %q: %v", name, err)
		}
		if _, _, err := h.LockHolder(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("holder %q: %v", name, err)
		}
	}
}

func TestALockFileCannotLeadOutside(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	outside := filepath.Join(filepath.Dir(h.Path()), "outside")
	must(t, os.Symlink(outside, filepath.Join(h.Path(), "locks", "x")))
	unlock, ok, err := h.TryLock("x") // the link is put aside
	must(t, err)
	if !ok {
		t.Fatal("nobody gets it")
	}
	defer unlock()
	if info, err := os.Lstat(filepath.Join(h.Path(), "locks", "x")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the lock is no file of the home: %v, %v", info, err)
	}
	if _, err := os.Stat(outside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file outside was made: %v", err)
	}
}

func TestACounterGivesEachValueOnce(t *testing.T) {
	t.Parallel()
	a := openHome(t)
	b, err := Open(a.Path(), nil)
	must(t, err)
	defer b.Close()
	var mu sync.Mutex
	seen := map[uint64]int{}
	var wg sync.WaitGroup
	for _, h := range []*Home{a, b} {
		wg.Go(func() {
			last := uint64(0)
			for range 10 {
				v, err := h.Counter("epoch")
				if err != nil || v <= last {
					t.Errorf("%d after %d: %v", v, last, err)
					return
				}
				last = v
				mu.Lock()
				seen[v]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	want := map[uint64]int{}
	for v := range uint64(20) {
		want[v+1] = 1
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	for _, damage := range []string{"", "-1", "x", "18446744073709551615"} {
		must(t, a.Write("counters/epoch", []byte(damage)))
		if v, err := a.Counter("epoch"); err == nil {
			t.Errorf("%q was counted on: %d", damage, v)
		}
	}
}
