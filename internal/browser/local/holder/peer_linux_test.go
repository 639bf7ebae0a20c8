package holder

import (
	"bufio"
	"net"
	"os"
	"strings"
	"testing"
)

func TestTheUserBehindAConnectionIsKnown(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	out, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	in, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	if !ofThisUser(in) {
		t.Fatal("our own connection was turned away")
	}
	raw, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip("the kernel's table cannot be read here")
	}
	peer, here := in.RemoteAddr().(*net.TCPAddr), in.LocalAddr().(*net.TCPAddr)
	uid, found := ownerOf(bufio.NewScanner(strings.NewReader(string(raw))), kernelForm(peer), kernelForm(here))
	if !found || uid != os.Geteuid() {
		t.Fatalf("the table says %d, %v", uid, found)
	}
	const stranger = "   1: 0100007F:ABCD 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 12345 1\n"
	if uid, found := ownerOf(bufio.NewScanner(strings.NewReader(stranger)), "0100007F:ABCD", "0100007F:1F90"); !found || uid != 1001 {
		t.Fatalf("a stranger is %d, %v", uid, found)
	}
}
