package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
)

// Upstream is a further proxy that all connections go through. Targets are
// judged before it is asked, and it is asked for the judged address, not the
// name. Its own address is the owner's choice and not under the page's policy.
type Upstream struct {
	addr string
	tls  *tls.Config // nil means plain
	auth secret.Text // the value of Proxy-Authorization
}

// ParseUpstream reads http://user:password@host:port (or https://). The error
// holds nothing of the URL.
func ParseUpstream(raw secret.Text) (*Upstream, error) {
	bad := fault.New(fault.InvalidRequest, "read the upstream proxy", "the address cannot be used").
		WithHint("Write http://host:port, with user:password@ in front of the host if it asks for them.")
	u, err := url.Parse(raw.Reveal())
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Path != "" && u.Path != "/" {
		return nil, bad
	}
	up := &Upstream{}
	port := u.Port()
	switch u.Scheme {
	case "http":
		port = or(port, "80")
	case "https":
		port = or(port, "443")
		up.tls = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	default:
		return nil, bad
	}
	if _, err := parsePort(port); err != nil {
		return nil, bad
	}
	up.addr = net.JoinHostPort(u.Hostname(), port)
	if u.User != nil {
		password, _ := u.User.Password()
		pair := u.User.Username() + ":" + password
		up.auth = secret.New("Basic " + base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	return up, nil
}

func or(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

// upstreamError says what went wrong with the upstream, without its address.
type upstreamError struct {
	what    string
	timeout bool
}

func (e *upstreamError) Error() string { return "upstream proxy: " + e.what }

// connect asks the upstream for a tunnel to an address.
func (u *Upstream) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	nd := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 15 * time.Second, Count: 4}}
	raw, err := nd.DialContext(ctx, "tcp", u.addr)
	if err != nil {
		return nil, &upstreamError{"it cannot be reached", isTimeout(err)}
	}
	// A deadline in the past wakes the handshake when the caller gives up.
	stop := context.AfterFunc(ctx, func() {
		defer guard.Catch("network guard")
		_ = raw.SetDeadline(time.Unix(1, 0))
	})
	c, err := u.handshake(ctx, raw, to)
	if !stop() && err == nil {
		err = &upstreamError{"it did not answer in time", true}
	}
	if err != nil {
		_ = raw.Close()
		if ctx.Err() != nil {
			return nil, &upstreamError{"it did not answer in time", true}
		}
		return nil, err
	}
	return c, nil
}

func (u *Upstream) handshake(ctx context.Context, c net.Conn, to netip.AddrPort) (net.Conn, error) {
	if u.tls != nil {
		secured := tls.Client(c, u.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, &upstreamError{what: "TLS failed"}
		}
		c = secured
	}
	ask := "CONNECT " + to.String() + " HTTP/1.1\r\nHost: " + to.String() + "\r\n"
	if !u.auth.IsEmpty() {
		ask += "Proxy-Authorization: " + u.auth.Reveal() + "\r\n"
	}
	if _, err := io.WriteString(c, ask+"\r\n"); err != nil {
		return nil, &upstreamError{what: "it hung up"}
	}
	// One byte at a time: what follows the answer belongs to the tunnel.
	answer := bufio.NewReader(io.LimitReader(oneByte{c}, 64<<10))
	res, err := http.ReadResponse(answer, &http.Request{Method: http.MethodConnect})
	switch {
	case err != nil:
		return nil, &upstreamError{what: "its answer cannot be read"}
	case res.StatusCode == http.StatusProxyAuthRequired:
		return nil, &upstreamError{what: "it does not accept the user and password"}
	case res.StatusCode == http.StatusGatewayTimeout:
		return nil, &upstreamError{"the target did not answer in time", true}
	case res.StatusCode != http.StatusOK:
		return nil, &upstreamError{what: fmt.Sprintf("it answered %d", res.StatusCode)}
	}
	return c, nil
}

type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return o.r.Read(p[:1])
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
