package vault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/vault"
)

const canary = "canary-9c41"

// keptIn is a home's credentials with these entries in its keychain.
func keptIn(t testing.TB, entries map[string]string, saved func(string) (string, error), pairs ...string) *vault.Credentials {
	t.Helper()
	r := &ring{entries: map[string]string{}}
	for name, value := range entries {
		r.entries["credential-"+name+"/tapin"] = value
	}
	return vault.NewCredentials(openHome(t), &vault.Options{Keyring: r, Getenv: env(pairs...), Saved: saved})
}

func TestALoginIsAPasswordOrAnObject(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entry, user, password, domain string
		refused                       bool
	}{
		"a bare password":                      {entry: canary, password: canary},
		"one with a line end of its tool":      {entry: canary + "\r\n", password: canary},
		"one with blanks around":               {entry: " " + canary + " ", password: " " + canary + " "},
		"one with a brace inside":              {entry: canary + "{}", password: canary + "{}"},
		"an object":                            {entry: `{"username":"ada","password":"` + canary + `","domain":"chase.com"}`, user: "ada", password: canary, domain: "chase.com"},
		"an object with a password alone":      {entry: " {\"password\":\"" + canary + "\"}\n", password: canary},
		"a password with a brace in an object": {entry: `{"password":"{` + canary + `"}`, password: "{" + canary},
		"a broken object":                      {entry: `{"password":"` + canary + `",}`, refused: true},
		"an object with a slip in a name":      {entry: `{"pasword":"` + canary + `"}`, refused: true},
		"two objects":                          {entry: `{"password":"` + canary + `"}{}`, refused: true},
		"an object without a password":         {entry: `{"username":"` + canary + `"}`, refused: true},
		"a number as password":                 {entry: `{"password":4711}`, refused: true},
		"an empty line":                        {entry: "\n", refused: true},
		"two lines":                            {entry: canary + "\n" + canary, refused: true},
		"no text":                              {entry: "\xff" + canary, refused: true},
		"a book":                               {entry: strings.Repeat(canary, 1000), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := keptIn(t, map[string]string{"chase-login": tt.entry}, nil).Login(t.Context(), "chase")
			if tt.refused {
				if !errors.Is(err, fault.InvalidRequest) || strings.Contains(err.Error(), canary) || got != (vault.Login{}) {
					t.Fatalf("%v", err)
				}
				return
			}
			want := []string{tt.user, tt.password, tt.domain}
			if diff := cmp.Diff(want, []string{got.Username.Reveal(), got.Password.Reveal(), got.Domain}); err != nil || diff != "" {
				t.Fatalf("%v %s", err, diff)
			}
		})
	}
}

func TestACredentialBelongsToOneSite(t *testing.T) {
	t.Parallel()
	entries := map[string]string{
		"chase-login": canary, "chase.com-login": canary, "login.chase.com-login": canary, "localhost-login": canary, "127.0.0.1-login": canary,
		"bank-login": `{"username":"ada","password":"` + canary + `","domain":"secure.bank.co.uk"}`,
		"page-login": `{"password":"` + canary + `","domain":"someone.github.io"}`,
		"odd-login":  `{"password":"` + canary + `","domain":"a b"}`,
		"bank-totp":  "GEZDGNBVGY3TQOJQ", "chase-totp": "GEZDGNBVGY3TQOJQ", "only.com-totp": "GEZDGNBVGY3TQOJQ",
	}
	saved := func(domain string) func(string) (string, error) {
		return func(string) (string, error) { return domain, nil }
	}
	for name, tt := range map[string]struct {
		credential, part string
		saved            func(string) (string, error)
		want             string // the site, or the code of the refusal
	}{
		"a saved login of that name says where":       {"chase", "", saved("https://secure.chase.com/login"), "chase.com"},
		"without one, the entry does":                 {"bank", "password", nil, "bank.co.uk"},
		"both may say the same":                       {"bank", "", saved("www.bank.co.uk"), "bank.co.uk"},
		"but not two different sites":                 {"bank", "", saved("evil.example"), "FORBIDDEN"},
		"a name that is a domain is one":              {"chase.com", "", nil, "chase.com"},
		"a host belongs to its site":                  {"login.chase.com", "", nil, "chase.com"},
		"a host of many owners is one's own":          {"page", "", nil, "someone.github.io"},
		"a loopback name is a site":                   {"localhost", "", nil, "localhost"},
		"a loopback address is a site":                {"127.0.0.1", "", nil, "127.0.0.1"},
		"a bare name is none":                         {"chase", "", nil, "FORBIDDEN"},
		"a domain that is none is none":               {"odd", "", nil, "FORBIDDEN"},
		"a manifest that cannot be read says nothing": {"chase.com", "", func(string) (string, error) { return "", fault.Internal }, "INTERNAL"},
		"the username goes the same way":              {"bank", "username", nil, "bank.co.uk"},
		"one without a username has none":             {"chase.com", "username", nil, "NOT_FOUND"},
		"codes go where the login goes":               {"bank", "totp", nil, "bank.co.uk"},
		"codes without a login go by their name":      {"only.com", "totp", nil, "only.com"},
		"codes that belong nowhere are refused":       {"chase", "totp", nil, "FORBIDDEN"},
		"codes that are not there":                    {"chase.com", "totp", nil, "NOT_FOUND"},
		"a part that does not exist":                  {"chase.com", "pin", nil, "INVALID_REQUEST"},
		"a name that is not there":                    {"nobody.com", "", nil, "NOT_FOUND"},
		"a name that is none":                         {"../../x", "", nil, "INVALID_REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, only, err := keptIn(t, entries, tt.saved).Fill(t.Context(), tt.credential, tt.part)
			if err != nil {
				f := fault.Of(err)
				if string(f.Code) != tt.want || !value.IsEmpty() || only != "" || f.Advice() == "" || strings.Contains(fmt.Sprint(err, f.Hint), canary) {
					t.Fatalf("%v", err)
				}
				return
			}
			if only != tt.want || value.IsEmpty() {
				t.Errorf("it belongs to %s", only)
			}
		})
	}
}

func TestWhatIsKeptIsListedByNameAndCanBeDeleted(t *testing.T) {
	t.Parallel()
	home, r := openHome(t), &ring{}
	c := vault.NewCredentials(home, &vault.Options{Keyring: r, Getenv: env("SHOP_COM_TOTP", "GEZDGNBVGY3TQOJQ")})
	ctx := t.Context()
	login := vault.Login{Username: secret.New("ada"), Password: secret.New(canary), Domain: "https://secure.chase.com"}
	must(t, c.SaveLogin(ctx, "chase", login))
	must(t, c.SaveTOTP(ctx, "chase", secret.New("gezd gnbv gy3t qojq")))
	must(t, c.SaveLogin(ctx, "shop.com", vault.Login{Password: secret.New("{" + canary)}))

	got, err := c.Login(ctx, "chase")
	if err != nil || got.Domain != "chase.com" || got.Username.Reveal() != "ada" || got.Password.Reveal() != canary {
		t.Errorf("came back as %+v, %v", got, err)
	}
	if got, err = c.Login(ctx, "shop.com"); err != nil || got.Password.Reveal() != "{"+canary {
		t.Errorf("a password that looks like an object: %v", err)
	}
	list, err := c.List(ctx)
	want := []vault.Kept{{Site: "chase", Login: vault.FromKeychain, TOTP: vault.FromKeychain}, {Site: "shop.com", Login: vault.FromKeychain, TOTP: vault.FromEnvironment}}
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if raw, err := home.Read("credentials.json"); err != nil || strings.Contains(string(raw), canary) || strings.Contains(string(raw), "ada") {
		t.Errorf("the list on the disk: %s, %v", raw, err)
	}
	must(t, c.Delete(ctx, "chase"))
	if err := c.Delete(ctx, "chase"); !errors.Is(err, fault.NotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if list, err = c.List(ctx); err != nil || len(list) != 1 || len(r.entries) != 1 {
		t.Errorf("left are %v, %v", list, err)
	}
}

func TestWhatCannotBeUsedIsNotKept(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := &ring{}
	c := vault.NewCredentials(openHome(t), &vault.Options{Keyring: r, Getenv: env()})
	for name, err := range map[string]error{
		"a login of no site":          c.SaveLogin(ctx, "chase", vault.Login{Password: secret.New(canary)}),
		"a login without a password":  c.SaveLogin(ctx, "chase.com", vault.Login{}),
		"a password of two lines":     c.SaveLogin(ctx, "chase.com", vault.Login{Password: secret.New(canary + "\n2")}),
		"a password without end":      c.SaveLogin(ctx, "chase.com", vault.Login{Password: secret.New(strings.Repeat(canary, 1000))}),
		"a name with a slash":         c.SaveLogin(ctx, "chase/com", vault.Login{Password: secret.New(canary), Domain: "chase.com"}),
		"codes that are not base32":   c.SaveTOTP(ctx, "chase.com", secret.New(canary+"!")),
		"codes that belong nowhere":   c.SaveTOTP(ctx, "chase", secret.New("GEZDGNBVGY3TQOJQ")),
		"a domain that is a word":     c.SaveLogin(ctx, "chase", vault.Login{Password: secret.New(canary), Domain: "chase"}),
		"the name of the vault's key": c.Delete(ctx, "../tapin-vault"),
	} {
		if f := fault.Of(err); f == nil || f.Code == fault.Internal || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(r.entries) != 0 {
		t.Errorf("kept are %d entries", len(r.entries))
	}

	locked := vault.NewCredentials(openHome(t), &vault.Options{Keyring: broken(), Getenv: env()})
	err := locked.SaveLogin(ctx, "chase.com", vault.Login{Password: secret.New(canary)})
	if f := fault.Of(err); f == nil || f.Code != fault.Forbidden || !strings.Contains(f.Advice(), "CHASE_COM_LOGIN") {
		t.Errorf("without a keychain: %v", err)
	}
	forgetful := vault.NewCredentials(openHome(t), &vault.Options{Keyring: &ring{forgets: true}, Getenv: env()})
	if err := forgetful.SaveLogin(ctx, "chase.com", vault.Login{Password: secret.New(canary)}); !errors.Is(err, fault.Forbidden) {
		t.Errorf("a keychain that forgets: %v", err)
	}
}

func TestEveryLoginThatIsKeptComesBack(t *testing.T) {
	t.Parallel()
	c := vault.NewCredentials(openHome(t), &vault.Options{Keyring: &ring{}, Getenv: env()})
	rapid.Check(t, func(rt *rapid.T) {
		printable := rapid.StringOfN(rapid.RuneFrom(nil, unicode.L, unicode.N, unicode.P, unicode.S, unicode.Zs), 1, 40, -1)
		want := vault.Login{Username: secret.New(printable.Draw(rt, "username")), Password: secret.New(printable.Draw(rt, "password")), Domain: "chase.com"}
		if err := c.SaveLogin(t.Context(), "x", want); err != nil {
			rt.Fatal(err)
		}
		got, err := c.Login(t.Context(), "x")
		if err != nil || !got.Password.Equal(want.Password) || !got.Username.Equal(want.Username) || got.Domain != want.Domain {
			rt.Fatalf("%v", err)
		}
	})
}

func TestKeepsTheKeyOfAService(t *testing.T) {
	t.Parallel()
	const bot = "credential-telegram-bot-token"
	for name, tt := range map[string]struct {
		ring         *ring
		entry, value string
		want         fault.Code
	}{
		"in a keychain":           {&ring{}, bot, "1:abc", ""},
		"without a keychain":      {broken(), bot, "1:abc", fault.Forbidden},
		"nothing is no key":       {&ring{}, bot, "", fault.InvalidRequest},
		"the sealing key is ours": {&ring{}, "credential-tapin-vault", "x", fault.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := vault.NewCredentials(openHome(t), &vault.Options{Keyring: tt.ring, Getenv: env()})
			err := c.Keep(t.Context(), tt.entry, secret.New(tt.value))
			if tt.want != "" {
				if fault.Of(err).Code != tt.want {
					t.Fatalf("said %v", err)
				}
				return
			}
			if got, err2 := c.Credential(t.Context(), bot); err != nil || err2 != nil || got.Reveal() != tt.value {
				t.Fatalf("%v, %v", err, err2)
			}
		})
	}
}
