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
	source   Source
	identity *age.X25519Identity
	stretch  sync.Mutex // one passphrase at a time: each takes memory to stretch
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
	if err := v.findKey(ctx, home, o.Logger); err != nil {
		return nil, err
	}
	return v, nil
}

// Source says which place the key came from.
func (v *Vault) Source() Source { return v.source }

// Recipient is the public half of the key, in age's form. It is no secret.
func (v *Vault) Recipient() string { return v.identity.Recipient().String() }

// refused is how every failure to get at the key looks.
func refused(hint, format string, args ...any) error {
	return fault.New(fault.Forbidden, "open vault", format, args...).WithHint("%s", hint)
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
