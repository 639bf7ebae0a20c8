package holder

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"tapin/internal/fault"
)

// socketName is the socket's name in the holder's folder; short, because the
// path of a socket is.
const socketName = "s"

// maxSocketPath is what every system we run on accepts.
const maxSocketPath = 100

// socketPath is how the socket in dir can be named now. Where the plain path is
// too long, Linux offers a short one through an open folder.
func socketPath(dir string) (path string, release func(), err error) {
	path = filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fault.New(fault.SessionCreateFailed, "open the holder's socket", "the home's path is too long for a socket").
			WithHint("Choose a home with a shorter path: TAPIN_HOME, or --home.")
	}
	folder, err := os.Open(dir) //nolint:gosec // our own folder
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName), func() { _ = folder.Close() }, nil
}
