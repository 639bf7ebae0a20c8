//go:build !linux

package local_test

import (
	"testing"

	"tapin/internal/browser/browsertest"
)

func TestMain(m *testing.M) { browsertest.Main(m, nil) }
