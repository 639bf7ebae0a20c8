package logins

import (
	"errors"
	"io/fs"
	"strings"

	"tapin/internal/fault"
	"tapin/internal/layout"
)

// sealName is what a state is sealed for: a file that is given another name by
// hand does not open.
func sealName(name string) string { return "context " + name }

// open reads one sealed file; nil if there is none.
func (r *Room) open(name, file string) (v *version, size int64, err error) {
	sealed, err := r.home.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	size = int64(len(sealed))
	plain, err := r.vault.Open(sealName(name), "", sealed)
	if err != nil {
		return nil, size, err
	}
	found, err := decodeVersion(plain)
	if err != nil {
		return nil, size, fault.Wrap(fault.IntegrityMismatch, "read the login "+name, err)
	}
	return &found, size, nil
}

// peek returns the newest version that can be read, and changes nothing.
func (r *Room) peek(name string) (v *version, size int64, err error) {
	for _, file := range []string{sealedFile(name), previousFile(name)} {
		found, n, bad := r.open(name, file)
		if found != nil {
			return found, n, err
		}
		size, err = max(size, n), errors.Join(err, bad)
	}
	return nil, size, err
}

// load is peek that sets aside what is damaged: a new login must be able to
// take its place, and the owner may want to have it mended. A damaged file
// stops nobody.
func (r *Room) load(name string) (v *version, err error) {
	for _, file := range []string{sealedFile(name), previousFile(name)} {
		found, _, err := r.open(name, file)
		if errors.Is(err, fault.IntegrityMismatch) {
			if _, err := r.home.PutAside(file, err); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

// store makes v the newest version. The one before stays beside it: that of
// the session before, so that a session that ends logged out loses nothing.
func (r *Room) store(name string, v version, before *version) (size int64, err error) {
	r.at("seal")
	plain, err := encodeVersion(v)
	if err != nil {
		return 0, err
	}
	sealed, err := r.vault.Seal(sealName(name), "", plain)
	if err != nil {
		return 0, err
	}
	if before != nil && before.SavedBy != v.SavedBy {
		current, err := r.home.Read(sealedFile(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if err == nil {
			r.at("previous")
			if err := r.home.Write(previousFile(name), current); err != nil {
				return 0, err
			}
		}
	}
	r.at("sealed")
	return int64(len(sealed)), r.home.Write(sealedFile(name), sealed)
}

// isAside reports whether a file is one that was put aside. A login may have a
// name that begins like one, and its files are its own.
func isAside(file, of string) bool {
	original, aside := layout.Original(file)
	return aside && original == of
}

// files lists what there is of a login beside its record.
func (r *Room) files(name string) (sealed, previous bool, aside []string, err error) {
	all, err := r.home.List(folder)
	for _, file := range all {
		switch file = folder + "/" + file; {
		case file == sealedFile(name):
			sealed = true
		case file == previousFile(name):
			previous = true
		case isAside(file, sealedFile(name)), isAside(file, previousFile(name)):
			aside = append(aside, file)
		}
	}
	return sealed, previous, aside, err
}

// onDisk names the logins that have a sealed file.
func (r *Room) onDisk() ([]string, error) {
	all, err := r.home.List(folder)
	var names []string
	for _, file := range all {
		if name, ok := strings.CutSuffix(file, ".age"); ok && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	return names, err
}
