package main

import (
	"io/fs"
	"path/filepath"
	"testing"

	"tapin/internal/layout"
)

// laidOut checks that every file of a home is of a kind that is listed, and
// returns the kinds that it has.
func laidOut(t testing.TB, home string) map[string]bool {
	t.Helper()
	has := map[string]bool{}
	_ = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // it went away meanwhile
		}
		name, err := filepath.Rel(home, path)
		if err != nil {
			return err
		}
		kind, ok := layout.Of(name)
		if !ok {
			t.Errorf("%s is of no kind that internal/layout lists", name)
		}
		has[kind.Name] = true
		return nil
	})
	return has
}
