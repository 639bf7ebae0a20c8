package daemon

import (
	"io"
	"os"
	"path/filepath"

	"tapin/internal/guard"
	"tapin/internal/store"
)

// lastWords is where Go prints what a daemon in the background dies of, since
// nobody reads it as it dies: with the value of a panic, and with arguments.
const lastWords = "daemon.stderr"

// mostWords is how much of it is read.
const mostWords = 4 << 20

// Bury makes a crash report of what the last daemon of a home died of, if it
// crashed, and leaves nothing of what it printed. While one runs it does nothing.
func Bury(home *store.Home, version string) error {
	pid, err := holder(home, daemonLock)
	if err != nil || pid != 0 {
		return err
	}
	bury(home.Path(), (&daemon{opts: Options{Home: home, Version: version}}).reports("daemon"))
	return nil
}

func bury(home string, reports *guard.Reports) {
	name := filepath.Join(home, logFolder, lastWords)
	file, err := os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // under our own home
	if err != nil {
		return // there is none
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return
	}
	last := guard.NewLast(io.Discard)
	_, _ = io.Copy(last, io.LimitReader(file, mostWords))
	cause, frames, died := last.Crash()
	if !died {
		return
	}
	_, _ = reports.Keep(guard.Report{At: info.ModTime(), Room: guard.RoomOf(frames), Cause: cause, Stack: frames, Stopped: true})
	// What was printed goes, also where there is no room for the report.
	if file.Truncate(0) != nil {
		_ = os.Remove(name)
	}
}
