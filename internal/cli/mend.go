package cli

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"tapin/internal/backup"
	"tapin/internal/browser/local"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/sidecar"
	"tapin/internal/store"
)

type fixOptions struct {
	fix, dryRun, yes bool
}

// mend is how tapin can mend what the doctor found. None of them loses
// anything that cannot be made again.
type mend struct {
	does   string // as in "it would …"
	asks   bool   // the owner has to agree
	person bool   // it needs somebody at the terminal
	do     func(context.Context) (did string, err error)
	wont   string // why it is not done after all; do is nil then
}

// What became of something to mend.
const (
	mendDone   = "done"
	mendWould  = "would"  // --dry-run
	mendLeft   = "left"   // nobody agreed, or it is not tapin's to do
	mendFailed = "failed" // it was tried
)

// mending is what doctor --fix says of one finding.
type mending struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Text   string `json:"text"`
}

// fix mends what can be mended, one after the other.
func (a *app) fix(ctx context.Context, findings []finding, o fixOptions) (all []mending) {
	for _, f := range findings {
		m := f.mend
		if m == nil {
			if f.Verdict == bad {
				all = append(all, mending{f.Name, mendLeft, "This is not tapin's to mend: " + f.Text})
			}
			continue
		}
		all = append(all, a.fixOne(ctx, f, o))
		if ctx.Err() != nil {
			return all
		}
	}
	return all
}

func (a *app) fixOne(ctx context.Context, f finding, o fixOptions) mending {
	m := f.mend
	switch {
	case m.do == nil:
		return mending{f.Name, mendLeft, m.wont}
	case o.dryRun:
		return mending{f.Name, mendWould, "It would " + m.does + "."}
	case m.person && !a.someoneAsks():
		return mending{f.Name, mendLeft, "Somebody at a terminal has to do it."}
	case m.asks && !o.yes && !a.someoneAsks():
		return mending{f.Name, mendLeft, "It would " + m.does + ", if you say --yes."}
	case m.asks && !o.yes:
		a.printf("%s\n", a.indented(f.Text, 0))
		if !a.agreed(ctx, "Shall tapin "+m.does+"?") {
			return mending{f.Name, mendLeft, "You did not agree."}
		}
	}
	did, err := m.do(ctx)
	if err != nil {
		problem := findingOf(f.Name, bad, err)
		return mending{f.Name, mendFailed, problem.Text + " " + problem.Fix}
	}
	return mending{f.Name, mendDone, did}
}

func (a *app) tellMendings(all []mending, o fixOptions) {
	if !o.fix {
		return
	}
	p, width := a.paint(a.env.Stdout), 0
	if len(all) == 0 {
		a.printf("Nothing had to be mended.\n\n")
		return
	}
	marks := map[string]string{mendDone: p.green("✓"), mendWould: p.dim("·"), mendLeft: p.bang(), mendFailed: p.red("✗")}
	for _, m := range all {
		width = max(width, len(m.Name))
	}
	a.printf("%s\n", p.bold("Mending"))
	for _, m := range all {
		a.printf("%s %s  %s\n", marks[m.Result], p.dim(pad(m.Name, width)), a.indented(m.Text, width+4))
	}
	a.printf("\n%s\n", p.bold("As it is now"))
}

// mendSettings opens the broken file: only its owner knows what was meant.
func (a *app) mendSettings() *mend {
	return &mend{does: "open the settings in your editor", asks: true, person: true, do: func(ctx context.Context) (string, error) {
		return "The settings were edited.", a.configEdit(ctx)
	}}
}

// mendHome closes a home that others could write to, if nothing in it looks as
// if they had.
func (a *app) mendHome() *mend {
	path, err := a.homePath()
	if err != nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 == 0 || !mine(info) {
		return nil
	}
	if foreign := foreignIn(path); foreign != "" {
		return &mend{wont: a.tilde(foreign) + " could be another user's: look at it, and remove it if you do not know it. Then: chmod -R go= " + a.tilde(path)}
	}
	return &mend{does: "close " + a.tilde(path) + " to other users", do: func(context.Context) (string, error) {
		return "Closed " + a.tilde(path) + " to other users; all in it is yours.", os.Chmod(path, 0o700) //nolint:gosec // a folder
	}}
}

func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// foreignIn is the first thing in a folder that somebody else has put there, or
// could have written to.
func foreignIn(folder string) (foreign string) {
	_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if path == folder {
			return err
		}
		info, statErr := os.Lstat(path)
		linked := statErr == nil && info.Mode().IsRegular() && info.Sys().(*syscall.Stat_t).Nlink > 1
		if err != nil || statErr != nil || !mine(info) || linked || info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o022 != 0 {
			foreign = path
			return fs.SkipAll
		}
		return nil
	})
	return foreign
}

// mendToken takes a token away that others could have read.
func (a *app) mendToken(home *store.Home, name string) *mend {
	file := a.tilde(filepath.Join(home.Path(), name))
	if running, err := daemon.Find(home); err != nil || running != (daemon.Running{}) {
		return &mend{wont: "tapin runs with " + file + ". End it first with " + a.command("down") + ", and try again."}
	}
	path := filepath.Join(home.Path(), name)
	return &mend{does: "delete " + file + ", so that the next start makes another", asks: true, do: func(context.Context) (string, error) {
		whose := "Agents that had the old one read the file again."
		if name == sidecar.OwnerTokenFile {
			whose = "Nothing of yours is lost by it."
		}
		return "Deleted " + file + "; the next start makes another. " + whose, os.Remove(path)
	}}
}

// examineLeftovers finds what a tapin has left that did not end in order.
func (a *app) examineLeftovers(home *store.Home, running daemon.Running) (found []finding) {
	if ok, err := home.Exists(draftFile); err == nil && ok {
		found = append(found, finding{Name: "settings", Verdict: note, Text: "An edit of the settings is not finished; they are as they were.", Fix: a.command("config", "edit") + " goes on with it."})
	}
	if left := backup.Left(home.Path()); len(left) > 0 {
		found = append(found, finding{
			Name: "leftovers", Verdict: warn,
			Text: "A restore that was cut off has left a home with its key and everything in it: " + a.tilde(strings.Join(left, ", ")) + ".",
			Fix:  a.command("doctor", "--fix") + " removes it; a home of yours that lost its place by then is put aside.",
			mend: &mend{does: "remove what a restore left", do: func(ctx context.Context) (string, error) {
				return "Removed what a restore left.", backup.Tidy(ctx, home.Path(), a.vaultOptions())
			}},
		})
	}
	if running != (daemon.Running{}) {
		return found // it looks after its own
	}
	left, err := home.List("run")
	if err != nil || len(left) == 0 {
		return found
	}
	return append(found, finding{
		Name: "leftovers", Verdict: warn,
		Text: count(len(left), "browser") + " of a tapin that did not end in order may still run.",
		Fix:  a.command("up") + " goes on with them; " + a.command("down") + " ends them.",
		mend: &mend{does: "clear away what dead browsers left, and leave those that live", do: func(ctx context.Context) (string, error) {
			return a.clearDead(ctx, home.Path(), len(left))
		}},
	})
}

// clearDead removes the folders of browsers that have died. One that lives may
// have somebody's work in it, so it stays.
func (a *app) clearDead(ctx context.Context, path string, before int) (string, error) {
	home, err := a.openHome()
	if err != nil {
		return "", err
	}
	defer func() { _ = home.Close() }()
	epoch, err := home.Counter("epoch")
	if err != nil {
		return "", err
	}
	alive, err := local.New(filepath.Join(path, "run"), epoch, nil).Own(ctx, nil)
	if err != nil {
		return "", err
	}
	did := fmt.Sprintf("Cleared away what %s left.", count(before-len(alive), "dead browser"))
	if len(alive) > 0 {
		did += fmt.Sprintf(" %s alive: %s goes on with what is open in it, %s ends it.", plural(len(alive), "browser is", "browsers are"), a.command("up"), a.command("down"))
	}
	return did, nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// mendPort moves a listener to a port that is free.
func (a *app) mendPort(key, address string, origins *config.Origins) *mend {
	if origins == nil {
		return &mend{wont: "The settings have to be mended first."}
	}
	if at := origins.Of(key); at.Source != config.FromFile && at.Source != config.FromDefault {
		return &mend{wont: fmt.Sprintf("%s comes from %s; change it there.", key, at)}
	}
	free, ok := freeBeside(address)
	if !ok {
		return nil
	}
	return &mend{does: fmt.Sprintf("set %s to %s, which is free", key, free), asks: true, do: func(ctx context.Context) (string, error) {
		_, err := a.setSettings(ctx, key+"="+free)
		return fmt.Sprintf("Set %s to %s in %s.", key, free, configFile), err
	}}
}

// freeBeside is an address whose port is free, and the one behind it, which
// people get by default.
func freeBeside(address string) (string, bool) {
	host, text, err := net.SplitHostPort(address)
	port, numErr := strconv.Atoi(text)
	if err != nil || numErr != nil || port == 0 {
		return "", false
	}
	for next := port + 10; next < min(port+1000, 65534); next += 10 {
		if canListen(host, next) && canListen(host, next+1) {
			return net.JoinHostPort(host, strconv.Itoa(next)), true
		}
	}
	return "", false
}

func canListen(host string, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
