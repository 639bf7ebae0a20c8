package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tapin/internal/browser/local"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/vault"
)

func (a *app) examineHome(home *store.Home) finding {
	f := finding{Name: "home", Verdict: good}
	schema, err := home.Read("schema")
	if err != nil {
		return findingOf("home", bad, err)
	}
	f.Text = fmt.Sprintf("%s is yours alone, schema %s.", a.tilde(home.Path()), strings.TrimSpace(string(schema)))
	for _, name := range []string{sidecar.AgentTokenFile, sidecar.OwnerTokenFile} {
		info, err := os.Stat(filepath.Join(home.Path(), name))
		if err == nil && !info.Mode().IsRegular() {
			return finding{Name: "home", Verdict: bad, Text: a.tilde(filepath.Join(home.Path(), name)) + " is no ordinary file.",
				Fix: "Remove it and start tapin again, which makes a new one."}
		}
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			file := a.tilde(filepath.Join(home.Path(), name))
			return finding{Name: "home", Verdict: bad, Text: fmt.Sprintf("%s is open to other users (mode %04o).", file, info.Mode().Perm()),
				Fix:  "Delete it and start tapin again, which makes a new one: others may have read it.",
				mend: a.mendToken(home, name)}
		}
	}
	return f
}

// The disk that a browser and its records need room on.
const (
	diskLow  = 1 << 30
	diskFull = 100 << 20
)

func examineDisk(path string) finding {
	f := finding{Name: "disk", Verdict: good}
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return finding{Name: "disk", Verdict: warn, Text: "How much room is left could not be found out."}
	}
	free := uint64(s.Bavail) * uint64(s.Bsize) //nolint:gosec,unconvert // the types differ by system; both are positive
	f.Text = size(int(min(free, 1<<62))) + " are free."
	switch {
	case free < diskFull:
		f.Verdict, f.Fix = bad, "Free some space; records and browser profiles are written there."
	case free < diskLow:
		f.Verdict, f.Fix = warn, "Free some space soon."
	}
	return f
}

func (a *app) examineVault(ctx context.Context, home *store.Home) finding {
	const name = "key"
	known, err := vault.IsMade(home)
	if err != nil {
		return findingOf(name, bad, err)
	}
	if !known {
		return finding{Name: name, Verdict: note, Text: "Nothing has been sealed yet; the key is made when the first login is saved."}
	}
	opts := a.vaultOptions()
	opts.KeyringTimeout = 0 // nobody waits at the keychain for a look around
	v, err := vault.Open(ctx, home, opts)
	if err != nil {
		return findingOf(name, bad, err)
	}
	others := "\nOthers seal for this tapin with " + v.Recipient() + "."
	switch v.Source() {
	case vault.FromKeychain:
		return finding{Name: name, Verdict: good,
			Text: "The key that seals saved logins is in this system's keychain: a copy of tapin's home is worth nothing without it." + others}
	case vault.FromEnvironment:
		return finding{Name: name, Verdict: note,
			Text: "The key that seals saved logins comes from TAPIN_VAULT_KEY: whoever starts tapin has to keep it." + others}
	case vault.FromFile:
	}
	return finding{Name: name, Verdict: warn,
		Text: "No keychain answered when the key that seals saved logins was made, so it lies in a file: " +
			a.tilde(filepath.Join(home.Path(), v.KeyFile())) + "." + others,
		Fix: "Whoever can read that file can open the saved logins. Keep it out of backups, or use a machine with a keychain."}
}

// examineBoundary says what stands between the agent and the owner's secrets:
// only the system does, and only between users.
func (a *app) examineBoundary(home *store.Home) finding {
	if a.getenv("TAPIN_URL") != "" {
		return finding{Name: "boundary", Verdict: good, Text: "tapin has a user of its own; agents of other users see of it what their token allows."}
	}
	uid := uint32(os.Getuid()) //nolint:gosec // never negative where tapin runs
	if home != nil {
		if info, err := os.Stat(home.Path()); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				uid = s.Uid
			}
		}
	}
	name := fmt.Sprintf("user %d", uid)
	if u, err := user.LookupId(fmt.Sprint(uid)); err == nil {
		name = u.Username
	}
	f := boundary(name, int(uid))
	if f.Fix != "" {
		f.Fix += " " + a.command("service", "install", "--user", "tapin") + " does that."
	}
	return f
}

func boundary(name string, uid int) finding {
	f := finding{Name: "boundary", Verdict: note}
	switch {
	case uid == 0:
		f.Verdict = warn
		f.Text = "tapin runs as root, and so can every agent that root runs: it can read the key, the saved logins and the owner's token."
		f.Fix = "Run tapin as a user of its own, under which no agent runs."
	case !sidecar.SameUser(uid):
		f.Verdict = good
		f.Text = fmt.Sprintf("tapin has a user of its own, %s: agents under other users come no further than its door. That none runs as %s is yours to see to.", name, name)
	default:
		f.Text = fmt.Sprintf("tapin runs as %s. An agent that runs as %s too can read what tapin can: the key, the saved logins, the owner's token. "+
			"What only the owner may do is then kept from its mistakes, not from its ill will.", name, name)
		f.Fix = "To make the boundary real, run tapin as a user of its own, under which no agent runs."
	}
	return f
}

func (a *app) examinePorts(cfg *config.Config, origins *config.Origins, home *store.Home, running daemon.Running) []finding {
	var found []finding
	control := cfg.Listen.Control
	if home != nil && running.Sidecar != 0 {
		if actual, err := daemon.Control(home); err == nil {
			control = actual
		}
	}
	for _, l := range []struct{ key, address string }{{"listen.control", control}, {"listen.public", cfg.Listen.Public}} {
		f := examinePort(l.key, l.address, running.Sidecar)
		if f.Verdict == bad && running.Sidecar == 0 {
			f.mend = a.mendPort(l.key, l.address, origins)
		}
		found = append(found, f)
	}
	return found
}

// examinePort tries to listen where the sidecar would.
func examinePort(key, address string, pid int) finding {
	f := finding{Name: "ports", Verdict: good}
	listener, err := net.Listen("tcp", address)
	if err == nil {
		_ = listener.Close()
		f.Text = fmt.Sprintf("%s (%s) is free.", address, key)
		return f
	}
	switch owns, known := ownsPort(pid, address); {
	case owns:
		f.Text = fmt.Sprintf("%s (%s) is used by tapin's own sidecar.", address, key)
	case pid != 0 && !known:
		f.Text = fmt.Sprintf("%s (%s) is in use, as it should be while tapin runs.", address, key)
	default:
		f.Verdict, f.Text = bad, fmt.Sprintf("%s (%s) cannot be listened on: %v.", address, key, reason(err))
		f.Fix = fmt.Sprintf("End the program that uses it, or set %s to another address in %s; doctor --fix finds one.", key, configFile)
	}
	return f
}

// reason is the cause of a network error without the address around it.
func reason(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func (a *app) examineBrowser(cfg *config.Config) []finding {
	if cfg.Provider != config.ProviderLocal {
		if err := cfg.Ready(cfg.Provider); err != nil {
			return []finding{findingOf("browser", bad, err)}
		}
		return []finding{{Name: "browser", Verdict: good, Text: fmt.Sprintf("Sessions use provider %s.", cfg.Provider)}}
	}
	began := time.Now()
	c, err := local.Find(cfg.Browser.Path)
	if err != nil {
		f := findingOf("browser", bad, err)
		f.mend = &mend{does: "install a browser with this system's package manager", asks: true, do: func(ctx context.Context) (string, error) {
			return "Installed a browser.", a.installBrowser(ctx)
		}}
		return []finding{f}
	}
	found := []finding{{Name: "browser", Verdict: good,
		Text: fmt.Sprintf("Chromium %s at %s answered in %s.", c.Version, c.Path, seconds(time.Since(began)))}}
	if cfg.Browser.Headful && !local.HasDisplay(cfg.Browser.Args) {
		found = append(found, finding{Name: "browser", Verdict: bad, Text: "browser.headful is true, and there is no display to show a window on.",
			Fix: "Leave browser.headful out, or start tapin where DISPLAY or WAYLAND_DISPLAY is set."})
	}
	found = append(found, examineSandbox())
	if runtime.GOOS == "linux" {
		found = append(found, examineSharedMemory())
	}
	return found
}

func examineSandbox() finding {
	f := finding{Name: "sandbox", Verdict: good, Text: "The browser runs in its own sandbox."}
	switch {
	case local.NeedsNoSandbox():
		f.Verdict, f.Text = warn, "You are root, and Chromium refuses its sandbox then: a page that breaks out of the browser would be root too."
		f.Fix = "Start tapin as an ordinary user."
	case kernelFlag("/proc/sys/kernel/unprivileged_userns_clone", "0"), kernelFlag("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
		f.Verdict, f.Text = warn, "This system restricts what the browser's sandbox is made of; the browser may refuse to start."
		f.Fix = "Use a Chrome from your distribution, which brings a permission of its own, or allow unprivileged user namespaces."
	}
	return f
}

func kernelFlag(file, value string) bool {
	raw, err := os.ReadFile(file) //nolint:gosec // one of two fixed names
	return err == nil && strings.TrimSpace(string(raw)) == value
}

func examineSharedMemory() finding {
	f := finding{Name: "memory", Verdict: good}
	var s unix.Statfs_t
	err := unix.Statfs("/dev/shm", &s)
	total := uint64(s.Blocks) * uint64(s.Bsize) //nolint:gosec,unconvert // the types differ by system; both are positive
	switch {
	case err != nil:
		f.Verdict, f.Text, f.Fix = warn, "There is no /dev/shm, which browsers share pictures through.", "Mount one; in a container, use --shm-size=1g."
	case total < 512<<20:
		f.Verdict, f.Text = note, fmt.Sprintf("/dev/shm has only %s, so the browser is told to do without it.", size(int(total)))
	default:
		f.Text = fmt.Sprintf("/dev/shm has %s.", size(int(min(total, 1<<62))))
	}
	return f
}

// examineClock sees whether the clock is behind what has already happened here.
// Deadlines and links are worth nothing under a wrong clock.
func examineClock(home *store.Home) finding {
	f := finding{Name: "clock", Verdict: good, Text: "It says " + time.Now().Format("2006-01-02 15:04 MST") + "."}
	latest := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // tapin is younger than this
	if home != nil {
		_ = fs.WalkDir(os.DirFS(home.Path()), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what cannot be read tells nothing of the clock
			}
			if info, err := d.Info(); err == nil && info.ModTime().After(latest) {
				latest = info.ModTime()
			}
			if d.IsDir() && path != "." && path != "locks" {
				return fs.SkipDir
			}
			return nil
		})
	}
	if time.Now().Before(latest.Add(-time.Minute)) {
		f.Verdict = bad
		f.Text += " But files in tapin's home are from " + latest.Format("2006-01-02 15:04 MST") + "."
		f.Fix = "Set the clock; have it set by the network."
	}
	return f
}
