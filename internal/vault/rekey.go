package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/zalando/go-keyring"

	"tapin/internal/fault"
	"tapin/internal/layout"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// nextFile says that the key is being changed, from before the new one is
// anywhere until the old one is gone.
const nextFile = "vault.next"

// ownService begins the name of a key in the keychain that is this home's alone.
// It is no credential's: no agent can ask for one by that name.
const ownService = "tapin-vault-"

// sealedHead is how every sealed file begins, and sealedBy what is inside.
const (
	sealedHead = "age-encryption.org/v1\n"
	sealedBy   = `{"tapin_vault":`
)

// nextRecord is a change of the key that was begun. Until the record of the
// source names the new key everything can be opened with the old one and this;
// from then on everything is sealed with the new one.
type nextRecord struct {
	Key    sourceRecord `json:"key"`              // where the new one is
	Old    sourceRecord `json:"old"`              // where the old one was
	Keep   bool         `json:"keep,omitempty"`   // the old one stays where it is
	Sealed []byte       `json:"sealed,omitempty"` // the new one, sealed with the old: the environment keeps one alone
	Before []byte       `json:"before,omitempty"` // and the old one, sealed with the new
}

// identities are the keys that files may be sealed with.
func (v *Vault) identities() ([]age.Identity, error) {
	key, err := v.key()
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	ids := []age.Identity{key}
	if v.next != nil {
		ids = append(ids, v.next)
	}
	return ids, nil
}

// check refuses a record that names no key: it would be taken for a change that
// had not begun.
func (n *nextRecord) check() error {
	if n.Key.Recipient == "" {
		return errors.New("it names no key")
	}
	return nil
}

// findNext gets the new key of a change that did not come to its end. One that
// is nowhere yet has sealed nothing.
func (v *Vault) findNext(ctx context.Context) error {
	var n nextRecord
	err := v.home.ReadRecord(nextFile, &n, n.check)
	if missing(err) || err == nil && n.Key.Recipient == v.Recipient() {
		return nil
	}
	if err == nil {
		v.next, err = v.nextKey(ctx, n)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return err
}

func (v *Vault) nextKey(ctx context.Context, n nextRecord) (id *age.X25519Identity, err error) {
	switch n.Key.Source {
	case FromKeychain:
		id, err = v.keyFromKeychain(ctx, n.Key.entry())
	case FromFile:
		if there, bad := v.home.Exists(n.Key.entry()); bad != nil || !there {
			return nil, errors.Join(fs.ErrNotExist, bad)
		}
		id, err = keyFromFile(v.home, n.Key.entry())
	default:
		id, err = unwrapKey(n.Sealed, v.identity)
	}
	if err == nil && id.Recipient().String() != n.Key.Recipient {
		return nil, refused("Put the earlier key back.", "%s names another key than the one found", nextFile)
	}
	return id, err
}

// RekeyOptions say how the key is changed; nil means a new key where the old one is.
type RekeyOptions struct {
	// Key is the new one, where the environment keeps it; elsewhere it is made here.
	Key secret.Text
	// KeepOld leaves the old key in the keychain, for other homes that use it.
	KeepOld bool
	// Begin is called right before anything is changed, once nothing speaks against it.
	Begin func() error
}

// Rekeyed is what came of a change of the key.
type Rekeyed struct {
	Source  Source
	Files   int      // sealed anew
	Strange []string // sealed files that the old key did not open either; they are as they were
	Resumed bool     // it finished a change that was begun before
	Back    bool     // it took that one back: the old key is the key again
	KeptOld string   // the keychain's entry that still has the old key
}

// Rekey makes a new key, seals everything anew with it, and does away with the
// old one. Nobody else may have the vault open. After a kill at any moment
// everything can be opened as before, or as after; Rekey or Finish goes on.
func Rekey(ctx context.Context, home *store.Home, opts *Options, how *RekeyOptions) (Rekeyed, error) {
	return rekey(ctx, home, opts, how, true)
}

// Finish brings a change of the key to its end that a kill has cut off, if there
// is one. One of the environment's key waits until the environment has the new one.
func Finish(ctx context.Context, home *store.Home, opts *Options) error {
	begun, err := Changing(home)
	if err != nil || !begun {
		return err
	}
	_, err = rekey(ctx, home, opts, nil, false)
	return err
}

// Changing reports whether a change of the key has begun and is not over.
func Changing(home *store.Home) (bool, error) { return home.Exists(nextFile) }

func rekey(ctx context.Context, home *store.Home, opts *Options, how *RekeyOptions, begin bool) (Rekeyed, error) {
	var o RekeyOptions
	if how != nil {
		o = *how
	}
	if o.Begin == nil {
		o.Begin = func() error { return nil }
	}
	if known, err := IsMade(home); err != nil || !known {
		return Rekeyed{}, errors.Join(err, fault.New(fault.NotFound, "change the key", "this home has none yet").
			WithHint("It is made when tapin first starts; there is nothing to change."))
	}
	v, err := Open(ctx, home, opts)
	if err != nil {
		return Rekeyed{}, err
	}
	unlock, err := home.Lock(ctx, "vault")
	if err != nil {
		return Rekeyed{}, fmt.Errorf("change the key: %w", err)
	}
	defer unlock()
	var n nextRecord
	err = home.ReadRecord(nextFile, &n, n.check)
	switch {
	case missing(err) && !begin:
		return Rekeyed{}, nil
	case err == nil && v.next == nil && n.Key.Recipient != v.Recipient():
		// It was cut off before the new key was anywhere.
		if !begin {
			return Rekeyed{}, home.Remove(nextFile)
		}
	case err == nil:
		return v.resume(ctx, n, o, begin, opts.settled().Logger)
	case !missing(err):
		return Rekeyed{}, err
	}
	if n, err = v.beginNext(ctx, o); err != nil {
		return Rekeyed{}, err
	}
	return v.goOn(ctx, n)
}

// beginNext puts a new key beside the old one. That it will be there is on the
// disk before: no key is ever somewhere that nobody knows of.
func (v *Vault) beginNext(ctx context.Context, how RekeyOptions) (n nextRecord, err error) {
	const op = "change the key"
	n = nextRecord{Old: v.at, Keep: how.KeepOld, Key: sourceRecord{Source: v.at.Source}}
	var id *age.X25519Identity
	if v.at.Source == FromEnvironment {
		if how.Key.IsEmpty() {
			return n, fault.New(fault.InvalidRequest, op, "the key comes from %s, and so must the new one", keyVariable).
				WithHint("Give the new key on standard input; age-keygen makes one.")
		}
		id, err = parseKey(how.Key, "what was given")
	} else if !how.Key.IsEmpty() {
		return n, fault.New(fault.InvalidRequest, op, "the key is in the %s, where a new one is made", v.at.Source).WithHint("Give none.")
	} else {
		id, err = newKey()
	}
	if err != nil {
		return n, err
	}
	n.Key.Recipient = id.Recipient().String()
	if n.Key.Recipient == v.Recipient() {
		return n, fault.New(fault.InvalidRequest, op, "that is the key it has already").WithHint("Give another one; age-keygen makes one.")
	}
	// The public half makes a name that no other key has.
	switch word := n.Key.Recipient[len(n.Key.Recipient)-12:]; n.Key.Source {
	case FromKeychain:
		n.Key.Entry = ownService + word
	case FromFile:
		n.Key.Entry = "vault-" + word + ".key"
	default:
		if n.Sealed, err = wrapKey(id, v.identity); err == nil {
			n.Before, err = wrapKey(v.identity, id)
		}
		if err != nil {
			return n, err
		}
	}
	if err := how.Begin(); err != nil {
		return n, err
	}
	if err := v.home.WriteJSON(nextFile, n); err != nil {
		return n, err
	}
	switch n.Key.Source {
	case FromKeychain:
		if err := v.keyIntoKeychain(ctx, n.Key.Entry, id); err != nil {
			_ = v.keys.remove(ctx, n.Key.Entry)
			_ = v.home.Remove(nextFile)
			return n, refused("Unlock the keychain and try again; nothing was changed.", "%w", err)
		}
	case FromFile:
		if err := v.home.Create(n.Key.Entry, keyText(id)); err != nil {
			return n, err
		}
	default:
	}
	v.next = id
	return n, nil
}

// goOn seals everything anew, says so, and does away with the old key.
func (v *Vault) goOn(ctx context.Context, n nextRecord) (done Rekeyed, err error) {
	done.Source = n.Key.Source
	if n.Key.Recipient != v.Recipient() {
		if done.Files, done.Strange, err = v.sealAnew(ctx); err != nil {
			return done, err
		}
		if err := v.home.WriteJSON(sourceFile, n.Key); err != nil {
			return done, err
		}
		v.identity, v.at, v.next = v.next, n.Key, nil
	}
	switch {
	case n.Key.Source == FromFile:
		if err = v.home.Remove(n.Old.entry()); missing(err) {
			err = nil
		}
	case n.Key.Source == FromKeychain && n.Keep:
		done.KeptOld = n.Old.entry()
	case n.Key.Source == FromKeychain:
		if err = v.keys.remove(ctx, n.Old.entry()); errors.Is(err, keyring.ErrNotFound) {
			err = nil
		} else if err != nil {
			err = refused("Unlock the keychain and run it again; it goes on from here.", "the old key is still in the keychain: %w", err)
		}
	}
	if err != nil {
		return done, err
	}
	return done, v.home.Remove(nextFile)
}

// sealAnew seals every file of the home with the next key that this one, and
// only this one, opens. A file is the old one or the new one, whatever happens.
func (v *Vault) sealAnew(ctx context.Context) (files int, strange []string, err error) {
	var sealed []string
	err = v.home.Walk(neverSealed, func(name string, info fs.FileInfo) error {
		if info.Size() > int64(len(sealedHead)) {
			sealed = append(sealed, name)
		}
		return ctx.Err()
	})
	if err != nil {
		return 0, nil, err
	}
	for _, name := range sealed {
		if err := ctx.Err(); err != nil {
			return files, strange, err
		}
		before, err := v.home.ReadIfPrefix(name, sealedHead)
		if err != nil && !missing(err) {
			return files, strange, err
		}
		if before == nil {
			continue
		}
		plain, opened, bad := open(before, v.identity)
		if !opened {
			if _, already, _ := open(before, v.next); !already {
				strange = append(strange, name)
			}
			continue
		}
		if bad != nil || !bytes.HasPrefix(plain, []byte(sealedBy)) {
			strange = append(strange, name)
			continue
		}
		var after bytes.Buffer
		w, err := age.Encrypt(&after, v.next.Recipient())
		if err == nil {
			_, err = w.Write(plain)
		}
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			err = v.home.Write(name, after.Bytes())
		}
		if err != nil {
			return files, strange, err
		}
		files++
	}
	return files, strange, nil
}

// neverSealed are folders of what runs, where nothing is to be opened later, and
// that of the demo, a home with a key of its own.
func neverSealed(folder string) bool {
	return slices.Contains([]string{"run", "tmp", "locks", "logs", "downloads", layout.Demo}, folder)
}

// open tries one key on a file. It is damaged where it opens and cannot be read.
func open(sealed []byte, id age.Identity) (plain []byte, opened bool, damaged error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), id)
	if err != nil {
		return nil, false, nil //nolint:nilerr // it is for another key, or torn at its head
	}
	plain, err = io.ReadAll(io.LimitReader(r, maxPlaintext+64<<10))
	return plain, true, err
}

// Unchanged returns nil if this key alone opens what is sealed in its home now.
func (v *Vault) Unchanged() error {
	changing, err := v.home.Exists(nextFile)
	if err != nil {
		return err
	}
	var now sourceRecord
	if err := v.home.ReadJSON(sourceFile, &now); err != nil {
		return err
	}
	if changing || now.Recipient != v.Recipient() {
		return fault.New(fault.Busy, "use the key", "it is being changed").
			WithHint("Try again when tapin vault rekey has ended. If it was cut off, run it again; where the key comes from %s, with the same new key.", keyVariable)
	}
	return nil
}

// Key is the key itself, for a backup, and the place it is in.
func (v *Vault) Key() (secret.Text, Source) { return secret.New(v.identity.String()), v.at.Source }

// Uproot takes back what Plant put into the keychain.
func Uproot(ctx context.Context, home *store.Home, opts *Options) {
	o := opts.settled()
	var at sourceRecord
	if home.ReadJSON(sourceFile, &at) == nil && at.Source == FromKeychain && strings.HasPrefix(at.Entry, ownService) {
		_ = keychain{o.Keyring, o.KeyringTimeout}.remove(ctx, at.Entry)
	}
}

// Plant gives a home that is being made the key of another one: in the strongest
// place there is, as for a first key, under a name that no other home uses.
func Plant(ctx context.Context, home *store.Home, opts *Options, key secret.Text) (Source, error) {
	o := opts.settled()
	v := &Vault{Credentials: newCredentials(home, o)}
	id, err := parseKey(key, "the backup")
	if err != nil {
		return "", err
	}
	at := sourceRecord{Source: FromKeychain, Recipient: id.Recipient().String()}
	at.Entry = ownService + strings.ToLower(store.NewID("home"))
	if err := home.WriteJSON(sourceFile, at); err != nil {
		return "", err
	}
	err = v.keyIntoKeychain(ctx, at.Entry, id)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return "", ctx.Err()
	case v.getenv(keyVariable) == id.String():
		at = sourceRecord{Source: FromEnvironment, Recipient: at.Recipient}
	default:
		at = sourceRecord{Source: FromFile, Recipient: at.Recipient}
		if err := home.Write(keyFile, keyText(id)); err != nil {
			return "", err
		}
	}
	return at.Source, home.WriteJSON(sourceFile, at)
}
