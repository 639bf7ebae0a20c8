package canary

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"tapin/internal/api"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/vault"
)

// sidecarArg makes the test binary a sidecar of the home and with the settings
// that follow. Its holders are the test binary too, and know the test's names.
const sidecarArg = "sidecar"

func beSidecar(dir string, set []string) error {
	cfg, _, err := config.Load(config.Inputs{Set: set})
	if err != nil {
		return err
	}
	cfg.Browser.Args = bolder // past the settings, which refuse such
	home, err := store.Open(dir, nil)
	if err != nil {
		return err
	}
	return sidecar.Run(context.Background(), sidecar.Options{
		Home: home, Config: cfg, Version: "test", Vault: &vault.Options{Keyring: noKeys{}}, OnReady: func(at string) { fmt.Println(at) },
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// noKeys is never the keychain of whoever runs the tests.
type noKeys struct{}

func (noKeys) Get(string, string) (string, error) { return "", keyring.ErrNotFound }
func (noKeys) Set(string, string, string) error   { return fs.ErrPermission }
func (noKeys) Delete(string, string) error        { return fs.ErrPermission }

// process is a sidecar that can be killed.
type process struct {
	*api.Client
	dir string
	set []string
	cmd *exec.Cmd
}

func (p *process) begin(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(self, append([]string{sidecarArg, p.dir}, p.set...)...) //nolint:gosec // ourselves
	said := &strings.Builder{}                                                   // read when the process is gone
	p.cmd.Stderr = said
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	at, _ := bufio.NewReader(out).ReadString('\n')
	token, err := os.ReadFile(filepath.Join(p.dir, sidecar.AgentTokenFile))
	if err != nil || at == "" {
		p.kill()
		t.Fatalf("the sidecar does not serve: %v, %s", err, said)
	}
	if p.Client, err = api.NewClient("http://"+strings.TrimSpace(at), secret.New(strings.TrimSpace(string(token))), nil); err != nil {
		t.Fatal(err)
	}
}

// kill is kill -9, and returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// browsers are the folders of those that run.
func (p *process) browsers(prefix string) []string {
	found, _ := filepath.Glob(filepath.Join(p.dir, "run", prefix+"*"))
	return found
}

func startProcess(t *testing.T, set ...string) *process {
	t.Helper()
	p := &process{dir: shortDir(t), set: append([]string{"listen.control=127.0.0.1:0", "listen.public=127.0.0.1:0"}, set...)}
	p.begin(t)
	t.Cleanup(func() {
		p.kill()
		run := filepath.Join(p.dir, "run")
		ending := local.New(run, 1<<40, nil)
		left, err := ending.Own(context.Background(), nil)
		if err != nil {
			t.Error(err)
		}
		for _, ref := range left {
			browsertest.End(t, ending, ref)
		}
	})
	return p
}

const (
	callers = 4  // one-shots that are under way when the sidecar is killed
	inTabs  = 18 // vectors with a window of their own in the session; it may have twenty tabs
)

// TestNoVectorReachesTheMachineWhenTheSidecarIsKilled has hostile pages open in a
// session and in one-shots, warm and cold, kills the sidecar, and only then lets
// the pages begin. What the browser keeps waiting for tapin waits until the next
// sidecar comes: in the session it is let run then, and reaches nothing either;
// one-shots end with their callers, so their browser is ended.
func TestNoVectorReachesTheMachineWhenTheSidecarIsKilled(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := testwait.Context(t)
	began := time.Now()
	mark := func(what string) { t.Logf("%s after %s", what, time.Since(began).Round(100*time.Millisecond)) }
	kept := func(v vector) bool { return thorough() || !v.overIPv6() || v.pair }
	split := func(inSession bool) func(vector) bool {
		windows := 0
		return func(v vector) bool {
			if v.js == spelled || !kept(v) || v.window && v.never != "" {
				return false
			}
			if !v.window {
				return true
			}
			windows++
			return (windows <= inTabs) == inSession
		}
	}
	session, shots := newWorld(t, split(true)), newWorld(t, split(false))
	p := startProcess(t, "pool.warm=2", "egress.allow="+strings.Join(append(session.strict().Allow, shots.strict().Allow...), ","))

	if _, err := p.Start(ctx, api.StartRequest{URL: session.besiege(session.rows, false)}); err != nil {
		t.Fatal(err)
	}
	told := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		var some []*row
		for _, r := range shots.rows {
			if r.n%callers == i {
				some = append(some, r)
			}
		}
		address := shots.besiege(some, true)
		wg.Go(func() {
			_, told[i] = p.BrowserScreenshot(ctx, api.BrowserScreenshotRequest{OneShot: api.OneShot{URL: address}})
		})
	}
	testwait.For(t, "every page to stand at the gate", func() bool { return session.besieged() && shots.besieged() })
	old := p.browsers("oneshot")
	if len(old) != 1 {
		t.Errorf("the one-shots are in %d browsers", len(old))
	}
	mark("all at the gate")
	p.kill()
	wg.Wait()
	for _, err := range told {
		if f := fault.Of(err); !errors.Is(err, api.ErrBroken) || f.Code != fault.Busy || f.Hint == "" {
			t.Errorf("a caller was told %v, hint %q", err, f.Hint)
		}
	}

	close(session.gate)
	close(shots.gate)
	// Gathering ways for WebRTC takes the browser half a minute; what it sends it
	// sends at the beginning.
	alone := func(r *row) bool { return !r.blind && !r.opens && !r.udp }
	for _, w := range []*world{session, shots} {
		w.eventually(func(r *row) bool { return w.ended(r) || !alone(r) })
		w.each(t, func(t *testing.T, r *row) {
			if alone(r) && !w.ended(r) {
				t.Error("the page did not come to an end with it while nobody was there")
			}
		})
	}

	mark("came to their ends alone")
	p.usedJustNow(t)
	p.begin(t)
	followed := func(r *row) bool { return !r.blind && !r.udp }
	session.eventually(func(r *row) bool { return session.ended(r) || !followed(r) })
	session.each(t, func(t *testing.T, r *row) {
		if followed(r) && !session.ended(r) {
			t.Error("the page did not come to an end with it, also not for the next sidecar")
		}
	})
	mark("came to their ends with the next sidecar")
	if status, err := p.Status(ctx, ""); err != nil || !status.Active {
		t.Errorf("the session is %+v, %v", status, err)
	}
	if shot, err := p.BrowserScreenshot(ctx, api.BrowserScreenshotRequest{OneShot: api.OneShot{URL: shots.site.URL + "/driver?row=none"}}); err != nil || shot.Title != "driven" {
		t.Errorf("a one-shot afterwards: %+v, %v", shot, err)
	}
	testwait.For(t, "the browser of the one-shots to be ended", func() bool {
		return !slices.ContainsFunc(p.browsers("oneshot"), func(dir string) bool { return slices.Contains(old, dir) })
	})
	ended := 0
	for _, w := range []*world{session, shots} {
		w.each(t, func(t *testing.T, r *row) {
			if hits := r.bird.touched(); hits != "" {
				t.Errorf("the canary was reached: %s", hits)
			}
			if w.ended(r) {
				ended++
			}
		})
	}
	mark("canaries counted")
	t.Logf("%d vectors in a session and %d in %d one-shots; %d pages told of their end", len(session.rows), len(shots.rows), callers, ended)
}

var lastUsed = regexp.MustCompile(`"last_used_at": ?"[^"]+"`)

// usedJustNow lets the next sidecar pick up the session however slow the machine
// is: one that nobody has used for a minute it would close.
func (p *process) usedJustNow(t *testing.T) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(p.dir, "sessions", "*.json"))
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of the test's own home
		if err != nil {
			t.Fatal(err)
		}
		raw = lastUsed.ReplaceAll(raw, []byte(`"last_used_at":"`+time.Now().UTC().Format(time.RFC3339)+`"`))
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) ended(r *row) bool {
	_, ok := w.outcome(r.n)
	return ok
}
