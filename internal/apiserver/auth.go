package apiserver

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// Role is what a token allows. A higher role may do all that a lower one may.
type Role int

// The roles, from the least to the most.
const (
	Anyone Role = iota
	Agent
	Owner
)

func (r Role) String() string { return [...]string{"anyone", "agent", "owner"}[r] }

// Tokens tells what a token allows and whose it is. It is asked on every
// request, so a revoked token ends at once. Safe for concurrent use; compares
// in a time that tells nothing of the value.
type Tokens interface {
	Role(token secret.Text) (role Role, name string, ok bool)
}

// Token is one entry of a fixed list of tokens.
type Token struct {
	Name  string
	Role  Role
	Value secret.Text
}

// FixedTokens are Tokens that do not change while the server runs.
type FixedTokens []Token

// Role compares with every entry, so that the time taken does not tell which
// one matched. An empty token matches nothing.
func (f FixedTokens) Role(token secret.Text) (role Role, name string, ok bool) {
	for _, t := range f {
		if t.Value.Equal(token) && !t.Value.IsEmpty() {
			role, name, ok = t.Role, t.Name, true
		}
	}
	return role, name, ok
}

// maxToken is longer than any token; what is longer is not compared at all.
const maxToken = 512

// authenticate finds who is calling, from headers alone.
func (s *Server) authenticate(r *http.Request) (Role, string, error) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return Anyone, "", fault.New(fault.Unauthorized, "", "the request carries no token")
	}
	scheme, value, _ := strings.Cut(given[0], " ")
	value = strings.TrimSpace(value)
	if len(given) == 1 && strings.EqualFold(scheme, "Bearer") && value != "" && len(value) <= maxToken {
		if role, name, ok := s.tokens.Role(secret.New(value)); ok {
			return role, name, nil
		}
	}
	if !s.guesses.allow() {
		return Anyone, "", fault.New(fault.RateLimited, "", "too many wrong tokens")
	}
	return Anyone, "", fault.New(fault.Unauthorized, "", "the token is not valid")
}

// perSecond counts what may happen only so often a second. It is asked only
// after a token turned out wrong, so a right one never waits for it.
type perSecond struct {
	most int

	mu     sync.Mutex
	second int64
	count  int
}

func (p *perSecond) allow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now().Unix(); now != p.second {
		p.second, p.count = now, 0
	}
	p.count++
	return p.count <= p.most
}
