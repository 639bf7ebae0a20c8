package sidecar

import (
	"testing"

	"tapin/internal/guard"
)

func TestALookForTheBrowserThatPanicsHoldsUpNoEnd(t *testing.T) { //nolint:paralleltest // the guard is the process's
	defer guard.Install(&guard.Process{Reports: &guard.Reports{Home: t.TempDir(), Part: "sidecar"}})()
	s := &sidecar{}
	s.findBrowser(nil) // to ask nobody panics
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}
