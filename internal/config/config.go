// Package config is one strict struct of settings, and how it is read.
// It owns the keys, their defaults, and the order in which a file, the
// environment and flags override each other.
// It must never guess at a key it does not know, nor print a secret, also not
// out of a file that it cannot read.
package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tapin/internal/fault"
)

// Inputs is everything settings come from; later ones override earlier ones.
// The zero value gives the defaults.
type Inputs struct {
	File     []byte   // the contents of config.yaml; empty is valid
	FileName string   // how messages name the file; empty means config.yaml
	Env      []string // as from os.Environ; an empty variable is the same as none
	Set      []string // key.path=value, as from --set flags
}

// ReadFile reads a file of settings; a missing one is empty. It refuses what is
// no ordinary file, which may never end, and reads no further than Load would.
// Messages call it name.
func ReadFile(path, name string) ([]byte, error) {
	const op = "read settings"
	refused := func(err error) error {
		code := fault.InvalidRequest
		if errors.Is(err, fs.ErrPermission) {
			code = fault.Forbidden
		}
		if inner, ok := errors.AsType[*fs.PathError](err); ok {
			err = inner.Err // the name says which file
		}
		return fault.New(code, op, "%s: %w", name, err).WithHint("Put an ordinary file there that you can read, or name another home with --home.")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, refused(err)
	case !info.Mode().IsRegular():
		return nil, refused(errNoFile)
	}
	f, err := os.Open(path) //nolint:gosec // the owner chooses where the home is
	if err != nil {
		return nil, refused(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, refused(err)
	}
	return data, nil
}

var errNoFile = errors.New("it is no ordinary file")

// maxFile bounds what is given to the YAML parser. No settings are that long.
const maxFile = 1 << 20

// Load reads the inputs. It reports every problem it finds, in one
// fault.InvalidRequest, and then returns no settings at all.
//
// A variable is named TAPIN_ and the key in upper case with _ for each dot:
// listen.control is TAPIN_LISTEN_CONTROL. No two keys share a name. TAPIN_CHROME
// is another name for TAPIN_BROWSER_PATH. In variables and flags, lists are
// written a,b,c or as in YAML, [a, b]; maps as in YAML, {name: value}.
func Load(in Inputs) (*Config, *Origins, error) {
	l := newLoader(in)
	l.readFile(in.File)
	l.readEnv(in.Env)
	l.readSet(in.Set)
	l.derive()
	l.check()
	if err := l.fault(); err != nil {
		return nil, nil, err
	}
	return l.config, l.origins, nil
}

// Ready reports whether sessions of a provider can be started, as far as the
// settings can tell: a provider that is never used may stay unfinished.
func (c *Config) Ready(p Provider) error {
	op := "use provider " + string(p)
	switch p {
	case ProviderLocal:
		return nil
	case ProviderBrowserbase:
		if !c.Integrations.Browserbase.Enabled {
			return fault.New(fault.Disabled, op, "integrations.browserbase.enabled is false")
		}
		return nil
	case ProviderCDP:
		if c.CDP.URL.IsEmpty() {
			return fault.New(fault.ProviderNotConfigured, op, "cdp.url is not set")
		}
		return nil
	}
	return fault.New(fault.InvalidRequest, "choose a provider", "there is no such provider; there are %s", strings.Join(p.Values(), ", "))
}

// Under resolves a path from the settings: ~/ is the user's home folder, and a
// relative path is under tapin's home, never under the current folder, which
// is another one for every command.
func Under(home, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if user, err := os.UserHomeDir(); err == nil {
			return filepath.Join(user, rest)
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(home, path)
}
