package local_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/testwait"
)

func TestLocalIsAProvider(t *testing.T) {
	browsertest.Run(t, func(t *testing.T) browsertest.Subject {
		run := shortDir(t)
		var epoch atomic.Uint64
		next := func() browser.Provider { return local.New(run, epoch.Add(1), nil) }
		return browsertest.Subject{
			Provider: next(), Next: next,
			Sever: func(i browser.Instance) { _ = i.Release() }, Guarded: true,
		}
	})
}

func TestAHomeWithALongPathWorks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a long home is refused here")
	}
	run := filepath.Join(shortDir(t), strings.Repeat("long/", 40))
	inst, err := local.New(run, 1, nil).Create(browsertest.Context(t), browser.Spec{ID: "ses_long-1", KeepUntil: testwait.Late()})
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(run)); err != nil {
		t.Fatal(err)
	}
}
