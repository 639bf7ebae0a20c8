package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/store"
)

const (
	configLock = "config" // held from reading the file to writing it
	// draftFile is an edit that is not in force: under way, or with a mistake in it.
	draftFile = "config.draft.yaml"
	// firstLines open a file of settings that tapin begins.
	firstLines = "# tapin's settings. Every one has a default; tapin config keys lists them.\n"
)

func (a *app) configSetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "set KEY=VALUE…", Short: "Change settings in config.yaml",
		Long: `Changes settings in config.yaml, and only their lines: comments and everything
else stay as they are. Nothing is written unless all of it is valid. A setting
that may hold a secret is left to "tapin config edit": a command line can be
seen by others.`,
		Example: `  tapin config set tunnel=cloudflared
  tapin config set egress.allow=localhost:3000,*.internal.example
  tapin config set listen.control=127.0.0.1:4849`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return settingNames(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed, err := a.setSettings(cmd.Context(), args...)
			if err != nil {
				return err
			}
			return a.tellSet(args, changed)
		},
	}
}

type setAnswer struct {
	File    string   `json:"file"`
	Set     []string `json:"set"`
	Changed bool     `json:"changed"`
	Restart bool     `json:"restart_needed"` // what runs has the settings from before
}

func (a *app) tellSet(args []string, changed bool) error {
	answer := setAnswer{Set: args, Changed: changed}
	path, err := a.homePath()
	if err != nil {
		return err
	}
	answer.File, answer.Restart = filepath.Join(path, configFile), changed && a.runs()
	return a.answer(answer, func() {
		p := a.paint(a.env.Stdout)
		if !changed {
			a.printf("%s has that already.\n", a.tilde(answer.File))
			return
		}
		a.printf("%s Written to %s.\n", p.green("✓"), a.tilde(answer.File))
		a.tellRestart()
	})
}

// runs reports whether a tapin runs under the home.
func (a *app) runs() bool {
	home, err := a.existingHome()
	if err != nil || home == nil {
		return false
	}
	defer func() { _ = home.Close() }()
	running, err := daemon.Find(home)
	return err == nil && running != daemon.Running{}
}

// tellRestart says what makes new settings count.
func (a *app) tellRestart() {
	if a.runs() {
		a.printf("  tapin runs with the settings from before. %s and %s give it these.\n", a.command("down"), a.command("up"))
	}
}

// setSettings writes settings into config.yaml, all of them or none.
func (a *app) setSettings(ctx context.Context, assignments ...string) (changed bool, err error) {
	home, err := a.openHome()
	if err != nil {
		return false, err
	}
	defer func() { _ = home.Close() }()
	unlock, err := home.Lock(ctx, configLock)
	if err != nil {
		return false, err
	}
	defer unlock()
	c, err := a.settingsChange(home, func(old []byte, name string) ([]byte, error) {
		for _, assignment := range assignments {
			key, value, ok := strings.Cut(assignment, "=")
			if !ok {
				return nil, fault.New(fault.InvalidRequest, "", "%q is not written key=value", clean(assignment)).WithHint("Write it with an equals sign: %s=VALUE.", clean(assignment))
			}
			if old, err = config.Edit(old, name, key, value); err != nil {
				return nil, err
			}
		}
		return old, nil
	})
	if err != nil || string(c.old) == string(c.new) {
		return false, err
	}
	return true, a.placeSettings(c)
}

// settingsChange is config.yaml as it is, behind links, and as it shall be.
func (a *app) settingsChange(home *store.Home, with func(old []byte, name string) ([]byte, error)) (change, error) {
	file := filepath.Join(home.Path(), configFile)
	old, err := config.ReadFile(file, a.tilde(file))
	if err != nil {
		return change{}, err
	}
	c := change{path: file, old: old, mode: 0o600}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		c.path = target
		if info, err := os.Stat(target); err == nil {
			c.mode = info.Mode().Perm()
		}
	}
	c.new, err = with(old, a.tilde(file))
	return c, err
}

// placeSettings puts the new file in the place of the old one in one step.
func (a *app) placeSettings(c change) error {
	if err := c.unchanged(); err != nil {
		return err
	}
	return place(c.path, c.new, c.mode)
}

func (a *app) configEditCommand() *cobra.Command {
	return &cobra.Command{
		Use: "edit", Short: "Change config.yaml in your editor",
		Long: `Opens config.yaml in $VISUAL or $EDITOR. What you save is checked before it
takes the place of the file; if there is a mistake in it, it is shown and you
can go on. An edit that you leave with its mistakes is kept and offered the next
time, and the settings stay as they were.`,
		Example: "  tapin config edit\n  EDITOR=nano tapin config edit",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.json {
				return fault.New(fault.InvalidRequest, "", "an editor cannot be opened with --json").WithHint("Use: %s", a.command("config", "set", "KEY=VALUE"))
			}
			return a.configEdit(cmd.Context())
		},
	}
}

func (a *app) configEdit(ctx context.Context) error {
	editor := a.editor()
	if editor == "" {
		return fault.New(fault.InvalidRequest, "edit the settings", "no editor was found").
			WithHint("Set EDITOR to the one you use, or change one setting with: %s", a.command("config", "set", "KEY=VALUE"))
	}
	home, err := a.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	unlock, ok, err := home.TryLock(configLock)
	if err != nil {
		return err
	}
	if !ok {
		return fault.New(fault.Busy, "edit the settings", "somebody else is changing them now").WithHint("Close the other editor first.")
	}
	defer unlock()
	c, err := a.settingsChange(home, func(old []byte, _ string) ([]byte, error) { return old, nil })
	if err != nil {
		return err
	}
	draft, err := a.beginDraft(ctx, home, c)
	if err != nil {
		return err
	}
	for {
		if err := a.runEditor(editor, draft); err != nil {
			return err
		}
		if c.new, err = config.ReadFile(draft, a.tilde(draft)); err != nil {
			return err
		}
		if string(c.new) == string(c.old) || c.old == nil && string(c.new) == firstLines {
			a.printf("Nothing was changed.\n")
			return os.Remove(draft)
		}
		_, _, wrong := config.Load(config.Inputs{File: c.new, FileName: a.tilde(draft), Env: a.env.Environ, Set: a.set})
		if wrong == nil {
			break
		}
		kept := fault.New(fault.InvalidRequest, "", "%s", fault.Of(wrong).Details()).
			WithHint("The settings are as they were. Your edit is kept; go on with it by: %s", a.command("config", "edit"))
		if !a.someoneAsks() {
			return kept
		}
		a.printf("%s\n", a.indented(fault.Of(wrong).Details(), 0))
		// A Ctrl-C in the editor was meant for the editor.
		asking, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt)
		again, err := a.confirmed(asking, "Go on editing?", true)
		stop()
		if err != nil || !again {
			return kept
		}
	}
	if err := a.placeSettings(c); err != nil {
		return err
	}
	a.printf("%s The settings are valid, and in %s.\n", a.paint(a.env.Stdout).green("✓"), a.tilde(filepath.Join(home.Path(), configFile)))
	a.tellRestart()
	return os.Remove(draft)
}

// beginDraft is the file to edit: a copy of the settings, or an edit from
// before that was not finished.
func (a *app) beginDraft(ctx context.Context, home *store.Home, c change) (string, error) {
	draft := filepath.Join(home.Path(), draftFile)
	info, err := os.Lstat(draft)
	switch {
	case err == nil && info.Mode().IsRegular():
		goOn := true
		if a.someoneAsks() {
			question := fmt.Sprintf("An edit from %s is not finished. Go on with it?", info.ModTime().Local().Format("2006-01-02 15:04"))
			if goOn, err = a.confirmed(ctx, question, true); err != nil {
				return "", err
			}
		}
		if goOn {
			return draft, nil
		}
	case err == nil:
		return "", fault.New(fault.InvalidRequest, "edit the settings", "%s is no ordinary file", a.tilde(draft)).WithHint("Remove it.")
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	begin := c.old
	if begin == nil {
		begin = []byte(firstLines)
	}
	return draft, place(draft, begin, 0o600)
}

// editor is the command that opens an editor, as the person has set it.
func (a *app) editor() string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if command := strings.TrimSpace(a.getenv(name)); command != "" {
			return command
		}
	}
	for _, name := range []string{"sensible-editor", "nano", "vim", "vi"} {
		if found := lookPath(name, a.getenv("PATH")); found != "" {
			return shellWord(found)
		}
	}
	return ""
}

// runEditor runs the editor at this terminal. The command is the person's own
// and may have arguments, so a shell reads it, as other programs have it.
func (a *app) runEditor(editor, file string) error {
	// A Ctrl-C goes to everything at the terminal; here it must end nothing.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	cmd := exec.Command("/bin/sh", "-c", editor+` "$1"`, "tapin", file) //nolint:gosec // the person's own choice
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = a.env.Stdin, a.env.Stdout, a.env.Stderr, a.env.Environ
	if err := cmd.Run(); err != nil {
		return fault.New(fault.InvalidRequest, "edit the settings", "the editor (%s) failed: %w", clean(editor), err).
			WithHint("The settings are as they were; what you wrote is in %s.", a.tilde(file))
	}
	return nil
}
