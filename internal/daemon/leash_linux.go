package daemon

import "syscall"

// dieWithParent has the kernel end the program when its leash is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
