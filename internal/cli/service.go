package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"tapin/internal/daemon"
	"tapin/internal/fault"
)

type serviceOptions struct {
	user, agent string
	print, yes  bool
}

func (a *app) serviceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Have the system run tapin",
		Long: `Makes tapin a service of systemd or launchd, which starts it with the machine
and again when it fails.

With --user tapin it runs as a user of its own. Only that makes a boundary
between the agent and what tapin keeps: an agent with a shell can read whatever
the user can read that it runs as. See docs/SECURITY.md.`,
		Example: "  tapin service install\n  tapin service status\n  tapin service uninstall",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var o serviceOptions
	install := &cobra.Command{
		Use: "install", Short: "Install and start the service",
		Example: "  tapin service install\n  sudo tapin service install --user tapin\n  tapin service install --print",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.installService(cmd.Context(), o) },
	}
	install.Flags().StringVar(&o.user, "user", "", "run as a `user` of its own, which is made if there is none; only as root")
	install.Flags().StringVar(&o.agent, "agent", "", "the `user` whose agents may drive it, beside --user (default: who calls sudo)")
	install.Flags().BoolVar(&o.print, "print", false, "show the file and change nothing")
	install.Flags().BoolVar(&o.yes, "yes", false, "do not ask before the system is changed")
	uninstall := &cobra.Command{
		Use: "uninstall", Short: "Stop and remove the service", Example: "  tapin service uninstall", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.uninstallService(cmd.Context(), o) },
	}
	uninstall.Flags().BoolVar(&o.yes, "yes", false, "do not ask before the system is changed")
	cmd.AddCommand(install, uninstall, &cobra.Command{
		Use: "status", Short: "Tell whether it is installed and runs", Example: "  tapin service status", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serviceStatus(cmd.Context()) },
	})
	return cmd
}

// describeService is the service that the options ask for.
func (a *app) describeService(m machine, o serviceOptions) (service, error) {
	program, err := os.Executable()
	if err != nil {
		return service{}, err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return service{}, err
	}
	s := service{program: program, user: o.user, chrome: a.getenv("TAPIN_CHROME")}
	if o.user != "" {
		s.home = filepath.Join(stateFolder(m.os), "home")
	} else if s.home, err = a.homePath(); err != nil {
		return service{}, err
	}
	return s, s.check()
}

func (a *app) installService(ctx context.Context, o serviceOptions) error {
	m := a.machine(runtime.GOOS)
	s, err := a.describeService(m, o)
	if err != nil {
		return err
	}
	if o.print {
		if o.user != "" && !userName.MatchString(o.user) {
			return fault.New(fault.InvalidRequest, "", "%q is no name for a user of tapin's own", clean(o.user)).WithHint("Use one such as tapin.")
		}
		text := m.text(s)
		return a.answer(map[string]any{"file": text}, func() { a.printf("%s", text) })
	}
	if err := m.supported(); err != nil {
		return err
	}
	if o.user == "" {
		if m.root {
			return fault.New(fault.InvalidRequest, "", "as root the browser would run without its sandbox").
				WithHint("Give tapin a user of its own: %s", a.command("service", "install", "--user", "tapin"))
		}
		if err := a.nothingRuns(m); err != nil {
			return err
		}
		return a.carryOut(ctx, m.install(s), o.yes, "")
	}
	p, err := m.separateUser(s, o.agent)
	if err != nil {
		return err
	}
	after := "No user's agents may drive it yet; name one with --agent."
	if p.agent != nil {
		after = fmt.Sprintf("Agents of %s reach it with TAPIN_URL=http://127.0.0.1:3849 and TAPIN_TOKEN_FILE=%s\n"+
			"As the owner, use: sudo -u %s %s --home %s", p.agent.Username, p.tokenCopy(), s.user, shellWord(s.program), s.home)
	}
	return a.carryOut(ctx, p.steps(), o.yes, after)
}

// nothingRuns refuses beside a tapin that was started by hand: the service's
// own would find the home taken.
func (a *app) nothingRuns(m machine) error {
	if _, err := os.Stat(m.file(false)); err == nil {
		return nil // the service itself, which is installed again
	}
	home, err := a.existingHome()
	if err != nil || home == nil {
		return err
	}
	defer func() { _ = home.Close() }()
	running, err := daemon.Find(home)
	if err != nil || running == (daemon.Running{}) {
		return err
	}
	return fault.New(fault.Busy, "", "tapin is running already, by hand (pid %d)", max(running.Daemon, running.Sidecar)).
		WithHint("End it first with: %s", a.command("down"))
}

func (a *app) uninstallService(ctx context.Context, o serviceOptions) error {
	m := a.machine(runtime.GOOS)
	if err := m.supported(); err != nil {
		return err
	}
	for _, system := range []bool{false, true} {
		file := m.file(system)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if system && !m.root {
			return fault.New(fault.Forbidden, "", "only root can remove %s", file).WithHint("Run it with sudo.")
		}
		after := ""
		if system {
			after = fmt.Sprintf("What tapin has kept is still in %s, and its user is still there.\nTo give all of it up: rm -r %[1]s; userdel USER", stateFolder(m.os))
		}
		return a.carryOut(ctx, m.uninstall(system), o.yes, after)
	}
	return fault.New(fault.NotFound, "", "tapin is not installed as a service").WithHint("Install it with: %s", a.command("service", "install"))
}

// carryOut says exactly what will be done, asks, and does it.
func (a *app) carryOut(ctx context.Context, steps []step, yes bool, after string) error {
	told := make([]string, len(steps))
	for i, s := range steps {
		told[i] = s.say
	}
	if !yes {
		a.errorf("This will be done:\n  %s\n", strings.Join(told, "\n  "))
		if err := a.confirm(); err != nil {
			return err
		}
	}
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return fault.Wrap(fault.Internal, strings.Join(strings.Fields(s.say), " "), err)
		}
	}
	return a.answer(struct {
		Done []string `json:"done"`
	}{told}, func() {
		for _, line := range told {
			a.printf("%s %s\n", a.paint(a.env.Stdout).green("✓"), line)
		}
		if after != "" {
			a.printf("%s\n", after)
		}
	})
}

// confirm asks the person at the terminal. Nobody there means no.
func (a *app) confirm() error {
	a.errorf("Go on? [y/N] ")
	line, _ := bufio.NewReader(a.env.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	a.errorf("\n")
	return fault.New(fault.Forbidden, "", "nothing was changed").WithHint("Answer y, or give --yes.")
}

type serviceAnswer struct {
	Installed bool   `json:"installed"`
	File      string `json:"file,omitempty"`
	System    bool   `json:"system"`
	Enabled   bool   `json:"enabled"`
	Active    bool   `json:"active"`
}

func (a *app) serviceStatus(ctx context.Context) error {
	m := a.machine(runtime.GOOS)
	if err := m.supported(); err != nil {
		return err
	}
	var answer serviceAnswer
	for _, system := range []bool{false, true} {
		if _, err := os.Stat(m.file(system)); err == nil {
			answer = serviceAnswer{Installed: true, File: m.file(system), System: system}
			answer.Enabled, answer.Active = m.ask(ctx, system)
			break
		}
	}
	return a.answer(answer, func() {
		if !answer.Installed {
			a.printf("tapin is not installed as a service; install it with: %s\n", a.command("service", "install"))
			return
		}
		p := a.paint(a.env.Stdout)
		say := func(yes bool, word string) string {
			if yes {
				return p.green("✓") + " " + word
			}
			return p.bang() + " not " + word
		}
		a.rows(row{"file", a.tilde(answer.File)}, row{"starts", say(answer.Enabled, "with the machine")}, row{"now", say(answer.Active, "running")})
	})
}

// ask asks the service manager. What it does not know is not so.
func (m machine) ask(ctx context.Context, system bool) (enabled, active bool) {
	yes := func(words ...string) bool {
		program := lookPath(words[0], m.path)
		return program != "" && exec.CommandContext(ctx, program, words[1:]...).Run() == nil //nolint:gosec // the system's own, with words of ours
	}
	if m.os == macOS {
		domain := fmt.Sprintf("gui/%d/%s", os.Getuid(), plistLabel)
		if system {
			domain = "system/" + plistLabel
		}
		loaded := yes("launchctl", "print", domain)
		return loaded, loaded
	}
	words := []string{"systemctl"}
	if !system {
		words = append(words, "--user")
	}
	return yes(append(words, "is-enabled", "--quiet", "tapin.service")...), yes(append(words, "is-active", "--quiet", "tapin.service")...)
}
