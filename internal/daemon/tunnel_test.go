package daemon

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/testwait"
)

// standInTunnel is a tunnel program: the test's own binary under another name,
// in a folder with what it has to do, a line each. Its first start follows
// "do.1", its second "do.2", and so on; when there is none, the last before.
func standInTunnel() int {
	dir := filepath.Dir(os.Args[0])
	starts, err := os.OpenFile(filepath.Join(dir, "starts"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return 1
	}
	before, _ := io.ReadAll(starts)
	number := strings.Count(string(before), "\n") + 1
	fmt.Fprintln(starts, os.Getpid(), strings.Join(os.Args[1:], " "), "TUNNEL_URL="+os.Getenv("TUNNEL_URL"))
	_ = starts.Close()
	var script []byte
	for ; number > 0 && script == nil; number-- {
		script, _ = os.ReadFile(filepath.Join(dir, fmt.Sprint("do.", number)))
	}
	for line := range strings.Lines(string(script)) {
		do, what, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch do {
		case "say":
			fmt.Fprintln(os.Stderr, what)
		case "await": // a file that the test makes
			for {
				if _, err := os.Stat(filepath.Join(dir, what)); err == nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		case "deaf":
			signal.Ignore(syscall.SIGTERM)
		case "family": // a child in the same group that knows of no end
			child := exec.Command("sleep", "600")
			if child.Start() != nil {
				return 1
			}
			_ = os.WriteFile(filepath.Join(dir, "child"), []byte(strconv.Itoa(child.Process.Pid)), 0o600)
		case "exit":
			code, _ := strconv.Atoi(what)
			return code
		}
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
	return 0
}

// says makes the lines of a script out of what a program prints.
func says(text string) (script string) {
	for line := range strings.Lines(text) {
		script += "say " + strings.TrimRight(line, "\n") + "\n"
	}
	return script
}

// quickSays is cloudflared with a name of its own.
func quickSays(name string) string {
	return says(strings.ReplaceAll(cloudflaredStart+cloudflaredUp, "four-dashed-word-url", name))
}

// bore is a tunnel under test, alone, with what it tells.
type bore struct {
	*tunnel
	t     *testing.T
	dir   string // of the program
	told  chan Reach
	left  chan event.Trouble
	ended chan struct{}
}

// newBore makes a tunnel of a stand-in that does as the scripts say.
func newBore(t *testing.T, kind config.Tunnel, scripts ...string) *bore {
	t.Helper()
	b := &bore{t: t, dir: t.TempDir(), told: make(chan Reach, 1000), left: make(chan event.Trouble, 100), ended: make(chan struct{})}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(b.dir, string(kind))
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	for i, script := range scripts {
		b.write(fmt.Sprint("do.", i+1), script)
	}
	home := openHome(t)
	log, err := OpenLog(home, "tunnel.log", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	o := Options{Home: home, Tunnel: TunnelOptions{Kind: kind, Program: program, Leash: []string{self, "leash"}}}
	b.tunnel = newTunnel(o, newReach(home, kind, "", func(r Reach) { b.told <- r }), slog.New(slog.DiscardHandler), log, func(_, _ string, data any) error {
		b.left <- data.(event.Trouble)
		return nil
	})
	b.rhythm.pauses = []time.Duration{time.Millisecond}
	b.rest = time.Hour
	return b
}

func (b *bore) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// said is what the log has of the program's words.
func (b *bore) said() string {
	raw, _ := b.home.Read("logs/tunnel.log")
	return string(raw)
}

// begin runs it until the test ends.
func (b *bore) begin() *bore {
	b.t.Helper()
	ctx := b.t.Context()
	go func() {
		defer close(b.ended)
		b.run(ctx)
	}()
	b.aim("127.0.0.1:3850")
	b.t.Cleanup(func() { // the context ended before this
		select {
		case <-b.ended:
		case <-testwait.Over():
			b.t.Error("the tunnel did not end")
		}
		for _, s := range b.starts() {
			gone(b.t, s.pid)
		}
	})
	return b
}

// await returns the next word about a stand.
func (b *bore) await(stand Stand) Reach {
	b.t.Helper()
	deadline := testwait.Over()
	for {
		select {
		case r := <-b.told:
			if r.Stand == stand {
				return r
			}
		case <-deadline:
			b.t.Fatalf("it was never %s; it knows %+v", stand, b.reach.now)
		}
	}
}

type programStart struct {
	pid  int
	line string
}

func (b *bore) starts() (all []programStart) {
	raw, _ := os.ReadFile(filepath.Join(b.dir, "starts"))
	for line := range strings.Lines(string(raw)) {
		var s programStart
		if _, err := fmt.Sscan(line, &s.pid); err == nil {
			s.line = strings.TrimSpace(line)
			all = append(all, s)
		}
	}
	return all
}

func TestATunnelIsToldOfOnceItIsConnected(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelCloudflared, says(cloudflaredStart)+"await go\n"+says(cloudflaredUp)).begin()
	b.await(Opening)
	for !strings.Contains(b.said(), "Starting metrics server") {
		time.Sleep(time.Millisecond)
	}
	if url, _ := b.reach.address(); url != "" {
		t.Fatalf("people are sent to %s before it leads anywhere", url)
	}
	b.write("go", "")
	if r := b.await(Unproven); r.URL != "https://four-dashed-word-url.trycloudflare.com" {
		t.Fatalf("got %+v", r)
	}
	if got, want := b.starts()[0].line, "tunnel --no-autoupdate --config "+b.home.Path()+"/tunnel.yml --url http://127.0.0.1:3850"; !strings.Contains(got, want) {
		t.Errorf("started as %q, want %q", got, want)
	}
}

func TestATunnelThatEndsIsStartedAgainUnderItsNewName(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelCloudflared, quickSays("one")+"await die\nexit 1\n", quickSays("two")).begin()
	if r := b.await(Unproven); r.URL != "https://one.trycloudflare.com" {
		t.Fatalf("first %+v", r)
	}
	_, changed := b.reach.address()
	b.write("die", "")
	<-changed
	if r := b.await(Resting); r.URL != "" || r.Restarts != 1 {
		t.Errorf("people are still sent to the name that is gone: %+v", r)
	}
	if r := b.await(Unproven); r.URL != "https://two.trycloudflare.com" {
		t.Errorf("then %+v", r)
	}
}

func TestATunnelThatItsNetworkForgotIsStartedAgain(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelCloudflared, quickSays("one")+says(cloudflaredDown+cloudflaredForgotten), quickSays("two")).begin()
	if r := b.await(Resting); !strings.Contains(r.Details, "no longer known") {
		t.Errorf("got %+v", r)
	}
	if r := b.await(Unproven); r.URL != "https://two.trycloudflare.com" {
		t.Errorf("then %+v", r)
	}
}

func TestATunnelWhoseAddressLeadsNowhereIsRenewed(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelCloudflared, quickSays("one"), quickSays("two")).begin()
	b.await(Unproven)
	b.renew()
	if r := b.await(Unproven); r.URL != "https://two.trycloudflare.com" {
		t.Errorf("then %+v", r)
	}
}

func TestATunnelThatSaysNothingIsStartedAgain(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelCloudflared, "deaf\n", quickSays("two"))
	b.rhythm.ready = 2 * time.Second
	b.begin()
	if r := b.await(Resting); !strings.Contains(r.Details, "no address within") {
		t.Errorf("got %+v", r)
	}
	b.await(Unproven)
}

func TestATunnelThatAlwaysFailsIsGivenUpLoudlyAndTriedAgainLater(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelCloudflared, says(cloudflaredNoNetwork)+"exit 1\n")
	b.rhythm.unready, b.rest = 3, 3*time.Second // longer than it takes to count the starts
	b.begin()
	r := b.await(Abandoned)
	if !strings.Contains(r.Details, "no such host") || r.Hint == "" {
		t.Errorf("nobody learns why: %+v", r)
	}
	if told := <-b.left; told.Count != 3 || !strings.Contains(told.Details, "no such host") {
		t.Errorf("the owner was told %+v", told)
	}
	if n := len(b.starts()); n != 3 {
		t.Errorf("it was started %d times", n)
	}
	b.await(Opening) // the network may be back
}

func TestTheReasonOfATunnelComesWithAdvice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind      config.Tunnel
		said      string
		want, fix string
	}{
		"too many quick tunnels":     {config.TunnelCloudflared, strings.SplitAfter(cloudflaredTooOften, "\n")[0], "429", "public_url"},
		"no network":                 {config.TunnelCloudflared, cloudflaredNoNetwork, "no such host", "internet"},
		"tailscale needs a right":    {config.TunnelTailscale, "Access denied: serve config denied\n", "Access denied", "--operator=$USER"},
		"tailscale is not connected": {config.TunnelTailscale, "failed to connect to local tailscaled; it doesn't appear to be running (sudo systemctl start tailscaled ?)\n", "tailscaled", "tailscale up"},
		"tailscale has shields up":   {config.TunnelTailscale, "sending serve config: updating config: Unable to turn on Funnel while shields-up is enabled\n", "shields-up", "--shields-up=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBore(t, tt.kind, says(tt.said)+"exit 1\n").begin()
			if r := b.await(Resting); !strings.Contains(r.Details, tt.want) || !strings.Contains(r.Hint, tt.fix) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestAMissingTunnelProgramIsSaidAndNothingElseSuffers(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(b *bore){
		"it is not there":   func(b *bore) { b.program = filepath.Join(b.dir, "nothing") },
		"it cannot be run":  func(b *bore) { b.write("plain", "text"); b.program = filepath.Join(b.dir, "plain") },
		"nowhere to be had": func(b *bore) { b.program, b.kind = "", "no-such-tunnel-program" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBore(t, config.TunnelCloudflared)
			spoil(b)
			b.begin()
			if r := b.await(Missing); !strings.Contains(r.Hint, "Install cloudflared") {
				t.Errorf("got %+v", r)
			}
			if told := <-b.left; told.Hint == "" {
				t.Errorf("the owner was told %+v", told)
			}
			<-b.ended
		})
	}
}

func TestTailscaleServesAtAPortThatIsFree(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelTailscale, "say error: foreground already exists under this port\nexit 1\n",
		says(strings.Replace(tailscaleStart, "ts.net/", "ts.net:8443/", 1))).begin()
	if r := b.await(Unproven); r.URL != "https://desk.tail9f3a.ts.net:8443" {
		t.Fatalf("got %+v", r)
	}
	var ports []string
	for _, s := range b.starts() {
		_, args, _ := strings.Cut(s.line, " ")
		args, _, _ = strings.Cut(args, " TUNNEL_URL")
		ports = append(ports, args)
	}
	if want := []string{"funnel --yes --https=443 http://127.0.0.1:3850", "funnel --yes --https=8443 http://127.0.0.1:3850"}; !slices.Equal(ports, want) {
		t.Errorf("started as %q, want %q", ports, want)
	}
}

func TestTailscaleWaitsForTheOwnersLeaveWithoutBeingStartedAgain(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelTailscale, says(tailscaleAsk)+"await go\nsay Success.\n"+says(tailscaleStart))
	b.rhythm.ready = 5 * time.Second // two programs start in it
	b.begin()
	if r := b.await(Asking); r.Hint != "Open https://login.tailscale.com/f/funnel?node=nho4oGYG7X11CNTRL" {
		t.Fatalf("got %+v", r)
	}
	select {
	case r := <-b.told:
		t.Fatalf("it did not wait: %+v", r)
	case <-time.After(b.rhythm.ready + 500*time.Millisecond): // short: nothing must come in it
	}
	b.write("go", "")
	if r := b.await(Unproven); r.URL != "https://desk.tail9f3a.ts.net" || r.Hint != "" || len(b.starts()) != 1 {
		t.Errorf("got %+v after %d starts", r, len(b.starts()))
	}
}

func TestATunnelFollowsThePublicListener(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelTailscale, says(tailscaleStart)).begin()
	b.await(Unproven)
	b.aim("127.0.0.1:3850") // a sidecar that was started again
	b.aim("[::]:4000")
	if r := b.await(Unproven); r.Restarts != 0 {
		t.Errorf("it counts as a failure: %+v", r)
	}
	all := b.starts()
	if len(all) != 2 || !strings.Contains(all[1].line, " http://127.0.0.1:4000 ") {
		t.Errorf("started as %+v", all)
	}
	gone(t, all[0].pid)
}

func TestAQuickTunnelIsNotStartedBesideAnAddressOfTheOwners(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelCloudflared, quickSays("one"))
	b.fixed, b.reach.fixed = true, "https://tapin.example.com"
	b.begin()
	<-b.ended
	if r := b.await(Unproven); r.URL != "https://tapin.example.com" || !strings.Contains(r.Details, "no effect") || len(b.starts()) != 0 {
		t.Errorf("got %+v after %d starts", r, len(b.starts()))
	}
}

func TestAnAddressOfTheOwnersWinsOverATunnels(t *testing.T) {
	t.Parallel()
	b := newBore(t, config.TunnelTailscale, says(tailscaleStart))
	b.fixed, b.reach.fixed = true, "https://tapin.example.com"
	b.begin()
	if r := b.await(Unproven); r.URL != "https://tapin.example.com" {
		t.Errorf("got %+v", r)
	}
}

func TestNothingOfATunnelOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		end    func(t *testing.T, hold io.Closer, leash *exec.Cmd)
	}{
		"the daemon lets go":              {"", func(_ *testing.T, hold io.Closer, _ *exec.Cmd) { _ = hold.Close() }},
		"the program does not listen":     {"deaf\n", func(_ *testing.T, hold io.Closer, _ *exec.Cmd) { _ = hold.Close() }},
		"the program has ended by itself": {"exit 7\n", func(*testing.T, io.Closer, *exec.Cmd) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBore(t, config.TunnelCloudflared, "family\nsay here\n"+tt.script)
			l, err := leash(b.leash, []string{b.program}, os.Environ())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.end)
			if word, err := bufio.NewReader(l.words).ReadString('\n'); err != nil || word != "here\n" {
				t.Fatalf("it said %q, %v", word, err)
			}
			raw, err := os.ReadFile(filepath.Join(b.dir, "child"))
			if err != nil {
				t.Fatal(err)
			}
			child, _ := strconv.Atoi(string(raw))
			tt.end(t, l.hold, l.cmd)
			err = <-l.ended
			l.ended <- err
			if name == "the program has ended by itself" && l.cmd.ProcessState.ExitCode() != 7 {
				t.Errorf("the leash ended with %v", l.cmd.ProcessState)
			}
			gone(t, b.starts()[0].pid)
			awaitGone(t, child)
		})
	}
}

// awaitGone waits for a process that somebody else has to collect.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	testwait.For(t, fmt.Sprintf("the end of process %d", pid), func() bool {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(raw), ") Z ")
	})
}

func TestOtherCommandsReadHowPhonesGetHereWhileADaemonRuns(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	if _, ok, err := ReadReach(home); ok || err != nil {
		t.Fatalf("there is something to read: %v, %v", ok, err)
	}
	unlock, ok, err := home.TryLock(daemonLock)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	at := newReach(home, config.TunnelTailscale, "", nil)
	at.set(func(r *Reach) { r.Stand, r.URL = Open, "https://desk.tail9f3a.ts.net" })
	if r, ok, err := ReadReach(home); err != nil || !ok || r.Stand != Open || r.URL != "https://desk.tail9f3a.ts.net" {
		t.Errorf("read %+v, %v, %v", r, ok, err)
	}
	unlock()
	if r, ok, err := ReadReach(home); ok || err != nil {
		t.Errorf("what a dead daemon left counts: %+v, %v", r, err)
	}
	var raw map[string]any
	if data, err := home.Read(reachFile); err != nil || json.Unmarshal(data, &raw) != nil || raw["stand"] != "open" {
		t.Errorf("the file holds %s, %v", data, err)
	}
}
