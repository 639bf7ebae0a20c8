package backup

import "golang.org/x/sys/unix"

// exchange lets two folders have each other's name, in one step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// mounted reports whether a file system begins at a folder, so that it keeps its name.
func mounted(path string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BASIC_STATS, &s)
	return err == nil && s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 || elsewhere(path)
}
