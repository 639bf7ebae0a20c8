package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/fault"
)

func (a *app) setupCommand() *cobra.Command {
	var s setup
	names := []cobra.Completion{"browser", "telegram", "phone", "agent"}
	cmd := &cobra.Command{
		Use:   "setup [STEP…]",
		Short: "Set tapin up, step by step",
		Long: `Goes through what a new tapin needs, one step at a time: a browser; a Telegram
bot by which it writes to you; a way for your phone to get here; and the agent
that is to use it. Every step can be skipped, and tapin works without all but
the first. What is done already is shown and left as it is, so that it can be
run again at any time. With the name of a STEP it does that one alone:
` + strings.Join(names, ", ") + `.

Where nobody can be asked it tells what is left. With --yes it asks nothing,
does what needs no answer, and tells what is left.`,
		Example: `  tapin setup
  tapin setup telegram
  tapin setup --yes --json`,
		ValidArgs: names,
		Args:      arguments(cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.app = a
			return s.run(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&s.yes, "yes", false, "ask nothing, and do what needs no answer")
	return cmd
}

// How a step stands.
const (
	stepDone    = "done"
	stepLeft    = "left"
	stepSkipped = "skipped" // by the person, now
	stepFailed  = "failed"
)

// stage is one thing to set up. Each is whole or not at all: whoever leaves
// between two has what was done so far.
type stage struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Text  string `json:"text"`
	Next  string `json:"next,omitempty"` // how to do it later

	title string
	why   string
	look  func(context.Context, *stage)
	do    func(context.Context, *stage) error
}

// setup is one walk through the steps.
type setup struct {
	app *app
	yes bool
}

// errSkipped is a person's no.
var errSkipped = errors.New("skipped")

func (s *setup) steps() []*stage {
	return []*stage{
		{Name: "browser", title: "A browser", why: "tapin drives a Chrome, Chromium or Edge of this machine.", look: s.lookBrowser, do: s.doBrowser},
		{Name: "telegram", title: "Telegram", why: "When the agent needs you, a bot of your own writes to you, with a picture and the way in.", look: s.lookTelegram, do: s.doTelegram},
		{Name: "phone", title: "A way for your phone", why: "The live browser is shown by this machine; a phone elsewhere needs a way to it.", look: s.lookPhone, do: s.doPhone},
		{Name: "agent", title: "Your agent", why: "An agent gets tapin's tools by an entry in the settings of its host.", look: s.lookAgent, do: s.doAgent},
	}
}

func (s *setup) run(ctx context.Context, only []string) error {
	a, began := s.app, time.Now()
	if _, _, err := a.settings(); err != nil {
		return fault.New(fault.Of(err).Code, "", "%s", fault.Of(err).Details()).WithHint("Correct it with: %s", a.command("config", "edit"))
	}
	home, err := a.openHome() // what cannot be written to is best told first
	if err != nil {
		return err
	}
	_ = home.Close()
	steps := slices.DeleteFunc(s.steps(), func(st *stage) bool { return len(only) > 0 && !slices.Contains(only, st.Name) })
	var failed error
	for i, st := range steps {
		s.head(i, len(steps), st)
		if err := s.walk(ctx, st); err != nil {
			return s.interrupted()
		}
		s.tell(st)
		if st.State == stepFailed && failed == nil {
			failed = exit(fault.ExitFailure)
		}
	}
	if err := s.conclude(steps, began); err != nil {
		return err
	}
	return failed
}

// walk looks at a step and does it. It returns an error only where the person
// has left; what goes wrong stands in the step.
func (s *setup) walk(ctx context.Context, st *stage) error {
	done := s.app.progress("looking")
	st.look(ctx, st)
	done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if st.State == stepDone || !s.yes && !s.app.someoneAsks() {
		return nil
	}
	err := st.do(ctx, st)
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, io.EOF):
		return context.Canceled
	case errors.Is(err, errSkipped):
		st.State = stepSkipped
	default:
		f := fault.Of(plainly(err))
		st.State, st.Text = stepFailed, f.Details()
		if f.Code == fault.Internal {
			st.Text = err.Error()
		}
		st.Text += " [" + string(f.Code) + "]"
		if advice := f.Advice(); advice != "" {
			st.Next = advice
		}
	}
	return nil
}

func (s *setup) head(i, n int, st *stage) {
	if s.app.json {
		return
	}
	p := s.app.paint(s.app.env.Stdout)
	s.app.printf("\n%s  %s\n", p.bold(st.title), p.dim(fmt.Sprintf("%d of %d", i+1, n)))
}

// say prints a line of a step.
func (s *setup) say(format string, args ...any) {
	if !s.app.json {
		s.app.printf("  %s\n", s.app.indented(fmt.Sprintf(format, args...), 2))
	}
}

func (s *setup) tell(st *stage) {
	if s.app.json {
		return
	}
	p := s.app.paint(s.app.env.Stdout)
	mark := map[string]string{stepDone: p.green("✓"), stepLeft: p.dim("·"), stepSkipped: p.dim("·"), stepFailed: p.red("✗")}[st.State]
	text := st.Text
	if st.State == stepSkipped {
		text = "Skipped."
	}
	s.app.printf("  %s %s\n", mark, s.app.indented(text, 4))
	if st.Next != "" && st.State != stepDone {
		s.app.printf("    %s %s\n", p.bold("→"), s.app.indented(st.Next, 6))
	}
}

// interrupted is a person who left: nothing is half done.
func (s *setup) interrupted() error {
	a := s.app
	if a.json {
		return exit(interrupted) // it asked nothing, and has nothing to add
	}
	a.printf("\nStopped. What was done before stays; go on at any time with: %s\n", a.command("setup"))
	return exit(interrupted)
}

// conclude tells how it stands, and what to do first.
func (s *setup) conclude(steps []*stage, began time.Time) error {
	a := s.app
	left := 0
	for _, st := range steps {
		if st.State != stepDone {
			left++
		}
	}
	running := a.runs()
	answer := struct {
		Steps     []*stage `json:"steps"`
		Left      int      `json:"left"`
		Questions int      `json:"questions"`
		Running   bool     `json:"running"`
	}{steps, left, a.questions, running}
	return a.answer(answer, func() {
		p := a.paint(a.env.Stdout)
		a.printf("\n")
		switch left {
		case 0:
			a.printf("%s", p.green("Everything is set up."))
		default:
			a.printf("%s done, %d left for another time.", count(len(steps)-left, "step"), left)
		}
		a.printf("%s\n", p.dim(fmt.Sprintf("  %s, %s", seconds(time.Since(began)), count(a.questions, "question"))))
		if running {
			a.printf("tapin is running. Try it: %s\n", p.bold(a.command("open", "https://example.com")))
			return
		}
		a.printf("Start it with: %s\n", p.bold(a.command("up")))
	})
}

// may asks for consent, which --yes has given.
func (s *setup) may(ctx context.Context, question string) error {
	if s.yes {
		return nil
	}
	yes, err := s.app.confirmed(ctx, "  "+question, true)
	if err != nil {
		return err
	}
	if !yes {
		return errSkipped
	}
	return nil
}
