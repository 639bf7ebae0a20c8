package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tapin/internal/fault"
)

// inNamespace marks the copy of the test that may mount.
const inNamespace = "TAPIN_STORE_NAMESPACE"

// TestAReallyFullDiskChangesNothing runs itself in a mount namespace of its
// own, on a file system of 256 KiB.
func TestAReallyFullDiskChangesNothing(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		fillDisk(t)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAReallyFullDiskChangesNothing$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES), strings.Contains(string(out), "--- SKIP"):
		t.Skipf("this machine allows no mount namespaces: %v", err)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
}

func fillDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Skipf("mount: %v", err)
	}
	defer func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) }()
	h, err := Open(filepath.Join(dir, "home"), nil)
	must(t, err)
	defer h.Close()
	l, err := h.OpenLog("log", nil)
	must(t, err)
	defer l.Close()

	line := []byte(`"` + strings.Repeat("x", 10<<10) + `"`)
	var fullErr error
	written := 0
	for ; written < 100; written++ {
		if fullErr = l.Append(line); fullErr != nil {
			break
		}
	}
	if !errors.Is(fullErr, fault.StorageFull) {
		t.Fatalf("the log was not told that the disk is full: %v", fullErr)
	}
	if got := len(scanAll(t, h, "log")); got != written {
		t.Errorf("%d lines of %d", got, written)
	}
	for i := 0; ; i++ {
		before, _ := h.Read("record")
		err := h.Write("record", fmt.Append(nil, i, strings.Repeat("y", i*4096)))
		if err == nil {
			continue
		}
		after, _ := h.Read("record")
		if !errors.Is(err, fault.StorageFull) || string(before) != string(after) {
			t.Errorf("a full disk: %v; the record went from %d to %d bytes", err, len(before), len(after))
		}
		break
	}
	if h.scratch != "" {
		assertNoTemps(t, h)
	}
	must(t, l.Close())
	must(t, h.Remove("log"))
	must(t, h.Write("record", []byte("there is room again")))
}
