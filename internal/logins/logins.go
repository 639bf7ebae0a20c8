// Package logins keeps what makes a browser logged in, so that a person logs in once and not every week.
// It owns the manifest that people edit, the sealed files beside it, who uses which login, how fresh each is, and the portable envelope.
// It must never lose a login it has acknowledged, overwrite a newer one with an older, change a line of the manifest that is not its own, or let a value of one be printed.
package logins

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"

	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/store"
)

const (
	folder   = "contexts"
	roomLock = "logins"

	// DefaultManifest is where the manifest is unless context_store moves it.
	DefaultManifest = "browser-contexts.yaml"
)

// Vault seals what lies on the disk. What was sealed for one name cannot be
// opened under another. Safe for concurrent use; *vault.Vault is one.
type Vault interface {
	Seal(name, origin string, plaintext []byte) ([]byte, error)
	Open(name, origin string, sealed []byte) ([]byte, error)
}

// Options are the settings of the room; nil means the defaults.
type Options struct {
	Manifest string       // the path of the manifest, under the home unless absolute; empty means DefaultManifest
	Checker  Checker      // how Check looks at a site; nil means that nothing can
	Logger   *slog.Logger // told of what was damaged and mended; nil discards
	// Forget deletes what a provider keeps of a login, by the Browserbase context
	// id. One that is gone is no error; false means that nobody here can do that.
	Forget func(ctx context.Context, id string) (bool, error)
}

// Room keeps the logins of one home. It is safe for concurrent use, and so are
// several on the same home or the same manifest, in whatever process.
type Room struct {
	home    *store.Home
	vault   Vault
	book    *book
	checker Checker
	log     *slog.Logger
	forget  func(ctx context.Context, id string) (bool, error)

	mu     sync.Mutex
	checks map[string]bool // those under way, by the name they use a login under

	// at is told each step of a write before it is taken; tests kill it there.
	at func(step string)
}

// New opens the room. It reads nothing yet: a broken manifest is the business
// of those who ask for a login.
func New(home *store.Home, vault Vault, opts *Options) *Room {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Manifest == "" {
		o.Manifest = DefaultManifest
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Forget == nil {
		o.Forget = func(context.Context, string) (bool, error) { return false, nil }
	}
	r := &Room{home: home, vault: vault, checker: o.Checker, log: o.Logger, forget: o.Forget, checks: map[string]bool{}, at: func(string) {}}
	r.book = &book{path: filepath.Clean(config.Under(home.Path(), o.Manifest)), at: func(step string) { r.at(step) }, home: home}
	return r
}

// Manifest is the path of the manifest.
func (r *Room) Manifest() string { return r.book.path }

// exclusively runs fn while nobody else changes the logins of this home.
func (r *Room) exclusively(ctx context.Context, fn func() error) error {
	unlock, err := r.home.Lock(ctx, roomLock)
	if err != nil {
		return err
	}
	defer unlock()
	return fn()
}

func unknown(name string) error {
	return fault.New(fault.NotFound, "", "there is no saved login %q", name).
		WithHint("tapin context list names them; a new one begins with tapin open URL --context NAME.")
}
