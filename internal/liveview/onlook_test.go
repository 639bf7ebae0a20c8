package liveview

import (
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/page"
)

// A page that moves 60 times a second, seen by one, and by two of whom one drives.
func TestWhoOnlyLooksOnGetsEverySecondPictureAndAlwaysTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hub{viewers: map[*viewer]struct{}{}}
		come := func() *viewer {
			v := &viewer{hub: h, awake: make(chan struct{}, 1)}
			v.late = time.AfterFunc(onlookEvery, v.rouse)
			t.Cleanup(func() { v.late.Stop() })
			h.viewers[v] = struct{}{}
			return v
		}
		seen := map[*viewer]int{}
		take := func(v *viewer) {
			if p := v.nextPicture(); p != nil {
				seen[v]++
				h.drew(v, ack{Number: p.number})
			}
		}
		play := func(frames int) {
			for range frames {
				h.publish(&picture{Frame: page.Frame{JPEG: []byte("x")}})
				for v := range h.viewers {
					take(v)
				}
				time.Sleep(time.Second / 60)
			}
		}
		alone := come()
		play(60)
		if seen[alone] != 60 {
			t.Errorf("one who looks alone saw %d of 60 pictures", seen[alone])
		}
		other := come()
		h.driver = alone
		clear(seen)
		play(59)
		if seen[alone] != 59 || seen[other] != 30 {
			t.Errorf("of 59 pictures who drives saw %d, who looks on %d", seen[alone], seen[other])
		}
		// The last one was left out, and comes by itself when no other follows.
		play(1)
		for len(other.awake) > 0 {
			<-other.awake
		}
		if other.shown == h.last.number {
			t.Fatal("the last picture was not left out")
		}
		time.Sleep(onlookEvery + onlookSlack)
		synctest.Wait()
		if len(other.awake) == 0 {
			t.Fatal("nobody wakes who has not seen the last picture")
		}
		if take(other); other.shown != h.last.number {
			t.Error("the last picture never comes")
		}
	})
}
