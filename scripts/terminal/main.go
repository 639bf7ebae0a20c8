//go:build linux

// Command terminal takes pictures of what tapin shows in a terminal, so that
// the pictures in the documentation stay true. It plays a short scene with the
// real program under a home of its own, which it removes.
// It must never show a secret: what it photographs was made for the picture.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: terminal PROGRAM FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
		os.Exit(1)
	}
}

// scene is one tapin and a site to drive it on.
type scene struct {
	program, folder string
	user            string // the home folder of somebody who has just begun
	site            *httptest.Server
}

func run(program, folder string) (err error) {
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	user, err := os.MkdirTemp("", "tapin-terminal")
	if err != nil {
		return err
	}
	s := &scene{program: program, folder: folder, user: user}
	defer func() { err = errors.Join(err, os.RemoveAll(user)) }()
	s.site = httptest.NewServer(http.HandlerFunc(page))
	defer s.site.Close()
	if err := os.MkdirAll(filepath.Join(user, "bin"), 0o700); err != nil {
		return err
	}
	// Found in the PATH it is called by its plain name, as people have it.
	if err := os.Symlink(program, filepath.Join(user, "bin", "tapin")); err != nil {
		return err
	}
	address := strings.TrimPrefix(s.site.URL, "http://")
	settings := "listen:\n  control: 127.0.0.1:3879\negress:\n  allow: [\"" + address + "\"]\n"
	if err := os.MkdirAll(filepath.Join(user, ".tapin"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(user, ".tapin", "config.yaml"), []byte(settings), 0o600); err != nil {
		return err
	}
	if err := s.giveAway(); err != nil {
		return err
	}
	if err := s.photograph("terminal-setup", 96, 22, "Token (not shown", "\x03", "tapin", "setup"); err != nil {
		return err
	}
	if err := s.up(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.tapin("down")) }()
	return errors.Join(
		s.photograph("terminal-doctor", 100, 34, "", "", "tapin", "doctor"),
		s.watch(),
	)
}

// up photographs the first screen, and leaves tapin running in the background.
func (s *scene) up() error {
	return s.photograph("terminal-up", 100, 30, "Running in the background", "", "tapin", "up", "--background")
}

// watch photographs the live screen with something that waits on it.
func (s *scene) watch() error {
	for _, args := range [][]string{
		{"open", s.site.URL + "/basket"}, {"click", "Checkout"}, {"fill", "Email=me@example.com"}, {"snapshot"},
		{"handoff", "start", "login", "Please log in to the shop; I will go on with the order"},
	} {
		if err := s.tapin(args...); err != nil {
			return err
		}
	}
	return errors.Join(
		s.photograph("terminal-watch", 80, 24, "● login", "q", "tapin", "watch"),
		s.photograph("terminal-watch-narrow", 40, 24, "● login", "q", "tapin", "watch"),
	)
}

func page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	switch r.URL.Path {
	case "/basket":
		_, _ = fmt.Fprint(w, `<!doctype html><title>Your basket</title><h1>Your basket</h1><a href=/login>Checkout</a>`)
	default:
		_, _ = fmt.Fprint(w, `<!doctype html><title>Log in to continue</title><h1>Log in</h1><label>Email <input type=email></label>`)
	}
}

// nobody is who plays the scene for root: people are ordinary users, and their
// browser has its sandbox.
const nobody = 65534

func (s *scene) giveAway() error {
	if os.Getuid() != 0 {
		return nil
	}
	return filepath.WalkDir(s.user, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody) //nolint:gosec // a folder of our own, in which nothing runs yet
	})
}

func (s *scene) as(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return attr
}

func (s *scene) environ() []string {
	return append(os.Environ(), "HOME="+s.user, "TAPIN_HOME=", "TERM=xterm-256color", "NO_COLOR=",
		"PATH="+filepath.Join(s.user, "bin")+":"+os.Getenv("PATH"))
}

// tapin runs a command that is not photographed.
func (s *scene) tapin(args ...string) error {
	cmd := exec.Command(s.program, args...) //nolint:gosec // the program that was named
	cmd.Env, cmd.Dir, cmd.SysProcAttr = s.environ(), s.user, s.as(&syscall.SysProcAttr{})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("tapin %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// photograph runs a command in a terminal until it shows a text, or ends, and
// takes its picture. Then it is sent keys, if it has to be told to end.
func (s *scene) photograph(name string, columns, rows int, until, keys string, command ...string) error {
	fmt.Printf("terminal: %s\n", name)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	tty, err := openTerminal(columns, rows)
	if err != nil {
		return err
	}
	defer tty.close()
	cmd := exec.CommandContext(ctx, filepath.Join(s.user, "bin", command[0]), command[1:]...) //nolint:gosec // as above
	cmd.Args[0] = command[0]
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.environ(), tty.program, tty.program, tty.program
	cmd.Dir, cmd.SysProcAttr = s.user, s.as(&syscall.SysProcAttr{Setsid: true, Setctty: true})
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	screen := newGrid(columns, rows)
	over := screen.follow(tty.seat, until, ended)
	shot := screen.html("$ " + strings.Join(command, " "))
	if !over && keys != "" {
		if _, err := tty.seat.WriteString(keys); err != nil {
			return err
		}
		over = screen.follow(tty.seat, "", ended)
	}
	if !over {
		cancel()
		<-ended
		return fmt.Errorf("%s did not end", name)
	}
	return render(shot, filepath.Join(s.folder, name+".png"))
}
