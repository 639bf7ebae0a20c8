package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tapin/internal/fault"
)

const (
	linux = "linux"
	macOS = "darwin"
)

// machine is what of the system the service commands depend on.
type machine struct {
	os     string
	root   bool   // whether the caller may change the system
	config string // the caller's folder for settings: ~/.config
	home   string // the caller's home folder
	caller string // the user whose agents are to drive, if another user runs tapin
	booted bool   // whether a service manager runs this machine
	path   string // where programs are looked for
}

func (a *app) machine(goos string) machine {
	m := machine{os: goos, root: os.Geteuid() == 0, home: a.getenv("HOME"), caller: a.getenv("SUDO_USER"), path: a.getenv("PATH")}
	m.config = a.getenv("XDG_CONFIG_HOME")
	if m.config == "" {
		m.config = filepath.Join(m.home, ".config")
	}
	switch goos {
	case linux:
		_, err := os.Stat("/run/systemd/system") // what sd_booted(3) asks
		m.booted = err == nil
	case macOS:
		m.booted = true
	}
	return m
}

// supported refuses a machine that has no service manager we know.
func (m machine) supported() error {
	if m.booted {
		return nil
	}
	return fault.New(fault.ProviderNotConfigured, "", "neither systemd nor launchd runs this machine").
		WithHint("Have your own process manager run: tapin up. See what it would need with: tapin service install --print")
}

// file is where the service manager looks for the service.
func (m machine) file(system bool) string {
	switch {
	case m.os == macOS && system:
		return "/Library/LaunchDaemons/" + plistLabel + ".plist"
	case m.os == macOS:
		return filepath.Join(m.home, "Library", "LaunchAgents", plistLabel+".plist")
	case system:
		return "/etc/systemd/system/tapin.service"
	}
	return filepath.Join(m.config, "systemd", "user", "tapin.service")
}

// text is what stands in that file.
func (m machine) text(s service) string {
	if m.os == macOS {
		return s.plist()
	}
	return s.unit()
}

// stateFolder is where a separate user's tapin keeps everything.
func stateFolder(goos string) string {
	if goos == macOS {
		return "/usr/local/var/tapin"
	}
	return "/var/lib/tapin"
}

// step is one thing that is done, and how a person is told of it before.
type step struct {
	say string
	do  func(ctx context.Context) error
}

// runStep runs a program of the system.
func (m machine) runStep(words ...string) step {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return step{"run    " + strings.Join(quoted, " "), func(ctx context.Context) error { return m.run(ctx, words...) }}
}

// programWithin bounds each program of the system.
const programWithin = 2 * time.Minute

func (m machine) run(ctx context.Context, words ...string) error {
	program := lookPath(words[0], m.path)
	if program == "" {
		return fault.New(fault.ProviderNotConfigured, "run "+words[0], "there is no such program here")
	}
	ctx, cancel := context.WithTimeout(ctx, programWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, words[1:]...).CombinedOutput() //nolint:gosec // the system's own, with words of ours
	if err != nil {
		return fault.New(fault.Busy, "run "+strings.Join(words, " "), "%w: %s", err, clean(strings.TrimSpace(string(out)))).
			WithHint("What was done before it stays; run the command again once that is mended.")
	}
	return nil
}

func writeStep(file, text string) step {
	return step{"write  " + file, func(context.Context) error {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // folders of the service manager are for all to read
			return err
		}
		temp := file + ".new"
		if err := os.WriteFile(temp, []byte(text), 0o644); err != nil { //nolint:gosec // so are its files
			return err
		}
		return os.Rename(temp, file)
	}}
}

func removeStep(file string) step {
	return step{"remove " + file, func(context.Context) error {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}}
}

// install are the steps that make a service run, now and after every start.
func (m machine) install(s service) []step {
	file := m.file(s.user != "")
	steps := []step{writeStep(file, m.text(s))}
	switch {
	case m.os == macOS && s.user != "":
		return append(steps, m.runStep("launchctl", "bootstrap", "system", file))
	case m.os == macOS:
		return append(steps, m.runStep("launchctl", "bootstrap", fmt.Sprintf("gui/%d", os.Getuid()), file))
	}
	return append(steps, m.systemctl(s.user != "", "daemon-reload"), m.systemctl(s.user != "", "enable", "--now", "tapin.service"))
}

// uninstall are the steps that undo it. What tapin has kept stays.
func (m machine) uninstall(system bool) []step {
	file := m.file(system)
	switch {
	case m.os == macOS && system:
		return []step{m.runStep("launchctl", "bootout", "system/"+plistLabel), removeStep(file)}
	case m.os == macOS:
		return []step{m.runStep("launchctl", "bootout", fmt.Sprintf("gui/%d/%s", os.Getuid(), plistLabel)), removeStep(file)}
	}
	return []step{m.systemctl(system, "disable", "--now", "tapin.service"), removeStep(file), m.systemctl(system, "daemon-reload")}
}

func (m machine) systemctl(system bool, words ...string) step {
	if !system {
		words = append([]string{"--user"}, words...)
	}
	return m.runStep(append([]string{"systemctl"}, words...)...)
}
