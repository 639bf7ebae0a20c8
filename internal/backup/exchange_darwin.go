package backup

import "golang.org/x/sys/unix"

// exchange lets two folders have each other's name, in one step.
func exchange(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }

// mounted reports whether a file system begins at a folder, so that it keeps its name.
func mounted(path string) bool { return elsewhere(path) }
