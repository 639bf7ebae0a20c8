package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/store"
)

// tunnelConfig is an empty file of settings for cloudflared: the owner's own
// tunnels may be configured on this machine, and must not be mixed in.
const tunnelConfig = "tunnel.yml"

// funnelPorts are the ports that Tailscale lets the internet in by.
var funnelPorts = [...]string{"443", "8443", "10000"}

// tunnelRhythm is the patience with a tunnel program. Its pauses are long: who
// asks for tunnels too often is given none.
func tunnelRhythm() rhythm {
	return rhythm{
		ready:  time.Minute,
		pauses: []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute},
		steady: 2 * time.Minute,
		window: 15 * time.Minute, unready: 8, ends: 30,
	}
}

// tunnelRest is how long a program that was given up is left alone. The network
// may have been gone for a night, and the owner's way in should not stay closed
// because of it.
const tunnelRest = 10 * time.Minute

// tunnel keeps one tunnel program running. It is not safe for concurrent use,
// but for aim and renew.
type tunnel struct {
	kind    config.Tunnel
	program string   // empty means the one of that name in the PATH
	leash   []string // the command that runs Leash
	fixed   bool     // public_url is set
	home    *store.Home
	reach   *reach
	log     *slog.Logger
	words   io.Writer // what the program says
	leave   func(kind, id string, data any) error
	rhythm  rhythm
	rest    time.Duration

	targets chan string   // where the public listener is; the latest counts
	renewal chan struct{} // holds one token when the address is good for nothing
	port    int           // of funnelPorts
}

func newTunnel(o Options, to *reach, log *slog.Logger, words io.Writer, leave func(kind, id string, data any) error) *tunnel {
	return &tunnel{
		kind: o.Tunnel.Kind, program: o.Tunnel.Program, leash: o.Tunnel.Leash, fixed: o.Tunnel.PublicURL != "",
		home: o.Home, reach: to, log: log, words: words, leave: leave, rhythm: tunnelRhythm(), rest: tunnelRest,
		targets: make(chan string, 1), renewal: make(chan struct{}, 1),
	}
}

// aim tells where the public listener is: "127.0.0.1:3850".
func (t *tunnel) aim(target string) {
	select {
	case <-t.targets:
	default:
	}
	t.targets <- target
}

// renew has the program started anew, for another address.
func (t *tunnel) renew() {
	select {
	case t.renewal <- struct{}{}:
	default:
	}
}

// run keeps the program running until ctx ends.
func (t *tunnel) run(ctx context.Context) {
	if t.kind == config.TunnelNone || t.kind == "" {
		return
	}
	if t.quick() && t.fixed {
		t.log.Warn("no tunnel is started: public_url is set, and a quick tunnel would have another name")
		t.reach.set(func(r *Reach) {
			r.Stand, r.Details = Unproven, "tunnel: cloudflared has no effect beside public_url: a quick tunnel would have another name."
		})
		return
	}
	var target string
	select {
	case target = <-t.targets:
	case <-ctx.Done():
		return
	}
	for pace := (pacer{rhythm: t.rhythm}); ctx.Err() == nil; {
		was, next, err := t.live(ctx, target)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist):
			t.missing(err)
			return
		case next != "":
			target = next // the sidecar listens elsewhere; that is nobody's failure
			continue
		}
		pause, failures := pace.next(was, time.Now())
		stand := Resting
		if failures > 0 {
			stand, pause = Abandoned, t.rest
			t.giveUp(failures, err)
			pace = pacer{rhythm: t.rhythm}
		}
		t.log.Warn("the tunnel ended", "program", t.kind, "cause", err, "restart_in", pause)
		t.reach.set(func(r *Reach) {
			r.Stand, r.Details, r.Hint = stand, fmt.Sprintf("%s: %s", t.kind, fault.Of(err).Details()), fault.Of(err).Hint
			r.Restarts++
		})
		select {
		case <-time.After(pause):
		case target = <-t.targets:
		case <-ctx.Done():
		}
	}
}

// live runs the program once, from its start to its end. With next it was ended
// because the public listener is there now.
func (t *tunnel) live(ctx context.Context, target string) (was life, next string, err error) {
	argv, err := t.command(target)
	if err != nil {
		return life{}, "", err
	}
	select {
	case <-t.renewal: // meant for the one before
	default:
	}
	t.reach.set(func(r *Reach) { r.Stand, r.URL, r.Details, r.Hint = Opening, "", "", "" })
	l, err := leash(t.leash, argv, t.environment())
	if err != nil {
		return life{}, "", fault.New(fault.Busy, "start "+string(t.kind), "it cannot be started: %w", err)
	}
	t.log.Info("started a tunnel", "program", t.kind, "pid", l.cmd.Process.Pid)
	// First nobody is sent there any more, then it ends.
	defer l.end()
	defer t.reach.set(func(r *Reach) { r.Stand, r.URL = Opening, "" })
	lines := make(chan string, 64) // closed when it has nothing more to say
	go func() {
		defer guard.Catch("daemon")
		defer close(lines)
		scan(l.words, lines)
	}()
	defer func() {
		go func() {
			defer guard.Catch("daemon")
			for range lines { // so that whoever still writes is not held up
			}
		}()
	}()

	var h heard
	ready, began := time.NewTimer(t.rhythm.ready), time.Time{}
	defer ready.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				err = t.cause(h) // whoever says nothing more has ended, or might as well
				break
			}
			before := h
			t.hear(&h, line)
			if up := h.up && (h.url != "" || !t.quick()); up && !was.ready {
				was.ready, began = true, time.Now()
				ready.Stop()
			}
			if h.ask != "" {
				ready.Stop() // it waits for a person
			} else if before.ask != "" && !was.ready {
				ready.Reset(t.rhythm.ready)
			}
			if h.lost {
				err = fault.New(fault.Busy, "", "the address is no longer known to its network")
			}
		case <-l.ended:
			l.ended <- nil // for end
			// Its last words are in the pipe already; a stray writer is not waited for.
			_ = l.words.SetReadDeadline(time.Now().Add(time.Second))
			for line := range lines {
				t.hear(&h, line)
			}
			err = t.cause(h)
		case <-ready.C:
			err = fault.New(fault.Busy, "", "it had no address within %v%s", t.rhythm.ready, after(h.remark))
		case <-t.renewal:
			err = fault.New(fault.Busy, "", "its address did not lead here")
		case now := <-t.targets:
			if now == target {
				continue
			}
			return was, now, nil
		case <-ctx.Done():
			return was, "", ctx.Err()
		}
		if err != nil {
			if was.ready {
				was.healthy = time.Since(began)
			}
			return was, "", err
		}
	}
}

// hear takes in a line, and tells what it has changed.
func (t *tunnel) hear(h *heard, line string) {
	before := *h
	listenerOf(t.kind)(h, line)
	_, _ = fmt.Fprintf(t.words, "time=%s %s\n", time.Now().UTC().Format(time.RFC3339), tidy(line))
	if *h != before {
		t.note(before, *h)
	}
}

func (t *tunnel) note(before, h heard) {
	t.reach.set(func(r *Reach) {
		switch {
		case h.ask != "":
			r.Stand, r.Details = Asking, "Tailscale waits for you to allow Funnel for this machine."
			r.Hint = "Open " + h.ask
		case h.up && h.url != "" && (!before.up || before.url != h.url) && r.Stand != Open:
			r.Stand, r.URL, r.Details, r.Hint = Unproven, h.url, "", ""
		case h.up && !before.up && !t.quick() && t.fixed:
			r.Stand, r.Details, r.Hint = Unproven, "", ""
		case h.up && !before.up && !t.quick():
			r.Stand, r.Details = Astray, "The tunnel runs, but does not say under which name."
			r.Hint = "Set public_url to the name that it has with Cloudflare."
		}
	})
	if h.url != "" && h.url != before.url {
		t.log.Info("the tunnel has an address", "program", t.kind, "url", h.url)
	}
	if h.up != before.up {
		t.log.Info("the tunnel's connection changed", "program", t.kind, "connected", h.up)
	}
}

// cause is why a program ended by itself, as far as it said.
func (t *tunnel) cause(h heard) error {
	f := fault.New(fault.Busy, "", "it ended%s", after(h.remark))
	remark := strings.ToLower(h.remark)
	switch {
	case h.taken:
		t.port = (t.port + 1) % len(funnelPorts)
		f.Hint = "The port is in use in Tailscale; another one is tried."
	case strings.Contains(remark, "access denied"), strings.Contains(remark, "operator"):
		f.Hint = "Let your user change Tailscale's settings, once: sudo tailscale set --operator=$USER"
	case strings.Contains(remark, "tailscaled"), strings.Contains(remark, "logged out"), strings.Contains(remark, "tailscale is stopped"), strings.Contains(remark, "needslogin"):
		f.Hint = "Connect this machine first: tailscale up"
	case strings.Contains(remark, "shields-up"):
		f.Hint = "Tailscale refuses incoming connections on this machine: tailscale set --shields-up=false"
	case strings.Contains(remark, "429"), strings.Contains(remark, "1015"), strings.Contains(remark, "too many requests"):
		f.Hint = "Cloudflare gives no more quick tunnels for a while. A tunnel of your own, with public_url, does not end like this."
	case strings.Contains(remark, "no such host"), strings.Contains(remark, "network is unreachable"), strings.Contains(remark, "dial tcp"):
		f.Hint = "This machine may have no way to the internet now."
	}
	return f
}

func after(remark string) string {
	if remark == "" {
		return ""
	}
	return ": " + remark
}

// quick reports whether the tunnel is one that gets a new name at every start.
func (t *tunnel) quick() bool {
	return t.kind == config.TunnelCloudflared && os.Getenv("TUNNEL_TOKEN") == ""
}

// command is the program with its arguments.
func (t *tunnel) command(target string) (argv []string, err error) {
	program := t.program
	if program == "" {
		program, err = lookFor(t.kind)
	} else {
		program, err = exec.LookPath(program)
	}
	if err != nil {
		return nil, err
	}
	to := "http://" + local(target)
	switch {
	case t.kind == config.TunnelTailscale:
		return []string{program, "funnel", "--yes", "--https=" + funnelPorts[t.port], to}, nil
	case !t.quick(): // a tunnel of the owner's own, whose token is in the environment
		return []string{program, "tunnel", "--no-autoupdate", "run"}, nil
	}
	if err := t.home.Write(tunnelConfig, []byte("{}\n")); err != nil {
		return nil, err
	}
	return []string{program, "tunnel", "--no-autoupdate", "--config", t.home.Path() + "/" + tunnelConfig, "--url", to}, nil
}

// environment is what the program may know. A quick tunnel would take settings
// of the owner's other tunnels for its own.
func (t *tunnel) environment() []string {
	if !t.quick() {
		return os.Environ()
	}
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "TUNNEL_") })
}

// local is how a listener is reached from this machine.
func local(target string) string {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return target
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// lookFor finds a tunnel program on this machine.
func lookFor(kind config.Tunnel) (string, error) {
	program, err := exec.LookPath(string(kind))
	if err != nil && kind == config.TunnelTailscale && runtime.GOOS == "darwin" {
		const app = "/Applications/Tailscale.app/Contents/MacOS/Tailscale"
		if _, e := os.Stat(app); e == nil {
			return app, nil
		}
	}
	return program, err
}

// TunnelAdvice is how the program of a tunnel is had.
func TunnelAdvice(kind config.Tunnel) string {
	if kind == config.TunnelTailscale {
		return "Install Tailscale (https://tailscale.com/download), run tailscale up, and start tapin again."
	}
	return "Install cloudflared (https://developers.cloudflare.com/cloudflare-one/connections/connect-networks/downloads/; brew install cloudflared), and start tapin again."
}

// FindTunnel is where the program of a tunnel is, or why there is none.
func FindTunnel(kind config.Tunnel) (string, error) {
	program, err := lookFor(kind)
	if err != nil {
		return "", fault.New(fault.NotFound, "start the tunnel", "there is no %s on this machine", kind).WithHint("%s", TunnelAdvice(kind))
	}
	return program, nil
}

// missing tells that there is no such program. tapin goes on without.
func (t *tunnel) missing(cause error) {
	t.log.Error("the tunnel program cannot be run; going on without", "program", t.kind, "cause", cause)
	details := fmt.Sprintf("There is no %s on this machine that can be run.", t.kind)
	t.reach.set(func(r *Reach) { r.Stand, r.Details, r.Hint = Missing, details, TunnelAdvice(t.kind) })
	t.tellOwner(event.Trouble{Details: details, Hint: TunnelAdvice(t.kind)})
}

// giveUp tells the owner that the way in stays closed.
func (t *tunnel) giveUp(failures int, cause error) {
	t.log.Error("gave up on the tunnel", "program", t.kind, "failures", failures, "cause", cause)
	t.tellOwner(event.Trouble{
		Details: fmt.Sprintf("%s failed %d times and is tried only every %v now: %s.", t.kind, failures, t.rest, fault.Of(cause).Details()),
		Hint:    fault.Of(cause).Hint, Count: failures,
	})
}

func (t *tunnel) tellOwner(trouble event.Trouble) {
	if err := t.leave(event.TunnelFailed, store.NewID("tun"), trouble); err != nil {
		t.log.Error("the owner could not be left a word about it", "error", err)
	}
}

// maxWord is longer than any line that is understood.
const maxWord = 4 << 10

// scan reads lines of any length; of long ones only the beginning.
func scan(from io.Reader, lines chan<- string) {
	in := bufio.NewReaderSize(from, maxWord)
	for {
		line, long, err := in.ReadLine()
		if err != nil {
			return
		}
		lines <- string(line)
		for long && err == nil {
			_, long, err = in.ReadLine()
		}
	}
}
