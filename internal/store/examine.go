package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"tapin/internal/layout"
	"tapin/internal/secret"
)

// Examine looks at every file of a home that is worth something, and tells of
// those that cannot be used, and of those that were put aside. It changes
// nothing, and needs nobody to have opened what is in them.
func (h *Home) Examine() ([]Damage, error) {
	var found []Damage
	err := fs.WalkDir(h.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if name == layout.Demo {
			return fs.SkipDir // a home of its own
		}
		kind, ok := layout.Of(name)
		if !ok || name == "." {
			return nil // what is above the files of a kind, or not ours
		}
		if of, aside := layout.Original(name); aside && !strings.HasSuffix(name, layout.BeforeMark) {
			was, _ := layout.Of(of)
			found = append(found, Damage{File: of, Kind: was.Name, Aside: name})
			return skipped(d)
		}
		if kind.Class == layout.Log || kind.Class == layout.Runtime || strings.HasSuffix(kind.Pattern, "/**") {
			return skipped(d)
		}
		if err == nil && !d.Type().IsRegular() {
			err = errors.New("a folder is in its place")
		}
		if err == nil {
			err = h.examine(name, kind)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may have gone meanwhile
			found = append(found, Damage{File: name, Kind: kind.Name, Why: inWords(err)})
		}
		return skipped(d)
	})
	return found, err
}

func skipped(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// examine says why a file cannot be used, as far as its form tells.
func (h *Home) examine(name string, kind layout.Kind) error {
	data, err := h.readFile(name)
	if err != nil {
		return err
	}
	foreign := errors.New("it is not what tapin wrote")
	content := bytes.TrimSpace(data)
	switch ext := path.Ext(strings.TrimSuffix(name, layout.BeforeMark)); {
	case strings.HasPrefix(kind.Name, "open "): // its name is all it says
		return nil
	case kind.Name == "version before":
		if _, err := h.root.Lstat(strings.TrimSuffix(name, layout.BeforeMark)); errors.Is(err, fs.ErrNotExist) {
			return errors.New("the file of which it is the version before is gone")
		}
		return decode(data, new(map[string]any))
	case kind.Name == "vault key":
		if !bytes.HasPrefix(content, []byte("AGE-SECRET-KEY-1")) {
			return errors.New("it holds no key")
		}
	case kind.Name == "fingerprint key":
		if len(data) == 0 {
			return errEmpty
		}
	case kind.Class == layout.Key && kind.Name != "demo shop key":
		if !secret.IsToken(string(content)) {
			return errors.New("it holds no token")
		}
	case kind.Name == "counter":
		if _, err := strconv.ParseUint(string(content), 10, 64); err != nil {
			return errors.New("it holds no number")
		}
	case ext == ".json", name == "vault.source", name == "links/public":
		return decodesAs(data, name)
	case ext == ".jsonl":
		end := bytes.LastIndexByte(data, '\n') + 1 // what comes after may be on its way
		damaged, err := scanLines(bytes.NewReader(data[:end]), func([]byte) error { return nil })
		if err == nil && damaged > 0 {
			err = fmt.Errorf("lines of it, %d in all, are not what tapin wrote", damaged)
		}
		return err
	case ext == ".age", ext == ".state", ext == ".undo", ext == ".crop", strings.HasSuffix(name, ".age.1"):
		if !bytes.HasPrefix(data, []byte("age-encryption.org/")) {
			return foreign
		}
	}
	return nil
}

// decodesAs checks that a file is an object, and that of the record whose name
// it has, where it is named for one.
func decodesAs(data []byte, name string) error {
	var v map[string]any
	if err := decode(data, &v); err != nil {
		return err
	}
	id := strings.TrimSuffix(path.Base(name), ".json")
	if id == "meta" {
		id = path.Base(path.Dir(name))
	}
	if prefix, rest, ok := strings.Cut(id, "_"); !ok || !ValidID(prefix, prefix+"_"+rest) {
		return nil
	}
	for _, member := range v {
		if member == id {
			return nil
		}
	}
	if text, err := json.Marshal(v); err == nil && bytes.Contains(text, []byte(`"`+id+`"`)) {
		return nil // further inside
	}
	return errors.New("it belongs to another record")
}
