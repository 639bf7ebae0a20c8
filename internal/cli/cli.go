// Package cli is the command line: one file a command, over the same rooms and
// the same API that everything else uses. It owns what is printed, the exit
// codes, and how the processes of tapin are started by hand.
// It must never print a token, nor anything of a page that could steer a terminal.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// Env is everything the command line knows of the world, so that a test can
// give it another one.
type Env struct {
	Args       []string // with the program's name first, as os.Args has it
	Stdin      io.Reader
	Stdout     io.Writer
	Stderr     io.Writer
	Environ    []string
	Home       func() (string, error) // tapin's home when nothing names one
	IsTerminal func(io.Writer) bool
	Keyring    vault.Keyring // nil means the system's
	// OnDisk hears of every step of every write to the home; nil but in tests,
	// which end the process in it.
	OnDisk func(change string, step store.Step)
	// OnRead is asked before a file of the home is read; nil but in tests, which
	// have files with it that the disk does not give.
	OnRead func(name string) error
	// Plant and Planted have what panics panic; nil but in tests. See guard.
	Plant   func(name string) bool
	Planted func(room string) <-chan struct{}
}

// Main runs one command and returns the exit code of the process.
func Main(ctx context.Context, env Env) int {
	a := &app{env: env, program: programName(env)}
	root := a.root()
	root.SetArgs(env.Args[min(1, len(env.Args)):])
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	return a.fail(a.advised(cmd, plainly(err)))
}

// exit is an error that has been told already.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// app is one run of the command line.
type app struct {
	env     Env
	program string // how to call tapin from here, for lines to copy

	home    string
	json    bool
	set     []string
	handed  bool // further settings stand on standard input
	verbose bool
	noChat  bool // nobody is written to, whatever bot there is

	lines     *bufio.Reader // what a person says
	questions int           // how many they were asked
}

const rootLong = `tapin drives a real browser for an AI agent. When only a person can go on,
it messages the owner, who taps in from the phone.

Start it with "tapin up"; everything else talks to what that started.`

const rootExample = `  tapin up                          start, and see what runs where
  tapin open https://example.com    open a page in the browser
  tapin screenshot                  look at it
  tapin down                        end everything`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "tapin",
		Short:         "The agent drives. You tap in.",
		Long:          rootLong,
		Example:       rootExample,
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          a.knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.New(fault.InvalidRequest, "", "%w", err).WithHint("See %s --help.", cmd.CommandPath())
	})
	root.CompletionOptions.DisableDefaultCmd = true
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&a.home, "home", "", "tapin's home `folder` (default $TAPIN_HOME, else ~/.tapin)")
	flags.StringArrayVar(&a.set, "set", nil, "override one setting, as `key=value`; may be repeated")
	flags.BoolVar(&a.json, "json", false, "answer in JSON, also when something fails")
	flags.BoolVar(&a.verbose, "verbose", false, "tell more: causes of errors, and every step in the log")
	complete(root, "set", settingNames)

	chapters := []chapter{
		{"Run", []*cobra.Command{a.upCommand(), a.downCommand(), a.demoCommand(), a.setupCommand(), a.sidecarCommand()}},
		{"Drive the browser", []*cobra.Command{
			a.openCommand(), a.screenshotCommand(), a.shotCommand(), a.statusCommand(),
			a.backCommand(), a.forwardCommand(), a.reloadCommand(), a.stopCommand(),
		}},
		{"Read the page", []*cobra.Command{a.snapshotCommand(), a.textCommand(), a.extractCommand(), a.tabsCommand(), a.downloadsCommand()}},
		{"Act on the page", []*cobra.Command{
			a.clickCommand(), a.typeCommand(), a.fillCommand(), a.selectCommand(), a.pressCommand(), a.uploadCommand(),
			a.scrollCommand(), a.hoverCommand(), a.dragCommand(), a.waitCommand(),
			a.tabCommand(), a.dialogCommand(), a.permissionCommand(), a.authCommand(),
		}},
		{"Ask a person", []*cobra.Command{a.consoleCommand(), a.handoffCommand(), a.approvalsCommand(), a.approveCommand(), a.denyCommand(), a.policyCommand(), a.linkCommand(), a.deviceCommand(), a.runsCommand(), a.todosCommand()}},
		{"Saved logins", []*cobra.Command{a.loginCommand(), a.contextCommand(), a.credentialCommand(), a.vaultCommand(), a.forgetCommand()}},
		{"Give it to an agent", []*cobra.Command{a.mcpCommand(), a.skillCommand()}},
		{"See what happens", []*cobra.Command{a.watchCommand(), a.journalCommand(), a.statsCommand(), a.usageCommand(), a.logsCommand()}},
		{"Look after it", []*cobra.Command{a.pairCommand(), a.ownersCommand(), a.tokenCommand(), a.cleanupCommand(), a.backupCommand(), a.restoreCommand(), a.serviceCommand(), a.doctorCommand(), a.configCommand(), a.versionCommand(), a.completionCommand(), a.manCommand()}},
	}
	for _, c := range chapters {
		root.AddCommand(c.commands...)
	}
	root.AddCommand(a.holderCommand(), a.daemonCommand(), a.leashCommand())
	root.SetHelpCommand(a.helpCommand(root))
	root.SuggestionsMinimumDistance = 2
	root.SetHelpFunc(a.helpFunc(root, chapters))
	a.offer(root)
	return root
}

// knownCommand refuses what is no command, with the nearest one that is.
func (a *app) knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "See tapin help."
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "Did you mean " + strings.Join(near, " or ") + "? " + hint
	}
	return fault.New(fault.InvalidRequest, "", "there is no command %q", clean(args[0])).WithHint("%s", hint)
}

// advised gives a refusal that has no hint of its own one for people: the
// table's is for programs that send requests.
func (a *app) advised(cmd *cobra.Command, err error) error {
	f := fault.Of(err)
	if f.Code != fault.InvalidRequest || f.Advice() != fault.InvalidRequest.Hint() {
		return err
	}
	words := append([]string{"help"}, strings.Fields(cmd.CommandPath())[1:]...)
	return f.WithHint("See %s.", a.command(words...))
}

// plainly gives a code to the errors of the file system that a person can
// mend: where things lie and who may read them is no fault inside tapin.
func plainly(err error) error {
	if fault.Of(err).Code != fault.Internal || !fromSystem(err) {
		return err
	}
	f := &fault.Error{Code: fault.Forbidden, Err: err}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f.Code = fault.StorageFull
		return f
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ELOOP):
		f.Code = fault.InvalidRequest
		return f.WithHint("Put that right, or name another home with --home or TAPIN_HOME.")
	case errors.Is(err, syscall.EROFS):
		return f.WithHint("tapin writes there: name another home with --home or TAPIN_HOME.")
	case errors.Is(err, fs.ErrPermission):
		return f.WithHint("See who owns it with ls -ld; what is in tapin's home is to be this user's.")
	}
	return err
}

// arguments wraps cobra's counting of arguments into a fault.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fault.New(fault.InvalidRequest, "", "%w", err).WithHint("It is used as: %s", cmd.UseLine())
		}
		return nil
	}
}

func (a *app) getenv(name string) string {
	value := ""
	for _, kv := range a.env.Environ {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			value = v
		}
	}
	return value
}

// complete offers values for a flag.
func complete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	if err != nil {
		panic(err) // a flag that does not exist: a mistake in this package
	}
}

func settingNames() []string {
	var names []string
	for _, k := range config.Keys() {
		names = append(names, k.Path+"="+"\t"+k.Doc)
	}
	return names
}

// programName is what a person types here to call tapin: its plain name where
// the shell would find this same program under it, else the way it was called.
func programName(env Env) string {
	if len(env.Args) == 0 || env.Args[0] == "" {
		return "tapin"
	}
	self, err := os.Executable()
	if err != nil {
		return env.Args[0]
	}
	for _, kv := range env.Environ {
		path, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		if found := lookPath("tapin", path); found != "" && sameFile(found, self) {
			return "tapin"
		}
	}
	return env.Args[0]
}

// seconds writes a duration for people: 0.8 s.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
