package link_test

import (
	"testing"

	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/testwait"
)

func TestADeviceThatWasOverheardOnlyWatchesUntilAnotherHasTheLink(t *testing.T) {
	t.Parallel()
	r := room(t, t.TempDir())
	l, token := mint(t, r)
	first, err := r.Claim(t.Context(), l.ID, token)
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.Claim(t.Context(), l.ID, token)
	number, _ := fault.Of(err).Data["number"].(int)
	if err := r.Overhear(t.Context(), l.ID, first); err != nil {
		t.Fatal(err)
	}
	if in, err := r.Enter(t.Context(), l.ID, first); err != nil || in.Mode != link.Watch {
		t.Errorf("it enters to %s, %v", in.Mode, err)
	}
	if _, err := r.Move(t.Context(), l.ID, number); err != nil {
		t.Fatal(err)
	}
	if in, err := r.Enter(t.Context(), l.ID, second); err != nil || in.Mode != link.Drive {
		t.Errorf("another enters to %s, %v", in.Mode, err)
	}
	third, err := r.Claim(t.Context(), l.ID, token)
	number, _ = fault.Of(err).Data["number"].(int)
	if err := r.Overhear(t.Context(), l.ID, third); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Move(t.Context(), l.ID, number); err != nil {
		t.Fatal(err)
	}
	if in, err := r.Enter(t.Context(), l.ID, third); err != nil || in.Mode != link.Watch {
		t.Errorf("one that was overheard while it waited enters to %s, %v", in.Mode, err)
	}
}

func TestNoTwoDevicesShowTheSameNumberWhateverTheirLinks(t *testing.T) {
	t.Parallel()
	r := room(t, t.TempDir())
	seen, most := map[int]bool{}, 0
	for {
		l, token := mint(t, r)
		if _, err := r.Claim(t.Context(), l.ID, token); err != nil {
			t.Fatal(err)
		}
		_, err := r.Claim(t.Context(), l.ID, token)
		if code(err) == fault.RateLimited {
			break
		}
		number, _ := fault.Of(err).Data["number"].(int)
		if seen[number] {
			t.Fatalf("two devices show %d", number)
		}
		seen[number] = true
		if most++; most > 90 {
			t.Fatal("there is no end to those who may wait")
		}
	}
	if most < 40 {
		t.Errorf("only %d may wait", most)
	}
}

func TestWhoIsNoOwnerAnyMoreLosesWhatIsOpen(t *testing.T) {
	t.Parallel()
	r := room(t, t.TempDir())
	theirs, _ := mint(t, r)
	other, _ := mint(t, r)
	device, err := r.AdmitAs(t.Context(), theirs.ID, "telegram 42")
	if err != nil {
		t.Fatal(err)
	}
	changed := r.Changed(theirs.ID)
	if err := r.SweepPeople(t.Context(), func(who string) bool { return who != "telegram 42" }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-testwait.Over():
		t.Error("who is in is not told")
	}
	if _, err := r.Enter(t.Context(), theirs.ID, device); code(err) != fault.LinkExpired {
		t.Errorf("still in: %v", err)
	}
	if _, err := r.Get(t.Context(), other.ID); err != nil {
		t.Errorf("another link: %v", err)
	}
}
