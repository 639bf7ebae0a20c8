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
	peer, here := in.RemoteAddr().(*net.TCPAddr), in.LocalAddr().(*net.TCPAddr)

	// known is what both ways say.
	known := func(want int) {
		t.Helper()
		if uid, err := askOwner(peer, here); err != nil || uid != want {
			t.Errorf("asked, the kernel says %d, %v", uid, err)
		}
		raw, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Skip("the kernel's table cannot be read here")
		}
		if uid, found := ownerOf(bufio.NewScanner(strings.NewReader(string(raw))), kernelForm(peer), kernelForm(here)); !found || uid != want {
			t.Errorf("the table says %d, %v", uid, found)
		}
	}
	known(os.Geteuid())
	if !ofThisUser(in) {
		t.Error("our own connection was turned away")
	}

	if os.Geteuid() == 0 { // who may give a socket to somebody else
		file, err := out.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		if err := file.Chown(1001, -1); err != nil {
			t.Fatal(err)
		}
		known(1001)
		if ofThisUser(in) {
			t.Error("a stranger's connection was let in")
		}
	}

	if uid, err := askOwner(here, &net.TCPAddr{IP: here.IP, Port: 1}); err == nil {
		t.Errorf("a socket that is not there belongs to %d", uid)
	}
	const stranger = "   1: 0100007F:ABCD 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 12345 1\n"
	if uid, found := ownerOf(bufio.NewScanner(strings.NewReader(stranger)), "0100007F:ABCD", "0100007F:1F90"); !found || uid != 1001 {
		t.Fatalf("a stranger is %d, %v", uid, found)
	}
}
