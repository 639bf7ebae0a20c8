package sidecar_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/idna"
)

// names lets the sites of a test be on this machine, whatever they are called.
// It runs in the holder's process, which knows nothing of the test: all that is
// below test is answered, and everything else asked for as ever.
type names struct{}

func (names) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if strings.HasSuffix(strings.TrimSuffix(host, "."), ".test") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, network, host)
}

// lookalikes are three listeners with one bill, under any name: two plain ones
// and an encrypted one.
func lookalikes(t *testing.T) (plain, other *till, secure *httptest.Server) {
	t.Helper()
	plain, other = openTill(t), openTill(t)
	secure = httptest.NewUnstartedServer(plain.Config.Handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	return plain, other, secure
}

// TestAGrantIsForOneOrigin has the owner approve a bill at one address, and an
// agent show the same bill everywhere else.
func TestAGrantIsForOneOrigin(t *testing.T) {
	t.Parallel()
	plain, other, secure := lookalikes(t)
	port := func(s *httptest.Server) string { return s.URL[strings.LastIndex(s.URL, ":"):] }
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `<!doctype html><h1>Verizon</h1><p>Amount due: <b>$142.50</b></p><iframe src="http://verizon.test%s/bill" width=400 height=300></iframe>`, port(plain.Server))
	}))
	t.Cleanup(evil.Close)
	key := sha256.Sum256(secure.Certificate().RawSubjectPublicKeyInfo)
	allow := []string{}
	for _, s := range []*httptest.Server{plain.Server, other.Server, secure, evil} {
		allow = append(allow, "127.0.0.1"+port(s))
	}
	r := start(t, plain.Server, "egress.allow="+strings.Join(allow, ","),
		"browser.args=--ignore-certificate-errors-spki-list="+base64.StdEncoding.EncodeToString(key[:]))
	owner := r.owner()
	homograph, err := idna.ToASCII("vеrizon.test") // the second letter is Cyrillic
	if err != nil || !strings.HasPrefix(homograph, "xn--") {
		t.Fatal(homograph, err)
	}
	at := func(url string) string { return `{"url":"` + url + `","screenshot":false}` }
	home := "http://verizon.test" + port(plain.Server)
	bill := strings.Replace(aBill, "127.0.0.1", "verizon.test", 1)
	r.must("POST", "/session/start", at(home+"/bill"))
	asked := r.must("POST", "/approval/request", bill)
	id := asked["approval_id"].(string)
	if asked["differs"] != nil {
		t.Fatalf("the true page differs: %v", asked["differs"])
	}
	owner.must("POST", "/approval/"+id+"/decide", `{"decision":"approve"}`)
	said := owner.must("POST", "/policies/say", `{"text":"auto-approve verizon.test under $500"}`)
	owner.must("POST", "/policies/"+said["proposal"].(map[string]any)["proposal_id"].(string)+"/confirm", `{}`)

	for _, c := range []struct {
		name, url string
		policy    string // what the policy for verizon.test says to the same bill there
	}{
		{"a name that begins with it", "http://verizon.test.evil.test" + port(plain.Server) + "/bill", "pending"},
		{"a name that ends with it", "http://my-verizon.test" + port(plain.Server) + "/bill", "pending"},
		{"a name that looks the same", "http://" + homograph + port(plain.Server) + "/bill", "pending"},
		{"a subdomain", "http://www.verizon.test" + port(plain.Server) + "/bill", "pending"}, // of the site, but not encrypted
		{"a final dot", "http://verizon.test." + port(plain.Server) + "/bill", "pending"},
		{"another port", "http://verizon.test" + port(other.Server) + "/bill", "pending"},
		{"a name in front of the @", "http://verizon.test@evil.test" + port(plain.Server) + "/bill", "pending"},
		{"its frame in another page", "http://evil.test" + port(evil) + "/", "pending"},
		{"encrypted", "https://verizon.test" + port(secure) + "/bill", "approved"},
		{"encrypted, a name that begins with it", "https://verizon.test.evil.test" + port(secure) + "/bill", "pending"},
		{"encrypted, a name that looks the same", "https://" + homograph + port(secure) + "/bill", "pending"},
	} {
		if code, answer, raw := r.do("POST", "/session/navigate", at(c.url)); code != 200 {
			if c.name == "a name in front of the @" && answer["error"] == "INVALID_URL" {
				continue // not even opened
			}
			t.Errorf("%s: %d %.200s", c.name, code, raw)
			continue
		}
		r.settled("Verizon")
		no := r.refused("POST", "/session/click", clickWith(id), "APPROVAL_REQUIRED")
		if !strings.Contains(fmt.Sprint(no["message"], no["detail"], no), home) {
			t.Errorf("%s: it is not said for where the approval is: %v", c.name, no)
		}
		if got := r.must("POST", "/approval/request", bill); got["status"] != c.policy {
			t.Errorf("%s: the policy says %v, want %s; %v", c.name, got["status"], c.policy, got["differs"])
		}
		if plain.payments()+other.payments() != 0 {
			t.Fatalf("%s: paid", c.name)
		}
	}
	// And all of that has used nothing up.
	r.must("POST", "/session/navigate", at(home+"/bill"))
	r.must("POST", "/session/click", clickWith(id))
	r.paidOnce("the true page", plain, 1)
	if over := r.must("GET", "/approval/"+id, ""); over["outcome"] != "confirmed" || plain.payments() != 1 {
		t.Errorf("in the end %v, %d payments", over["outcome"], plain.payments())
	}
}
