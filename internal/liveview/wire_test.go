package liveview

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tapin/internal/page"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"t":"ack","number":7,"w":390,"h":844,"dpr":3}`, `{"t":"ptr","h":"hof_1","k":"down","x":1.5,"y":2,"f":0,"fingers":[{"f":0,"x":1,"y":2}]}`,
		`{"t":"edit","h":"hof_1","id":"1.2","value":"hunter2","base":null,"selection":[7],"seq":3}`, `{"t":"do","h":"x","a":"auth","username":"u","password":"hunter2"}`,
		`{"t":"choose","values":["a"]}`, `{"t":"text","s":"\ud83d"}`, `{"t":"compose","s":"你","a":1,"b":1}`, `{"t":"view","hidden":true}`, `{}`, `[]`, "\xff", `{"t":"ack","number":-1}`, `{"t":"ack","number":1e99}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := parse(raw)
		if err != nil {
			if m.part != nil || m.kind != "" {
				t.Error("a refused message has parts")
			}
			if len(raw) > 3 && strings.Contains(err.Error(), string(raw)) {
				t.Error("the refusal quotes the message")
			}
			return
		}
		if parts[m.kind] == nil || m.part == nil || !json.Valid(raw) || len(raw) > maxText {
			t.Errorf("%q was taken", raw)
		}
	})
}

func TestAPersonsWordsDoNotPrint(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{"t":"text","s":"hunter2"}`, `{"t":"edit","value":"hunter2","base":"hunter2"}`, `{"t":"choose","values":["hunter2"]}`, `{"t":"do","a":"auth","username":"hunter2","password":"hunter2"}`, `{"t":"do","a":"dialog","text":"hunter2"}`} {
		m, err := parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if out := encode(m.part); strings.Contains(string(out), "hunter2") {
			t.Errorf("%s", out)
		}
	}
}

func TestANarrowWayGetsSmallerPicturesAndAWideOneBetterOnes(t *testing.T) {
	t.Parallel()
	// through plays a viewer for a while and tells the grade it ends at, and how
	// old the pictures were that it drew.
	through := func(bytesPS float64, delay time.Duration) (end, widest int, worst time.Duration) {
		var p pace
		p.pinged(delay)
		g, graded := 2, time.Now()
		sizes := []int{100_000, 75_000, 40_000, 22_000, 11_000}
		free := time.Now() // when the narrow place is
		type on struct {
			number uint32
			at     time.Time
			sent   time.Time
		}
		var way []on
		var number uint32
		for range 3000 {
			for p.room() > 0 {
				number++
				now := time.Now()
				if free.Before(now) {
					free = now
				}
				free = free.Add(time.Duration(float64(sizes[g]) / bytesPS * float64(time.Second)))
				way = append(way, on{number, free.Add(delay), now})
				p.sent(number, sizes[g], now)
				widest = max(widest, len(way))
			}
			time.Sleep(time.Until(way[0].at))
			p.acked(way[0].number, time.Now())
			worst = max(0, time.Since(way[0].sent))
			way = way[1:]
			if next := p.regrade(g, time.Since(graded)); next != g {
				g, graded = next, time.Now()
				p.forget()
			}
			time.Sleep(5 * time.Millisecond)
		}
		return g, widest, worst
	}
	for name, tt := range map[string]struct {
		bytesPS  float64
		delay    time.Duration
		from, to int // grades
		most     time.Duration
	}{
		"100 kbit/s":            {12_500, 60 * time.Millisecond, len(grades) - 1, len(grades) - 1, 2 * time.Second},
		"4 Mbit/s":              {500_000, 50 * time.Millisecond, 0, 3, time.Second},
		"a wire":                {100e6, time.Millisecond, 0, 0, 20 * time.Millisecond},
		"another continent":     {20e6, 150 * time.Millisecond, 0, 1, 400 * time.Millisecond},
		"a good mobile network": {2.5e6, 40 * time.Millisecond, 0, 2, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g, widest, worst := through(tt.bytesPS, tt.delay)
				if g < tt.from || g > tt.to || worst > tt.most || widest > 8 {
					t.Errorf("ends at grade %d, %d at once, pictures are %s old", g, widest, worst)
				}
			})
		})
	}
}

func TestAcknowledgementsInAnyOrderKeepTheWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p pace
		now := time.Unix(1000, 0)
		number := rapid.Uint32().Draw(t, "first")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 500).Draw(t, "ms")) * time.Millisecond)
			if p.room() > 0 && rapid.Bool().Draw(t, "send") {
				number++
				p.sent(number, rapid.IntRange(0, 200_000).Draw(t, "bytes"), now)
			} else {
				p.acked(number-uint32(rapid.IntRange(0, 9).Draw(t, "behind")), now)
			}
			if w := p.window(); w < 1 || w > 8 || len(p.flights) > 8 || p.transfer() < 0 {
				t.Fatalf("window %d, %d in flight, transfer %s", w, len(p.flights), p.transfer())
			}
			for i := 1; i < len(p.flights); i++ {
				if p.flights[i].number != p.flights[i-1].number+1 {
					t.Fatalf("out of order: %v", p.flights)
				}
			}
		}
		p.acked(number, now)
		if len(p.flights) != 0 {
			t.Fatal("the last one acknowledges all")
		}
	})
}

func TestThePictureIsNeverLargerThanItIsDrawn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		look  page.Look
		drawn float64
		grade int
		want  int
	}{
		"nothing known":             {page.Look{}, 0, 0, 1280},
		"a desktop on a telephone":  {page.Look{Width: 1280, Height: 720, Scale: 1}, 390 * 3, 0, 1216},
		"a telephone on a desktop":  {page.Look{Width: 390, Height: 844, Scale: 3}, 4000, 0, 640},
		"a thumbnail":               {page.Look{Width: 1280, Height: 720, Scale: 1}, 100, 0, 192},
		"through the narrowest way": {page.Look{Width: 1280, Height: 720, Scale: 1}, 0, 4, 576},
	} {
		if got := options(tt.look, tt.drawn, tt.grade); got.MaxWidth != tt.want || got.MaxHeight <= 0 || got.Quality != grades[tt.grade].quality {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOnlyALongWayIsFilledAheadOfWhatIsDrawn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for way, ahead := range map[time.Duration]int{time.Millisecond: 0, 40 * time.Millisecond: 1, 150 * time.Millisecond: 4} {
		var p pace
		p.pinged(way)
		told := 0
		for n := uint32(1); p.room() > 0; n++ {
			if p.sent(n, 1000, now); p.outlasts() {
				told++
			}
		}
		if told != ahead {
			t.Errorf("on a way of %s the browser goes on %d times before anything is drawn, not %d", way, told, ahead)
		}
	}
}

func TestPicturesThatComeTogetherAreAllSentWhereTheWayTakesThem(t *testing.T) {
	t.Parallel()
	h := &hub{viewers: map[*viewer]struct{}{}}
	v := &viewer{hub: h, awake: make(chan struct{}, 1), late: time.NewTimer(time.Hour)}
	h.viewers[v] = struct{}{}
	for _, step := range []struct {
		come  int    // pictures
		drawn uint32 // before that, and all before it
		sent  []uint32
		what  string
	}{
		{3, 0, []uint32{3}, "a newcomer sees the latest"},
		{2, 3, []uint32{4, 5}, "two that come together"},
		{2, 0, nil, "a way that is full"},
		{1, 4, []uint32{8}, "one is drawn: what waited gives way to the latest"},
		{9, 8, []uint32{16, 17}, "all are drawn: what the way takes"},
	} {
		v.pace.acked(step.drawn, time.Now())
		for range step.come {
			h.publish(&picture{})
		}
		var sent []uint32
		for p := v.nextPicture(); p != nil; p = v.nextPicture() {
			sent = append(sent, p.number)
		}
		if !slices.Equal(sent, step.sent) {
			t.Errorf("%s: %v are sent, not %v", step.what, sent, step.sent)
		}
	}
	h.publish(&picture{Frame: page.Frame{Tab: "another"}})
	v.pace.acked(17, time.Now())
	if p := v.nextPicture(); p == nil || p.Tab != "another" || v.nextPicture() != nil {
		t.Errorf("of another tab %v is sent first", p)
	}
}
