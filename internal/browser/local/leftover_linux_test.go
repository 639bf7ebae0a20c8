package local_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/local"
	"tapin/internal/testwait"
)

// A process of the browser that begins just before the end makes its profile's
// folder anew if it is not there.
func TestChaosAHolderKilledWhileItsBrowserStartsLeavesNoFolder(t *testing.T) {
	run := shortDir(t)
	caught := 0
	for round := range rounds(12) {
		id := fmt.Sprintf("ses_early-%d", round)
		ctx, cancel := context.WithCancel(t.Context())
		created := make(chan struct{})
		go func() {
			defer close(created)
			if inst, err := local.New(run, 1, nil).Create(ctx, browser.Spec{ID: id, KeepUntil: testwait.Late()}); err == nil {
				_ = inst.Release()
			}
		}()
		time.Sleep(time.Duration(40+rand.IntN(260)) * time.Millisecond)
		if pid := holderOf(id); pid != 0 {
			caught++
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		cancel()
		if err := local.New(run, 2, nil).End(t.Context(), browser.Ref{Provider: local.Name, ID: id}); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		<-created
		time.Sleep(200 * time.Millisecond) // for whatever would come back
		if left, _ := filepath.Glob(filepath.Join(run, "*", "*")); len(left) > 0 {
			t.Fatalf("round %d: there is again %v", round, left)
		}
	}
	if caught == 0 {
		t.Error("no holder was there to be killed in any round")
	}
}

// holderOf is the process that holds a browser or is about to; 0 means none yet.
func holderOf(id string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if line, err := os.ReadFile(path); err == nil && bytes.HasSuffix(line, []byte("\x00holder\x00"+id+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}
