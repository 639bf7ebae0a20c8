package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// measureMemory is what our own processes take, with one session whose live view
// somebody looks at.
func (b *bench) measureMemory(ctx context.Context) error {
	site := serveSite()
	defer site.Close()
	s, err := startWhole(ctx, b.binary, site.URL)
	if err != nil {
		return err
	}
	defer s.stop()
	if _, err := s.post(ctx, "/session/start", map[string]any{"url": site.URL + "/animating"}); err != nil {
		return err
	}
	v, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer v.leave()
	if err := v.more(100, 30*time.Second); err != nil {
		return err
	}
	for _, name := range []string{"heavy", "form", "animating"} { // as after some work
		if _, err := s.post(ctx, "/session/navigate", map[string]any{"url": site.URL + "/" + name}); err != nil {
			return err
		}
		if _, err := s.get(ctx, "/session/snapshot"); err != nil {
			return err
		}
	}
	time.Sleep(25 * time.Second) // somebody looks on for a while
	figures := map[string]figure{}
	pids, err := ours(s.cmd.Process.Pid, b.binary)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		figures["tapin "+roleOf(pid)] = figure{Median: used([]int{pid}).RSS}
	}
	shared := 0.0
	for _, pid := range pids {
		shared += proportional(pid)
	}
	figures["together, the program they share counted once (PSS)"] = figure{Median: shared}
	r := row{Group: "memory", Name: "our own memory: daemon, sidecar, holder; live view open", Unit: "MiB", Listed: true, Figures: figures}
	r.Verdicts = append(r.Verdicts, atMost("RSS together, MiB", used(pids).RSS, 45), atLeast("processes", float64(len(pids)), 3))
	b.add(r)
	return nil
}

// proportional is what a process takes when pages that several have are divided
// among them, in MiB: three of ours run the same program.
func proportional(pid int) float64 {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "\nPss:")
	kib, err := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
	if err != nil {
		return 0
	}
	return kib / 1024
}

// roleOf is the command that a process of ours runs.
func roleOf(pid int) string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return "gone"
	}
	for _, word := range strings.Split(string(raw), "\x00")[1:] {
		for _, role := range []string{"up", "sidecar", "holder", "mcp"} {
			if word == role {
				return role
			}
		}
	}
	return strconv.Itoa(pid)
}

const killsWithin = 20 * time.Second // see turns

// measureKill is how long a phone sees nothing when the sidecar is killed. Each
// round has a tapin of its own: a daemon whose sidecar dies again and again waits
// longer every time, and that is not what is measured.
func (b *bench) measureKill(ctx context.Context) error {
	site := serveSite()
	defer site.Close()
	var took rounds
	for range turns(b.rounds-1, killsWithin) { // none of them warms up
		if err := b.killOnce(ctx, site.URL, &took); err != nil {
			return err
		}
	}
	r := row{Group: "live", Name: "SIGKILL of the sidecar → live frames again", Unit: "ms", Listed: true}.from(&took, "")
	r.Verdicts = append(r.Verdicts, atMost("p95, ms", r.Figures["tapin"].P95, 1500))
	b.add(r)
	return nil
}

func (b *bench) killOnce(ctx context.Context, site string, took *rounds) error {
	public, err := freePort()
	if err != nil {
		return err
	}
	// The phone comes back to where it was: the next sidecar must have the same port.
	s, err := startWhole(ctx, b.binary, site, "listen.public="+public)
	if err != nil {
		return err
	}
	defer s.stop()
	if _, err := s.post(ctx, "/session/start", map[string]any{"url": site + "/animating"}); err != nil {
		return err
	}
	url, err := s.link(ctx, "drive")
	if err != nil {
		return err
	}
	e, err := claim(ctx, url)
	if err != nil {
		return err
	}
	v, err := e.enter(ctx)
	if err != nil {
		return err
	}
	if err := v.more(5, 20*time.Second); err != nil {
		return err
	}
	pid, err := b.sidecarOf(s)
	if err != nil {
		return err
	}
	took.Begin()
	began := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	d, err := comesBack(ctx, e, v, began)
	if err != nil {
		return err
	}
	took.Add("tapin", d)
	took.End()
	return nil
}

// freePort is an address of this machine that nobody listens on.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String(), nil
}

// comesBack opens the socket again as the page does, with its pauses, until there is a picture.
func comesBack(ctx context.Context, e entrance, v *viewer, began time.Time) (time.Duration, error) {
	for { // until the line is cut
		if _, lost := v.seen(); lost != nil {
			break
		}
		<-v.news
	}
	v.leave()
	pauses := []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}
	var err error
	for try := 0; time.Since(began) < 30*time.Second; try++ {
		time.Sleep(pauses[min(try, len(pauses)-1)])
		var again *viewer
		if again, err = e.enter(ctx); err != nil {
			continue
		}
		err = again.more(0, 10*time.Second)
		took := time.Since(began)
		again.leave()
		if err == nil {
			return took, nil
		}
	}
	return 0, fmt.Errorf("no picture came after the kill: %w", err)
}

func (b *bench) sidecarOf(s *sidecar) (int, error) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		pids, err := ours(s.cmd.Process.Pid, b.binary)
		if err != nil {
			return 0, err
		}
		for _, pid := range pids {
			if roleOf(pid) == "sidecar" {
				return pid, nil
			}
		}
	}
	return 0, fmt.Errorf("there is no sidecar")
}
