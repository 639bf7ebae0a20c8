package local_test

import (
	"os"
	"testing"

	"tapin/internal/browser/browsertest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ownerArg {
		beOwner()
	}
	browsertest.Main(m, nil)
}
