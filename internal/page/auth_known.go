package page

import (
	"sync"

	"github.com/chromedp/cdproto/fetch"

	"tapin/internal/secret"
)

// HTTPLogin is what a site was, or is to be, told when it asks for a user name
// and password before any page.
type HTTPLogin struct {
	Username string
	Password secret.Text
}

// knownLogins are those that a browser has by heart, by origin. They live as
// long as it does: nothing writes them down.
type knownLogins struct {
	mu sync.Mutex
	by map[string]HTTPLogin
}

func (k *knownLogins) put(origin string, l HTTPLogin) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[string]HTTPLogin{}
	}
	k.by[origin] = l
}

func (k *knownLogins) get(origin string) (HTTPLogin, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l, ok := k.by[origin]
	return l, ok
}

// HTTPLogin is what the origin was told, if anything.
func (t *Tabs) HTTPLogin(origin string) (HTTPLogin, bool) { return t.logins.get(origin) }

// KnowLogin has an origin told a user name and password when it asks.
func (t *Tabs) KnowLogin(origin string, l HTTPLogin) { t.logins.put(origin, l) }

// provide is the answer with a user name and password.
func (l HTTPLogin) provide() *fetch.AuthChallengeResponse {
	return &fetch.AuthChallengeResponse{
		Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: l.Username, Password: l.Password.Reveal(),
	}
}
