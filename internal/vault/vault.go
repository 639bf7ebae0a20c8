// Package vault seals what must not lie in the clear, and fetches credentials.
// It owns the sealing key and where it comes from: the keychain, the
// environment, or a file. It must never let that place become a weaker one by
// itself, nor make a second key for what a first one has sealed.
package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"filippo.io/age"

	"tapin/internal/fault"
	"tapin/internal/store"
)

const defaultKeyringTimeout = 2 * time.Second

// Options are the settings of a vault; nil means the defaults.
type Options struct {
	Keyring        Keyring             // nil means the system's
	KeyringTimeout time.Duration       // how long the keychain may take to answer; 0 means 2 s
	Getenv         func(string) string // nil means os.Getenv
	Logger         *slog.Logger        // told when a weaker place than the keychain is chosen
	// Saved tells the domain of the saved login of a name, "" when there is none.
	// Credentials of that name are bound to it. Nil means that none are saved.
	Saved func(name string) (domain string, err error)
}

// Vault seals and opens with one key, and has the credentials of its home. It
// is safe for concurrent use.
type Vault struct {
	*Credentials
	stretch sync.Mutex // one passphrase at a time: each takes memory to stretch

	mu       sync.Mutex
	at       sourceRecord
	identity *age.X25519Identity // nil while it cannot be read
	next     *age.X25519Identity // while files are sealed anew with it; else nil
	find     func() error        // looks for it again
	failed   error               // why the last look found none
	again    time.Time           // when the next one may be
}

// settled are the options with every default in its place.
func (opts *Options) settled() Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Keyring == nil {
		o.Keyring = systemKeyring{}
	}
	if o.KeyringTimeout <= 0 {
		o.KeyringTimeout = defaultKeyringTimeout
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Open finds the key of a home, and makes one on first use. Which place the
// key is in is decided once: keychain, else TAPIN_VAULT_KEY, else a file. From
// then on the key is there or Open fails.
func Open(ctx context.Context, home *store.Home, opts *Options) (*Vault, error) {
	o := opts.settled()
	v := &Vault{Credentials: newCredentials(home, o)}

	unlock, err := home.Lock(ctx, "vault") // two first uses must not make two keys
	if err != nil {
		return nil, fmt.Errorf("open vault: %w", err)
	}
	defer unlock()
	if err := v.findKey(ctx, o.Logger); err != nil {
		return nil, err
	}
	return v, nil
}

// OpenLater is Open that also gives a vault when the file with the key, or the
// one that says where the key is, cannot be read: what is sealed stays closed,
// and nothing is sealed, until it can. Nobody makes a second key meanwhile.
func OpenLater(ctx context.Context, home *store.Home, opts *Options) (*Vault, error) {
	v, err := Open(ctx, home, opts)
	if !errors.Is(err, fault.Unreadable) {
		return v, err
	}
	o := opts.settled()
	v = &Vault{Credentials: newCredentials(home, o), failed: err, again: time.Now().Add(lookAgain)}
	v.find = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), lookAgain)
		defer cancel()
		found, err := Open(ctx, home, opts)
		if err == nil {
			v.at, v.identity, v.next = found.at, found.identity, found.next
		}
		return err
	}
	return v, nil
}

// lookAgain is how often a key that could not be read is looked for.
const lookAgain = 2 * time.Second

// key is the key, or why there is none now.
func (v *Vault) key() (*age.X25519Identity, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.identity == nil && !time.Now().Before(v.again) {
		v.failed = v.find()
		v.again = time.Now().Add(lookAgain)
	}
	if v.identity == nil {
		return nil, v.failed
	}
	return v.identity, nil
}

// Source says which place the key came from.
func (v *Vault) Source() Source {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at.Source
}

// KeyFile names the file of the home that the key is in, if it is in one.
func (v *Vault) KeyFile() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at.Source != FromFile {
		return ""
	}
	return v.at.entry()
}

// Recipient is the public half of the key, in age's form. It is no secret. There
// is none while the key cannot be read.
func (v *Vault) Recipient() string {
	key, err := v.key()
	if err != nil {
		return ""
	}
	return key.Recipient().String()
}

// refused is how every failure to get at the key looks.
func refused(hint, format string, args ...any) error {
	return fault.New(fault.Forbidden, "open vault", format, args...).WithHint("%s", hint)
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
