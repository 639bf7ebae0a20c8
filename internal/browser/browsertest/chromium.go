package browsertest

import (
	"bufio"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"tapin/internal/browser/local"
	"tapin/internal/browser/local/holder"
)

// Chromium starts one with a debugging port, as somebody else would, and
// returns its WebSocket.
func Chromium(t *testing.T) *url.URL {
	t.Helper()
	found, err := local.Find("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := []string{
		"--headless=new", "--remote-debugging-port=0", "--user-data-dir=" + filepath.Join(dir, "profile"),
		"--no-first-run", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "about:blank",
	}
	if local.NeedsNoSandbox() {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.Command(found.Path, args...) //nolint:gosec // the browser that was found
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = holder.Remove(dir)
	})
	listening := regexp.MustCompile(`ws://\S+`)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if ws := listening.FindString(lines.Text()); ws != "" {
			go func() {
				for lines.Scan() {
					continue // drained, so that the browser never blocks on it
				}
			}()
			u, err := url.Parse(ws)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
	}
	t.Fatal("the browser did not say where it listens")
	return nil
}
