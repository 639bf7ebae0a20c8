package cli

import (
	"cmp"
	"fmt"
	"strings"

	"tapin/internal/daemon"
	"tapin/internal/guard"
)

// crashes shows the newest crash report of the home, or a line for each.
func (a *app) crashes(all bool) error {
	home, err := a.existingHome()
	if err != nil {
		return err
	}
	if home == nil {
		return a.notRunning()
	}
	defer func() { _ = home.Close() }()
	if err := daemon.Bury(home, buildVersion()); err != nil {
		return err
	}
	kept, err := guard.List(home.Path())
	if err != nil {
		return err
	}
	shown := kept
	if !all && len(kept) > 1 {
		shown = kept[:1]
	}
	answer := struct {
		Reports []guard.Kept `json:"reports"`
		Kept    int          `json:"kept"`
	}{append([]guard.Kept{}, shown...), len(kept)}
	return a.answer(answer, func() {
		switch {
		case len(kept) == 0:
			a.printf("Nothing has crashed that is still remembered.\n")
		case all:
			a.listCrashes(kept)
		default:
			a.tellCrash(kept[0], home.Path(), len(kept)-1)
		}
	})
}

func (a *app) listCrashes(kept []guard.Kept) {
	p := a.paint(a.env.Stdout)
	for _, one := range kept {
		a.printf("%s  %s  %s  %s\n", p.dim(one.At.Local().Format("2006-01-02 15:04:05")), pad(clean(one.Part), 7), pad(clean(cmp.Or(one.Room, "?")), 20), clean(one.Cause)+often(one))
	}
}

// often says how often a report was made.
func often(one guard.Kept) string {
	if one.Times < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", one.Times)
}

// tellCrash shows one report, to be read and to be sent.
func (a *app) tellCrash(one guard.Kept, home string, others int) {
	p := a.paint(a.env.Stdout)
	ended := "the room alone fell; the process went on"
	if one.Stopped {
		ended = "the process ended with it"
	}
	if one.Times > 1 {
		ended += fmt.Sprintf("; %d times the same since %s", one.Times, one.First.Local().Format("2006-01-02 15:04:05"))
	}
	browser := ""
	if one.Browser != "" {
		browser = ", browser " + clean(one.Browser)
	}
	a.rows(
		row{"at", one.At.Local().Format("2006-01-02 15:04:05 MST")},
		row{"part", clean(one.Part) + ", " + ended},
		row{"room", clean(one.Room)},
		row{"cause", clean(one.Cause)},
		row{"tapin", clean(one.Version) + ", " + clean(one.Go) + browser},
		row{"file", a.tilde(home + "/" + one.File)},
	)
	if len(one.Stack) > 0 {
		a.printf("\n%s\n", p.bold("Where, the innermost first"))
		for _, f := range one.Stack {
			a.printf("  %s %s\n", clean(f.Func), p.dim(clean(f.Line)))
		}
	}
	if len(one.Names) > 0 {
		a.printf("\n%s\n  %s\n", p.bold("What came before, the newest last"), strings.Join(cleaned(one.Names), "\n  "))
	}
	if others > 0 {
		a.printf("\n%s\n", p.dim(count(others, "earlier report")+": "+a.command("logs", "--crash", "--all")))
	}
}

func cleaned(all []string) (out []string) {
	for _, s := range all {
		out = append(out, clean(s))
	}
	return out
}
