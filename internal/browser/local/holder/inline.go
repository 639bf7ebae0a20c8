//go:build unix

package holder

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// inline writes to a file or socket without ever waiting for it.
type inline struct{ raw syscall.RawConn }

func inlineTo(c any) inline {
	if file, ok := c.(syscall.Conn); ok {
		if raw, err := file.SyscallConn(); err == nil {
			return inline{raw}
		}
	}
	return inline{}
}

// write says how much was taken. Whatever else is wrong is found out by who
// writes the rest.
func (w inline) write(parts ...[]byte) (sent int) {
	if w.raw == nil {
		return 0
	}
	_ = w.raw.Write(func(fd uintptr) bool {
		n, err := unix.Writev(int(fd), parts)
		if err == nil {
			sent = n
		}
		return true // also when it would have to wait
	})
	return sent
}
