package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tapin/internal/fault"
	"tapin/internal/layout"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// maxJSON bounds what is read into memory.
const maxJSON = 256 << 20

// Unpack checks a backup and unpacks it into an empty folder. Only when it
// returns nil is what lies there the whole of it, and as it was.
func Unpack(ctx context.Context, from io.Reader, pass secret.Text, folder string) (Head, error) {
	plain, err := vault.OpenStream(from, pass)
	if err != nil {
		return Head{}, err
	}
	packed, err := gzip.NewReader(plain)
	if err != nil {
		return Head{}, broken(err)
	}
	u := &unpacker{ctx: ctx, tar: tar.NewReader(packed), folder: folder}
	if err := u.run(); err != nil {
		return Head{}, broken(err)
	}
	// To the very end: only there is it known that nothing was cut off.
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return Head{}, broken(err)
	}
	if _, err := io.Copy(io.Discard, plain); err != nil {
		return Head{}, broken(err)
	}
	return u.head, nil
}

// broken gives what is wrong with the form of a backup its code.
func broken(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || fault.Of(err).Code != fault.Internal {
		return err
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err // the disk it is unpacked on
	}
	return fault.New(fault.IntegrityMismatch, "open a backup", "it is damaged").WithHint("Nothing was changed. Take another copy of it.")
}

type unpacker struct {
	ctx    context.Context
	tar    *tar.Reader
	folder string
	head   Head
	found  []File
}

func (u *unpacker) run() error {
	if err := u.json(headName, &u.head); err != nil {
		return err
	}
	const op, newer = "open a backup", "Install the tapin that made it, or a newer one; nothing was changed."
	if u.head.Format > format || u.head.Schema > store.Schema() {
		return fault.New(fault.Forbidden, op, "it was made by a newer tapin (%s)", u.head.Program).WithHint(newer)
	}
	if u.head.Format < 1 {
		return errors.New("no format")
	}
	for {
		h, err := u.tar.Next()
		if err != nil {
			return err // also the end: the list was not there
		}
		if h.Name == listName {
			return u.check()
		}
		name, ok := strings.CutPrefix(h.Name, homeName)
		if !ok || h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) || name != filepath.ToSlash(filepath.Clean(name)) || !layout.Carried(name) {
			return fmt.Errorf("an entry that does not belong there")
		}
		if err := u.file(name); err != nil {
			return err
		}
	}
}

// file unpacks one file. It must not be there yet.
func (u *unpacker) file(name string) (err error) {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	path := filepath.Join(u.folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // checked to be below the folder
	if err != nil {
		return err
	}
	digest := sha256.New()
	size, err := io.Copy(io.MultiWriter(out, digest), u.tar)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	u.found = append(u.found, File{name, size, hex.EncodeToString(digest.Sum(nil))})
	return nil
}

// check compares what was found with the list.
func (u *unpacker) check() error {
	var want list
	if err := u.decode(&want); err != nil {
		return err
	}
	if !slices.Equal(want.Files, u.found) {
		return errors.New("the files are not those of the list")
	}
	if _, err := u.tar.Next(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the list")
	}
	return nil
}

func (u *unpacker) json(name string, v any) error {
	h, err := u.tar.Next()
	if err != nil {
		return err
	}
	if h.Name != name {
		return errors.New("an entry is missing")
	}
	return u.decode(v)
}

func (u *unpacker) decode(v any) error {
	raw, err := io.ReadAll(io.LimitReader(u.tar, maxJSON))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}
