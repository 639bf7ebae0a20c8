package holder

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ofThisUser reports whether the other end of a loopback connection belongs to
// the user we run as. The kernel tells; where it does not, nobody is turned away
// for it.
func ofThisUser(conn net.Conn) bool {
	peer, ok := conn.RemoteAddr().(*net.TCPAddr)
	here, ok2 := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 || peer.IP.To4() == nil || here.IP.To4() == nil {
		return false
	}
	if uid, err := askOwner(peer, here); err == nil {
		return uid == os.Geteuid()
	}
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return true
	}
	defer func() { _ = table.Close() }()
	uid, found := ownerOf(bufio.NewScanner(table), kernelForm(peer), kernelForm(here))
	return !found || uid == os.Geteuid()
}

// What sock_diag(7) knows these by.
const (
	netlinkSockDiag  = 4
	sockDiagByFamily = 20
	anyState         = ^uint32(0)
	noCookie         = ^uint32(0)
	diagHead         = 16              // struct nlmsghdr
	diagEnds         = 2 + 2 + 16 + 16 // both ports and addresses, in struct inet_diag_sockid
	diagUser         = 4 + 48 + 12     // where struct inet_diag_msg has the user
)

// askOwner asks the kernel for the user of the one socket with that local and
// remote address. Its table of all of them takes milliseconds to read, and a page
// waits meanwhile. Not every kernel can be asked.
func askOwner(local, remote *net.TCPAddr) (uid int, err error) {
	s, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Close(s) }()
	ask := diagRequest(local, remote)
	if err := syscall.Sendto(s, ask, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return 0, err
	}
	got := make([]byte, 1024)
	n, _, err := syscall.Recvfrom(s, got, 0)
	if err != nil {
		return 0, err
	}
	if n < diagHead+diagUser+4 || binary.NativeEndian.Uint16(got[4:]) != sockDiagByFamily {
		return 0, errors.New("the kernel knows of no such socket")
	}
	// Without that one it may have meant the socket that listens there.
	if !bytes.Equal(got[diagHead+4:][:diagEnds], ask[diagHead+8:][:diagEnds]) {
		return 0, errors.New("the kernel speaks of another socket")
	}
	return int(binary.NativeEndian.Uint32(got[diagHead+diagUser:])), nil
}

// diagRequest is a struct nlmsghdr and a struct inet_diag_req_v2.
func diagRequest(local, remote *net.TCPAddr) []byte {
	whole := binary.NativeEndian
	b := make([]byte, 0, 72)
	b = whole.AppendUint32(b, 72)
	b = whole.AppendUint16(b, sockDiagByFamily)
	b = whole.AppendUint16(b, syscall.NLM_F_REQUEST)
	b = append(b, make([]byte, 8)...) // no number, to nobody but the kernel
	b = append(b, syscall.AF_INET, syscall.IPPROTO_TCP, 0, 0)
	b = whole.AppendUint32(b, anyState)
	b = binary.BigEndian.AppendUint16(b, uint16(local.Port))  //nolint:gosec // a port
	b = binary.BigEndian.AppendUint16(b, uint16(remote.Port)) //nolint:gosec // a port
	for _, a := range []*net.TCPAddr{local, remote} {
		b = append(append(b, a.IP.To4()...), make([]byte, 12)...)
	}
	b = whole.AppendUint32(b, 0) // over any interface
	return whole.AppendUint32(whole.AppendUint32(b, noCookie), noCookie)
}

// ownerOf finds the user of the socket with that local and remote address.
func ownerOf(table *bufio.Scanner, local, remote string) (uid int, found bool) {
	for table.Scan() {
		fields := strings.Fields(table.Text())
		if len(fields) > 7 && fields[1] == local && fields[2] == remote {
			uid, err := strconv.Atoi(fields[7])
			return uid, err == nil
		}
	}
	return 0, false
}

// kernelForm writes an address as the kernel's table does: the bytes of the
// address in the machine's order, which on everything we run on is reversed.
func kernelForm(a *net.TCPAddr) string {
	ip := a.IP.To4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], a.Port)
}
