package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"tapin/internal/testwait"
)

// openTerminal is a terminal of the system's own: the program's end, and the
// end at which somebody sits.
func openTerminal(t *testing.T, columns, rows uint16) (program, seat *os.File) {
	t.Helper()
	seat, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = seat.Close() })
	if err := unix.IoctlSetPointerInt(int(seat.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(seat.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	resize(t, program, columns, rows)
	return program, seat
}

func resize(t *testing.T, tty *os.File, columns, rows uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
}

func TestWatchIsAScreenThatLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.says("session", "open", d.site.URL)
	tty, seat := openTerminal(t, 80, 24)
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	shown := &watched{}
	go func() { _, _ = io.Copy(shown, seat) }()
	await := func(what string, of func(string) bool) {
		t.Helper()
		if !testwait.Comes(func() bool { return of(shown.String()) }) {
			t.Fatalf("%s did not come: %q", what, shown)
		}
	}
	has := func(text string) func(string) bool {
		return func(s string) bool { return strings.Contains(s, text) }
	}
	w := newWorld(t, "--home", d.home, "watch")
	w.Stdin, w.Stdout, w.Stderr = tty, tty, tty
	w.IsTerminal = func(w io.Writer) bool { return w == tty }
	ended := make(chan int, 1)
	go func() { ended <- Main(t.Context(), w.Env) }()

	await("the session", has("the agent drives"))
	await("what was done", has("navigate on "))
	// A person is called, and the screen says so.
	d.says("hand-off", "handoff", "start", "login", "Please log in")
	await("the hand-off", has("● login"))
	await("who drives", has("a person drives"))
	d.says("hof_", "__complete", "handoff", "finish", "") // and shells offer it
	// Another size is another frame, from the first row.
	frames := strings.Count(shown.String(), "\x1b[2J")
	resize(t, tty, 40, 12)
	await("another frame", func(s string) bool { return strings.Count(s, "\x1b[2J") > frames })

	if _, err := seat.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("it ended with %d", code)
		}
	case <-testwait.Over():
		t.Fatal("q did not end it")
	}
	after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v", err)
	}
	await("the end of the screen", has(leaveScreen))
	if !term.IsTerminal(int(tty.Fd())) || bytes.Contains([]byte(shown.String()), []byte("\n")) {
		t.Error("a frame has a line break in it, which scrolls")
	}
}

func TestCtrlCAtAPasswordGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	tty, seat := openTerminal(t, 80, 24)
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	shown := &watched{}
	go func() { _, _ = io.Copy(shown, seat) }()
	ctx, ctrlC := context.WithCancel(t.Context())
	w := newWorld(t, "credential", "set", "example.com")
	w.Stdin, w.Stdout, w.Stderr = tty, tty, tty
	w.IsTerminal = func(w io.Writer) bool { return w == tty }
	ended := make(chan int, 1)
	go func() { ended <- Main(ctx, w.Env) }()
	hidden := func() bool {
		now, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		return err == nil && now.Lflag&unix.ECHO == 0
	}
	if !testwait.Comes(hidden) {
		t.Fatalf("it does not ask: %q", shown)
	}
	ctrlC()
	if code := <-ended; code != interrupted {
		t.Errorf("it ended with %d", code)
	}
	if after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v", err)
	}
}
