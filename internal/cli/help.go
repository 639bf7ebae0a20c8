package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tapin/internal/fault"
)

// chapter is a part of the list of commands, in the order in which a newcomer
// needs them.
type chapter struct {
	title    string
	commands []*cobra.Command
}

// manual is what there is to say about one command. The help, the man pages
// and the help in JSON are made of it.
type manual struct {
	Command  string       `json:"command"` // tapin handoff start
	Usage    string       `json:"usage"`
	Summary  string       `json:"summary"`
	About    string       `json:"about"`
	Examples []string     `json:"examples,omitempty"`
	Flags    []flagManual `json:"flags,omitempty"`
	Commands []shortly    `json:"commands,omitempty"`
}

type flagManual struct {
	Name  string `json:"name"` // --output
	Short string `json:"short,omitempty"`
	Takes string `json:"takes,omitempty"`
	About string `json:"about"`
}

type shortly struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

func manualOf(cmd *cobra.Command) manual {
	m := manual{Command: cmd.CommandPath(), Usage: cmd.UseLine(), Summary: cmd.Short, About: cmd.Long}
	if m.About == "" {
		m.About = cmd.Short + "."
	}
	if cmd.HasAvailableSubCommands() && cmd.HasParent() {
		m.Usage = strings.TrimSuffix(m.Usage, " [flags]") + " [COMMAND] [flags]"
	}
	for line := range strings.SplitSeq(strings.Trim(cmd.Example, "\n"), "\n") {
		if line != "" {
			m.Examples = append(m.Examples, strings.TrimPrefix(line, "  "))
		}
	}
	own := cmd.Flags() // in the order that the command gives them, if it gives one
	if !cmd.HasParent() {
		own = cmd.PersistentFlags()
	}
	for _, f := range flagManuals(own) {
		if !cmd.HasParent() || cmd.Root().PersistentFlags().Lookup(strings.TrimPrefix(f.Name, "--")) == nil {
			m.Flags = append(m.Flags, f)
		}
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			m.Commands = append(m.Commands, shortly{c.Name(), c.Short})
		}
	}
	return m
}

func flagManuals(set *pflag.FlagSet) (all []flagManual) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		takes, about := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			about += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		one := flagManual{Name: "--" + f.Name, Takes: takes, About: about}
		if f.Shorthand != "" {
			one.Short = "-" + f.Shorthand
		}
		all = append(all, one)
	})
	return all
}

// written is a flag as it is typed: -o, --output file.
func (f flagManual) written() string {
	text := f.Name
	if f.Short != "" {
		text = f.Short + ", " + text
	}
	if f.Takes != "" {
		text += " " + f.Takes
	}
	return text
}

// tellManual is the help of one command.
func (a *app) tellManual(m manual) {
	p := a.paint(a.env.Stdout)
	a.printf("%s\n\n%s\n  %s\n", m.About, p.bold("Usage"), m.Usage)
	if len(m.Commands) > 0 {
		a.printf("\n%s\n", p.bold("Commands"))
		a.tellColumns(len(m.Commands), func(i int) (string, string) { return m.Commands[i].Name, m.Commands[i].Summary })
	}
	if len(m.Examples) > 0 {
		a.printf("\n%s\n", p.bold("Examples"))
		for _, e := range m.Examples {
			a.printf("  %s\n", e)
		}
	}
	if len(m.Flags) > 0 {
		a.printf("\n%s\n", p.bold("Flags"))
		a.tellColumns(len(m.Flags), func(i int) (string, string) { return m.Flags[i].written(), m.Flags[i].About })
	}
	a.printf("\n%s\n", p.dim("Every command also takes --home, --set, --json and --verbose; see tapin help."))
	if len(m.Commands) > 0 {
		a.printf("%s\n", p.dim("More about one of them: tapin help "+strings.TrimPrefix(m.Command, "tapin ")+" COMMAND"))
	}
}

func (a *app) tellColumns(n int, row func(int) (string, string)) {
	width := 0
	for i := range n {
		left, _ := row(i)
		width = max(width, len([]rune(left)))
	}
	for i := range n {
		left, right := row(i)
		a.printf("  %s  %s\n", pad(left, width), right)
	}
}

// tellHelp is the list of all commands.
func (a *app) tellHelp(root *cobra.Command, chapters []chapter) {
	p := a.paint(a.env.Stdout)
	a.printf("%s\n\n%s\n%s\n", root.Long, p.bold("Start here"), root.Example)
	for _, c := range chapters {
		a.printf("\n%s\n", p.bold(c.title))
		a.tellColumns(len(c.commands), func(i int) (string, string) { return pad(c.commands[i].Name(), 10), c.commands[i].Short })
	}
	flags := flagManuals(root.PersistentFlags())
	a.printf("\n%s\n", p.bold("Flags of every command"))
	a.tellColumns(len(flags), func(i int) (string, string) { return flags[i].written(), flags[i].About })
	a.printf("\nMore about a command: tapin help COMMAND\nWhat exit codes mean: tapin help exit-codes\n")
}

// exitCodes is the one place that says what the exit codes mean.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{0, "It worked."},
	{fault.ExitFailure, "Something went wrong that trying again may not mend; doctor found a problem."},
	{fault.ExitUsage, "What was asked for is not right: an argument, a flag, a setting, an address."},
	{fault.ExitNotFound, "There is nothing under that name, or no session."},
	{fault.ExitRefused, "It is not allowed, or not now: a person drives, a payment needs a yes, a hand-off was stopped."},
	{fault.ExitBrowser, "The page or the browser did not do it: no such element, a page that does not load."},
	{fault.ExitRetry, "It may work later: tapin is not running, or busy; a provider is in trouble."},
	{interrupted, "Ctrl-C ended it; what was begun was put back, or goes on when it is run again."},
}

// tellExitCodes says which code comes of which failure.
func (a *app) tellExitCodes() error {
	type meaning struct {
		Exit    int      `json:"exit"`
		Meaning string   `json:"meaning"`
		Errors  []string `json:"errors,omitempty"`
	}
	var all []meaning
	for _, e := range exitCodes {
		m := meaning{Exit: e.code, Meaning: e.meaning}
		for _, c := range fault.Codes() {
			if c.Exit() == e.code {
				m.Errors = append(m.Errors, string(c))
			}
		}
		all = append(all, m)
	}
	return a.answer(map[string]any{"exit_codes": all}, func() {
		p := a.paint(a.env.Stdout)
		a.printf("A command ends with one of these codes. Each error also has a name, which stands\nin brackets behind it and as \"error\" in JSON.\n\n")
		for _, m := range all {
			a.printf("  %s  %s\n", p.bold(fmt.Sprintf("%3d", m.Exit)), m.Meaning)
			for _, line := range wrapped(strings.Join(m.Errors, ", "), 72) {
				if line != "" {
					a.printf("       %s\n", p.dim(line))
				}
			}
		}
	})
}

// helpCommand shows the help, also where the command does not exist: that is a
// mistake like any other.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND|exit-codes]", Short: "Show help about a command",
		Long: `Shows help about a command, or about what exit codes mean. With --json it is
an object, with the flags and the commands below it.`,
		Example: "  tapin help open\n  tapin help handoff start\n  tapin help exit-codes",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			if about, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, c := range about.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, c.Name()+"\t"+c.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "exit-codes" {
				return a.tellExitCodes()
			}
			about, rest, err := root.Find(args)
			if err != nil {
				return fault.New(fault.InvalidRequest, "", "%w", err)
			}
			if err := a.knownCommand(about, rest); err != nil {
				return err
			}
			return about.Help()
		},
	}
}

// helpFunc is how every command shows its help.
func (a *app) helpFunc(root *cobra.Command, chapters []chapter) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, _ []string) {
		m := manualOf(cmd)
		_ = a.answer(m, func() { // the manual can always be written
			if cmd == root {
				a.tellHelp(root, chapters)
				return
			}
			a.tellManual(m)
		})
	}
}
