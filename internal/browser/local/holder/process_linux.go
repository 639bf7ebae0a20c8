package holder

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bindToParent makes the kernel kill the browser when the holder dies.
func bindToParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes the browser's children ours when it dies, so that they can
// be waited for even where no init process does it.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
