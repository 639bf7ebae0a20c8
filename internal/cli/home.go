package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tapin/internal/api"
	"tapin/internal/backup"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/sidecar"
	"tapin/internal/store"
)

const configFile = "config.yaml"

// homePath is the absolute path of the home, which need not exist.
func (a *app) homePath() (string, error) {
	path := a.home
	if path == "" {
		path = a.getenv("TAPIN_HOME")
	}
	if path == "" {
		return a.env.Home()
	}
	return filepath.Abs(path)
}

// openHome opens the home and makes it if there is none.
func (a *app) openHome() (*store.Home, error) {
	path, err := a.homePath()
	if err != nil {
		return nil, err
	}
	if err := backup.Finish(path); err != nil {
		return nil, err
	}
	return store.Open(path, &store.Options{Logger: a.logger(), Step: a.env.OnDisk, Broken: a.env.OnRead})
}

// homeToMend opens the home for somebody who is told in words what was done to it.
func (a *app) homeToMend() (*store.Home, error) {
	path, err := a.homePath()
	if err != nil {
		return nil, err
	}
	if err := backup.Finish(path); err != nil {
		return nil, err
	}
	return store.Open(path, &store.Options{Step: a.env.OnDisk, Broken: a.env.OnRead})
}

// existingHome opens the home; nil if there is none. A question must not make one.
func (a *app) existingHome() (*store.Home, error) {
	path, err := a.homePath()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := backup.Finish(path); err != nil {
		return nil, err
	}
	return store.Open(path, &store.Options{Logger: a.logger(), Step: a.env.OnDisk, Broken: a.env.OnRead})
}

// runningHome opens the home to see what runs under it; nil if there is none.
// Whatever became of the home, what runs there must be found: trouble is why it
// could not be opened as it should be, and then nothing in it is trusted.
func (a *app) runningHome() (home *store.Home, trouble, err error) {
	home, trouble = a.existingHome()
	if trouble == nil {
		return home, nil, nil
	}
	path, err := a.homePath()
	if err != nil {
		return nil, nil, err
	}
	if home, err = store.Glance(path); err != nil {
		return nil, nil, trouble
	}
	return home, trouble, nil
}

// settings reads config.yaml, the environment and the flags.
func (a *app) settings() (*config.Config, *config.Origins, error) {
	path, err := a.homePath()
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(path, configFile)
	raw, err := config.ReadFile(file, a.tilde(file))
	if err != nil {
		return nil, nil, err
	}
	return config.Load(config.Inputs{File: raw, FileName: a.tilde(file), Env: a.env.Environ, Set: a.set})
}

// logger writes to stderr, for the processes that run in the foreground.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.env.Stderr, &slog.HandlerOptions{Level: level}))
}

// notRunning is what every command says that needs a running tapin.
func (a *app) notRunning() error {
	return fault.New(fault.Busy, "", "%w", api.ErrNotRunning).WithHint("Start it with: %s", a.command("up"))
}

// checkLock is held while up tries out the browser. The session it does that
// in is about to end: no command may take it for one to go on in.
const checkLock = "check"

// client is a client of the running sidecar with the owner's token.
func (a *app) client(ctx context.Context) (*api.Client, error) {
	if a.getenv("TAPIN_URL") != "" && a.home == "" {
		return a.clientElsewhere()
	}
	home, err := a.existingHome()
	if err != nil {
		return nil, err
	}
	if home == nil {
		return nil, a.notRunning()
	}
	defer func() { _ = home.Close() }()
	return a.clientOf(ctx, home, checkLock)
}

// A sidecar that is being started again is waited for this long.
const restartWithin = 10 * time.Second

// clientOf is a client of the sidecar of a home with the owner's token.
func (a *app) clientOf(ctx context.Context, home *store.Home, free ...string) (*api.Client, error) {
	address, err := a.sidecarAt(ctx, home, free...)
	if err != nil {
		return nil, err
	}
	return clientAt(home, address)
}

// sidecarAt finds the sidecar of a home, once nobody holds the locks named. No
// token is sent anywhere unless the sidecar's own lock is held: the port of one
// that is gone may be a stranger's.
func (a *app) sidecarAt(ctx context.Context, home *store.Home, free ...string) (string, error) {
	done := a.progress("waiting for tapin to be ready")
	defer done()
	ctx, cancel := context.WithTimeout(ctx, restartWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		address, running, err := serving(home)
		if err != nil {
			return "", err
		}
		if !running {
			return "", a.notRunning()
		}
		held, err := anyHeld(home, free)
		if err != nil {
			return "", err
		}
		if address != "" && !held && listens(ctx, address) {
			return address, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fault.New(fault.Busy, "", "tapin is running but not ready").
				WithHint("Try again in a moment; if it stays so, see %s.", a.tilde(filepath.Join(home.Path(), "logs", "sidecar.log")))
		}
	}
}

// listens reports whether anybody does. A sidecar that is being killed has its lock, and
// its address stands there, for a moment longer than it listens.
func listens(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return !errors.Is(err, syscall.ECONNREFUSED)
}

// serving tells where the sidecar listens, or that none does yet, or that
// nothing is running that would start one.
func serving(home *store.Home) (address string, running bool, err error) {
	_, sidecarHeld, err := home.LockHolder("sidecar")
	if err != nil {
		return "", false, err
	}
	if !sidecarHeld {
		_, daemonHeld, err := home.LockHolder("daemon")
		return "", daemonHeld, err
	}
	address, err = daemon.Control(home)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true, nil
	}
	return address, true, err
}

func anyHeld(home *store.Home, locks []string) (bool, error) {
	for _, lock := range locks {
		if _, held, err := home.LockHolder(lock); err != nil || held {
			return held, err
		}
	}
	return false, nil
}

func clientAt(home *store.Home, address string) (*api.Client, error) {
	return clientWith(home, address, sidecar.OwnerTokenFile)
}

// clientWith is a client with the token in one of the home's files.
func clientWith(home *store.Home, address, file string) (*api.Client, error) {
	raw, err := home.Read(file)
	if errors.Is(err, syscall.EISDIR) {
		return nil, fault.New(fault.InvalidRequest, "", "%s is a folder", filepath.Join(home.Path(), file)).
			WithHint("Remove it and start tapin again; it makes the file.")
	}
	if err != nil {
		return nil, fault.New(fault.Unauthorized, "read "+file, "%w", err).
			WithHint("Start tapin again; it makes the file.")
	}
	return api.NewClient("http://"+address, secret.New(strings.TrimSpace(string(raw))), nil)
}

// command is a line to copy that runs tapin with these words, for the same home.
func (a *app) command(words ...string) string {
	line := []string{shellWord(a.program)}
	if a.home != "" {
		if path, err := a.homePath(); err == nil {
			line = append(line, "--home", shellWord(a.tilde(path)))
		}
	}
	for _, w := range words {
		line = append(line, shellWord(w))
	}
	return strings.Join(line, " ")
}
