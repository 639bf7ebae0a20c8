package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tapin/internal/fault"
)

func (a *app) manCommand() *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use:   "man [COMMAND]",
		Short: "Print a man page, or write all of them",
		Long: `Prints the man page of tapin or of one command. With --into it writes all of
them into a folder, where man finds them. They say what "tapin help" says.`,
		Example: `  tapin man | man -l -
  tapin man handoff start | man -l -
  tapin man --into ~/.local/share/man/man1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if folder != "" {
				if len(args) > 0 {
					return fault.New(fault.InvalidRequest, "", "--into writes all pages, not that of one command").WithHint("Leave the command out.")
				}
				return a.writeManPages(cmd.Root(), folder)
			}
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return a.knownCommand(cmd.Root(), args)
			}
			page := manPage(about)
			return a.answer(map[string]string{"name": manName(about), "page": page}, func() { a.printf("%s", page) })
		},
	}
	cmd.Flags().StringVar(&folder, "into", "", "write all pages into this `folder`")
	return cmd
}

func (a *app) writeManPages(root *cobra.Command, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // pages for everybody
		return err
	}
	var names []string
	for _, cmd := range available(root) {
		name := manName(cmd) + ".1"
		if err := place(filepath.Join(folder, name), []byte(manPage(cmd)), 0o644); err != nil {
			return err
		}
		names = append(names, name)
	}
	return a.answer(map[string]any{"folder": folder, "pages": names}, func() {
		a.printf("%s Wrote %s into %s.\n", a.paint(a.env.Stdout).green("✓"), count(len(names), "page"), a.tilde(folder))
	})
}

// available are a command and all below it that people are meant to use.
func available(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, available(c)...)
		}
	}
	return all
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is a manual in the language of man.
func manPage(cmd *cobra.Command) string {
	m := manualOf(cmd)
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say(".TH %s 1 \"\" \"tapin %s\" \"tapin\"", strings.ToUpper(strings.ReplaceAll(roff(manName(cmd)), `\-`, "-")), roff(buildVersion()))
	say(".SH NAME\n%s \\- %s", roff(manName(cmd)), roff(m.Summary))
	say(".SH SYNOPSIS\n.B %s", roff(m.Usage))
	say(".SH DESCRIPTION")
	for i, paragraph := range strings.Split(m.About, "\n\n") {
		if i > 0 {
			say(".PP")
		}
		lined := strings.HasPrefix(paragraph, "  ") || strings.Contains(paragraph, "\n  ")
		if lined { // a table of its own
			say(".nf\n%s\n.fi", roff(paragraph))
			continue
		}
		say("%s", roff(paragraph))
	}
	if len(m.Commands) > 0 {
		say(".SH COMMANDS")
		for _, c := range m.Commands {
			say(".TP\n.B %s\n%s", roff(c.Name), roff(c.Summary))
		}
	}
	flags := m.Flags
	if cmd.HasParent() {
		flags = append(flags, flagManuals(cmd.Root().PersistentFlags())...)
	}
	say(".SH OPTIONS")
	for _, f := range flags {
		say(".TP\n.B %s\n%s", roff(f.written()), roff(f.About))
	}
	if len(m.Examples) > 0 {
		say(".SH EXAMPLES\n.nf")
		for _, e := range m.Examples {
			say("%s", roff(e))
		}
		say(".fi")
	}
	say(".SH EXIT STATUS")
	for _, e := range exitCodes {
		say(".TP\n.B %d\n%s", e.code, roff(e.meaning))
	}
	if cmd.HasParent() {
		say(".SH SEE ALSO\n.BR %s (1)", roff(manName(cmd.Parent())))
	}
	return out.String()
}

// roff is text that man shows as it stands.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
