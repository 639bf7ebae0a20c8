package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/cdp/jsonv2"

	"tapin/internal/fault"
)

// ExtractOptions say what to read out of the page. The zero value is its text,
// up to 20,000 characters.
type ExtractOptions struct {
	Instruction string
	Most        int // characters of the content, as it is written
}

// Extract is what an instruction found.
type Extract struct {
	Content   any  // a string; a json.RawMessage when the kind is a table or JSON
	Kind      Kind // the form the content comes in
	Truncated bool // there was more than the limit allows; structured content lacks whole items at its end
	Note      string
	Matches   int // of the last step, or of the table

	URL    string
	Title  string
	Status int // of the response that the page came with; 0 means not known
}

const extractOp = "extract"

// Extract reads out what the instruction names: in the page, else in the first
// of its frames that has it. Hidden text is left out, and what was typed into a
// secret field is never read. An instruction that finds nothing is EMPTY_EXTRACTION.
func (t *Tab) Extract(ctx context.Context, o ExtractOptions) (Extract, error) {
	in, err := parseInstruction(o.Instruction)
	if err != nil {
		return Extract{}, fmt.Errorf("%s: %w", extractOp, err)
	}
	if o.Most == 0 {
		o.Most = defaultMaxChars
	}
	if o.Most < leastChars {
		return Extract{}, fault.New(fault.InvalidRequest, extractOp, "%d characters are too few; %d is the least", o.Most, leastChars)
	}
	for _, s := range in.all {
		if err := t.tabs.hidden().allow(extractOp, Locator{CSS: s.CSS + bracketed(s.Attr), XPath: s.XPath}); err != nil {
			return Extract{}, err
		}
	}
	var out Extract
	err = t.reading(ctx, extractOp, func(ctx context.Context) error {
		x := &extraction{tab: t, in: in, most: o.Most, frames: t.seatFrames(ctx)}
		var err error
		out, err = x.run(ctx)
		if x.opaque || errors.Is(err, fault.EmptyExtraction) {
			// It may stand behind closed shadow roots: open them, look again.
			if err := t.adoptClosed(ctx); err != nil {
				return err
			}
			out, err = x.run(ctx)
		}
		if x.hangs && errors.Is(err, fault.EmptyExtraction) {
			return fault.New(fault.WaitTimeout, extractOp, "nothing was found, and a frame of the page does not answer").WithHint("Try again in a moment.")
		}
		if err != nil {
			return err
		}
		out.URL, out.Title, out.Status = x.here.URL, x.here.Title, x.here.Status
		out.conceal(t.tabs.hidden())
		return nil
	})
	if err != nil {
		return Extract{}, err
	}
	return out, nil
}

// bracketed is the name of an attribute that is read, as a selector has it.
func bracketed(name string) string {
	if name == "" {
		return ""
	}
	return "[" + name + "]"
}

// conceal takes what is hidden out of all that was found.
func (e *Extract) conceal(h *Hidden) {
	e.URL, e.Title = h.conceal(e.URL), h.conceal(e.Title)
	switch c := e.Content.(type) {
	case string:
		e.Content = h.conceal(c)
	case json.RawMessage:
		e.Content = json.RawMessage(h.conceal(string(c)))
	}
}

// extraction is one instruction being carried out on a tab.
type extraction struct {
	tab    *Tab
	in     *instruction
	most   int
	frames []frame
	opaque bool // there may be more in it than the engine can see
	hangs  bool // a frame did not answer: there may be more in that
	here   here // where the page is
}

// finding is the engine's answer of one document.
type finding struct {
	Bad *struct {
		ID  int    `json:"id"`
		Why string `json:"why"`
	} `json:"bad"`
	None    *int  `json:"none"`  // the selection that matches nothing, or one of those below
	Of      int   `json:"of"`    // how many places it was looked for in
	Blank   int   `json:"blank"` // how many matches have nothing to read
	Frames  []int `json:"frames"`
	Step    int   `json:"step"` // that the frames go on with
	Missing bool  `json:"missing"`

	Parts   []jsonv2.Value `json:"parts"`
	Table   *grid          `json:"table"`
	Value   jsonv2.Value   `json:"value"`
	Hits    []int          `json:"hits"` // selections that found something
	Title   string         `json:"title"`
	Matches int            `json:"matches"`
	Over    bool           `json:"over"`
	Opaque  bool           `json:"opaque"`
	Here    here           `json:"here"`

	in frame
}

// What a finding without a match may be for, beside the number of a selection.
const (
	nothingShown = -1 // there are matches, but they show nothing
	noTable      = -2
)

// run looks in the page first, then in its frames.
func (x *extraction) run(ctx context.Context) (Extract, error) {
	x.opaque, x.hangs = false, false
	main, ok := x.tab.frames.get(x.tab.frames.main)
	if !ok {
		return Extract{}, errWorldGone
	}
	first, err := x.ask(ctx, main, x.in.steps)
	if err != nil {
		return Extract{}, err
	}
	if first.has(x.in) {
		return x.made(ctx, first)
	}
	if x.in.kind == KindArticle || len(x.in.all) == 0 && x.in.kind != KindTable {
		return Extract{}, x.empty(first)
	}
	for _, f := range x.frames {
		if f.id == main.id {
			continue
		}
		got, err := x.askFrame(ctx, f, x.in.steps)
		switch {
		case errors.Is(err, fault.InvalidRequest):
			return Extract{}, err
		case err != nil:
			continue // one that does not answer has nothing
		case got.has(x.in):
			return x.made(ctx, got)
		case got.Blank > 0 && first.Blank == 0:
			first = got
		}
	}
	if err := ctx.Err(); err != nil {
		return Extract{}, err
	}
	return Extract{}, x.empty(first)
}

func (x *extraction) askFrame(ctx context.Context, f frame, steps []*selection) (finding, error) {
	ctx, cancel := context.WithTimeout(ctx, frameWithin)
	defer cancel()
	got, err := x.ask(ctx, f, steps)
	x.hangs = x.hangs || errors.Is(err, context.DeadlineExceeded)
	return got, err
}

// ask has the engine follow the steps in one document, and where they lead into
// a frame, the rest of them there.
func (x *extraction) ask(ctx context.Context, f frame, steps []*selection) (finding, error) {
	args := map[string]any{"all": nonNil(x.in.all), "steps": nonNil(steps), "kind": x.in.kind, "max": x.most}
	fn := "extract"
	switch x.in.kind {
	case KindTable:
		args["table"] = x.in.table
	case KindJSON:
		args["shape"] = x.in.shape
	case KindMarkdown:
		fn = "markup"
	case KindArticle:
		fn = "article"
	}
	got := finding{}
	if err := x.tab.call(ctx, f, fn, args, &got); err != nil {
		return finding{}, err
	}
	if got.Missing {
		if err := x.tab.teachReading(ctx, f.id); err != nil {
			return finding{}, err
		}
		if err := x.tab.call(ctx, f, fn, args, &got); err != nil {
			return finding{}, err
		}
	}
	got.in = f
	if f.id == x.tab.frames.main {
		x.here = got.Here
	}
	x.opaque = x.opaque || got.Opaque
	if got.Bad != nil {
		return finding{}, x.refusal(x.in.all[got.Bad.ID], got.Bad.Why)
	}
	if got.Step == 0 {
		return got, nil
	}
	shows := nothingShown
	best := finding{None: &shows, Blank: len(got.Frames), in: f}
	for _, number := range got.Frames {
		for _, child := range x.frames {
			if child.order != number || child.parent != f.id {
				continue
			}
			inner, err := x.askFrame(ctx, child, steps[got.Step:])
			if errors.Is(err, fault.InvalidRequest) {
				return finding{}, err
			}
			if err == nil && inner.has(x.in) {
				return inner, nil
			}
			if err == nil {
				best = inner
			}
		}
	}
	return best, nil
}

// nonNil is the list as the engine wants it.
func nonNil(list []*selection) []*selection {
	if list == nil {
		return []*selection{}
	}
	return list
}

// has tells whether there is something in it.
func (f *finding) has(in *instruction) bool {
	if in.kind == KindJSON {
		return len(f.Hits) > 0
	}
	if f.None != nil {
		return false
	}
	for _, part := range f.Parts {
		if text := strings.TrimSpace(string(part)); text != `""` {
			return true
		}
	}
	return f.Table != nil
}

// made makes the answer of what was found.
func (x *extraction) made(ctx context.Context, f finding) (Extract, error) {
	out := Extract{Kind: x.in.kind, Note: x.in.note, Matches: f.Matches, Truncated: f.Over}
	switch x.in.kind {
	case KindTable:
		raw, cut, err := f.Table.encode(x.most)
		if err != nil {
			return Extract{}, err
		}
		out.Content, out.Truncated = json.RawMessage(raw), f.Over || cut
		if f.Matches > 1 {
			out.Note = fmt.Sprintf("%d tables match; these are the rows of the first", f.Matches)
		}
		return out, nil
	case KindJSON:
		raw, err := x.in.shape.encode(f.Value)
		if err != nil {
			return Extract{}, err
		}
		out.Content = json.RawMessage(raw)
		if lacking := x.in.shape.lacking(f.Hits); len(lacking) > 0 {
			out.Note = "nothing was found for " + listed(lacking)
		}
		return out, nil
	}
	r := &reader{tab: x.tab, limit: x.most, frames: x.frames, markup: x.in.kind != KindText}
	text, over, err := r.join(ctx, f.in, f.Parts)
	if err != nil {
		return Extract{}, err
	}
	x.opaque, x.hangs = x.opaque || r.opaque, x.hangs || r.hangs
	if x.in.kind != KindText {
		if text, err = markdown(ctx, text, f.Title); err != nil {
			return Extract{}, err
		}
	}
	if text == "" {
		return Extract{}, x.empty(f)
	}
	text, cut := clip(text, x.most)
	out.Content, out.Truncated = text, f.Over || over || cut
	return out, nil
}

// empty says what it is that found nothing.
func (x *extraction) empty(f finding) error {
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.EmptyExtraction, "", format, args...)
	}
	last := -1
	switch {
	case x.in.kind == KindArticle:
		return bad("no article was found on the page").WithHint("markdown has the whole page.")
	case f.None != nil && *f.None >= 0:
		s := x.in.all[*f.None]
		if s.ID > 0 && f.Of > 0 {
			return bad("%s matches nothing inside the %d matches of the step before", s, f.Of).With("selector", s.said)
		}
		return bad("%s matches nothing", s).With("selector", s.said)
	case x.in.kind == KindJSON:
		var said []string
		for _, s := range x.in.all[len(x.in.steps):] {
			said = append(said, s.String())
		}
		return bad("nothing on the page matches any of %s", listed(said))
	case x.in.table != nil:
		last = x.in.table.ID
	case f.None != nil && *f.None == noTable:
		return bad("there is no table with rows in it").WithHint("Name it with table: CSS, or read the page with markdown.")
	case len(x.in.steps) > 0:
		last = x.in.steps[len(x.in.steps)-1].ID
	}
	if last < 0 {
		return bad("the page shows nothing to read").WithHint("Wait until it has loaded, or look at a screenshot.")
	}
	what := "any text"
	if x.in.kind == KindTable {
		what = "a table with rows"
	}
	s := x.in.all[last]
	return bad("%s matches %d elements, and none of them shows %s", s, max(f.Blank, 1), what).With("selector", s.said)
}

// refusal says what is wrong with a selection.
func (*extraction) refusal(s *selection, why string) error {
	p := &parser{}
	switch why {
	case "secret":
		return p.fault(s.at, "%s asks for the values of fields, and one of them is a secret", s).WithHint("Name the element in another way.")
	case "text":
		return p.fault(s.at, "%s makes a text of its own", s).WithHint("Select the element or text() itself; what it shows is read for you.")
	}
	return p.fault(s.at, "%s cannot be understood", s)
}

// String names the selection, for people.
func (s *selection) String() string {
	said, cut := clip(s.said, 200)
	if cut {
		said += "…"
	}
	if s.XPath != "" {
		return fmt.Sprintf("xpath %q", said)
	}
	return fmt.Sprintf("selector %q", said)
}

// listed names a few things of many.
func listed(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
