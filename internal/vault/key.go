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

// sourceRecord remembers where the key is, and which one it is by its public
// half, so that neither can change unnoticed.
type sourceRecord struct {
	Source    Source `json:"source"`
	Recipient string `json:"recipient"`
}

// findKey sets the vault's identity and source. The caller holds the lock.
func (v *Vault) findKey(ctx context.Context, home *store.Home, log *slog.Logger) error {
	var known sourceRecord
	err := home.ReadJSON(sourceFile, &known)
	switch {
	case err == nil:
		return v.reuseKey(ctx, home, known)
	case !missing(err):
		return fmt.Errorf("open vault: %w", err)
	}
	// A key file without a record is older than the record: it is the key.
	hasFile, err := home.Exists(keyFile)
	if err != nil {
		return fmt.Errorf("open vault: %w", err)
	}
	if hasFile {
		v.source = FromFile
		v.identity, err = keyFromFile(home)
	} else {
		err = v.chooseKey(ctx, home, log)
	}
	if err != nil {
		return err
	}
	return home.WriteJSON(sourceFile, sourceRecord{v.source, v.Recipient()})
}

// reuseKey gets the key from where it was before, and from nowhere else.
func (v *Vault) reuseKey(ctx context.Context, home *store.Home, known sourceRecord) (err error) {
	v.source = known.Source
	switch known.Source {
	case FromKeychain:
		v.identity, err = v.keyFromKeychain(ctx)
		if errors.Is(err, keyring.ErrNotFound) {
			return refused("Restore the entry from a backup of the keychain. To give up what was sealed, remove "+sourceFile+" from tapin's home.",
				"the keychain no longer has the entry %s", keyService)
		}
	case FromEnvironment:
		if v.getenv(keyVariable) == "" {
			return refused("Set it to the key used before. To give up what was sealed, remove "+sourceFile+" from tapin's home.",
				"the key came from %s, which is not set", keyVariable)
		}
		v.identity, err = v.keyFromEnvironment()
	case FromFile:
		v.identity, err = keyFromFile(home)
	case "":
		return home.Unreadable(sourceFile, errors.New("it names no place"))
	default:
		return refused("Install the tapin that wrote it, or a newer one.", "%s names no place this tapin knows", sourceFile)
	}
	if err != nil {
		return err
	}
	if v.Recipient() != known.Recipient && known.Source == FromFile {
		return home.Unreadable(keyFile, errors.New("it has another key than the one used before"))
	}
	if v.Recipient() != known.Recipient {
		return refused("Put the earlier key back. To give up what was sealed, remove "+sourceFile+" from tapin's home.",
			"the %s has another key than the one used before", known.Source)
	}
	return nil
}

// chooseKey decides, the first time, where the key is kept.
func (v *Vault) chooseKey(ctx context.Context, home *store.Home, log *slog.Logger) (err error) {
	v.source = FromKeychain
	v.identity, err = v.keyFromKeychain(ctx)
	if errors.Is(err, keyring.ErrNotFound) {
		v.identity, err = v.newKeychainKey(ctx)
	}
	if err == nil || ctx.Err() != nil || !errors.Is(err, errUnavailable) {
		return err
	}
	if v.getenv(keyVariable) != "" {
		v.source = FromEnvironment
		v.identity, err = v.keyFromEnvironment()
		return err
	}
	log.Warn("no keychain: the sealing key is kept in a file that only this user can read", "file", filepath.Join(home.Path(), keyFile))
	v.source = FromFile
	v.identity, err = age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("open vault: %w", err)
	}
	return home.Create(keyFile, []byte(v.identity.String()+"\n"))
}

// KeepKeyInFile has the vault of a home keep its key in a file there, and never
// ask a keychain for it: what is sealed there is worth no more than its home.
// A home whose key is somewhere already is left as it is.
func KeepKeyInFile(home *store.Home) error {
	for _, file := range []string{sourceFile, keyFile} {
		if there, err := home.Exists(file); err != nil || there {
			return err
		}
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	return home.Create(keyFile, []byte(identity.String()+"\n"))
}

func (v *Vault) keyFromKeychain(ctx context.Context) (*age.X25519Identity, error) {
	key, err := v.keys.get(ctx, keyService)
	if errors.Is(err, errUnavailable) {
		return nil, refused("Unlock the keychain and try again.", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return parseKey(key, "the keychain entry "+keyService)
}

// newKeychainKey stores a new key and reads it back: a keychain that forgets
// must not be trusted with the only copy.
func (v *Vault) newKeychainKey(ctx context.Context) (*age.X25519Identity, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("open vault: %w", err)
	}
	key := secret.New(id.String())
	if err := v.keys.set(ctx, keyService, key); err != nil {
		return nil, err
	}
	stored, err := v.keys.get(ctx, keyService)
	if err != nil {
		return nil, fmt.Errorf("%w: it did not keep an entry", errUnavailable)
	}
	if !stored.Equal(key) {
		return nil, fmt.Errorf("%w: it changed an entry", errUnavailable)
	}
	return id, nil
}

func (v *Vault) keyFromEnvironment() (*age.X25519Identity, error) {
	return parseKey(secret.New(v.getenv(keyVariable)), keyVariable)
}

func keyFromFile(home *store.Home) (*age.X25519Identity, error) {
	file := filepath.Join(home.Path(), keyFile)
	data, err := home.Read(keyFile)
	if missing(err) {
		return nil, home.Unreadable(keyFile, errors.New("it is gone"))
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
		return nil, home.Unreadable(keyFile, errors.New("it holds no key"))
	}
	home.Readable(keyFile)
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
