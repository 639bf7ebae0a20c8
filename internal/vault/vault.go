// Package vault seals what must not lie in the clear, and fetches credentials.
// It owns the sealing key and where it comes from: the keychain, the
// environment, or a file. It must never let that place become a weaker one by
// itself, nor make a second key for what a first one has sealed.
package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"
	"unicode/utf8"

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
}

// Vault seals and opens with one key. It is safe for concurrent use.
type Vault struct {
	keys     keychain
	getenv   func(string) string
	source   Source
	identity *age.X25519Identity
}

// Open finds the key of a home, and makes one on first use. Which place the
// key is in is decided once: keychain, else TAPIN_VAULT_KEY, else a file. From
// then on the key is there or Open fails.
func Open(ctx context.Context, home *store.Home, opts *Options) (*Vault, error) {
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
	v := &Vault{keys: keychain{o.Keyring, o.KeyringTimeout}, getenv: o.Getenv}

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

// Seal encrypts plaintext in the age format. The name and origin it is sealed
// for are inside, and Open wants the same ones.
func (v *Vault) Seal(name, origin string, plaintext []byte) ([]byte, error) {
	head, err := header(name, origin)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, v.identity.Recipient())
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", name, err)
	}
	for _, part := range [][]byte{head, plaintext} {
		if _, err := w.Write(part); err != nil {
			return nil, fmt.Errorf("seal %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal %s: %w", name, err)
	}
	return sealed.Bytes(), nil
}

// Open decrypts what Seal made for that name and origin. Anything else, also
// what was sealed with another key or for another name, is INTEGRITY_MISMATCH.
func (v *Vault) Open(name, origin string, sealed []byte) ([]byte, error) {
	op := "open sealed " + name
	head, err := header(name, origin)
	if err != nil {
		return nil, fault.New(fault.IntegrityMismatch, op, "%w", err)
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), v.identity)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, fault.New(fault.IntegrityMismatch, op, "it was sealed with another key").
			WithHint("Use the key that sealed it, or log in once more.")
	}
	var plain []byte
	if err == nil {
		plain, err = io.ReadAll(r)
	}
	if err != nil {
		// Described, not wrapped: the cause may quote what was sealed.
		return nil, fault.New(fault.IntegrityMismatch, op, "it is damaged").
			WithHint("Restore it from a backup, or log in once more.")
	}
	plain, ok := bytes.CutPrefix(plain, head)
	if !ok {
		return nil, fault.New(fault.IntegrityMismatch, op, "it was sealed for another name or origin").
			WithHint("A sealed file cannot be renamed or moved to another site; log in once more.")
	}
	return plain, nil
}

// header is the first line of the plaintext. The same name and origin always
// give the same bytes, and different ones different bytes.
func header(name, origin string) ([]byte, error) {
	if !utf8.ValidString(name) || !utf8.ValidString(origin) {
		return nil, errors.New("the name or origin is not text")
	}
	line, err := json.Marshal(struct {
		Vault  int    `json:"tapin_vault"`
		Name   string `json:"name"`
		Origin string `json:"origin"`
	}{1, name, origin})
	return append(line, '\n'), err
}

// refused is how every failure to get at the key looks.
func refused(hint, format string, args ...any) error {
	return fault.New(fault.Forbidden, "open vault", format, args...).WithHint("%s", hint)
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
