package vault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"
	"github.com/zalando/go-keyring"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// Source is a place that a key can come from.
type Source string

// The places, the strongest first.
const (
	FromKeychain    Source = "keychain"
	FromEnvironment Source = "environment"
	FromFile        Source = "file"
)

const (
	keyService  = "credential-tapin-vault"
	keyVariable = "TAPIN_VAULT_KEY"
	keyFile     = "vault.key"
	sourceFile  = "vault.source"
)

// giveUp is for who has no copy of the key.
const giveUp = "To give up what was sealed, remove " + sourceFile + " from tapin's home, and with it what was sealed, which the next start names."

// sourceRecord remembers where the key is, and which one it is by its public
// half, so that neither can change unnoticed.
type sourceRecord struct {
	Source    Source `json:"source"`
	Recipient string `json:"recipient"`
	// Entry is the name that the key has there; none is that of a first key.
	Entry string `json:"entry,omitempty"`
}

// entry is the name that the key has in its place.
func (r sourceRecord) entry() string {
	switch {
	case r.Entry != "":
		return r.Entry
	case r.Source == FromFile:
		return keyFile
	case r.Source == FromKeychain:
		return keyService
	}
	return ""
}

// findKey sets the vault's identity and where it is. The caller holds the lock.
func (v *Vault) findKey(ctx context.Context, log *slog.Logger) error {
	err := v.home.ReadJSON(sourceFile, &v.at)
	switch {
	case err == nil:
		if v.identity, err = v.keyAt(ctx, v.at); err != nil {
			return err
		}
		return v.findNext(ctx)
	case !missing(err):
		return fmt.Errorf("open vault: %w", err)
	}
	if err := v.findLost(ctx, log); err != nil {
		return err
	}
	v.home.Readable(sourceFile)
	if err := v.home.WriteJSON(sourceFile, v.at); err != nil {
		return err
	}
	return v.findNext(ctx)
}

// keyAt gets the key from where a record says that it is, and from nowhere else.
func (v *Vault) keyAt(ctx context.Context, known sourceRecord) (id *age.X25519Identity, err error) {
	switch known.Source {
	case FromKeychain:
		id, err = v.keyFromKeychain(ctx, known.entry())
		if errors.Is(err, keyring.ErrNotFound) {
			return nil, refused("Restore the entry from a backup of the keychain. "+giveUp,
				"the keychain no longer has the entry %s", known.entry())
		}
	case FromEnvironment:
		if v.getenv(keyVariable) == "" {
			return nil, refused("Set it to the key used before. "+giveUp,
				"the key came from %s, which is not set", keyVariable)
		}
		if id, err = v.keyFromEnvironment(); err == nil {
			id, err = v.ofTwo(id, known.Recipient)
		}
	case FromFile:
		id, err = keyFromFile(v.home, known.entry())
	case "":
		return nil, v.home.Unreadable(sourceFile, errors.New("it names no place"))
	default:
		return nil, refused("Install the tapin that wrote it, or a newer one.", "%s names no place this tapin knows", sourceFile)
	}
	if err != nil {
		return nil, err
	}
	if id.Recipient().String() != known.Recipient && known.Source == FromFile {
		return nil, v.home.Unreadable(known.entry(), errors.New("it has another key than the one used before"))
	}
	if id.Recipient().String() != known.Recipient {
		return nil, refused("Put the key back that was used last. "+giveUp,
			"the %s has another key than the one used before", known.Source)
	}
	return id, nil
}

// chooseKey decides, the first time, where the key is kept. What is sealed here
// already has a key: no other one is taken, and none is made.
func (v *Vault) chooseKey(ctx context.Context, log *slog.Logger) error {
	if taken, err := v.fromKeychain(ctx); err != nil || taken {
		return err
	}
	if v.getenv(keyVariable) != "" {
		id, err := v.keyFromEnvironment()
		if err == nil {
			err = v.opensWhatIsHere(id)
		}
		if err != nil {
			return err
		}
		v.identity, v.at.Source = id, FromEnvironment
		return nil
	}
	id, err := newKey()
	if err == nil {
		err = v.opensWhatIsHere(id)
	}
	if err != nil {
		return err
	}
	log.Warn("no keychain: the sealing key is kept in a file that only this user can read", "file", filepath.Join(v.home.Path(), keyFile))
	v.identity, v.at.Source = id, FromFile
	return v.home.Create(keyFile, keyText(id))
}

// fromKeychain takes the keychain's key, or puts one there. It is not taken where
// there is no keychain, or where the environment has the one that opens what is here.
func (v *Vault) fromKeychain(ctx context.Context) (taken bool, err error) {
	id, err := v.keyFromKeychain(ctx, keyService)
	isNew := errors.Is(err, keyring.ErrNotFound)
	if isNew {
		id, err = newKey()
	}
	if err == nil {
		err = v.opensWhatIsHere(id)
		if errors.Is(err, fault.Unreadable) && v.getenv(keyVariable) != "" {
			return false, nil
		}
	}
	if err == nil && isNew {
		err = v.keyIntoKeychain(ctx, keyService, id)
	}
	switch {
	case err == nil:
		v.identity, v.at.Source = id, FromKeychain
		return true, nil
	case ctx.Err() == nil && errors.Is(err, errUnavailable):
		return false, nil
	}
	return false, err
}

func newKey() (*age.X25519Identity, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return id, nil
}

// keyText is a key as it stands in its file.
func keyText(id *age.X25519Identity) []byte { return []byte(id.String() + "\n") }

// KeepKeyInFile has the vault of a home keep its key in a file there, and never
// ask a keychain for it: what is sealed there is worth no more than its home.
// A home whose key is somewhere already is left as it is.
func KeepKeyInFile(home *store.Home) error {
	if made, err := IsMade(home); err != nil || made {
		return err
	}
	identity, err := newKey()
	if err != nil {
		return err
	}
	return home.Create(keyFile, keyText(identity))
}

func (v *Vault) keyFromKeychain(ctx context.Context, entry string) (*age.X25519Identity, error) {
	key, err := v.keys.get(ctx, entry)
	if errors.Is(err, errUnavailable) {
		return nil, refused("Unlock the keychain and try again.", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return parseKey(key, "the keychain entry "+entry)
}

// keyIntoKeychain stores a key and reads it back: a keychain that forgets must
// not be trusted with the only copy.
func (v *Vault) keyIntoKeychain(ctx context.Context, entry string, id *age.X25519Identity) error {
	key := secret.New(id.String())
	if err := v.keys.set(ctx, entry, key); err != nil {
		return err
	}
	stored, err := v.keys.get(ctx, entry)
	if err != nil {
		return fmt.Errorf("%w: it did not keep an entry", errUnavailable)
	}
	if !stored.Equal(key) {
		return fmt.Errorf("%w: it changed an entry", errUnavailable)
	}
	return nil
}

func (v *Vault) keyFromEnvironment() (*age.X25519Identity, error) {
	return parseKey(secret.New(v.getenv(keyVariable)), keyVariable)
}

func keyFromFile(home *store.Home, name string) (*age.X25519Identity, error) {
	file := filepath.Join(home.Path(), name)
	data, err := home.Read(name)
	if missing(err) {
		return nil, home.Unreadable(name, errors.New("it is gone"))
	}
	if err != nil {
		return nil, fmt.Errorf("open vault: %w", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("open vault: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, refused("If nobody else can have read it, run: chmod 600 "+file, "the key file %s is open to other users (mode %04o)", file, mode)
	}
	id, err := parseKey(secret.New(string(data)), "the key file "+file)
	if err != nil {
		return nil, home.Unreadable(name, errors.New("it holds no key"))
	}
	home.Readable(name)
	return id, nil
}

// parseKey never says what it was given: parsers like to quote.
func parseKey(key secret.Text, where string) (*age.X25519Identity, error) {
	id, err := age.ParseX25519Identity(strings.TrimSpace(key.Reveal()))
	if err != nil {
		return nil, refused("A key is one line that begins with AGE-SECRET-KEY-1; age-keygen makes one.", "%s holds no key", where)
	}
	return id, nil
}
