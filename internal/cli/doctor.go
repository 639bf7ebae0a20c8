package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/store"
)

// verdict is what the doctor thinks of one thing.
type verdict string

const (
	good verdict = "ok"
	note verdict = "note" // nothing to mend, but worth knowing
	warn verdict = "warning"
	bad  verdict = "problem"
)

// finding is one line of the doctor's.
type finding struct {
	Name    string  `json:"name"`
	Verdict verdict `json:"verdict"`
	Text    string  `json:"text"`
	Fix     string  `json:"fix,omitempty"`

	mend *mend // how tapin itself can mend it; nil if it cannot
}

func (a *app) doctorCommand() *cobra.Command {
	var o fixOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for anything amiss, and mend it",
		Long: `Looks at the settings, the home, the browser, the ports, the key and the
network, and says how to mend what it finds. It changes nothing, and fails only
if something must be mended.

With --fix it mends what it safely can, and says what it did: it closes a home
that others could write to, clears away what dead browsers and a restore that
was cut off left, and with your consent installs a browser, moves to a free port,
replaces a token that others could have read, takes the version before of a file
that cannot be read, or puts such a file aside. It removes no record and no login,
ends nothing that runs, and locks need no mending: the system frees them with
their process.`,
		Example: `  tapin doctor
  tapin doctor --fix
  tapin doctor --fix --dry-run`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !o.fix && (o.dryRun || o.yes) {
				return fault.New(fault.InvalidRequest, "", "--dry-run and --yes go with --fix").WithHint("Without --fix nothing is changed anyway.")
			}
			return a.doctor(cmd.Context(), o)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&o.fix, "fix", false, "mend what can be mended")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "with --fix: say what it would do, and change nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "with --fix: do not ask")
	return cmd
}

func (a *app) doctor(ctx context.Context, o fixOptions) error {
	findings := a.lookAround(ctx)
	var mended []mending
	if o.fix {
		mended = a.fix(ctx, findings, o)
		if ctx.Err() != nil {
			return exit(interrupted)
		}
		if !o.dryRun && slices.ContainsFunc(mended, func(m mending) bool { return m.Result == mendDone }) {
			findings = a.lookAround(ctx)
		}
	}
	problems := 0
	for _, f := range findings {
		if f.Verdict == bad {
			problems++
		}
	}
	answer := struct {
		Healthy  bool      `json:"healthy"`
		Findings []finding `json:"findings"`
		Mended   []mending `json:"mended,omitempty"`
	}{problems == 0, findings, mended}
	if err := a.answer(answer, func() {
		a.tellMendings(mended, o)
		a.tellFindings(findings, problems)
	}); err != nil {
		return err
	}
	if problems > 0 {
		return exit(fault.ExitFailure)
	}
	return nil
}

func (a *app) lookAround(ctx context.Context) []finding {
	done := a.progress("looking around")
	defer done()
	return a.examine(ctx)
}

// examine looks at everything. One thing that is broken does not keep it from
// looking at the next.
func (a *app) examine(ctx context.Context) []finding {
	b := build()
	found := []finding{{Name: "tapin", Verdict: good, Text: fmt.Sprintf("%s, %s, %s", b.Version, b.Go, b.Platform)}}
	cfg, origins, err := a.settings()
	if err != nil {
		f := findingOf("settings", bad, err)
		f.mend = a.mendSettings()
		found = append(found, f)
		cfg, origins = config.Default(), nil
	} else {
		found = append(found, finding{Name: "settings", Verdict: good, Text: "They are valid."})
	}
	home, err := a.existingHome()
	var running daemon.Running
	switch {
	case err != nil:
		f := findingOf("home", bad, err)
		if f.mend = a.mendHome(); f.mend == nil {
			f.mend = a.mendSchema()
		}
		if f.mend == nil || f.mend.do == nil {
			if counter := a.mendCounter(); counter != nil {
				f.mend = counter
			}
		}
		found = append(found, f)
	case home == nil:
		path, _ := a.homePath()
		found = append(found, finding{Name: "home", Verdict: note, Text: a.tilde(path) + " does not exist yet.", Fix: a.command("up") + " makes it."})
	default:
		defer func() { _ = home.Close() }()
		found = append(found, a.examineHome(home), examineDisk(home.Path()))
		files := a.examineFiles(home)
		found = append(found, files...)
		var f finding
		running, f = a.examineRunning(home)
		found = append(found, f, a.examineVault(ctx, home))
		found = append(found, a.examineLeftovers(home, running)...)
		for _, f := range a.examineTroubles(ctx, home, running) {
			if !isAbout(f, files) {
				found = append(found, f)
			}
		}
	}
	found = append(found, a.examinePorts(cfg, origins, home, running)...)
	found = append(found, a.examinePhone(ctx, cfg, home, running)...)
	found = append(found, a.examineBrowser(cfg)...)
	found = append(found, examineClock(home))
	for _, f := range egress.Diagnose(ctx, nil) {
		// A network that is down is not tapin's to mend, so no problem of ours.
		v := good
		if !f.OK {
			v = warn
		}
		found = append(found, finding{Name: "network", Verdict: v, Text: f.Text, Fix: f.Fix})
	}
	return append(found, a.examineBoundary(home))
}

// findingOf is a finding made of an error.
func findingOf(name string, v verdict, err error) finding {
	f := fault.Of(plainly(err))
	text := f.Details()
	if f.Code == fault.Internal && fromSystem(err) {
		text = err.Error()
	}
	return finding{Name: name, Verdict: v, Text: text, Fix: f.Advice()}
}

func (a *app) tellFindings(findings []finding, problems int) {
	p, width := a.paint(a.env.Stdout), 0
	for _, f := range findings {
		width = max(width, len(f.Name))
	}
	marks := map[verdict]string{good: p.green("✓"), note: p.dim("·"), warn: p.bang(), bad: p.red("✗")}
	warnings, last := 0, ""
	for _, f := range findings {
		label := f.Name
		if label == last {
			label = ""
		}
		last = f.Name
		if f.Verdict == warn {
			warnings++
		}
		a.printf("%s %s  %s\n", marks[f.Verdict], p.dim(pad(label, width)), a.indented(f.Text, width+4))
		if f.Fix != "" {
			a.printf("%s%s %s\n", pad("", width+4), p.bold("→"), a.indented(f.Fix, width+6))
		}
	}
	a.printf("\n")
	switch {
	case problems > 0:
		a.printf("%s\n", p.red(count(problems, "thing")+" must be mended."))
	case warnings > 0:
		a.printf("tapin can work; %s could be better.\n", count(warnings, "thing"))
	default:
		a.printf("%s\n", p.green("All is well."))
	}
}

// screenWidth is where lines are broken for people. What is read by a program
// keeps one line a finding.
const screenWidth = 96

// indented cleans text and puts its further lines under the first.
func (a *app) indented(s string, indent int) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		line = clean(line)
		if !a.env.IsTerminal(a.env.Stdout) {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, wrapped(line, screenWidth-indent)...)
	}
	return strings.Join(lines, "\n"+pad("", indent))
}

// wrapped breaks a line between words. A word that is too long stays whole: it
// is a path or a command to copy.
func wrapped(line string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(line) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (a *app) examineRunning(home *store.Home) (daemon.Running, finding) {
	f := finding{Name: "running", Verdict: good}
	log := "Its log is " + a.tilde(filepath.Join(home.Path(), "logs", "sidecar.log")) + "."
	running, err := daemon.Find(home)
	switch {
	case err != nil:
		return running, findingOf("running", warn, err)
	case running.Daemon != 0:
		f.Text = fmt.Sprintf("Daemon %d with sidecar %d. %s", running.Daemon, running.Sidecar, log)
	case running.Sidecar != 0:
		f.Verdict, f.Text = warn, fmt.Sprintf("Sidecar %d without a daemon: it is not started again if it ends. %s", running.Sidecar, log)
		f.Fix = a.command("up") + " takes it over."
	default:
		f.Verdict, f.Text, f.Fix = note, "tapin is not running. "+log, a.command("up")+" starts it."
	}
	return running, f
}
