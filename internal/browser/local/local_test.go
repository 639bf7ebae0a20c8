package local_test

import (
	"os"
	"sync/atomic"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ownerArg {
		beOwner()
	}
	browsertest.Main(m, nil)
}

func TestLocalIsAProvider(t *testing.T) {
	browsertest.Run(t, func(t *testing.T) browsertest.Subject {
		run := shortDir(t)
		var epoch atomic.Uint64
		next := func() browser.Provider { return local.New(run, epoch.Add(1), nil) }
		return browsertest.Subject{
			Provider: next(), Next: next,
			Sever: func(i browser.Instance) { _ = i.Release() },
		}
	})
}
