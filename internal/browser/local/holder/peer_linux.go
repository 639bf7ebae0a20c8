package holder

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// ofThisUser reports whether the other end of a loopback connection belongs to
// the user we run as. The kernel's table tells; where it cannot be read, nobody
// is turned away for it.
func ofThisUser(conn net.Conn) bool {
	peer, ok := conn.RemoteAddr().(*net.TCPAddr)
	here, ok2 := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 || peer.IP.To4() == nil || here.IP.To4() == nil {
		return false
	}
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return true
	}
	defer func() { _ = table.Close() }()
	uid, found := ownerOf(bufio.NewScanner(table), kernelForm(peer), kernelForm(here))
	return !found || uid == os.Geteuid()
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
