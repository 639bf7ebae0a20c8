package sidecar

import (
	"net"
	"net/netip"

	"tapin/internal/api"
	"tapin/internal/mcpserver"
	"tapin/internal/secret"
)

// newMCP makes the door for MCP hosts. It calls the control listener with the
// token of whoever calls it, as any other client does.
func newMCP(o Options, control string) (*mcpserver.Door, error) {
	server, err := mcpserver.New(&mcpserver.Options{Version: o.Version, NoOneShots: !o.Config.BrowserTools.Enabled, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	base := "http://" + reachable(control)
	return server.Door(func(token secret.Text) (*api.Client, error) { return api.NewClient(base, token, nil) }), nil
}

// reachable is where a listener on all addresses can be called.
func reachable(control string) string {
	at, err := netip.ParseAddrPort(control)
	if err != nil || !at.Addr().IsUnspecified() {
		return control
	}
	host := "127.0.0.1"
	if at.Addr().Is6() {
		host = "::1"
	}
	_, port, _ := net.SplitHostPort(control)
	return net.JoinHostPort(host, port)
}
