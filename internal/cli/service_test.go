package cli

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/fault"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "service", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestTheServicesFiles(t *testing.T) {
	t.Parallel()
	plain := service{program: "/usr/local/bin/tapin", home: "/home/owner/.tapin"}
	odd := service{program: `/opt/100% odd $HOME/tapin`, home: `/srv/o'dd\ <home>`, chrome: "/opt/a b/chrome"}
	own := service{program: "/usr/local/bin/tapin", home: "/var/lib/tapin/home", user: "tapin"}
	for name, text := range map[string]string{
		"user.service": plain.unit(), "odd.service": odd.unit(), "system.service": own.unit(),
		"user.plist": plain.plist(), "odd.plist": odd.plist(), "system.plist": own.plist(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, text)
		})
	}
}

func TestPathsThatNoServiceCanHaveAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []service{{program: "/a\nExecStartPost=/bin/evil"}, {program: `/a"b`}, {program: `/a\b`}, {home: "/a\x00"}, {chrome: "/a\tb"}} {
		if err := s.check(); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if err := (service{program: "/a b$%/tapin", home: `/o'd"d\`}).check(); err != nil {
		t.Error(err)
	}
}

func TestSystemdTakesTheUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	folder := filepath.Join(t.TempDir(), "a b $c 100%")
	program := filepath.Join(folder, "tapin")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700)); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for name, s := range map[string]service{
		"user":   {program: program, home: "/home/owner/.tapin"},
		"system": {program: program, home: "/var/lib/tapin/home", user: "root"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "tapin.service")
			if err := os.WriteFile(file, []byte(s.unit()), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
			if err != nil || strings.Contains(string(out), "tapin.service") {
				t.Fatalf("%v: %s", err, out)
			}
		})
	}
}

// recorder is a folder of programs that note how they were called.
func recorder(t *testing.T, names ...string) (path string, calls func() []string) {
	t.Helper()
	path = t.TempDir()
	log := filepath.Join(path, "calls")
	for _, name := range names {
		script := "#!/bin/sh\necho \"${0##*/} $*\" >> '" + log + "'\n"
		if err := os.WriteFile(filepath.Join(path, name), []byte(script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return path, func() []string {
		raw, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(raw)), "\n")
	}
}

func TestAServiceIsInstalledAndRemoved(t *testing.T) {
	t.Parallel()
	path, calls := recorder(t, "systemctl")
	w := newWorld(t)
	a := &app{env: w.Env, program: "tapin"}
	m := machine{os: linux, booted: true, home: t.TempDir(), path: path}
	m.config = filepath.Join(m.home, ".config")
	s := service{program: "/usr/local/bin/tapin", home: "/home/owner/.tapin"}
	if err := a.carryOut(t.Context(), m.install(s), true, ""); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(m.config, "systemd", "user", "tapin.service")
	if got, err := os.ReadFile(file); err != nil || string(got) != s.unit() {
		t.Fatalf("%s, %v", got, err)
	}
	if enabled, active := m.ask(t.Context(), false); !enabled || !active {
		t.Fatalf("enabled %v, active %v", enabled, active)
	}
	if err := a.carryOut(t.Context(), m.uninstall(false), true, ""); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) > 0 {
		t.Fatalf("left %v, %v", left, err)
	}
	want := []string{
		"systemctl --user daemon-reload", "systemctl --user enable --now tapin.service",
		"systemctl --user is-enabled --quiet tapin.service", "systemctl --user is-active --quiet tapin.service",
		"systemctl --user disable --now tapin.service", "systemctl --user daemon-reload",
	}
	if diff := cmp.Diff(want, calls()); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsChangedUnlessAPersonSaysSo(t *testing.T) {
	t.Parallel()
	for answer, wanted := range map[string]bool{"y\n": true, "YES\n": true, "": false, "n\n": false, "\n": false, "yesterday\n": false} {
		w := newWorld(t)
		w.Stdin = strings.NewReader(answer)
		a := &app{env: w.Env, program: "tapin"}
		done := false
		steps := []step{{"write  /etc/x", func(context.Context) error { done = true; return nil }}}
		err := a.carryOut(t.Context(), steps, false, "")
		if done != wanted || (err == nil) != wanted || !strings.Contains(w.stderr.String(), "This will be done:\n  write  /etc/x\n") {
			t.Errorf("%q: done %v, %v, %s", answer, done, err, &w.stderr)
		}
	}
}

func TestASeparateUserIsCheckedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	self, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(t.TempDir(), "tapin")
	if err := os.WriteFile(private, nil, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	root := machine{os: linux, root: true, booted: true}
	for name, tt := range map[string]struct {
		machine     machine
		user, agent string
		program     string
		code        error
	}{
		"not root":                         {machine{os: linux}, "tapin", "", "/bin/sh", fault.Forbidden},
		"a name that is none":              {root, "Tapin; rm", "", "/bin/sh", fault.InvalidRequest},
		"root itself":                      {root, "root", "", "/bin/sh", fault.InvalidRequest},
		"an agent that is not there":       {root, "tapin", "nobody-of-that-name", "/bin/sh", fault.NotFound},
		"an agent that is tapin":           {root, self.Username, self.Username, "/bin/sh", fault.InvalidRequest},
		"a program that others cannot run": {root, "tapin", "", private, fault.InvalidRequest},
		"everything is fine":               {root, "tapin", "", "/bin/sh", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := filepath.EvalSymlinks(tt.program)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tt.machine.separateUser(service{program: program, user: tt.user}, tt.agent)
			if !errors.Is(err, tt.code) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestWhatASeparateUserTakes(t *testing.T) {
	t.Parallel()
	p := &separate{
		machine: machine{os: linux, root: true, booted: true},
		service: service{program: "/usr/local/bin/tapin", home: "/var/lib/tapin/home", user: "tapin-of-the-test"},
		agent:   &user.User{Username: "Some.Owner", Uid: "1000", Gid: "1000"},
		group:   &user.Group{Name: "owners", Gid: "1000"},
	}
	var told []string
	for _, s := range p.steps() {
		told = append(told, s.say)
	}
	golden(t, "separate.txt", strings.Join(told, "\n")+"\n")
}

func TestTheAgentsTokenIsForItsGroupAndReadFromTheHomeAlone(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	home := t.TempDir()
	outside := filepath.Join(t.TempDir(), "shadow")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(outside, []byte("not a token"), 0o600))
	must(os.Mkdir(filepath.Join(home, "tokens"), 0o700))
	must(os.Symlink(outside, filepath.Join(home, "tokens", "x.token")))
	p := &separate{machine: machine{os: linux}, service: service{home: home},
		agent: &user.User{Username: "owner", Uid: "1000", Gid: "1000"}, group: &user.Group{Name: "owners", Gid: "1000"}}
	to := filepath.Join(t.TempDir(), "agent.token")
	if err := p.copyToken("tokens/x.token", to); err == nil {
		t.Fatal("a link out of the home was followed")
	}
	must(os.WriteFile(filepath.Join(home, "tokens", "y.token"), []byte("a token\n"), 0o600))
	must(os.Symlink(outside, to)) // whoever put it there hopes that root writes through it
	must(p.copyToken("tokens/y.token", to))
	info, err := os.Lstat(to)
	must(err)
	stat, _ := info.Sys().(*syscall.Stat_t)
	if info.Mode() != 0o640 || stat.Gid != 1000 || stat.Uid != 0 {
		t.Fatalf("%v of %d:%d", info.Mode(), stat.Uid, stat.Gid)
	}
	if raw, err := os.ReadFile(outside); err != nil || string(raw) != "not a token" {
		t.Fatalf("written through a link: %q, %v", raw, err)
	}
}

func TestServiceCommands(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != linux {
		t.Skip("as systemd has it")
	}
	for name, tt := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"the file is shown":            {[]string{"service", "install", "--print"}, 0, "KillMode=process", ""},
		"that of a separate user too":  {[]string{"service", "install", "--print", "--user", "tapin"}, 0, "User=tapin\nGroup=tapin\n", ""},
		"not for a user that is none":  {[]string{"service", "install", "--print", "--user", "x\ny"}, fault.InvalidRequest.Exit(), "", "no name for a user|control characters"},
		"help is a sentence away":      {[]string{"service"}, 0, "install", ""},
		"a stray word is not accepted": {[]string{"service", "status", "now"}, fault.InvalidRequest.Exit(), "", "unknown command|accepts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.args...)
			code := Main(t.Context(), w.Env)
			said := tt.stderr == ""
			for part := range strings.SplitSeq(tt.stderr, "|") {
				said = said || strings.Contains(w.stderr.String(), part)
			}
			if code != tt.code || !strings.Contains(w.stdout.String(), tt.stdout) || !said {
				t.Fatalf("%d\n%s\n%s", code, &w.stdout, &w.stderr)
			}
		})
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		for _, args := range [][]string{{"service", "install"}, {"service", "uninstall"}, {"service", "status"}} {
			w := newWorld(t, args...)
			if code := Main(t.Context(), w.Env); code != fault.ProviderNotConfigured.Exit() || !strings.Contains(w.stderr.String(), "neither systemd nor launchd") {
				t.Errorf("%v: %d %s", args, code, &w.stderr)
			}
		}
	}
}

func TestAnotherUsersTapinIsReachedByAddressAndTokenFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a-token-of-this-agent\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		url, file string
		code      error
	}{
		"on this machine":             {"http://127.0.0.1:3849/", file, nil},
		"by name":                     {"http://localhost:3849", file, nil},
		"elsewhere":                   {"http://192.0.2.1:3849", file, fault.InvalidRequest},
		"a name that looks like it":   {"http://localhost.example:3849", file, fault.InvalidRequest},
		"with a path":                 {"http://127.0.0.1:3849/x", file, fault.InvalidRequest},
		"somebody else's credentials": {"http://127.0.0.1:3849@example.com:80", file, fault.InvalidRequest},
		"no token":                    {"http://127.0.0.1:3849", "", fault.Unauthorized},
		"no file":                     {"http://127.0.0.1:3849", file + "x", fault.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Environ = append(w.Environ, "TAPIN_URL="+tt.url, "TAPIN_TOKEN_FILE="+tt.file)
			client, err := (&app{env: w.Env}).client(t.Context())
			if !errors.Is(err, tt.code) || (client != nil) != (tt.code == nil) {
				t.Fatalf("got %v", err)
			}
		})
	}
}
