package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"tapin/internal/fault"
)

// storageError names the operation, and gives a full disk its code.
func storageError(op string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.Wrap(fault.StorageFull, op, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

func storageErrorOrNil(op string, err error) error {
	if err == nil {
		return nil
	}
	return storageError(op, err)
}

// storageErrorOf is storageErrorOrNil that leaves what already has a code as it is.
func storageErrorOf(op string, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	return storageErrorOrNil(op, err)
}

// openError is storageError for a home that cannot be opened, which is mostly
// where somebody has put it: that is for them to mend, not a fault of ours.
func openError(op string, err error) error {
	const elsewhere = "Name another folder with --home or TAPIN_HOME."
	switch {
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist),
		errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return fault.New(fault.InvalidRequest, op, "%w", err).WithHint("A home is a folder, and so is all above it. %s", elsewhere)
	case errors.Is(err, syscall.EROFS):
		return fault.New(fault.Forbidden, op, "%w", err).WithHint("tapin writes there. %s", elsewhere)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Forbidden, op, "%w", err).WithHint("See who owns it with ls -ld, and that it has mode 0700. %s", elsewhere)
	}
	return storageError(op, err)
}
