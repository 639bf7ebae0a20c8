package holder

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// bindToParent makes the kernel kill the browser when the holder dies.
func bindToParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes the browser's children ours when it dies, so that they can
// be waited for even where no init process does it.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// widePipe is what the browser may write before it is read: a picture as a whole.
const widePipe = 1 << 20

// widen spares a browser that sends a picture, and us, to wait for each other
// every 64 KiB. A system that does not allow it is slower, and that is all.
func widen(pipe *os.File) {
	if raw, err := pipe.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, widePipe) })
	}
}
