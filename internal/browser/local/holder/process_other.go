//go:build !linux

package holder

import (
	"os"
	"syscall"
)

// bindToParent has nothing to do here: the browser ends when its pipe closes.
func bindToParent(*syscall.SysProcAttr) {}

// adoptOrphans has nothing to do here: init collects them.
func adoptOrphans() {}

// widen has nothing to do here: pipes grow by themselves.
func widen(*os.File) {}
