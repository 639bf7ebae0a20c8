package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
)

// someoneAsks reports whether a person is there to answer questions.
func (a *app) someoneAsks() bool {
	in, ok := a.env.Stdin.(io.Writer) // a terminal can be written to, and that is how Env tells one
	return ok && !a.json && a.env.IsTerminal(in) && a.env.IsTerminal(a.env.Stdout)
}

// input is what the person says, a line at a time. There is one reader: what a
// second one had read ahead would be lost.
func (a *app) input() *bufio.Reader {
	if a.lines == nil {
		a.lines = bufio.NewReader(a.env.Stdin)
	}
	return a.lines
}

// readLine waits for a line, and no longer than ctx: nothing can interrupt a
// read, so that it is left behind.
func (a *app) readLine(ctx context.Context) (string, error) {
	type said struct {
		line string
		err  error
	}
	heard := make(chan said, 1)
	go func() {
		defer guard.Catch("command line")
		line, err := a.input().ReadString('\n')
		if errors.Is(err, io.EOF) && line != "" {
			err = nil
		}
		heard <- said{strings.TrimSpace(line), err}
	}()
	select {
	case s := <-heard:
		return s.line, s.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// asked asks a question and returns the answer, or what stands in brackets if
// there is none.
func (a *app) asked(ctx context.Context, question, otherwise string) (string, error) {
	if otherwise != "" {
		question += " [" + otherwise + "]"
	}
	a.questions++
	a.printf("%s ", question)
	line, err := a.readLine(ctx)
	if err != nil {
		a.printf("\n")
		return "", err
	}
	if line == "" {
		return otherwise, nil
	}
	return line, nil
}

// agreed asks a question that only yes answers.
func (a *app) agreed(ctx context.Context, question string) bool {
	yes, err := a.confirmed(ctx, question, false)
	return err == nil && yes
}

// confirmed asks a question of yes or no, and again where it is neither.
func (a *app) confirmed(ctx context.Context, question string, byDefault bool) (bool, error) {
	choices := "[y/N]"
	if byDefault {
		choices = "[Y/n]"
	}
	for {
		line, err := a.asked(ctx, question+" "+choices, "")
		switch word := strings.ToLower(line); {
		case err != nil:
			return false, err
		case word == "":
			return byDefault, nil
		case word == "y" || word == "yes":
			return true, nil
		case word == "n" || word == "no":
			return false, nil
		}
		a.printf("Please say y or n.\n")
	}
}

// chosen asks for one of a few things by its number.
func (a *app) chosen(ctx context.Context, question string, choices []string, byDefault int) (int, error) {
	for i, c := range choices {
		a.printf("    %d  %s\n", i+1, c)
	}
	for {
		line, err := a.asked(ctx, question, fmt.Sprint(byDefault+1))
		if err != nil {
			return 0, err
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(choices) {
			return n - 1, nil
		}
		a.printf("  Please say a number from 1 to %d.\n", len(choices))
	}
}

// askedSecret reads one line without showing it. An empty one is an answer too.
func (a *app) askedSecret(ctx context.Context, question string) (secret.Text, error) {
	a.questions++
	file, ok := a.env.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		a.printf("%s ", question)
		line, err := a.readLine(ctx)
		a.printf("\n")
		return secret.New(line), err
	}
	a.printf("%s ", question)
	defer a.printf("\n")
	text, err := readHidden(ctx, file)
	return secret.New(strings.TrimSpace(text.Reveal())), err
}

// waited does what may wait for ever, such as a read from a pipe, and waits no
// longer than ctx. Nothing can interrupt it, so that it is left behind.
func waited[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type came struct {
		what T
		err  error
	}
	done := make(chan came, 1)
	go func() {
		defer guard.Catch("command line")
		what, err := do()
		done <- came{what, err}
	}()
	select {
	case c := <-done:
		return c.what, c.err
	case <-ctx.Done():
		var nothing T
		return nothing, exit(interrupted)
	}
}

// patient reads from what may let it wait, such as a named pipe, until ctx ends.
type patient struct {
	ctx  context.Context
	from io.Reader
}

func (p patient) Read(into []byte) (int, error) {
	// Of its own: a read that is left behind must not write into what has another use by then.
	part, err := waited(p.ctx, func() ([]byte, error) {
		part := make([]byte, len(into))
		n, err := p.from.Read(part)
		return part[:n], err
	})
	return copy(into, part), err
}

// stopped tells what a Ctrl-C has left.
func (a *app) stopped(state, hint string) error {
	details := "interrupted; " + state
	if a.json {
		if err := a.object(false, api.Problem{Error: string(fault.Busy), Details: details, Hint: hint}); err != nil {
			return err
		}
		return exit(interrupted)
	}
	a.errorf("tapin: %s.\n%s\n", details, hint)
	return exit(interrupted)
}

// readHidden reads a line from a terminal that does not show it. Who leaves with
// Ctrl-C gets a terminal back that shows what is typed.
func readHidden(ctx context.Context, file *os.File) (secret.Text, error) {
	tty := int(file.Fd()) // asked once: the file may be closed while the read is left behind
	before, err := term.GetState(tty)
	if err != nil {
		return secret.Text{}, fault.New(fault.InvalidRequest, "", "nothing could be read from the terminal")
	}
	type said struct {
		text secret.Text
		err  error
	}
	heard := make(chan said, 1)
	go func() {
		defer guard.Catch("command line")
		typed, err := term.ReadPassword(tty)
		heard <- said{secret.New(string(typed)), err}
	}()
	select {
	case s := <-heard:
		if s.err != nil {
			s.err = fault.New(fault.InvalidRequest, "", "nothing could be read from the terminal")
		}
		return s.text, s.err
	case <-ctx.Done():
		_ = term.Restore(tty, before) // the read itself is left behind
		return secret.Text{}, exit(interrupted)
	}
}
