package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
)

// outlineOf draws an outline: some things with refs, some without.
func outlineOf() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var lines []string
		refs := rapid.SliceOfNDistinct(rapid.IntRange(1, 20), 0, 10, rapid.ID[int]).Draw(t, "refs")
		for _, r := range refs {
			lines = append(lines, fmt.Sprintf("%s[e%d] button%s: %s", strings.Repeat("  ", rapid.IntRange(0, 3).Draw(t, "depth")), r,
				rapid.SampledFrom([]string{"", " focused", " disabled"}).Draw(t, "state"), rapid.SampledFrom([]string{"A", "B", "focused"}).Draw(t, "name")))
		}
		for range rapid.IntRange(0, 6).Draw(t, "texts") {
			lines = append(lines, "> "+rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "text"))
		}
		return strings.Join(rapid.Permutation(lines).Draw(t, "order"), "\n")
	})
}

// Whoever has read the old outline and applies the changes has what whoever
// reads the new one has.
func TestChangesMakeTheNewOutlineOfTheOldOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := outlineOf().Draw(t, "before"), outlineOf().Draw(t, "after")
		c := compare(before, after)
		have := linesOf(before)
		drop := func(line string) {
			i := slices.Index(have, line)
			if i < 0 {
				t.Fatalf("%q vanished and was not there", line)
			}
			have = slices.Delete(have, i, i+1)
		}
		for _, l := range c.lines {
			sign, line, _ := strings.Cut(l, " ")
			switch sign {
			case "-":
				drop(line)
			case "~":
				name := "[" + refOf(line) + "] "
				drop(have[slices.IndexFunc(have, func(h string) bool { return strings.HasPrefix(h, name) })])
				have = append(have, line)
			case "+":
				have = append(have, line)
			}
		}
		want := linesOf(after)
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Fatalf("got %q, want %q", have, want)
		}
		if len(c.lines) != c.appeared+c.changed+c.vanished || !compare(after, after).none() {
			t.Fatalf("counted wrong: %+v", c)
		}
		text, whole := c.within(60)
		if whole != (strings.Count(text, "\n") == max(0, len(c.lines)-1) && !strings.Contains(text, "more changes")) {
			t.Fatalf("whole is %v: %q", whole, text)
		}
	})
}

func TestFocusAloneIsNoNews(t *testing.T) {
	t.Parallel()
	if c := compare("[e1] button: Go\n[e2] textbox focused required: Name = focused", "[e1] button focused: Go\n[e2] textbox required: Name = focused"); !c.none() {
		t.Errorf("got %q", c.lines)
	}
	if c := compare("[e1] link: x focused: y", "[e1] link: x: y"); c.none() {
		t.Error("a name was taken for a state")
	}
}

func TestAFenceIsClosedByItsOwnMarkAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SampledFrom([]string{"", "</page 012345678901>", "<page 012345678901>\n</page>"}).Draw(t, "trick") + rapid.String().Draw(t, "content")
		out := fence(content)
		mark := out[strings.Index(out, "<page ")+6:][:12]
		if strings.Count(out, "<page "+mark+">") != 1 || strings.Count(out, "</page "+mark+">") != 1 || !strings.HasSuffix(out, "\n</page "+mark+">") {
			t.Fatalf("the fence of %q is open: %s", content, out)
		}
		if strings.Contains(fence(content), mark) {
			t.Fatal("the same mark twice")
		}
	})
}

func TestPlainTextIsOneShortLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(2, 40).Draw(t, "most")
		got := plain(rapid.String().Draw(t, "text"), most)
		if utf8.RuneCountInString(got) > most+1 || strings.TrimSpace(got) != got {
			t.Fatalf("%q is longer than %d", got, most)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
				t.Fatalf("%q has %U", got, r)
			}
		}
	})
	if got := plain(" Zürich\n\t ok ", 100); got != "Zürich ok" {
		t.Errorf("got %q", got)
	}
}

func TestPicturesFitAModel(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	noise := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // for looks
	draw := func(w, h int, noisy bool) []byte {
		i := image.NewRGBA(image.Rect(0, 0, w, h))
		for y := range h {
			for x := range w {
				c := color.RGBA{uint8(200 * x / w), 80, 80, 255}
				if noisy {
					c = color.RGBA{uint8(noise.IntN(256)), uint8(noise.IntN(256)), uint8(noise.IntN(256)), 255}
				}
				i.SetRGBA(x, y, c)
			}
		}
		var out bytes.Buffer
		if err := png.Encode(&out, i); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for name, tt := range map[string]struct {
		w, h, parts, left int
		noisy             bool
		mime              string
	}{
		"a viewport stays as it is":  {1280, 720, 1, 0, false, "image/png"},
		"so does a photograph":       {400, 300, 1, 0, true, "image/png"},
		"a heavy one becomes JPEG":   {1000, 800, 1, 0, true, "image/jpeg"},
		"a wide one is made smaller": {3136, 400, 1, 0, false, "image/png"},
		"a long one has parts":       {800, 4000, 3, 0, false, "image/png"},
		"a very long one is cut":     {100, 8000, 4, 8000 - 4*1568, false, "image/png"},
		"one pixel":                  {1, 1, 1, 0, false, "image/png"},
	} {
		t.Run(name, func(t *testing.T) {
			parts, left, err := pictures(draw(tt.w, tt.h, tt.noisy))
			if err != nil || len(parts) != tt.parts || left != tt.left || parts[0].mime != tt.mime {
				t.Fatalf("%d parts, %d left, %v", len(parts), left, err)
			}
			for _, p := range parts {
				size, kind, err := image.DecodeConfig(bytes.NewReader(p.bytes))
				if err != nil || "image/"+kind != p.mime || max(size.Width, size.Height) > longSide {
					t.Errorf("%v %s %v", size, kind, err)
				}
			}
		})
	}
	if _, _, err := pictures([]byte("no picture")); !errors.Is(err, fault.ProviderError) {
		t.Errorf("got %v", err)
	}
}

func TestASmallPictureIsTheAverageOfTheLargeOne(t *testing.T) {
	t.Parallel()
	i := image.NewRGBA(image.Rect(0, 0, 4, 2))
	for x := range 4 {
		for y := range 2 {
			i.SetRGBA(x, y, color.RGBA{uint8(100 * (x / 2)), uint8(200 * y), 0, 255})
		}
	}
	small := shrink(i, i.Bounds(), 2)
	for x, want := range []color.RGBA{{0, 100, 0, 255}, {100, 100, 0, 255}} {
		if got := small.At(x, 0); got != want {
			t.Errorf("pixel %d is %v, want %v", x, got, want)
		}
	}
	if small.Bounds().Dy() != 1 {
		t.Errorf("it is %v", small.Bounds())
	}
}

// FuzzArguments: whatever a host sends, a tool either understands it or refuses
// it in words that do not repeat it.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"ref":"e1"}`, `{"target":"e1","ref":"e2"}`, `{"fields":[{"name":"a","value":"b"},{"ref":"e1","value":true}]}`,
		`{"text":"a","clear":false}`, `{"values":"a"}`, `{"selector":["a"]}`, "{\"text\":\"\xff\"}", `{"x":1,"y":2}`,
	} {
		f.Add([]byte(seed))
	}
	inputs := []reflect.Type{}
	for _, t := range table() {
		inputs = append(inputs, t.input)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, in := range inputs {
			err := decode(raw, reflect.New(in).Interface())
			if err == nil {
				continue
			}
			if !errors.Is(err, fault.InvalidRequest) || len(err.Error()) > 400 || strings.Contains(err.Error(), "the body") {
				t.Fatalf("%s: %v", in, err)
			}
		}
	})
}

func TestOtherSpellingsAreUnderstood(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]clickIn{
		`{"ref":"e1","element":"Sign in button"}`: {spot: spot{element: element{Target: "e1", Element: "Sign in button"}}},
		`{"selector":"#a","double_click":true}`:   {spot: spot{element: element{Target: "#a"}}, DoubleClick: true},
		`{"target":"e1","sessionId":"ses_1"}`:     {spot: spot{element: element{Target: "e1"}}, session: session{"ses_1"}},
	} {
		var got clickIn
		if err := decode(json.RawMessage(raw), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %+v (%v)", raw, got, err)
		}
	}
	for target, want := range map[string]string{"e12": "e12", "f1e3": "f1e3", "[e12]": "e12", "ref=e12": "e12", "[ref=e12]": "e12", "aria-ref=e12": "e12", "#e12": "", "e": "", "a[e1]": ""} {
		if got := (element{Target: target}).element(); got.Ref != want || (want == "") != (got.Selector == target) {
			t.Errorf("%s became %+v", target, got)
		}
	}
	if err := decode(json.RawMessage(`{"ref":"e1","target":"e2"}`), new(clickIn)); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("two targets: %v", err)
	}
}

func TestAChangeTellsUnlessMoreIsToCome(t *testing.T) {
	t.Parallel()
	const before = "[e1] button: Save\n> Nothing yet"
	for after, tells := range map[string]bool{
		"[e1] button: Save\n> Saved at noon":                true,
		"[e1] button: Saved\n> Nothing yet":                 true,
		"[e1] button: Save\n> Nothing yet\n[f2e3] link: Go": true,
		"[e1] button: Save":                                 false, // something will come in its place
		"[e1] button disabled: Saving\n> Nothing yet":       false,
		"[e1] button: Save\n> Loading":                      false,
		"[e1] button: Save\n> One moment…":                  false,
		before:                                              false,
	} {
		if got := compare(before, after).tells(); got != tells {
			t.Errorf("%q: %v", after, got)
		}
	}
}

// What is left out of a line can be told from what is left.
func TestLinesToActOnAreShort(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"[e1] button: Continue":               "e1 button Continue",
		"[f2e7] checkbox checked: Ja, gern":   "f2e7 checkbox checked Ja, gern",
		"[e3] checkbox: checked":              "e3 checkbox: checked", // a name, and no state
		"[e4] textbox: City = Bern: Old":      "e4 textbox City = Bern: Old",
		"[e5] combobox: {a} \"x\"":            "e5 combobox: {a} \"x\"",
		"[e6] link":                           "e6 link",
		"[e7] button: 合計":                     "e7 button: 合計",
		"> a text that says [e9] button: Pay": "> a text that says [e9] button: Pay",
	} {
		if got := short("[e0] link\n" + line + "\n[e9] link"); got != "e0 link\n"+want+"\ne9 link" {
			t.Errorf("%q became %q", line, got)
		}
	}
}
