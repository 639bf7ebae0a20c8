package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	proto "github.com/chromedp/cdproto/cdp"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

// defaultMaxChars is how long a snapshot or a text is when nobody says.
const defaultMaxChars = 20_000

// leastChars is the shortest limit that still leaves room to say what is left out.
const leastChars = 100

// SnapshotOptions say how much of the page to tell. The zero value is the whole
// outline, up to 20,000 characters.
type SnapshotOptions struct {
	MaxChars    int
	Interactive bool // only what can be acted upon, a line each
	// Offset asks for what stands from that line on, in the order of the
	// document; lines count from 1, and 0 is all of it, what is in view first.
	// Whoever gives it is told the offset of whatever is left out.
	Offset *int
	// PartChars asks for a part of it beside, of so many characters, if it is
	// longer: the offset is that of the part then.
	PartChars int
	// Stir is how long to wait for something on the page to change, and Still how
	// long then, at most, until it has stood still for a moment; 0 waits for neither.
	Stir, Still time.Duration
}

// Snapshot is the page in words. Each line is what something is, its state, its
// name and its value; "> " is plain text. What can be acted upon begins with
// its ref, which stays the same for as long as the document lives. What was
// typed into a secret field is not in it.
type Snapshot struct {
	Text      string
	Truncated bool    // something was left out for its length; the text says where
	Part      *string // nil where none was asked for, or all of it is no longer
	Cut       bool    // something was left out of the part
	URL       string
	Title     string
	Tabs      []string // those that are open
	unasked   bool     // the page told all of it as it came
}

// outlineLine is one line of a frame's outline, or a number of lines left out.
type outlineLine struct {
	Depth int     `json:"depth"`
	Seen  bool    `json:"seen"` // in the viewport
	Text  string  `json:"text"`
	Frame int     `json:"frame"` // number of the frame that belongs here
	Clip  *extent `json:"clip"`  // the part of that frame that is in view
	More  int     `json:"more"`
}

type extent struct {
	Left   float64 `json:"left"`
	Top    float64 `json:"top"`
	Right  float64 `json:"right"`
	Bottom float64 `json:"bottom"`
}

// Snapshot tells what the page shows, for those who read instead of looking.
// When it is too long, what is in the viewport goes before the rest.
func (t *Tab) Snapshot(ctx context.Context, o SnapshotOptions) (Snapshot, error) {
	if err := o.check(); err != nil {
		return Snapshot{}, err
	}
	t.settle(ctx, o.Stir, o.Still)
	return t.snapshot(ctx, o, nil)
}

// check says what cannot be told, and fills in what was not said.
func (o *SnapshotOptions) check() error {
	if o.MaxChars == 0 {
		o.MaxChars = defaultMaxChars
	}
	if o.Offset != nil && *o.Offset < 0 {
		return fault.New(fault.InvalidRequest, "take a snapshot", "an offset of %d is before the beginning", *o.Offset)
	}
	if least := min(o.MaxChars, cmp.Or(o.PartChars, leastChars)); least < leastChars {
		return fault.New(fault.InvalidRequest, "take a snapshot", "%d characters are too few; %d is the least", least, leastChars)
	}
	return nil
}

// snapshot puts together what the documents say; the page itself may have said
// it already.
func (t *Tab) snapshot(ctx context.Context, o SnapshotOptions, told *outlined) (Snapshot, error) {
	var shot Snapshot
	err := t.reading(ctx, "take a snapshot", func(ctx context.Context) error {
		done, err := t.refs.take(ctx)
		if err != nil {
			return err
		}
		defer done()
		r := &outliner{tab: t, opts: o, told: told}
		unasked := told != nil
		told = nil // it is of one moment
		lines, here, err := r.page(ctx)
		if err == nil && r.opaque.Load() {
			// Something may be behind closed shadow roots: open them, look again.
			unasked = false
			if err = t.adoptClosed(ctx); err == nil {
				lines, here, err = r.page(ctx)
			}
		}
		if err != nil {
			return err
		}
		conceal := t.tabs.hidden().conceal
		for i := range lines {
			lines[i].Text = conceal(lines[i].Text)
		}
		shot = Snapshot{URL: conceal(here.URL), Title: conceal(here.Title), unasked: unasked}
		shot.put(lines, o)
		for _, tab := range t.tabs.List() {
			shot.Tabs = append(shot.Tabs, tab.ID())
		}
		return nil
	})
	return shot, err
}

// put makes texts of the lines.
func (s *Snapshot) put(lines []outlineLine, o SnapshotOptions) {
	if o.Offset != nil && o.PartChars == 0 {
		s.Text, s.Truncated = fitFrom(lines, o.MaxChars, *o.Offset)
		return
	}
	s.Text, s.Truncated = fit(lines, o.MaxChars)
	offset := 0
	if o.Offset != nil {
		offset = *o.Offset
	}
	if o.PartChars > 0 && (offset > 0 || utf8.RuneCountInString(s.Text) > o.PartChars) {
		part, cut := fitFrom(lines, o.PartChars, offset)
		s.Part, s.Cut = &part, cut
	}
}

// settle waits for the page to have come to rest. One that cannot be asked is
// looked at as it is.
func (t *Tab) settle(ctx context.Context, stir, still time.Duration) {
	if stir <= 0 && still <= 0 || t.hasCrashed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stir+still)
	defer cancel()
	args := map[string]int64{"stir": max(0, stir.Milliseconds()), "still": max(1, still.Milliseconds())}
	_ = t.unlessDialog(ctx, func(ctx context.Context) error { return t.callMain(ctx, "settle", args, nil) })
}

// reading runs fn, which changes nothing, until it succeeds on a document that
// stays; it ends with the context, a dialog or a crash.
func (t *Tab) reading(ctx context.Context, op string, fn func(context.Context) error) error {
	if t.hasCrashed() {
		return crashFault()
	}
	ctx, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	err := t.unlessDialog(ctx, func(ctx context.Context) error {
		for tries := 0; ; tries++ {
			if err := fn(ctx); !anew(ctx, tries, err) {
				return err
			}
		}
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.WaitTimeout, op, "the page did not answer in time")
	case err != nil:
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// outliner puts the outlines of a tab's frames together.
type outliner struct {
	tab    *Tab
	opts   SnapshotOptions
	told   *outlined // by the page, before it was asked
	frames []frame
	opaque atomic.Bool // there may be more in it than the engine can see
}

type address struct{ URL, Title string }

func (r *outliner) page(ctx context.Context) ([]outlineLine, address, error) {
	main, ok := r.tab.frames.get(r.tab.frames.main)
	if !ok {
		return nil, address{}, errWorldGone
	}
	if told := r.told; told != nil {
		r.told = nil
		return r.put(ctx, main, told, told.loader)
	}
	r.frames = r.tab.seatFrames(ctx)
	return r.outline(ctx, main, nil)
}

// outlined is what a document says that it shows.
type outlined struct {
	Lines  []outlineLine `json:"lines"`
	Last   int           `json:"last"`
	Opaque bool          `json:"opaque"`
	URL    string        `json:"url"`
	Title  string        `json:"title"`
	loader proto.LoaderID
}

func (r *outliner) outline(ctx context.Context, f frame, visible *extent) ([]outlineLine, address, error) {
	args := r.tab.asking(f, r.opts)
	if visible != nil {
		args["clip"] = visible
	}
	var got outlined
	loader := r.tab.life.now().loader
	if err := r.tab.call(ctx, f, "outline", args, &got); err != nil {
		return nil, address{}, err
	}
	return r.put(ctx, f, &got, loader)
}

// asking is the question for a frame's outline.
func (t *Tab) asking(f frame, o SnapshotOptions) map[string]any {
	limit := o.MaxChars
	if o.Offset != nil {
		limit = wholeOutline
	}
	return map[string]any{
		"frame": f.order, "from": t.refs.from(f.id, t.known), "max": limit, "interactive": o.Interactive,
		"heard": f.id == t.frames.main && t.refs.heardOf(t.life.now().loader),
	}
}

// put makes what a document says part of the whole.
func (r *outliner) put(ctx context.Context, f frame, got *outlined, loader proto.LoaderID) ([]outlineLine, address, error) {
	if f.id == r.tab.frames.main {
		r.tab.refs.note(span{loader, r.tab.refs.from(f.id, r.tab.known), got.Last})
	}
	r.tab.refs.given(f.id, got.Last)
	if got.Opaque {
		r.opaque.Store(true)
	}
	return r.enter(ctx, f, got.Lines), address{got.URL, got.Title}, nil
}

// enter puts what is in the frames where the frames are. One that does not
// answer is said not to; one that shows nothing is left out.
func (r *outliner) enter(ctx context.Context, in frame, lines []outlineLine) []outlineLine {
	inner := make([][]outlineLine, len(lines))
	failed := make([]error, len(lines))
	var busy guard.Group
	for i, l := range lines {
		child, ok := r.child(in, l.Frame)
		if !ok {
			continue
		}
		busy.Run(func() {
			ctx, cancel := context.WithTimeout(ctx, frameWithin)
			defer cancel()
			inner[i], _, failed[i] = r.outline(ctx, child, l.Clip)
		})
	}
	busy.Wait()
	out := make([]outlineLine, 0, len(lines))
	for i, l := range lines {
		below := l.Depth + 1
		switch {
		case l.Frame == 0:
			out = append(out, l)
			continue
		case errors.Is(failed[i], context.DeadlineExceeded):
			l.Text += " (did not answer)"
			out = append(out, l)
		case r.opts.Interactive:
			below = 0
		case len(inner[i]) > 0:
			out = append(out, l)
		}
		for _, line := range inner[i] {
			line.Depth += below
			line.Seen = line.Seen && l.Seen
			out = append(out, line)
		}
	}
	return out
}

func (r *outliner) child(in frame, number int) (frame, bool) {
	for _, f := range r.frames {
		if number != 0 && f.order == number && f.parent == in.id {
			return f, true
		}
	}
	return frame{}, false
}

// wholeOutline is how much of a frame is read where lines are counted: a line
// that is not read cannot be.
const wholeOutline = 1_000_000

// gapChars is the most that a line about left-out lines takes.
const gapChars = 20

// offsetChars is the most that its offset takes beside that.
const offsetChars = 20

// fitFrom is fit from a line on, and says at which line each gap begins. Where
// one reads on, the viewport means nothing any more.
func fitFrom(lines []outlineLine, limit, offset int) (text string, truncated bool) {
	at := 0
	for len(lines) > 0 && at+max(1, lines[0].More) < offset {
		at += max(1, lines[0].More)
		lines = lines[1:]
	}
	if offset > 0 {
		lines = slices.Clone(lines)
		for i := range lines {
			lines[i].Seen = false
		}
	}
	return fitting{limit: limit, gap: gapChars + offsetChars, line: at, numbered: true}.text(lines)
}

// fit makes a text of the lines, no longer than the limit: those in view first,
// then the others from the top on, all in the order of the document. Where lines
// are left out it says how many.
func fit(lines []outlineLine, limit int) (text string, truncated bool) {
	return fitting{limit: limit, gap: gapChars}.text(lines)
}

// fitting is one way to make a text of lines.
type fitting struct {
	limit    int
	gap      int // the most that a line about left-out lines takes
	line     int // the number of the first line
	numbered bool
}

func (f fitting) text(lines []outlineLine) (text string, truncated bool) {
	chosen, truncated := f.choose(lines)
	var out strings.Builder
	gap, at := 0, f.line
	flush := func() {
		switch {
		case gap > 0 && f.numbered:
			fmt.Fprintf(&out, "… %d more (offset %d)\n", gap, at-gap+1)
		case gap > 0:
			fmt.Fprintf(&out, "… %d more\n", gap)
		}
		gap = 0
	}
	for i, l := range lines {
		if !chosen[i] {
			gap += max(1, l.More)
			at += max(1, l.More)
			continue
		}
		flush()
		at++
		out.WriteString(strings.Repeat("  ", l.Depth))
		out.WriteString(l.Text)
		out.WriteByte('\n')
	}
	flush()
	return strings.TrimSuffix(out.String(), "\n"), truncated
}

// choose tells which lines have room.
func (f fitting) choose(lines []outlineLine) (chosen []bool, truncated bool) {
	size := func(l outlineLine) int { return utf8.RuneCountInString(l.Text) + 2*l.Depth + 1 }
	total := 0
	for _, l := range lines {
		total += size(l)
		truncated = truncated || l.More > 0
	}
	truncated = truncated || total > f.limit
	chosen = make([]bool, len(lines))
	left := f.limit
	if truncated {
		left -= f.gap
	}
	choose := func(i int) bool {
		cost := size(lines[i])
		if i > 0 && !chosen[i-1] && truncated {
			cost += f.gap // there may be a gap before it
		}
		if cost > left {
			return false
		}
		left -= cost
		chosen[i] = true
		return true
	}
	for pass := range 2 {
		for i, l := range lines {
			if !chosen[i] && l.More == 0 && (l.Seen || pass == 1) && !choose(i) {
				break
			}
		}
	}
	return chosen, truncated
}
