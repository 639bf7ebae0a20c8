// Command licenses prints the licences of every module that is in the program,
// as their authors wrote them. It owns the list that a release carries.
// It must never leave a module out: one without a licence file is an error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// systems are those that are released; each may have modules of its own.
var systems = []string{"linux", "darwin"}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|authors)(\.|-|$)`)

type module struct {
	Path, Version, Dir string
	Main               bool
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(to io.Writer) error {
	var out strings.Builder
	found := map[string]module{}
	for _, system := range systems {
		if err := list(system, found); err != nil {
			return err
		}
	}
	var paths []string
	for path := range found {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	if len(paths) == 0 {
		return errors.New("go list names no modules")
	}
	root, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	// The standard library is in the program like any module.
	goRoot, version, _ := strings.Cut(strings.TrimSpace(string(root)), "\n")
	found["std"] = module{Path: "the Go standard library", Version: version, Dir: goRoot}
	for _, path := range append(paths, "std") {
		m := found[path]
		fmt.Fprintf(&out, "=== %s %s\n", m.Path, m.Version)
		files, err := os.ReadDir(m.Dir)
		if err != nil {
			return err
		}
		texts := 0
		for _, file := range files {
			if file.IsDir() || !licenceFile.MatchString(file.Name()) {
				continue
			}
			raw, err := os.ReadFile(filepath.Join(m.Dir, file.Name()))
			if err != nil {
				return err
			}
			texts++
			fmt.Fprintf(&out, "--- %s\n\n%s\n\n", file.Name(), strings.TrimSpace(string(raw)))
		}
		if texts == 0 {
			return fmt.Errorf("%s has no licence file", m.Path)
		}
	}
	_, err = io.WriteString(to, out.String())
	return err
}

// list adds the modules whose packages are in the program for a system.
func list(system string, found map[string]module) error {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/tapin")
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(raw))); ; {
		var p struct{ Module *module }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read go list: %w", err)
		}
		if p.Module != nil && !p.Module.Main {
			found[p.Module.Path] = *p.Module
		}
	}
}
