package sidecar_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local/holder"
	"tapin/internal/config"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/vault"
)

const (
	// processHome makes the test binary a sidecar of that home, with the settings
	// in processSettings, a line each.
	processHome     = "TAPIN_TEST_SIDECAR"
	processSettings = "TAPIN_TEST_SIDECAR_SET"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(processHome); dir != "" && len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, serveAlone(dir, strings.Split(os.Getenv(processSettings), "\n")))
		os.Exit(1)
	}
	browsertest.Main(m, &holder.Options{Resolver: names{}})
}

// serveAlone is the sidecar in a process of its own.
func serveAlone(dir string, set []string) error {
	cfg, _, err := config.Load(config.Inputs{Set: set})
	if err != nil {
		return err
	}
	home, err := store.Open(dir, nil)
	if err != nil {
		return err
	}
	return sidecar.Run(context.Background(), sidecar.Options{
		Home: home, Config: cfg, Version: "test", Vault: &vault.Options{Keyring: ring{}}, OnReady: func(at string) { fmt.Println("READY", at) },
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

// process is a sidecar that can be killed.
type process struct {
	*running
	cmd *exec.Cmd
	set []string
	env []string // beside that of the test
}

func startProcess(t *testing.T, site string, set ...string) *process {
	t.Helper()
	return startProcessWith(t, site, nil, set...)
}

func startProcessWith(t *testing.T, site string, env []string, set ...string) *process {
	t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		running: &running{t: t, dir: dir, log: &safeBuffer{}}, env: env,
		set: append([]string{"pool.follow=" + testwait.Spare(), "listen.control=127.0.0.1:0", "egress.allow=" + strings.TrimPrefix(site, "http://")}, set...),
	}
	p.begin()
	t.Cleanup(func() {
		p.kill()
		// What a killed sidecar leaves, the next one ends.
		if home, err := store.Open(dir, nil); err == nil {
			_ = home.Close()
		}
		for _, pid := range holdersOf(dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = os.RemoveAll(dir)
	})
	return p
}

// holdersOf are the processes that say in their arguments or environment that
// they belong to a home of this test.
func holdersOf(dir string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // the process list
		if err == nil && strings.Contains(string(raw), dir+"/") {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// begin starts the sidecar, and waits until it serves.
func (p *process) begin() {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(exe) //nolint:gosec // the test's own binary
	p.cmd.Env = append(append(os.Environ(), p.env...), processHome+"="+p.dir, processSettings+"="+strings.Join(p.set, "\n"))
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	at, _ := bufio.NewReader(out).ReadString('\n')
	p.base = "http://" + strings.TrimSpace(strings.TrimPrefix(at, "READY "))
	token, err := os.ReadFile(filepath.Join(p.dir, sidecar.AgentTokenFile))
	if err != nil || at == "" {
		p.t.Fatalf("it does not serve: %v, %s", err, p.log)
	}
	p.agent = strings.TrimSpace(string(token))
}

// kill is kill -9.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
}

// memory is how much the sidecar has in memory, and the most it ever had, in KiB.
func (p *process) memory() (now, most int) {
	p.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &now)
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &most)
	}
	return now, most
}
