//go:build !linux

package holder

import (
	"syscall"
)

// bindToParent has nothing to do here: the browser ends when its pipe closes.
func bindToParent(*syscall.SysProcAttr) {}

// adoptOrphans has nothing to do here: init collects them.
func adoptOrphans() {}
