// Command dev writes the built pages into a folder, and makes screenshots of
// them small, for the tests and the pictures of the front end. It owns nothing.
// It must never be part of the product.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"tapin/web"
)

func main() {
	does := map[string]func(folder string) error{"pages": write, "shrink": shrink}
	if len(os.Args) != 3 || does[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: dev pages|shrink FOLDER")
		os.Exit(2)
	}
	if err := does[os.Args[1]](os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(folder string) error {
	site, err := web.New()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(folder, "assets"), 0o755); err != nil { //nolint:gosec // for everybody to read
		return fmt.Errorf("make the folder: %w", err)
	}
	for _, name := range site.Names() {
		f, _ := site.File(name)
		if err := put(folder, name, f.Body); err != nil {
			return err
		}
		if f.Gzip != nil {
			if err := put(folder, name+".gz", f.Gzip); err != nil {
				return err
			}
		}
	}
	return put(folder, "policy.txt", []byte(web.Policy))
}

func put(folder, name string, body []byte) error {
	if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(name)), body, 0o644); err != nil { //nolint:gosec // for everybody to read
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
