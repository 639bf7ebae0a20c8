// Package store keeps durable files under one folder, tapin's home.
// It owns how they are written (whole or not at all), locked, numbered and
// migrated. It must never reach outside that folder, nor lose what it has
// acknowledged.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/gofrs/flock"

	"tapin/internal/fault"
	"tapin/internal/layout"
)

const (
	folderMode fs.FileMode = 0o700
	fileMode   fs.FileMode = 0o600

	schemaFile = "schema"
)

// Options are the settings of a home; nil means the defaults.
type Options struct {
	Logger *slog.Logger // told of what was mended; nil discards
	// Guard is asked before every change of a file, and its error is the
	// change's. Tests let a disk die with it, at every write in turn.
	Guard func(change string) error
	// Broken is asked before a file is read, and its error is the disk's. Tests
	// have files with it that cannot be read.
	Broken func(name string) error
	// Step hears of every step of every change once it is made. Tests end the
	// process in it, and so at each instant that the files can be left at.
	Step func(change string, step Step)
}

// Home is an open home folder. It is safe for concurrent use, and several
// processes may have the same home open.
type Home struct {
	path  string
	root  *os.Root
	log   *slog.Logger
	wary  bool // opened by Glance: what lies here may be anybody's
	locks waiters
	guard func(change string) error
	step  func(change string, step Step)
	bad   func(name string) error

	hasDoors atomic.Bool // of a freeze

	// write puts bytes into an open file; tests make it fail.
	write func(change string, f *os.File, data []byte, sync bool) error

	ill    sync.Mutex
	unread map[string]Damage // by name: there, and left as they are
	aside  []Damage          // put aside by this process
	tell   func(d Damage, again bool)

	mu      sync.Mutex
	scratch string       // our folder for temp files, made by the first write
	owner   *flock.Flock // held as long as scratch is ours
	closed  bool
}

// migration brings a home from the version before to version to.
type migration struct {
	to  int
	run func(*Home) error
}

// migrations are run in order, each once, under a lock.
var migrations = []migration{
	{to: 1, run: func(*Home) error { return nil }}, // the first layout: nothing to bring along
}

// Schema is the version that Open brings homes to.
func Schema() int { return migrations[len(migrations)-1].to }

// Open opens the home at path and makes it if there is none. It refuses a
// folder that other users can write to, and one that a newer tapin has
// migrated; it changes nothing in either, but gives this user's own rights back.
func Open(path string, opts *Options) (*Home, error) {
	return open(path, opts, migrations)
}

func open(path string, opts *Options, migrations []migration) (_ *Home, err error) {
	if opts == nil {
		opts = &Options{}
	}
	logger := opts.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open home: %w", err)
	}
	op := "open home " + path
	if err := os.MkdirAll(path, folderMode); err != nil { //nolint:gosec // the owner chooses where the home is
		return nil, openError(op, err)
	}
	root, err := openRoot(path)
	if err != nil {
		return nil, openError(op, err)
	}
	h := &Home{path: path, root: root, log: logger, guard: opts.Guard, step: opts.Step, bad: opts.Broken}
	h.write = h.writeFile
	defer func() {
		if err != nil {
			_ = h.Close()
		}
	}()

	info, err := root.Stat(".")
	if err != nil {
		return nil, openError(op, err)
	}
	if err := h.checkOwner(op, info); err != nil {
		return nil, err
	}
	if err := h.checkSwap(op); err != nil {
		return nil, err
	}
	// Looked at before anything is touched: a newer home stays as it is.
	if _, err := h.schema(op, migrations); err != nil {
		return nil, err
	}
	if err := h.checkCounters(op); err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode != folderMode {
		if err := root.Chmod(".", folderMode); err != nil {
			return nil, openError(op, err)
		}
		h.log.Warn("home was open to others; closed it", "path", path, "mode", fmt.Sprintf("%04o", mode))
	}
	if err := h.migrate(op, migrations); err != nil {
		return nil, err
	}
	if err := h.sweep(); err != nil {
		return nil, openError(op, err)
	}
	return h, nil
}

// Path is the absolute path of the home.
func (h *Home) Path() string { return h.path }

// Close gives up the home and removes what was only ours. It may be called
// more than once.
func (h *Home) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	var errs []error
	if h.scratch != "" {
		errs = append(errs, h.root.RemoveAll(h.scratch), h.owner.Unlock())
	}
	return errors.Join(append(errs, h.root.Close())...)
}

// Private returns nil if only this user can put files into the home, and else
// the fault that Open gives.
func (h *Home) Private() error {
	const op = "look at home"
	info, err := h.root.Stat(".")
	if err != nil {
		return openError(op, err)
	}
	return h.checkOwner(op+" "+h.path, info)
}

// Refused is why a program that starts now would not open this home: a newer one
// has migrated it, or nobody knows which numbers were given. Trying again would
// change nothing.
func (h *Home) Refused() error {
	const op = "open home"
	if err := h.checkSwap(op); err != nil {
		return err
	}
	if _, err := h.schema(op, migrations); err != nil {
		return err
	}
	return h.checkCounters(op)
}

// checkOwner refuses a home that somebody else could put files into: a token
// or a policy found there would not be the owner's.
func (h *Home) checkOwner(op string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fault.New(fault.Forbidden, op, "other users can write to it (mode %04o)", mode).
			WithHint("See that nothing in it is foreign, then run: chmod 700 %s", h.path)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return nil
	}
	if os.Geteuid() == 0 {
		// Containers run as root on folders of the host's user.
		h.log.Warn("home belongs to another user", "path", h.path, "uid", stat.Uid)
		return nil
	}
	return fault.New(fault.Forbidden, op, "it belongs to another user (uid %d)", stat.Uid).
		WithHint("Run tapin as that user, or set TAPIN_HOME to a folder of your own.")
}

// schema reads the version of the home; 0 is a home without one yet.
func (h *Home) schema(op string, migrations []migration) (int, error) {
	data, err := h.readFile(schemaFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	hint := fmt.Sprintf("Restore %s from a backup, where its content is a number; or run tapin doctor --fix, which can tell whether it may write it.", filepath.Join(h.path, schemaFile))
	switch {
	case err != nil && (passing(err) || errors.Is(err, fs.ErrPermission)):
		return 0, openError(op, err)
	case err != nil:
		return 0, fault.New(fault.Unreadable, op, "its schema file cannot be read: %s", inWords(err)).WithHint("%s", hint)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || version < 1 {
		return 0, fault.New(fault.Forbidden, op, "%w", errNoVersion).
			WithHint("%s", hint)
	}
	if newest := migrations[len(migrations)-1].to; version > newest {
		return 0, fault.New(fault.Forbidden, op, "it has schema %d, this tapin knows up to %d", version, newest).
			WithHint("Install the tapin that wrote it, or a newer one; nothing was changed.")
	}
	return version, nil
}

// Schemaless is nil if the home has lost its version, and MendSchema can give it
// that of this program: everything else in it is as this program writes it.
func (h *Home) Schemaless() error {
	const op = "look at the schema"
	if _, err := h.schema(op, migrations); err == nil || fault.Of(err).Code != fault.Unreadable && !errors.Is(err, errNoVersion) {
		return fault.New(fault.InvalidRequest, op, "the version of the home is known, or is none of this program's")
	}
	damages, err := h.Examine()
	if err != nil {
		return err
	}
	for _, d := range damages {
		kind, _ := layout.Of(d.File)
		if d.Aside == "" && d.File != schemaFile && kind.Name != "counter" && precious(kind) && kind.Class != "" {
			return fault.New(fault.Unreadable, op, "%s (%s) cannot be read either: %s. A newer tapin may have written it.", d.File, d.Kind, d.Why).
				WithHint("Restore %s from a backup, or write into it the schema of the tapin that used the home last; that of this one is %d.", filepath.Join(h.path, schemaFile), Schema())
		}
	}
	return nil
}

// MendSchema gives a home that has lost its version that of this program.
func (h *Home) MendSchema() error {
	if err := h.Schemaless(); err != nil {
		return err
	}
	if _, err := h.PutAside(schemaFile, errNoVersion); err != nil {
		return err
	}
	return h.Write(schemaFile, fmt.Appendf(nil, "%d\n", Schema()))
}

var errNoVersion = errors.New("its schema file holds no version number")

func (h *Home) migrate(op string, migrations []migration) error {
	unlock, err := h.lockFile(".schema")
	if err != nil {
		return openError(op, err)
	}
	defer unlock()
	version, err := h.schema(op, migrations)
	if err != nil {
		return err
	}
	for _, m := range migrations {
		if m.to <= version {
			continue
		}
		if err := m.run(h); err != nil {
			return fault.Wrap(fault.Internal, fmt.Sprintf("%s: migrate to schema %d", op, m.to), err)
		}
		if err := h.Write(schemaFile, fmt.Appendf(nil, "%d\n", m.to)); err != nil {
			return openError(op, err)
		}
	}
	return nil
}
