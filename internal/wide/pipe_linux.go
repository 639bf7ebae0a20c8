package wide

import (
	"os"

	"golang.org/x/sys/unix"
)

// holds is more than most pictures take.
const holds = 1 << 20

// Pipe makes room in a pipe, whichever of its ends is given. What is none stays as it
// is, and a system that does not allow it is slower, and that is all.
func Pipe(end any) {
	file, ok := end.(*os.File)
	if !ok {
		return
	}
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, holds) })
	}
}
