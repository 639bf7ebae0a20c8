package cli

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/fault"
)

// targetHelp is in the long help of every command that takes a TARGET.
const targetHelp = `A TARGET is what the element says, or one of
  css:SELECTOR   label:TEXT   ref:REF   test-id:ID   xpath:PATH   at:X,Y
A ref comes from "tapin snapshot"; it may stand alone: e12.`

// refForm is how a snapshot names what can be acted on; who means such a text says text:e12.
var refForm = regexp.MustCompile(`^e[0-9]+$`)

// target is the element that a word means: by default what the element says,
// or its label where fields are meant.
func target(word string, fields bool) (api.Target, error) {
	var t api.Target
	way, rest, ok := strings.Cut(word, ":")
	if !ok {
		way = ""
	}
	switch way {
	case "css":
		t.Selector = rest
	case "text":
		t.Text = rest
	case "label":
		t.Label = rest
	case "ref":
		t.Ref = rest
	case "test-id":
		t.TestID = rest
	case "xpath":
		t.XPath = rest
	case "at":
		x, y, err := point(rest)
		if err != nil {
			return t, err
		}
		t.X, t.Y = &x, &y
	default:
		if refForm.MatchString(word) {
			t.Ref = word
		} else if fields {
			t.Label = word
		} else {
			t.Text = word
		}
	}
	return t, nil
}

// field is the element that a word means where it must be a field.
func field(word string) (api.Element, error) {
	t, err := target(word, true)
	if err != nil {
		return t.Element, err
	}
	if t.Text != "" || t.X != nil {
		return t.Element, fault.New(fault.InvalidRequest, "", "a field cannot be named as %q", clean(word)).
			WithHint("Name it by its label, or as css:SELECTOR or ref:REF.")
	}
	return t.Element, nil
}

func point(s string) (x, y float64, err error) {
	left, top, ok := strings.Cut(s, ",")
	x, err1 := strconv.ParseFloat(strings.TrimSpace(left), 64)
	y, err2 := strconv.ParseFloat(strings.TrimSpace(top), 64)
	if !ok || err1 != nil || err2 != nil {
		return 0, 0, fault.New(fault.InvalidRequest, "", "a point is X,Y, not %q", clean(s)).WithHint("Such as at:120,64.")
	}
	return x, y, nil
}

// targetFlags name an element by flags instead of a word.
type targetFlags struct{ css, ref, label, role, name, testID, xpath, at string }

func (f *targetFlags) add(cmd *cobra.Command, byPoint bool) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.css, "css", "", "the element with this CSS `selector`")
	flags.StringVar(&f.ref, "ref", "", "the element with this `ref` of a snapshot")
	flags.StringVar(&f.label, "label", "", "the field with this label `text`")
	flags.StringVar(&f.role, "role", "", "the element of this accessible `role`, such as button")
	flags.StringVar(&f.name, "name", "", "with --role: its accessible `name`")
	flags.StringVar(&f.testID, "test-id", "", "the element with this data-testid `value`")
	flags.StringVar(&f.xpath, "xpath", "", "the element at this XPath `expression`")
	if byPoint {
		flags.StringVar(&f.at, "at", "", "the point `X,Y` of what is in view")
	}
}

func (f *targetFlags) given() bool { return *f != targetFlags{} }

// pick is the element that the flags mean, else the first word, and the words
// that are left.
func (f *targetFlags) pick(words []string, fields bool) (api.Target, []string, error) {
	if !f.given() {
		if len(words) == 0 {
			return api.Target{}, nil, fault.New(fault.InvalidRequest, "", "no element is named").
				WithHint("Say what it says, or use --css, --ref, --label or another of the flags.")
		}
		t, err := target(words[0], fields)
		return t, words[1:], err
	}
	t := api.Target{Element: api.Element{
		Selector: f.css, Ref: f.ref, Label: f.label, Role: f.role, Name: f.name, TestID: f.testID, XPath: f.xpath,
	}}
	if f.at != "" {
		x, y, err := point(f.at)
		if err != nil {
			return t, nil, err
		}
		t.X, t.Y = &x, &y
	}
	return t, words, t.Check()
}

// noWords refuses words that nothing was done with.
func noWords(cmd *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return fault.New(fault.InvalidRequest, "", "there is a word too many: %q", clean(words[0])).
		WithHint("It is used as: %s; an element is named by a word or by flags.", cmd.UseLine())
}

// patience is the --timeout of an action.
type patience struct{ timeout string }

func (p *patience) add(cmd *cobra.Command, doc string) {
	cmd.Flags().StringVar(&p.timeout, "timeout", "", doc)
}

func (p *patience) milliseconds() (int, error) {
	if p.timeout == "" {
		return 0, nil
	}
	var d config.Duration
	if err := d.UnmarshalText([]byte(p.timeout)); err != nil || d.Std() < time.Millisecond {
		return 0, fault.New(fault.InvalidRequest, "", "--timeout must be a length of time, not %q", clean(p.timeout)).
			WithHint("Such as --timeout 30s.")
	}
	return int(d.Std() / time.Millisecond), nil
}

const elementPatience = "give the element this `time` to become usable (10s)"

// noPicture is for commands, whose answers are read and not looked at.
func noPicture() api.Look {
	none := false
	return api.Look{Screenshot: &none}
}

// drive makes one call to the running tapin and prints its answer.
func drive[A any](ctx context.Context, a *app, doing string, call func(context.Context, *api.Client) (*A, error), tell func(*A)) error {
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	done := a.progress(doing)
	defer done()
	answer, err := call(ctx, client)
	done()
	if err != nil {
		return err
	}
	return a.answer(answer, func() { tell(answer) })
}

// tellActed prints what was done and where it has led.
func (a *app) tellActed(acted *api.Acted, did ...row) {
	rows := append(did, row{"url", clean(acted.URL)}, row{"title", clean(acted.Title)})
	if d := acted.Dialog; d != nil {
		rows = append(rows, row{"dialog", fmt.Sprintf("%s %s: %s", a.paint(a.env.Stdout).bang(), clean(d.Kind), clean(d.Message))})
		rows = append(rows, row{"", "answer it with: " + a.command("dialog", "accept")})
	}
	a.rows(rows...)
}
