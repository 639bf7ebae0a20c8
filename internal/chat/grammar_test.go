package chat_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/chat"
)

func TestOnlyWhatFollowsTypeIsTyped(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"type: mySecurePass123":   "mySecurePass123",
		"Type: MyPass":            "MyPass",
		"TYPE:x":                  "x",
		"type:  two spaces":       " two spaces",
		"type: done":              "done",
		"type: type: x":           "type: x",
		"type: a  b\tc":           "a  b\tc",
		"type: line\nline":        "line\nline",
		"type:":                   "",
		"type: ":                  "",
		"  type: x":               "x",
		"type : x":                "x",
		"type：全角":                 "全角",
		"type: пароль 🔑 é":        "пароль 🔑 é",
		"type: trailing spaces  ": "trailing spaces  ",
	} {
		w := chat.Read(said)
		if len(w.Kinds) != 1 || w.Kinds[0] != chat.Type || w.Text.Reveal() != want {
			t.Errorf("%q: %v, and %q to be typed, want %q", said, w.Kinds, w.Text.Reveal(), want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for said, want := range map[string][]chat.Kind{
		"done": {chat.Done}, "Done.": {chat.Done}, "DONE!": {chat.Done}, " done \n": {chat.Done}, "/done": {chat.Done}, "/done@tapin_bot": {chat.Done},
		"all yours": {chat.Done}, "All  yours!": {chat.Done}, "okay, try now": {chat.Done}, "Okay try now.": {chat.Done},
		"go ahead": {chat.Done, chat.Yes}, "Go ahead!": {chat.Done, chat.Yes},
		"abort": {chat.Abort}, "cancel": {chat.Abort}, "later": {chat.Later}, "screenshot": {chat.Screenshot}, "+15": {chat.Extend}, "+ 30 min": {chat.Extend},
		"yes": {chat.Yes}, "approve": {chat.Yes}, "no": {chat.No}, "deny": {chat.No}, "sites": {chat.Sites}, "retry": {chat.Retry}, "resume": {chat.Resume},
		"what sites do I have saved?": {chat.Sites}, "device 42": {chat.Device}, "Move to device 42": {chat.Device}, "/start": {chat.Help}, "/start abc": {chat.Pair},
		"I am done with this": {chat.Plain}, "undone": {chat.Plain}, "done done": {chat.Plain}, "": {chat.Plain}, "+0": {chat.Plain}, "+999": {chat.Plain},
		"yes please pay it": {chat.Plain}, "no idea": {chat.Plain}, "typed: x": {chat.Plain}, "device 7": {chat.Plain}, "typewriter": {chat.Plain},
		"type hunter2": {chat.Unsure},
	} {
		if diff := cmp.Diff(want, chat.Read(said).Kinds); diff != "" {
			t.Errorf("%q: %s", said, diff)
		}
	}
}

func TestAWordIsAboutWhatWaits(t *testing.T) {
	t.Parallel()
	a, b := chat.Item{ID: "hof_a", Label: "a"}, chat.Item{ID: "hof_b", Label: "b"}
	parked := chat.Item{ID: "hof_p", Label: "p", Parked: true}
	pay := chat.Item{ID: "apr_1", Label: "pay"}
	hands := func(items ...chat.Item) chat.Pending { return chat.Pending{Handoffs: items} }
	for name, tt := range map[string]struct {
		said string
		p    chat.Pending
		want chat.Decision
	}{
		"done, with one hand-off":                {"done", hands(a), chat.Decision{Kind: chat.Done, Target: "hof_a"}},
		"done, with none, is ordinary":           {"done", chat.Pending{}, chat.Decision{Kind: chat.Plain}},
		"done, with two, is asked about":         {"done", hands(a, b), chat.Decision{Kind: chat.Ask, Of: chat.Done, Which: []chat.Item{a, b}}},
		"done, as a reply, with two":             {"done", chat.Pending{Handoffs: []chat.Item{a, b}, Reply: "hof_b"}, chat.Decision{Kind: chat.Done, Target: "hof_b"}},
		"done, as a reply to one that is over":   {"done", chat.Pending{Handoffs: []chat.Item{a}, Reply: "hof_x"}, chat.Decision{Kind: chat.Over, Target: "hof_x"}},
		"type, with none, goes nowhere":          {"type: x", chat.Pending{}, chat.Decision{Kind: chat.Late}},
		"type, as a reply to one that is over":   {"type: x", chat.Pending{Handoffs: []chat.Item{a}, Reply: "hof_x"}, chat.Decision{Kind: chat.Late}},
		"type, with one":                         {"type: x", hands(a), chat.Decision{Kind: chat.Type, Target: "hof_a"}},
		"type, with two, is not typed":           {"type: x", hands(a, b), chat.Decision{Kind: chat.Ask, Of: chat.Type, Which: []chat.Item{a, b}}},
		"type, into a parked one":                {"type: x", hands(parked), chat.Decision{Kind: chat.Late}},
		"type, beside an approval":               {"type: x", chat.Pending{Handoffs: []chat.Item{a}, Approvals: []chat.Item{pay}}, chat.Decision{Kind: chat.Type, Target: "hof_a"}},
		"go ahead, for a hand-off":               {"go ahead", hands(a), chat.Decision{Kind: chat.Done, Target: "hof_a"}},
		"go ahead, for an approval":              {"go ahead", chat.Pending{Approvals: []chat.Item{pay}}, chat.Decision{Kind: chat.Yes, Target: "apr_1"}},
		"go ahead, for either, does nothing":     {"go ahead", chat.Pending{Handoffs: []chat.Item{a}, Approvals: []chat.Item{pay}}, chat.Decision{Kind: chat.Ask, Of: chat.Done, Which: []chat.Item{a, pay}}},
		"go ahead, as a reply to the approval":   {"go ahead", chat.Pending{Handoffs: []chat.Item{a}, Approvals: []chat.Item{pay}, Reply: "apr_1"}, chat.Decision{Kind: chat.Yes, Target: "apr_1"}},
		"yes, with a hand-off alone":             {"yes", hands(a), chat.Decision{Kind: chat.Plain}},
		"yes, with both, is for the approval":    {"yes", chat.Pending{Handoffs: []chat.Item{a}, Approvals: []chat.Item{pay}}, chat.Decision{Kind: chat.Yes, Target: "apr_1"}},
		"no, with an approval":                   {"no", chat.Pending{Approvals: []chat.Item{pay}}, chat.Decision{Kind: chat.No, Target: "apr_1"}},
		"later, of one that is parked":           {"later", hands(parked), chat.Decision{Kind: chat.Plain}},
		"resume, between one parked and one not": {"resume", hands(a, parked), chat.Decision{Kind: chat.Resume, Target: "hof_p"}},
		"abort of a parked one":                  {"abort", hands(parked), chat.Decision{Kind: chat.Abort, Target: "hof_p"}},
		"more time":                              {"+20", hands(a), chat.Decision{Kind: chat.Extend, Target: "hof_a", More: 20 * time.Minute}},
		"sites, whatever waits":                  {"sites", hands(a, b), chat.Decision{Kind: chat.Sites}},
		"ordinary words, whatever waits":         {"I'll be there in a minute", hands(a), chat.Decision{Kind: chat.Plain}},
		"almost type, while something waits":     {"type hunter2", hands(a), chat.Decision{Kind: chat.Unsure}},
		"almost type, with nothing waiting":      {"type of paper?", chat.Pending{}, chat.Decision{Kind: chat.Plain}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, chat.Decide(chat.Read(tt.said), tt.p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever is said and whatever waits: nothing but "type:" types, a decision
// names what waits, and what is ambiguous touches nothing.
func TestNothingIsDoneToWhatDoesNotWait(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.OneOf(
			rapid.SampledFrom([]string{"done", "go ahead", "type: done", "yes", "no", "abort", "later", "+15", "resume", "screenshot", "type x"}),
			rapid.String(),
		).Draw(t, "said")
		var p chat.Pending
		ids := map[string]bool{}
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"h1", "h2", "h3"}), 0, 3, rapid.ID).Draw(t, "handoffs") {
			p.Handoffs = append(p.Handoffs, chat.Item{ID: id, Parked: rapid.Bool().Draw(t, "parked")})
			ids[id] = true
		}
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a1", "a2"}), 0, 2, rapid.ID).Draw(t, "approvals") {
			p.Approvals = append(p.Approvals, chat.Item{ID: id})
			ids[id] = true
		}
		p.Reply = rapid.SampledFrom([]string{"", "h1", "a1", "x"}).Draw(t, "reply")
		d := chat.Decide(chat.Read(said), p)
		if d.Kind == chat.Type && !strings.Contains(strings.ToLower(said), "type") {
			t.Fatalf("%q would be typed", said)
		}
		switch d.Kind {
		case chat.Type, chat.Screenshot, chat.Done, chat.Abort, chat.Later, chat.Extend, chat.Resume, chat.Yes, chat.No:
			if !ids[d.Target] || p.Reply != "" && d.Target != p.Reply {
				t.Fatalf("%q does %s to %q", said, d.Kind, d.Target)
			}
		case chat.Ask:
			if len(d.Which) < 2 || d.Target != "" {
				t.Fatalf("%q asks between %v", said, d.Which)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"type: x", "done", "/start abc", "+15", "device 42", "type\x00: y", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, said string) {
		w := chat.Read(said)
		if len(w.Kinds) == 0 {
			t.Fatal("a message must mean something")
		}
		if !w.Text.IsEmpty() && !strings.HasSuffix(said, w.Text.Reveal()) {
			t.Fatalf("%q would be typed of %q", w.Text.Reveal(), said)
		}
	})
}
