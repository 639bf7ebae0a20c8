package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestABrowserThatHangsIsSaidToHang(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "chrome")
	// Its child keeps the pipe open when the script is killed.
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 60\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	began := time.Now()
	_, err := versionOf(script, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "did not answer within 100ms") {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > 50*time.Second { // short: the child of the script goes on for a minute
		t.Fatalf("took %v", took)
	}
}
