package holder

import (
	"os"
	"path/filepath"
)

// profileName is the folder of the browser's profile in its holder's.
const profileName = "profile"

// Remove deletes the folder of a browser that is gone, and what the browser kept
// outside of it: a folder among the system's temporary ones, which its profile
// points to, and which only a browser that ends by itself removes. The browser
// wrote that pointer, so nothing goes there but what it is known to put there.
func Remove(dir string) error {
	if socket, err := os.Readlink(filepath.Join(dir, profileName, "SingletonSocket")); err == nil && filepath.Base(socket) == "SingletonSocket" {
		_ = os.Remove(socket)
		_ = os.Remove(filepath.Join(filepath.Dir(socket), "SingletonCookie"))
		_ = os.Remove(filepath.Dir(socket))
	}
	return os.RemoveAll(dir)
}
