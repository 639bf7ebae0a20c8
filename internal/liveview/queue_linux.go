package liveview

import (
	"net"

	"golang.org/x/sys/unix"
)

// unsent is what the system may hold of what we have written and it has not sent: a
// picture that lies there cannot give way to a newer one, nor to a word.
const unsent = 32 << 10

// keepShort keeps the queue before a narrow way on our side of the system.
func keepShort(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent) // without it pictures come a little later
	})
}
