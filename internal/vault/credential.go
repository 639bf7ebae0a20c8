package vault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zalando/go-keyring"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	credentialPrefix = "credential-" //nolint:gosec // of names, not of values
	keychainAccount  = "tapin"
)

// errUnavailable is a keychain that gave no answer, as opposed to "no".
var errUnavailable = errors.New("the keychain cannot be used")

// Keyring is the part of an OS keychain that the vault needs. Get and Delete
// answer keyring.ErrNotFound for an entry that is not there. Calls may come
// from several goroutines, and one that never returns is abandoned.
type Keyring interface {
	Get(service, account string) (string, error)
	Set(service, account, value string) error
	Delete(service, account string) error
}

// systemKeyring is the keychain of the operating system.
type systemKeyring struct{}

func (systemKeyring) Get(service, account string) (string, error) {
	return keyring.Get(service, account)
}

func (systemKeyring) Set(service, account, value string) error {
	return keyring.Set(service, account, value)
}

func (systemKeyring) Delete(service, account string) error { return keyring.Delete(service, account) }

// Credentials are what the owner keeps in the keychain for tapin: keys of
// services, and logins of sites. They need no sealing key. They are safe for
// concurrent use.
type Credentials struct {
	home   *store.Home
	keys   keychain
	getenv func(string) string
	saved  func(name string) (domain string, err error)
}

// NewCredentials are those of a home, without opening its vault.
func NewCredentials(home *store.Home, opts *Options) *Credentials {
	return newCredentials(home, opts.settled())
}

func newCredentials(home *store.Home, o Options) *Credentials {
	c := &Credentials{home: home, keys: keychain{o.Keyring, o.KeyringTimeout}, getenv: o.Getenv, saved: o.Saved}
	if c.saved == nil {
		c.saved = func(string) (string, error) { return "", nil }
	}
	return c
}

// Credential fetches a keychain entry such as credential-browserbase-api-key.
// The environment goes before the keychain: BROWSERBASE_API_KEY for that one.
// One that is in neither is NOT_FOUND.
func (c *Credentials) Credential(ctx context.Context, name string) (secret.Text, error) {
	variable, err := credentialVariable(name)
	if err != nil {
		return secret.Text{}, err
	}
	if value := c.getenv(variable); value != "" {
		return secret.New(value), nil
	}
	value, err := c.keys.get(ctx, name)
	switch {
	case err == nil:
		return value, nil
	case ctx.Err() != nil:
		return secret.Text{}, fmt.Errorf("get %s: %w", name, ctx.Err())
	case errors.Is(err, keyring.ErrNotFound):
		err = errors.New("it is not in the keychain")
	}
	return secret.Text{}, fault.New(fault.NotFound, "get "+name, "%w, and %s is not set", err, variable).
		WithHint("Set %s, or add %s for the account %s to the keychain.", variable, name, keychainAccount)
}

// Keep puts an entry such as credential-telegram-bot-token into the keychain,
// in place of an earlier one. The environment still goes before it.
func (c *Credentials) Keep(ctx context.Context, name string, value secret.Text) error {
	if _, err := credentialVariable(name); err != nil {
		return err
	}
	return c.store(ctx, name, value)
}

// credentialVariable names the environment's alternative to an entry.
func credentialVariable(name string) (string, error) {
	rest, ok := strings.CutPrefix(name, credentialPrefix)
	if !ok || rest == "" || len(rest) > 300 || name == keyService || strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
		return "", fault.New(fault.InvalidRequest, "get credential", "%.300q is not the name of a credential", name).
			WithHint("Names look like credential-example.com-login.")
	}
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(rest)), nil
}

// keychain bounds a keyring's calls: without a desktop session some of them
// fail without a type, and some never return.
type keychain struct {
	ring    Keyring
	timeout time.Duration
}

func (k keychain) get(ctx context.Context, service string) (value secret.Text, err error) {
	return k.call(ctx, func() (secret.Text, error) {
		s, err := k.ring.Get(service, keychainAccount)
		return secret.New(s), err
	})
}

func (k keychain) set(ctx context.Context, service string, value secret.Text) error {
	_, err := k.call(ctx, func() (secret.Text, error) {
		return secret.Text{}, k.ring.Set(service, keychainAccount, value.Reveal())
	})
	return err
}

func (k keychain) remove(ctx context.Context, service string) error {
	_, err := k.call(ctx, func() (secret.Text, error) {
		return secret.Text{}, k.ring.Delete(service, keychainAccount)
	})
	return err
}

// call abandons fn when it takes too long: nothing can interrupt it.
func (k keychain) call(ctx context.Context, fn func() (secret.Text, error)) (secret.Text, error) {
	type answer struct {
		value secret.Text
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		defer guard.Catch("vault", func() { answers <- answer{err: errPanicked} })
		value, err := fn()
		answers <- answer{value, err}
	}()
	timer := time.NewTimer(k.timeout)
	defer timer.Stop()
	select {
	case a := <-answers:
		if a.err == nil || errors.Is(a.err, keyring.ErrNotFound) {
			return a.value, a.err
		}
		// Described, not wrapped: a keychain's tool may echo its input.
		return secret.Text{}, fmt.Errorf("%w: it answered with an error", errUnavailable)
	case <-timer.C:
		return secret.Text{}, fmt.Errorf("%w: no answer within %v", errUnavailable, k.timeout)
	case <-ctx.Done():
		return secret.Text{}, ctx.Err()
	}
}

var errPanicked = errors.New("a part of it panicked")
