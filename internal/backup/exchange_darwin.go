package backup

import "golang.org/x/sys/unix"

// exchange lets two folders have each other's name, in one step.
func exchange(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }
