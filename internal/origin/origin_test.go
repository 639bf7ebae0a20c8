package origin_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"tapin/internal/origin"
)

func TestANameIsOursAsLongAsSomebodyAllowsIt(t *testing.T) {
	t.Parallel()
	var names origin.Names
	if names.Has("tapin.example.com") || names.Has("") {
		t.Error("names that nobody allowed are ours")
	}
	first, second := names.Allow("Tapin.Example.com"), names.Allow("tapin.example.com:443")
	for _, host := range []string{"tapin.example.com", "TAPIN.example.com:443"} {
		if !names.Has(host) {
			t.Errorf("%s is not ours", host)
		}
	}
	for _, host := range []string{"tapin.example.com:8443", "evil.tapin.example.com", "tapin.example.com.", "", ":443"} {
		if names.Has(host) {
			t.Errorf("%q is ours", host)
		}
	}
	first()
	first() // once is enough
	if !names.Has("tapin.example.com") {
		t.Error("one who forgets takes it from the other")
	}
	second()
	if names.Has("tapin.example.com") {
		t.Error("it is still ours")
	}
}

func TestLoopbackIsThisMachineAtTheListenersPort(t *testing.T) {
	t.Parallel()
	at := func(local string) *http.Request {
		addr, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(addr))
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		return r
	}
	for _, tt := range []struct {
		local, host string
		want        bool
	}{
		{"127.0.0.1:3850", "127.0.0.1:3850", true}, {"127.0.0.1:3850", "localhost:3850", true}, {"[::1]:3850", "[::1]:3850", true},
		{"127.0.0.1:3850", "127.0.0.1:3849", false}, {"127.0.0.1:3850", "localhost", false}, {"127.0.0.1:80", "localhost", true},
		{"127.0.0.1:3850", "localhost.evil.example:3850", false}, {"127.0.0.1:3850", "127.0.0.2:3850", false}, {"127.0.0.1:3850", "", false},
	} {
		if got := origin.Loopback(at(tt.local), tt.host); got != tt.want {
			t.Errorf("%q at %s: %v", tt.host, tt.local, got)
		}
	}
	bare, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if origin.Loopback(bare, "127.0.0.1:3850") {
		t.Error("a request that came through no listener is from here")
	}
}
