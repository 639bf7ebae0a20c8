package sidecar

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/fault"
	"tapin/internal/store"
)

func TestATokenThatOthersMayHaveReadIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(file string) error
		code  error
	}{
		"a new one is made and taken": {func(string) error { return nil }, nil},
		"open to the group":           {func(file string) error { return os.Chmod(file, 0o640) }, fault.Forbidden}, //nolint:gosec // what is under test
		"open to everybody":           {func(file string) error { return os.Chmod(file, 0o644) }, fault.Forbidden}, //nolint:gosec // what is under test
		"a folder in its place": {func(file string) error {
			return errors.Join(os.Remove(file), os.Mkdir(file, 0o700))
		}, nil}, // it opens nothing, and keeps nobody out of the rest
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, err := store.Open(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer home.Close()
			if _, err := readTokens(home); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(home.Path(), OwnerTokenFile)
			if err := tt.spoil(file); err != nil {
				t.Fatal(err)
			}
			_, err = readTokens(home)
			if !errors.Is(err, tt.code) {
				t.Fatalf("got %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), file) {
				t.Fatalf("%v does not name the file", err)
			}
		})
	}
}
