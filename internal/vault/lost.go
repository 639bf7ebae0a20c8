package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"filippo.io/age"

	"tapin/internal/fault"
	"tapin/internal/layout"
	"tapin/internal/store"
)

// findLost finds the key where nothing says which it is: because it is the first
// start, or because the file that said so is gone.
func (v *Vault) findLost(ctx context.Context, log *slog.Logger) error {
	v.at = sourceRecord{}
	if found, err := v.findOfTwo(ctx); err != nil || found {
		return err
	}
	files, err := keyFiles(v.home)
	switch {
	case err != nil:
		return fmt.Errorf("open vault: %w", err)
	case len(files) > 1:
		return v.lost("it is gone, and of the files "+strings.Join(files, ", ")+" nothing says which is the key",
			"Restore "+sourceFile+", or move the files elsewhere but for the one that is the key.")
	case len(files) == 1:
		// A key file without a record is older than the record, or has lost it: it is the key.
		v.at.Source = FromFile
		if files[0] != keyFile {
			v.at.Entry = files[0]
		}
		if v.identity, err = keyFromFile(v.home, files[0]); err == nil {
			err = v.opensWhatIsHere(v.identity)
		}
	default:
		err = v.chooseKey(ctx, log)
	}
	if err != nil {
		return err
	}
	v.at.Recipient = v.identity.Recipient().String()
	return nil
}

// findOfTwo finds the key by the record of a change that is not over: it names
// the old one and the new one, which together open everything.
func (v *Vault) findOfTwo(ctx context.Context) (found bool, err error) {
	var n nextRecord
	if err := v.home.ReadRecord(nextFile, &n, n.check); missing(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for _, at := range []sourceRecord{n.Old, n.Key} {
		if at.Source == FromFile {
			if there, bad := v.home.Exists(at.entry()); bad != nil {
				return false, bad
			} else if !there {
				continue
			}
		}
		if v.identity, err = v.keyAt(ctx, at); err == nil {
			v.at = at
			return true, nil
		}
	}
	if err == nil {
		err = v.lost("it is gone, and so are both keys that "+nextFile+" names", "Restore the files from a backup.")
	}
	return false, err
}

// keyFiles are the files of a home that a key is in.
func keyFiles(home *store.Home) (files []string, err error) {
	names, err := home.List(".")
	for _, name := range names {
		if kind, ok := layout.Of(name); ok && kind.Name == "vault key" {
			files = append(files, name)
		}
	}
	return files, err
}

// opensWhatIsHere refuses a key for a home where things are sealed and it opens
// none of them: whoever took it would have a second key, and lose the first.
func (v *Vault) opensWhatIsHere(id age.Identity) error {
	example, opens := "", errors.New("one of them opens")
	err := eachSealed(v.home, func(name string, raw []byte) error {
		_, err := age.Decrypt(bytes.NewReader(raw), id)
		if _, strange := errors.AsType[*age.NoIdentityMatchError](err); strange {
			example = name
		} else if err == nil {
			return opens
		}
		return nil // else it is torn, and no key opens it
	})
	switch {
	case errors.Is(err, opens), err == nil && example == "":
		return nil
	case err != nil:
		return err
	}
	return v.lost("it is gone, and no key that was found opens what is sealed here, such as "+example,
		"Restore it, or the key: the file, the keychain's entry or "+keyVariable+". To give up what was sealed, remove it: "+example+" and what else is named then.")
}

// lost says that the record of the key is gone where it is needed. Nothing is
// made anew: what needs the key answers this until it is back.
func (v *Vault) lost(why, hint string) error {
	return fault.Of(v.home.Unreadable(sourceFile, errors.New(why))).WithHint("%s", hint)
}

// eachSealed reads the files that are sealed with the key of a home, and that
// exist nowhere else. What people and pages gave may be sealed by others.
func eachSealed(home *store.Home, fn func(name string, raw []byte) error) error {
	return home.Walk(func(folder string) bool { return folder == "received" || neverSealed(folder) }, func(name string, info fs.FileInfo) error {
		kind, ours := layout.Of(name)
		if !ours || kind.Class != layout.Truth || info.Size() <= int64(len(sealedHead)) {
			return nil
		}
		raw, err := home.ReadIfPrefix(name, sealedHead)
		if missing(err) || err == nil && raw == nil {
			return nil
		}
		if err != nil {
			return err
		}
		return fn(name, raw)
	})
}

// IsMade reports whether a home has a key, or had one: what is sealed has one.
func IsMade(home *store.Home) (bool, error) {
	for _, name := range []string{sourceFile, nextFile} {
		if there, err := home.Exists(name); err != nil || there {
			return there, err
		}
	}
	if files, err := keyFiles(home); err != nil || len(files) > 0 {
		return err == nil, err
	}
	one := errors.New("there is one")
	err := eachSealed(home, func(string, []byte) error { return one })
	if errors.Is(err, one) {
		return true, nil
	}
	return false, err
}
