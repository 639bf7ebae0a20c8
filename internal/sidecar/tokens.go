package sidecar

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tapin/internal/apiserver"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// The files of the two tokens. Our own clients read them; their mode is what
// keeps others out.
const (
	AgentTokenFile = "agent.token"
	OwnerTokenFile = "owner.token"
)

// readTokens reads the tokens, and makes them the first time. One that cannot be
// read opens nothing, and is left as it is.
func readTokens(home *store.Home) (apiserver.FixedTokens, error) {
	var tokens apiserver.FixedTokens
	for _, t := range []struct {
		file, name string
		role       apiserver.Role
	}{{AgentTokenFile, "agent", apiserver.Agent}, {OwnerTokenFile, "owner", apiserver.Owner}} {
		if err := checkToken(home, t.file); err != nil {
			return nil, err
		}
		value, err := readToken(home, t.file)
		if errors.Is(err, fs.ErrNotExist) {
			made := rand.Text() + rand.Text() // 256 bits
			value, err = secret.New(made), home.Create(t.file, []byte(made+"\n"))
		}
		if errors.Is(err, fault.Unreadable) {
			continue // nobody comes in with it until it is mended; everything else works
		}
		if err != nil {
			return nil, fault.Wrap(fault.Internal, "read "+t.file, err)
		}
		tokens = append(tokens, apiserver.Token{Name: t.name, Role: t.role, Value: value})
	}
	return tokens, nil
}

// readToken reads the value in a file.
func readToken(home *store.Home, file string) (secret.Text, error) {
	raw, err := home.Read(file)
	if err != nil {
		return secret.Text{}, err
	}
	value := strings.TrimSpace(string(raw))
	if !secret.IsToken(value) {
		return secret.Text{}, home.Unreadable(file, errors.New("it holds no token"))
	}
	home.Readable(file)
	return secret.New(value), nil
}

// sameToken tells from the outside whether a file still holds what was read.
func sameToken(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// checkToken refuses a token that others may have read: closing the file would
// not take it from them.
func checkToken(home *store.Home, file string) error {
	info, err := home.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Internal, "read "+file, err)
	}
	path := filepath.Join(home.Path(), file)
	if !info.Mode().IsRegular() {
		return nil // who reads it is told
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fault.New(fault.Forbidden, "", "%s is open to other users (mode %04o)", path, mode).
			WithHint("Delete it and start tapin again, which makes a new one: others may have read it.")
	}
	return nil
}
