package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// maxInput is as much as is read for one text; the door takes no more.
const maxInput = 1 << 20

// secrets reads what shall not stand in a command line, where the shell's
// history and the list of processes would keep it.
type secrets struct {
	app   *app
	lines *bufio.Reader
}

func (a *app) secrets() *secrets {
	return &secrets{app: a, lines: bufio.NewReader(io.LimitReader(a.env.Stdin, maxInput))}
}

// ask reads one secret: at a terminal without showing it, else a line.
func (s *secrets) ask(ctx context.Context, what string) (secret.Text, error) {
	if file, ok := s.terminal(); ok {
		s.app.errorf("%s: ", clean(what))
		defer s.app.errorf("\n")
		return readHidden(ctx, file)
	}
	line, err := waited(ctx, func() (string, error) { return s.lines.ReadString('\n') })
	if errors.Is(err, exit(interrupted)) {
		return secret.Text{}, err
	}
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return secret.Text{}, fault.New(fault.InvalidRequest, "", "standard input has no line for %s", clean(what)).
			WithHint("Each value of - takes one line, in the order of the command line.")
	}
	return secret.New(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")), nil
}

// rest reads everything there is, or asks at a terminal.
func (s *secrets) rest(ctx context.Context, what string) (secret.Text, error) {
	if _, ok := s.terminal(); ok {
		return s.ask(ctx, what)
	}
	raw, err := waited(ctx, func() ([]byte, error) { return io.ReadAll(s.lines) })
	if errors.Is(err, exit(interrupted)) {
		return secret.Text{}, err
	}
	if err != nil {
		return secret.Text{}, fault.New(fault.InvalidRequest, "", "standard input could not be read")
	}
	return secret.New(strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")), nil
}

func (s *secrets) terminal() (*os.File, bool) {
	file, ok := s.app.env.Stdin.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

const hiddenHelp = `A text of - is read from standard input, and at a terminal asked for without
showing it. Use that for passwords and codes: what stands in the command line
stays in the shell's history and can be seen in the list of processes.`

func (a *app) typeCommand() *cobra.Command {
	var into targetFlags
	var wait patience
	var req api.TypeRequest
	cmd := &cobra.Command{
		Use:   "type TEXT",
		Short: "Type into a field",
		Long: `Types a text, key by key, into the field that the flags name, or else into
the one that has the focus. What was typed is in no answer, log or journal.

` + hiddenHelp,
		Example: `  tapin type "Zurich HB" --label From --submit
  tapin type - --css "#password"
  pass show bank | tapin type - --label Password`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if into.given() {
				to, _, err := into.pick(nil, true)
				if err != nil {
					return err
				}
				req.Element = to.Element
			}
			var err error
			if req.TimeoutMS, err = wait.milliseconds(); err != nil {
				return err
			}
			req.Text, req.Look = secret.New(args[0]), noPicture()
			if args[0] == "-" {
				if req.Text, err = a.secrets().rest(cmd.Context(), "Text"); err != nil {
					return err
				}
			}
			return drive(cmd.Context(), a, "typing", func(ctx context.Context, c *api.Client) (*api.TypeAnswer, error) {
				return c.Type(ctx, "", req)
			}, func(got *api.TypeAnswer) {
				a.tellActed(&got.Acted, row{"typed", count(got.Characters, "character")}, row{"field", clean(got.Field)})
			})
		},
	}
	into.add(cmd, false)
	flags := cmd.Flags()
	flags.BoolVar(&req.Clear, "clear", false, "empty the field first")
	flags.BoolVar(&req.Submit, "submit", false, "press Enter at the end")
	wait.add(cmd, elementPatience)
	return cmd
}

func (a *app) fillCommand() *cobra.Command {
	var wait patience
	cmd := &cobra.Command{
		Use:   "fill FIELD=VALUE…",
		Short: "Fill in a form",
		Long: `Fills many fields in one go: text fields, dates, lists, and boxes with true or
false. A FIELD is its label, or css:SELECTOR or ref:REF.

A VALUE of - is read from standard input, a line for each, and at a terminal
asked for without showing it. Use that for passwords and codes: what stands in
the command line stays in the shell's history and can be seen in the list of
processes.`,
		Example: `  tapin fill "First name=Ada" Country=Switzerland "I agree=true"
  tapin fill Email=ada@example.com Password=-
  tapin fill 'css:input[name=q]=weather'`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := api.FillRequest{Look: noPicture()}
			hidden := a.secrets()
			for _, arg := range args {
				name, value, ok := splitField(arg)
				if !ok {
					return fault.New(fault.InvalidRequest, "", "%q is not FIELD=VALUE", clean(arg)).WithHint(`Such as "First name=Ada".`)
				}
				element, err := field(name)
				if err != nil {
					return err
				}
				text := secret.New(value)
				if value == "-" {
					if text, err = hidden.ask(cmd.Context(), name); err != nil {
						return err
					}
				}
				req.Fields = append(req.Fields, api.FieldValue{Element: element, Value: &text})
			}
			var err error
			if req.TimeoutMS, err = wait.milliseconds(); err != nil {
				return err
			}
			return drive(cmd.Context(), a, "filling in the form", func(ctx context.Context, c *api.Client) (*api.FillAnswer, error) {
				return c.Fill(ctx, "", req)
			}, func(got *api.FillAnswer) {
				a.tellActed(&got.Acted, row{"filled", fmt.Sprintf("%d of %s", got.Filled, count(len(got.Fields), "field"))})
			})
		},
	}
	wait.add(cmd, elementPatience)
	return cmd
}

// splitField cuts FIELD=VALUE at the first = that is not part of a selector's
// brackets or quotes.
func splitField(arg string) (name, value string, ok bool) {
	if !strings.HasPrefix(arg, "css:") && !strings.HasPrefix(arg, "xpath:") {
		name, value, ok = strings.Cut(arg, "=")
		return name, value, ok && name != ""
	}
	depth, quote := 0, rune(0)
	for i, r := range arg {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[' || r == '(':
			depth++
		case r == ']' || r == ')':
			depth--
		case r == '=' && depth == 0:
			return arg[:i], arg[i+1:], true
		}
	}
	return "", "", false
}

func (a *app) pressCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "press KEY",
		Short:   "Press a key or a combination",
		Long:    "Presses a key, such as Enter, Escape, ArrowDown or F5, or a combination.",
		Example: "  tapin press Enter\n  tapin press Control+A",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return drive(cmd.Context(), a, "pressing a key", func(ctx context.Context, c *api.Client) (*api.Acted, error) {
				return c.Press(ctx, "", api.PressRequest{Key: args[0], Look: noPicture()})
			}, func(got *api.Acted) { a.tellActed(got, row{"pressed", clean(args[0])}) })
		},
	}
}

func (a *app) selectCommand() *cobra.Command {
	var at targetFlags
	var wait patience
	cmd := &cobra.Command{
		Use:   "select [FIELD] OPTION…",
		Short: "Choose from a list",
		Long: `Chooses options of a list, by value or by what they say. A FIELD is its label,
or css:SELECTOR or ref:REF; with one of the flags it is left out.`,
		Example: "  tapin select Country Switzerland\n  tapin select --css \"#size\" L",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			element, options, err := fieldAnd(cmd, &at, args)
			req := api.SelectRequest{Element: element, Values: options, Look: noPicture()}
			if err == nil {
				req.TimeoutMS, err = wait.milliseconds()
			}
			if err != nil {
				return err
			}
			return drive(cmd.Context(), a, "choosing", func(ctx context.Context, c *api.Client) (*api.SelectAnswer, error) {
				return c.Select(ctx, "", req)
			}, func(got *api.SelectAnswer) {
				a.tellActed(&got.Acted, row{"selected", clean(strings.Join(got.Selected, ", "))})
			})
		},
	}
	at.add(cmd, false)
	wait.add(cmd, elementPatience)
	return cmd
}

func (a *app) uploadCommand() *cobra.Command {
	var at targetFlags
	var wait patience
	cmd := &cobra.Command{
		Use:   "upload [FIELD] FILE…",
		Short: "Give files to a field",
		Long: `Gives files to a file field. Only files under the folder that the setting
"uploads" names are allowed; other names are looked for there. A FIELD is its
label, or css:SELECTOR or ref:REF; with one of the flags it is left out.`,
		Example: "  tapin upload Photo me.jpg\n  tapin upload --css \"input[type=file]\" one.pdf two.pdf",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			element, files, err := fieldAnd(cmd, &at, args)
			req := api.UploadRequest{Element: element, Look: noPicture()}
			if err == nil {
				req.TimeoutMS, err = wait.milliseconds()
			}
			if err != nil {
				return err
			}
			for _, file := range files {
				req.Files = append(req.Files, here(file))
			}
			return drive(cmd.Context(), a, "giving the files", func(ctx context.Context, c *api.Client) (*api.UploadAnswer, error) {
				return c.Upload(ctx, "", req)
			}, func(got *api.UploadAnswer) { a.tellActed(&got.Acted, row{"uploaded", count(got.Files, "file")}) })
		},
	}
	at.add(cmd, false)
	wait.add(cmd, elementPatience)
	return cmd
}

// fieldAnd takes the field off the words, and needs at least one to be left.
func fieldAnd(cmd *cobra.Command, at *targetFlags, words []string) (api.Element, []string, error) {
	var element api.Element
	if at.given() {
		t, _, err := at.pick(nil, true)
		if err != nil {
			return element, nil, err
		}
		element = t.Element
	} else {
		var err error
		if element, err = field(words[0]); err != nil {
			return element, nil, err
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return element, nil, fault.New(fault.InvalidRequest, "", "there is a word missing").WithHint("It is used as: %s", cmd.UseLine())
	}
	return element, words, nil
}

// here is the full path of a file in the current folder; any other name stays
// as it is and means one in the folder for uploads.
func here(file string) string {
	if _, err := os.Stat(file); err != nil {
		return file
	}
	full, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	return full
}
