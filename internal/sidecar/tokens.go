package sidecar

import (
	"crypto/rand"
	"errors"
	"io/fs"
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

// readTokens reads the tokens, and makes them the first time.
func readTokens(home *store.Home) (apiserver.FixedTokens, error) {
	var tokens apiserver.FixedTokens
	for _, t := range []struct {
		file, name string
		role       apiserver.Role
	}{{AgentTokenFile, "agent", apiserver.Agent}, {OwnerTokenFile, "owner", apiserver.Owner}} {
		raw, err := home.Read(t.file)
		if errors.Is(err, fs.ErrNotExist) {
			raw = []byte(rand.Text() + rand.Text() + "\n") // 256 bits
			err = home.Create(t.file, raw)
		}
		if err != nil {
			return nil, fault.Wrap(fault.Internal, "read "+t.file, err)
		}
		value := strings.TrimSpace(string(raw))
		if len(value) < 32 {
			return nil, fault.New(fault.InvalidRequest, "read "+t.file, "it holds no token").
				WithHint("Delete the file; a new one is made at the next start.")
		}
		tokens = append(tokens, apiserver.Token{Name: t.name, Role: t.role, Value: secret.New(value)})
	}
	return tokens, nil
}
