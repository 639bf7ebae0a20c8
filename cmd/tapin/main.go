// Command tapin lets an AI agent drive a browser, and its owner tap in.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"tapin/internal/cli"
)

func main() { os.Exit(run(nil)) }

// run is the program. staged gives a test's program another world: the program
// that people have passes none, and nothing outside it can make it do so.
func run(staged func(*cli.Env)) int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup means to outlive the terminal
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// The first signal ends in order; the second one ends at once.
	context.AfterFunc(ctx, stop)
	env := cli.Env{
		Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Home:       home,
		IsTerminal: isTerminal,
	}
	if staged != nil {
		staged(&env)
	}
	return cli.Main(ctx, env)
}

func home() (string, error) {
	user, err := os.UserHomeDir()
	return filepath.Join(user, ".tapin"), err
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
