package cli

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// clientElsewhere is a client of a tapin that runs as another user: its home
// cannot be read, so its address and a token for this one are named.
func (a *app) clientElsewhere() (*api.Client, error) {
	base := strings.TrimSuffix(a.getenv("TAPIN_URL"), "/")
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || u.Path != "" || u.User != nil || !isLoopback(u.Host) {
		return nil, fault.New(fault.InvalidRequest, "", "TAPIN_URL must be an address on this machine, such as http://127.0.0.1:3849").
			WithHint("tapin listens on loopback only; a token must not be sent anywhere else.")
	}
	file := a.getenv("TAPIN_TOKEN_FILE")
	if file == "" {
		return nil, fault.New(fault.Unauthorized, "", "TAPIN_URL is set, but TAPIN_TOKEN_FILE is not").
			WithHint("Set it to the file that tapin service install named.")
	}
	raw, err := os.ReadFile(file) //nolint:gosec // the caller says where its token is
	if err != nil {
		return nil, fault.New(fault.Unauthorized, "read TAPIN_TOKEN_FILE", "%w", err).
			WithHint("It is for the group of the user whose agents drive; see ls -l.")
	}
	return api.NewClient(base, secret.New(strings.TrimSpace(string(raw))), nil)
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
