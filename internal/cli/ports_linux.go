package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ownsPort reports whether a process listens on the port of an address: the
// kernel names the socket there, and the process has it open.
func ownsPort(pid int, address string) (owns, known bool) {
	_, text, err := net.SplitHostPort(address)
	port, err2 := strconv.ParseUint(text, 10, 16)
	if pid == 0 || err != nil || err2 != nil {
		return false, true
	}
	sockets := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			// sl, local address, remote address, state, …, inode
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false, false
	}
	for _, fd := range open {
		if target, err := os.Readlink(fd); err == nil && sockets[target] {
			return true, true
		}
	}
	return false, true
}
