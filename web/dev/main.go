// Command dev writes the built pages into a folder, and makes screenshots of
// them small, for the tests and the pictures of the front end. It owns nothing.
// It must never be part of the product.
package main

import (
	"fmt"
	"os"

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
	pages, err := web.Pages()
	if err != nil {
		return err
	}
	if err := os.CopyFS(folder, pages); err != nil {
		return fmt.Errorf("write the pages: %w", err)
	}
	return nil
}
