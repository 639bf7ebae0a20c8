package vault_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/testwait"
	"tapin/internal/vault"
)

// The environment of a child: a process of its own for each use of the
// keychain, as the connection to it is kept for the life of a process.
const (
	childHome   = "TAPIN_TEST_KEYCHAIN_HOME"   // tapin's home
	childDaemon = "TAPIN_TEST_KEYCHAIN_DAEMON" // unlocked, locked or missing
	childDoes   = "TAPIN_TEST_KEYCHAIN_DOES"   // nothing, save, read or delete
)

func TestMain(m *testing.M) {
	if os.Getenv(childHome) == "" {
		testwait.Draws("20")
		os.Exit(m.Run())
	}
	told, err := useKeychain(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(told)
}

// report is what a child saw.
type report struct {
	Source    vault.Source
	Recipient string
	Code      fault.Code // of the refusal
	Details   string
	Log       string
	KeyFile   bool
	Login     bool // the login came back as it was kept
	TOTP      string
	Kept      []vault.Kept
	Does      fault.Code // how what it did was refused
}

func TestARealKeychain(t *testing.T) {
	t.Parallel()
	session, err := exec.LookPath("dbus-run-session")
	if err != nil {
		t.Skip("NOT TESTED: there is no dbus-run-session here, so no keychain to try; make test installs one")
	}
	if _, err := exec.LookPath("gnome-keyring-daemon"); err != nil {
		t.Fatal("there is a message bus but no keychain to try on it; run scripts/setup-test.sh, which installs gnome-keyring")
	}
	// The daemon's files and sockets, shared by all its lives. The path is short:
	// it goes into the name of a socket.
	desk, err := os.MkdirTemp("", "keys")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(desk) })
	bus := filepath.Join(desk, "bus.conf")
	must(t, os.WriteFile(bus, []byte(busConfig), 0o600))

	use := func(home, daemon, does string) report {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), session, "--config-file="+bus, "--", os.Args[0])
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + desk, "XDG_DATA_HOME=" + filepath.Join(desk, "data"), "XDG_RUNTIME_DIR=" + desk, "TMPDIR=" + desk,
			childHome + "=" + home, childDaemon + "=" + daemon, childDoes + "=" + does,
		}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("with the keychain %s: %v: %s", daemon, err, errs.String())
		}
		var told report
		must(t, json.Unmarshal(out, &told))
		return told
	}

	home := filepath.Join(t.TempDir(), "home")
	first := use(home, "unlocked", "save")
	if first.Source != vault.FromKeychain || first.Code != "" || first.KeyFile || first.Does != "" || first.Log != "" {
		t.Fatalf("the first use: %+v", first)
	}
	second := use(home, "unlocked", "read")
	if second.Source != vault.FromKeychain || second.Recipient != first.Recipient || !second.Login || second.TOTP != "94287082" ||
		len(second.Kept) != 1 || second.Kept[0] != (vault.Kept{Site: "chase.com", Login: vault.FromKeychain, TOTP: vault.FromKeychain}) {
		t.Errorf("the second use: %+v", second)
	}

	// From now on the key is there or nowhere.
	for _, daemon := range []string{"locked", "missing"} {
		got := use(home, daemon, "save")
		if got.Code != fault.Forbidden || !strings.Contains(got.Details, "keychain") || got.KeyFile || got.Does != fault.Forbidden {
			t.Errorf("later, with the keychain %s: %+v", daemon, got)
		}
	}
	// Who never had one there is told loudly that it lies in a file.
	for _, daemon := range []string{"locked", "missing"} {
		fresh := filepath.Join(t.TempDir(), "home")
		got := use(fresh, daemon, "read")
		if got.Source != vault.FromFile || !got.KeyFile || !strings.Contains(got.Log, "no keychain") || !strings.Contains(got.Log, "vault.key") || got.Does != fault.NotFound {
			t.Errorf("at first, with the keychain %s: %+v", daemon, got)
		}
		// And it stays there when a keychain comes: no second key.
		if again := use(fresh, "unlocked", ""); again.Source != vault.FromFile || again.Recipient != got.Recipient {
			t.Errorf("then with a keychain: %+v", again)
		}
	}

	last := use(home, "unlocked", "delete")
	if last.Recipient != first.Recipient || last.Does != "" || len(last.Kept) != 0 {
		t.Errorf("deleted: %+v", last)
	}
	if got := use(home, "unlocked", "read"); got.Does != fault.NotFound || got.Recipient != first.Recipient {
		t.Errorf("after that: %+v", got)
	}
}

// busConfig is a message bus that starts nothing by itself: what is on it is
// what the test put there.
const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
`

// useKeychain is the child: it opens the vault of a home on the bus it is on.
func useKeychain(ctx context.Context) (told report, err error) {
	stop, err := startKeychain(ctx, os.Getenv(childDaemon))
	if err != nil {
		return told, err
	}
	defer stop()
	home, err := store.Open(os.Getenv(childHome), nil)
	if err != nil {
		return told, err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	var log bytes.Buffer
	opts := &vault.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	v, err := vault.Open(ctx, home, opts)
	if err != nil {
		told.Code, told.Details = fault.Of(err).Code, fault.Of(err).Details()
	} else {
		told.Source, told.Recipient = v.Source(), v.Recipient()
	}
	told.Log = log.String()
	c := vault.NewCredentials(home, opts)
	login := vault.Login{Username: secret.New("ada"), Password: secret.New("pass wörd \"\\ '"), Domain: "chase.com"}
	switch os.Getenv(childDoes) {
	case "save":
		if err = c.SaveLogin(ctx, "chase.com", login); err == nil {
			err = c.SaveTOTP(ctx, "chase.com", secret.New("otpauth://totp/x?digits=8&secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"))
		}
	case "read":
		var got vault.Login
		if got, err = c.Login(ctx, "chase.com"); err == nil {
			told.Login = got.Password.Equal(login.Password) && got.Username.Equal(login.Username)
			var code secret.Text
			code, err = c.TOTP(ctx, "chase.com", time.Unix(59, 0))
			told.TOTP = code.Reveal()
			told.Kept, _ = c.List(ctx)
		}
	case "delete":
		err = c.Delete(ctx, "chase.com")
		told.Kept, _ = c.List(ctx)
	default:
		err = nil
	}
	if err != nil {
		told.Does = fault.Of(err).Code
	}
	told.KeyFile, err = home.Exists("vault.key")
	return told, err
}

// startKeychain starts a keychain and returns once it is on the bus.
func startKeychain(ctx context.Context, state string) (stop func(), err error) {
	if state == "missing" {
		return func() {}, nil
	}
	args := []string{"--foreground", "--components=secrets"}
	if state == "unlocked" {
		args = append(args, "--unlock")
	}
	daemon := exec.CommandContext(ctx, "gnome-keyring-daemon", args...)
	daemon.Stdin = strings.NewReader("the owner's password")
	if err := daemon.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	}
	for end := testwait.End(); time.Now().Before(end); {
		there, err := exec.CommandContext(ctx, "dbus-send", "--session", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/",
			"org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets").Output()
		if err != nil {
			stop()
			return nil, err
		}
		if strings.Contains(string(there), "true") {
			return stop, nil
		}
	}
	stop()
	return nil, errors.New("the keychain did not come onto the bus")
}
