package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/fault"
)

type installOptions struct {
	scope       string
	file        string
	dryRun, yes bool
	slim        bool
}

func (a *app) mcpInstallCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "install [claude-code|codex|json]",
		Short: "Add tapin to an MCP host",
		Long: `Writes the entry that makes a host start "tapin mcp". It shows what would
change and asks first; all other settings of the file stay as they are, byte
for byte, and the file as it was is kept beside it.

Scopes: user (everywhere, the default), project (a file in this folder, to be
shared), and for Claude Code also local (this folder, only you). "json" prints
the entry that most other hosts take, or writes it into --file.`,
		Example: `  tapin mcp install claude-code
  tapin mcp install codex --dry-run
  tapin mcp install json --file .cursor/mcp.json`,
		ValidArgs: []cobra.Completion{"claude-code", "codex", "json"},
		Args:      arguments(cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs)),
		RunE:      func(cmd *cobra.Command, args []string) error { return a.mcpInstall(cmd.Context(), args, o) },
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.slim, "slim", false, "offer the host only what most pages need")
	cmd.Flags().StringVar(&o.file, "file", "", "for json: the `file` to write the entry into")
	return cmd
}

func (o *installOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.scope, "scope", "user", "where it counts: user, project, or local (Claude Code)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	complete(cmd, "scope", func() []string { return []string{"user", "project", "local"} })
}

// entry is how a host starts tapin.
type entry struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// server is the entry for this program and this home. What is shared with
// others names neither.
func (a *app) server(o installOptions) (entry, error) {
	e := entry{Command: "tapin", Args: []string{}}
	if o.scope != "project" { // a host is started elsewhere, with another PATH than this shell's
		self, err := a.whereIAm()
		if err != nil {
			return e, err
		}
		e.Command = self
	}
	if (a.home != "" || a.getenv("TAPIN_HOME") != "") && o.scope != "project" {
		path, err := a.homePath()
		if err != nil {
			return e, err
		}
		e.Args = append(e.Args, "--home", path)
	}
	e.Args = append(e.Args, "mcp")
	if o.slim {
		e.Args = append(e.Args, "--slim")
	}
	return e, nil
}

// whereIAm is the program's path as the owner knows it: where PATH finds it by its
// name that is not resolved further, as a package manager moves what is behind it.
func (a *app) whereIAm() (string, error) {
	if a.program == "tapin" {
		if path, err := exec.LookPath("tapin"); err == nil {
			return filepath.Abs(path)
		}
	}
	return os.Executable()
}

func (a *app) mcpInstall(ctx context.Context, hosts []string, o installOptions) error {
	if !slices.Contains([]string{"user", "project", "local"}, o.scope) {
		return fault.New(fault.InvalidRequest, "", "%q is no scope", clean(o.scope)).WithHint("Use user, project or local.")
	}
	if len(hosts) == 0 {
		hosts = a.hostsHere()
	}
	for _, host := range hosts {
		e, err := a.server(o)
		if err != nil {
			return err
		}
		if host == "json" && o.file == "" {
			return a.printEntry(e)
		}
		c, err := a.hostChange(host, e, o)
		if err != nil {
			return err
		}
		if err := a.apply(ctx, c, o); err != nil {
			return err
		}
	}
	return nil
}

// hostChange is what has to become of the file of a host.
func (a *app) hostChange(host string, e entry, o installOptions) (c change, err error) {
	switch host {
	case "claude-code":
		c, err = a.claudeCode(e, o)
	case "codex":
		c, err = a.codex(e, o)
	default:
		c, err = edit(o.file, func(old []byte) ([]byte, error) { return setMember(old, []string{"mcpServers", "tapin"}, e) })
	}
	c.what = host
	return c, err
}

// hostsHere are the hosts that this user has; one who has none gets the entry
// to copy.
func (a *app) hostsHere() (hosts []string) {
	user := a.getenv("HOME")
	for _, h := range []struct{ name, sign string }{{"claude-code", ".claude.json"}, {"claude-code", ".claude"}, {"codex", ".codex"}} {
		if _, err := os.Stat(filepath.Join(user, h.sign)); err == nil && !slices.Contains(hosts, h.name) {
			hosts = append(hosts, h.name)
		}
	}
	if len(hosts) == 0 {
		return []string{"json"}
	}
	return hosts
}

func (a *app) printEntry(e entry) error {
	out, err := setMember(nil, []string{"mcpServers", "tapin"}, e)
	if err != nil {
		return err
	}
	return a.answer(json.RawMessage(out), func() { a.printf("%s", out) })
}

// claudeCode changes what Claude Code reads: .mcp.json of a project, or its own
// file, there either for all projects or for this one.
func (a *app) claudeCode(e entry, o installOptions) (change, error) {
	full := struct {
		Type string `json:"type"`
		entry
	}{"stdio", e}
	here, err := os.Getwd()
	if err != nil {
		return change{}, err
	}
	file, path := filepath.Join(a.getenv("HOME"), ".claude.json"), []string{"mcpServers", "tapin"}
	switch o.scope {
	case "project":
		file = filepath.Join(here, ".mcp.json")
	case "local":
		path = append([]string{"projects", here}, path...)
	}
	return edit(file, func(old []byte) ([]byte, error) { return setMember(old, path, full) })
}

// codex changes what Codex reads. Its own limits are shorter than a first
// start of the browser on a slow machine and our longest wait.
func (a *app) codex(e entry, o installOptions) (change, error) {
	folder := a.getenv("CODEX_HOME")
	if folder == "" {
		folder = filepath.Join(a.getenv("HOME"), ".codex")
	}
	switch o.scope {
	case "project":
		here, err := os.Getwd()
		if err != nil {
			return change{}, err
		}
		folder = filepath.Join(here, ".codex")
	case "local":
		return change{}, fault.New(fault.InvalidRequest, "", "Codex has no scope local").WithHint("Use user or project.")
	}
	args := make([]string, len(e.Args))
	for i, arg := range e.Args {
		args[i] = tomlText(arg)
	}
	return edit(filepath.Join(folder, "config.toml"), func(old []byte) ([]byte, error) {
		out, err := setTable(string(old), []string{"mcp_servers", "tapin"}, []string{
			"command = " + tomlText(e.Command), "args = [" + strings.Join(args, ", ") + "]", "startup_timeout_sec = 30", "tool_timeout_sec = 90",
		})
		return []byte(out), err
	})
}

// change is a file as it is and as it shall be.
type change struct {
	what     string
	path     string // where it really is, behind links
	old, new []byte
	mode     fs.FileMode
}

// edit reads a file and says what would become of it.
func edit(path string, with func([]byte) ([]byte, error)) (change, error) {
	c := change{path: path, mode: 0o600}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		c.path = target
	}
	info, err := os.Stat(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return c, err
	case !info.Mode().IsRegular():
		return c, fault.New(fault.InvalidRequest, "", "%s is no ordinary file", path)
	default:
		c.mode = info.Mode().Perm()
		if c.old, err = os.ReadFile(c.path); err != nil {
			return c, err
		}
	}
	if c.new, err = with(c.old); err != nil {
		f := fault.Of(err)
		return c, fault.New(f.Code, "", "%s was left as it is: %w", path, err).WithHint("%s", f.Advice())
	}
	return c, nil
}

// apply shows a change, asks, and makes it.
func (a *app) apply(ctx context.Context, c change, o installOptions) error {
	result := struct {
		Host    string `json:"host"`
		File    string `json:"file"`
		Changed bool   `json:"changed"`
		Backup  string `json:"backup,omitempty"`
	}{Host: c.what, File: c.path}
	if bytes.Equal(c.old, c.new) {
		return a.answer(result, func() { a.printf("%s has it already: %s\n", c.what, a.tilde(c.path)) })
	}
	if !a.json {
		a.printf("%s\n%s", a.tilde(c.path), a.difference(c))
	}
	if o.dryRun {
		return a.answer(result, func() { a.printf("Nothing was changed.\n") })
	}
	if !o.yes {
		if a.json {
			return fault.New(fault.InvalidRequest, "", "nobody can be asked with --json").WithHint("Add --yes, or --dry-run to see what would change.")
		}
		if !a.agreed(ctx, "Write it?") {
			a.printf("Nothing was changed.\n")
			return nil
		}
	}
	backup, err := c.write()
	if err != nil {
		return err
	}
	result.Changed, result.Backup = true, backup
	return a.answer(result, func() {
		a.printf("Written.")
		if backup != "" {
			a.printf(" As it was: %s", a.tilde(backup))
		}
		a.printf("\nStart %s again to use it.\n", c.what)
	})
}

// difference shows the lines that change, with what stands around them.
func (a *app) difference(c change) string {
	p := a.paint(a.env.Stdout)
	before, after := splitLines(c.old), splitLines(c.new)
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	const around = 2
	var out strings.Builder
	show := func(sign string, lines []string, colour func(string) string) {
		for _, l := range lines {
			out.WriteString(colour(sign+" "+clean(l)) + "\n")
		}
	}
	show(" ", before[max(0, head-around):head], p.dim)
	show("-", before[head:len(before)-tail], p.red)
	show("+", after[head:len(after)-tail], p.green)
	show(" ", before[len(before)-tail:min(len(before), len(before)-tail+around)], p.dim)
	return out.String()
}

func splitLines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// write keeps the file as it was beside it, and puts the new one in its place
// in one step. A file that was changed meanwhile is left alone.
func (c change) write() (backup string, err error) {
	if err := c.unchanged(); err != nil {
		return "", err
	}
	folder := filepath.Dir(c.path)
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // the host's own folder, which others may read as before
		return "", err
	}
	if c.old != nil {
		if backup, err = c.keep(); err != nil {
			return "", err
		}
	}
	return backup, place(c.path, c.new, c.mode)
}

// unchanged refuses where another program has written meanwhile.
func (c change) unchanged() error {
	now, err := os.ReadFile(c.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, c.old) {
		return fault.New(fault.Busy, "", "%s was changed by another program meanwhile", c.path).WithHint("Try again.")
	}
	return nil
}

// keep writes the file as it was beside it, over no earlier one.
func (c change) keep() (backup string, err error) {
	stamp := time.Now().UTC().Format("20060102-150405")
	for n := 1; ; n++ {
		backup = fmt.Sprintf("%s.%s-%d.bak", c.path, stamp, n)
		if _, err := os.Lstat(backup); errors.Is(err, fs.ErrNotExist) {
			return backup, place(backup, c.old, c.mode)
		} else if err != nil {
			return "", err
		}
	}
}

// place writes a file so that it is there as a whole or not at all.
func place(path string, data []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".tapin-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // after the rename there is none
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
