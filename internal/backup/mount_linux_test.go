package backup_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// inNamespace marks the copy of the test that may mount.
const inNamespace = "TAPIN_BACKUP_NAMESPACE"

// TestAHomeThatIsAMountPointIsRestored runs itself in a mount namespace of its own.
func TestAHomeThatIsAMountPointIsRestored(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		restoreMounted(t)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAHomeThatIsAMountPointIsRestored$", "-test.v")
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

func restoreMounted(t *testing.T) {
	folder := t.TempDir()
	home, volume := filepath.Join(folder, "home"), filepath.Join(folder, "volume")
	seed(t, home, "one")
	file := made(t, home)
	must(t, os.Mkdir(volume, 0o700))
	if err := syscall.Mount("tmpfs", volume, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("mount: %v", err)
	}
	defer func() { must(t, syscall.Unmount(volume, syscall.MNT_DETACH)) }()
	must(t, os.Mkdir(filepath.Join(volume, "lost+found"), 0)) // as file systems of disks have it
	done, err := restore(t, volume, file, passphrase, false)
	must(t, err)
	must(t, whole(t, volume, "one"))
	if done.Aside != "" {
		t.Errorf("of an empty volume something was put aside: %s", done.Aside)
	}
	done, err = restore(t, volume, file, passphrase, true)
	must(t, err)
	must(t, whole(t, volume, "one"))
	must(t, whole(t, done.Aside, "one"))
	if !strings.HasPrefix(done.Aside, volume+"/before/") {
		t.Errorf("put aside as %s", done.Aside)
	}
	if again := made(t, volume); len(again) > 2*len(file) {
		t.Errorf("a backup carries the homes before: %d bytes, and %d before", len(again), len(file))
	}
}
