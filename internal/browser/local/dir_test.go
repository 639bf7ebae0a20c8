package local_test

import (
	"os"
	"path/filepath"
	"testing"
)

// shortDir is a folder with a path short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(dir, "ses_*")); len(left) > 0 {
			t.Errorf("%d browser folders are left", len(left))
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}
