// Package backup puts a home into one sealed file, and unpacks it again.
// It owns the form of that file: a head, the files of one instant, and a list
// with their digests, which has to agree in all before anything is used.
// It must never write a key or a file of a home where it is not sealed, but into
// the home that is being made of it.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"tapin/internal/layout"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// format is the newest form of the file that this program reads and the one it writes.
const format = 1

const (
	headName = "backup.json"
	listName = "files.json"
	homeName = "home/"
)

// Head is what a backup says of itself, before its files.
type Head struct {
	Format    int          `json:"tapin_backup"`
	Program   string       `json:"program"`
	Schema    int          `json:"schema"`
	At        time.Time    `json:"at"`
	Key       string       `json:"key,omitempty"` // that seals what is sealed; none where nothing is
	KeySource vault.Source `json:"key_source,omitempty"`
}

// File is one file of the list.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// list is what comes last: all that there has to be.
type list struct {
	Files []File `json:"files"`
}

// Made says what a backup holds.
type Made struct {
	At    time.Time
	Files int
	Bytes int64
	Left  []store.LeftOut // of the home, and not in the backup
}

// Options say how a backup is made; nil means the defaults.
type Options struct {
	Program string         // its version, for who reads the backup
	Vault   *vault.Options // where the key is
	Factor  int            // of the work that a passphrase costs; 0 is a second, and tests take less
	// Links are files, relative to the home, that are read wherever a link leads
	// that has their name.
	Links []string
}

// Make writes the home as it is at one instant, sealed with a passphrase. tapin
// may run meanwhile; what it writes waits for a moment.
func Make(ctx context.Context, to io.Writer, home *store.Home, pass secret.Text, opts *Options) (Made, error) {
	if opts == nil {
		opts = &Options{}
	}
	head := Head{Format: format, Program: opts.Program, Schema: store.Schema()}
	known, err := vault.IsMade(home)
	if err != nil {
		return Made{}, err
	}
	var v *vault.Vault
	if known {
		if v, err = vault.Open(ctx, home, opts.Vault); err != nil {
			return Made{}, err
		}
		key, source := v.Key()
		head.Key, head.KeySource = key.Reveal(), source
	}
	sealed, err := vault.SealStream(to, pass, opts.Factor) // what takes a second, before the instant
	if err != nil {
		return Made{}, err
	}
	snapshot, err := home.Snapshot(ctx, func(name string) bool {
		return name == lostAndFound || !layout.Carried(name) || layout.NothingCarried(name)
	}, func(name string) bool { return slices.Contains(opts.Links, name) })
	if err != nil {
		return Made{}, err
	}
	defer snapshot.Close()
	if v != nil {
		if err := v.Unchanged(); err != nil { // while what was taken was sealed
			return Made{}, err
		}
	}
	head.At = snapshot.At
	packed := gzip.NewWriter(sealed)
	w := &writer{ctx: ctx, tar: tar.NewWriter(packed), at: snapshot.At}
	if err := w.json(headName, head); err != nil {
		return Made{}, err
	}
	made, all := Made{At: snapshot.At, Left: snapshot.Left}, list{Files: []File{}}
	for _, f := range snapshot.Files {
		digest := sha256.New()
		if err := w.begin(homeName+f.Name, f.Size); err != nil {
			return Made{}, err
		}
		if err := snapshot.Copy(io.MultiWriter(w, digest), f); err != nil {
			return Made{}, err
		}
		all.Files = append(all.Files, File{f.Name, f.Size, hex.EncodeToString(digest.Sum(nil))})
		made.Files++
		made.Bytes += f.Size
	}
	if err := w.json(listName, all); err != nil {
		return Made{}, err
	}
	for _, end := range []io.Closer{w.tar, packed, sealed} {
		if err := end.Close(); err != nil {
			return Made{}, fmt.Errorf("make a backup: %w", err)
		}
	}
	return made, nil
}

// writer writes the entries, and stops when it is told to.
type writer struct {
	ctx context.Context
	tar *tar.Writer
	at  time.Time
}

func (w *writer) begin(name string, size int64) error {
	return w.tar.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: w.at, Format: tar.FormatPAX})
}

func (w *writer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.tar.Write(p)
}

func (w *writer) json(name string, v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		err = w.begin(name, int64(len(raw)))
	}
	if err == nil {
		_, err = w.Write(raw)
	}
	return err
}
