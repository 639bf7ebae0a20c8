package sidecar

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"tapin/internal/apiserver"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	tokenFolder = "tokens"
	tokenSuffix = ".token"
)

// tokenName keeps a name usable as that of a file, everywhere.
var tokenName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// NamedToken is the token of a further agent. Its value is in its file alone.
type NamedToken struct {
	Name      string
	File      string // under the home
	CreatedAt time.Time
}

// NewToken makes a token for a further agent. A running sidecar knows it at once.
func NewToken(home *store.Home, name string) (NamedToken, error) {
	file, err := tokenFile(name)
	if err != nil {
		return NamedToken{}, err
	}
	err = home.Create(file, []byte(rand.Text()+rand.Text()+"\n")) // 256 bits
	if errors.Is(err, fs.ErrExist) {
		return NamedToken{}, fault.New(fault.InvalidRequest, "", "there is a token named %s already", name).
			WithHint("Use it as it is, or revoke it first with tapin token revoke %s.", name)
	}
	if err != nil {
		return NamedToken{}, err
	}
	return NamedToken{Name: name, File: file, CreatedAt: time.Now().UTC()}, nil
}

// ListTokens tells of the tokens of further agents, by name.
func ListTokens(home *store.Home) ([]NamedToken, error) {
	names, err := home.List(tokenFolder)
	if err != nil {
		return nil, err
	}
	var found []NamedToken
	for _, entry := range names {
		name, _ := strings.CutSuffix(entry, tokenSuffix)
		file, err := tokenFile(name)
		if err != nil || path.Base(file) != entry {
			continue // not ours
		}
		info, err := home.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // revoked meanwhile
		}
		if err != nil {
			return nil, err
		}
		found = append(found, NamedToken{Name: name, File: file, CreatedAt: info.ModTime().UTC()})
	}
	return found, nil
}

// RevokeToken ends a token. A running sidecar refuses it from the next request
// on, and tells nothing more to who follows the feed with it.
func RevokeToken(home *store.Home, name string) error {
	file, err := tokenFile(name)
	if err != nil {
		return err
	}
	err = home.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "", "there is no token named %s", name).WithHint("See tapin token list.")
	}
	return err
}

func tokenFile(name string) (string, error) {
	if !tokenName.MatchString(name) {
		return "", fault.New(fault.InvalidRequest, "", "%q is no name for a token", name).
			WithHint("Use up to 32 of a-z, 0-9, - and _, such as claude.")
	}
	if name == "agent" || name == "owner" {
		return "", fault.New(fault.InvalidRequest, "", "%s.token is tapin's own and not for this command", name).
			WithHint("To replace it, delete the file and start tapin again.")
	}
	return path.Join(tokenFolder, name+tokenSuffix), nil
}

// tokens are the two that every home has and those of further agents, as they
// are on the disk at the moment of asking.
type tokens struct {
	own  apiserver.FixedTokens
	home *store.Home
	log  *slog.Logger

	mu    sync.Mutex
	known map[string]knownToken // by name, to read each file once
}

type knownToken struct {
	info  fs.FileInfo
	value secret.Text
}

// Role compares with every token there is, so that the time taken does not
// tell which one matched.
func (t *tokens) Role(token secret.Text) (role apiserver.Role, name string, ok bool) {
	if role, name, ok := t.own.Role(token); ok {
		return role, name, ok
	}
	for _, further := range t.further() {
		if further.Value.Equal(token) && !further.Value.IsEmpty() {
			role, name, ok = further.Role, further.Name, true
		}
	}
	return role, name, ok
}

// further are the tokens in the folder. What cannot be read is no token: a
// doubt about a key never opens a door.
func (t *tokens) further() (found apiserver.FixedTokens) {
	listed, err := ListTokens(t.home)
	if err != nil {
		t.log.Warn("the tokens of further agents cannot be read", "error", err)
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := make(map[string]knownToken, len(listed))
	for _, l := range listed {
		k, err := t.read(l)
		if err != nil {
			t.log.Warn("a token is not accepted", "name", l.Name, "error", err)
			continue
		}
		known[l.Name] = k
		found = append(found, apiserver.Token{Name: l.Name, Role: apiserver.Agent, Value: k.value})
	}
	t.known = known
	return found
}

func (t *tokens) read(l NamedToken) (knownToken, error) {
	info, err := t.home.Stat(l.File)
	if err != nil {
		return knownToken{}, err
	}
	if k, ok := t.known[l.Name]; ok && sameToken(k.info, info) {
		return k, nil
	}
	if err := checkToken(t.home, l.File); err != nil {
		return knownToken{}, err
	}
	value, err := readToken(t.home, l.File)
	return knownToken{info, value}, err
}
