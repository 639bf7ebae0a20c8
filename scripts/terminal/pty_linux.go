package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// terminal is one of the system's own: the end of a program, and the end at
// which somebody sits.
type terminal struct{ program, seat *os.File }

func openTerminal(columns, rows int) (*terminal, error) {
	seat, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetPointerInt(int(seat.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	n, err := unix.IoctlGetInt(int(seat.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	size := &unix.Winsize{Col: uint16(columns), Row: uint16(rows)} //nolint:gosec // small numbers of our own
	return &terminal{program, seat}, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, size)
}

func (t *terminal) close() {
	_ = t.program.Close()
	_ = t.seat.Close()
}
