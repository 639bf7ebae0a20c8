package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
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
		if slices.Contains(layout.Folders(), name) && d != nil && !d.IsDir() {
			if why, err := h.noFolder(name); err == nil && why != nil {
				found = append(found, Damage{File: name, Kind: kindOfNone(name), Why: inWords(why)})
			}
			return nil
		}
		kind, ok := layout.Of(name)
		if !ok || name == "." {
			return nil // what is above the files of a kind, or not ours
		}
		if of, aside := layout.Original(name); aside && !strings.HasSuffix(name, layout.BeforeMark) {
			was, _ := layout.Of(of)
			found = append(found, Damage{File: of, Kind: cmp.Or(was.Name, kindOfNone(of)), Aside: name})
			return skipped(d)
		}
		if kind.Class == layout.Log || kind.Class == layout.Runtime || strings.HasSuffix(kind.Pattern, "/**") {
			return skipped(d)
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
	switch {
	case isSealed(strings.TrimSuffix(name, layout.BeforeMark)):
		return h.examineSealed(name)
	case path.Ext(name) == ".jsonl":
		return h.examineLog(name)
	}
	data, err := h.readFile(name)
	if err != nil {
		return err
	}
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
	case kind.Name == "schema":
		if version, err := strconv.Atoi(string(content)); err != nil || version < 1 {
			return errors.New("it holds no version number")
		}
	case kind.Name == "counter":
		_, err := countIn(data)
		return err
	case ext == ".json", name == "vault.source", name == "links/public":
		return decodesAs(data, name)
	}
	return nil
}

// examineSealed looks at how a sealed file begins, and at its size.
func (h *Home) examineSealed(name string) error {
	f, err := h.openFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > mostOf(name) {
		return errTooLarge
	}
	head := make([]byte, len(sealedHead))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != sealedHead {
		return errors.New("it is not what tapin wrote")
	}
	return nil
}

const sealedHead = "age-encryption.org/"

// examineLog looks at every line of a log. What comes after the last may be on its way.
func (h *Home) examineLog(name string) error {
	f, err := h.openFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	end, err := wholeLines(f)
	if err != nil {
		return err
	}
	damaged, err := scanLines(io.NewSectionReader(f, 0, end), func([]byte) error { return nil })
	if err == nil && damaged > 0 {
		err = fmt.Errorf("lines of it, %d in all, are not what tapin wrote", damaged)
	}
	if _, foreign := h.foreignEnd(name); err == nil && foreign {
		err = errForeign
	}
	return err
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
