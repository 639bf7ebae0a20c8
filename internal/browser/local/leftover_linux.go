package local

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// profileFlags name the profile to the browser's processes, and to the one that
// waits for its crash.
var profileFlags = [][]byte{[]byte("--user-data-dir="), []byte("--database=")}

// endLeftovers kills the browser processes that have their profile in dir, and
// reports whether there were none. They are told by their command lines, which are
// theirs alone; their number could be somebody else's by now.
func endLeftovers(dir string) (none bool) {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	profile := []byte(filepath.Join("/", filepath.Base(dir), "profile"))
	none = true
	for _, path := range found {
		line, err := os.ReadFile(path) //nolint:gosec // of the kernel
		if err != nil || !bytes.Contains(line, profile) || !slices.ContainsFunc(profileFlags, func(flag []byte) bool { return bytes.Contains(line, flag) }) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			none = false
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return none
}
