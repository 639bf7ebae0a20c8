package cli

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// forgetProgram unmaps the parts of our own program that are in memory and that
// nobody can have changed. Most were only needed to start; what is needed again
// comes back from the kernel's cache, a few pages at a time. Each of our processes
// would otherwise hold the whole program.
func forgetProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer func() { _ = maps.Close() }()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || strings.Join(fields[5:], " ") != program || fields[1] != "r-xp" && fields[1] != "r--p" {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, bad := strconv.ParseUint(from, 16, 64)
		end, worse := strconv.ParseUint(to, 16, 64)
		if bad != nil || worse != nil {
			continue
		}
		// Where it does not work, nothing is lost.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
	}
}
