package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/backup"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/vault"
)

const passphraseHelp = `The passphrase is asked for, or read as a line from standard input, or from the
file that --passphrase-file names; it is never taken from the command line.`

func (a *app) backupCommand() *cobra.Command {
	var passphrase string
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Put all of tapin's home into one sealed file",
		Long: `Writes settings, tokens, saved logins, hand-offs, payments, runs and the journal,
as they are at one instant, into one file sealed with a passphrase. The key that
seals saved logins is in it too, wherever it is kept. tapin may run meanwhile.

Not in it are what the system's keychain has besides, running sessions and what
they downloaded, sign-ins of devices, links, logs, and what is made again. What is
no ordinary file, and a manifest of saved logins outside of the home, are not in it
either, and are named; so are files that cannot be read. Where config.yaml or the
manifest is a link, the file that it leads to is in it.

` + passphraseHelp,
		Example: `  tapin backup
  tapin backup /media/stick/tapin.backup --passphrase-file ~/.tapin-passphrase`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := "tapin-" + time.Now().Format("20060102-150405") + ".backup"
			if len(args) > 0 {
				file = args[0]
			}
			return a.backup(cmd.Context(), file, passphrase)
		},
	}
	cmd.Flags().StringVar(&passphrase, "passphrase-file", "", "a `file` with the passphrase as its first line")
	return cmd
}

type backupAnswer struct {
	File  string    `json:"file"`
	At    time.Time `json:"at"`
	Files int       `json:"files"`
	Bytes int64     `json:"bytes"`

	Left       []store.LeftOut  `json:"not_in_it,omitempty"`
	Unreadable []sidecar.Unread `json:"unreadable,omitempty"` // in it as they are
}

// manifestOf is the manifest of a home: relative to it where it lies in it, or
// else why it is not in a backup of it.
func (a *app) manifestOf(home *store.Home) (name string, out []store.LeftOut) {
	cfg, _, err := a.settings()
	if err != nil {
		return "", []store.LeftOut{{Name: "the manifest of saved logins", Why: "if the settings name one outside of the home; they cannot be used"}}
	}
	path := config.Under(home.Path(), cfg.Integrations.Browserbase.ContextStore)
	if name, err := filepath.Rel(home.Path(), path); err == nil && filepath.IsLocal(name) {
		return filepath.ToSlash(name), nil
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return "", []store.LeftOut{{Name: path, Why: "it is the manifest of saved logins, and lies outside of the home"}}
}

func (a *app) backup(ctx context.Context, file, passphrase string) error {
	home, err := a.existingHome()
	if err != nil {
		return err
	}
	if home == nil {
		return a.noHome()
	}
	defer func() { _ = home.Close() }()
	path, err := placeForBackup(home, file)
	if err != nil {
		return err
	}
	pass, err := a.passphrase(ctx, passphrase, true)
	if ctx.Err() != nil {
		return a.noBackup()
	}
	if err != nil {
		return err
	}
	to, err := newBackupFile(path)
	if err != nil {
		return err
	}
	defer to.drop()
	done := a.progress("making the backup")
	defer done()
	manifest, out := a.manifestOf(home)
	made, err := backup.Make(ctx, to, home, pass, &backup.Options{
		Program: buildVersion(), Vault: a.vaultOptions(), Links: []string{configFile, manifest},
	})
	if err == nil {
		err = to.keep()
	}
	var unread []sidecar.Unread
	if err == nil {
		unread, err = sidecar.UnreadIn(home)
	}
	done()
	if err != nil && ctx.Err() != nil {
		return a.noBackup()
	}
	if to.full != nil { // whatever became of it on its way here
		return to.full
	}
	if err != nil {
		return err
	}
	made.Left = append(made.Left, out...)
	return a.answer(backupAnswer{to.path, made.At, made.Files, made.Bytes, made.Left, unread}, func() {
		a.rows(row{"file", a.tilde(clean(to.path))}, row{"holds", count(made.Files, "file") + ", " + size(int(made.Bytes))},
			row{"as of", made.At.Local().Format("2006-01-02 15:04:05")})
		for _, l := range made.Left {
			a.printf("Not in the backup: %s (%s).\n", a.tilde(clean(l.Name)), clean(l.Why))
		}
		for _, u := range unread {
			a.printf("%s cannot be read (%s), neither out of the backup: see %s.\n", clean(u.File), clean(u.Why), a.command("doctor"))
		}
		a.printf("Without its passphrase nobody can open it, neither can you.\n")
	})
}

func (a *app) noBackup() error {
	return a.stopped("no backup was made", "Run it again; nothing is left of this one.")
}

// backupFile is written under another name until it is whole.
type backupFile struct {
	file *os.File // not embedded: it has more ways to be written to
	path string
	full error // that its disk is
}

// Write knows a full disk for the one that the backup is written to.
func (b *backupFile) Write(p []byte) (int, error) {
	n, err := b.file.Write(p)
	return n, b.noRoom(err)
}

func (b *backupFile) noRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		b.full = fault.New(fault.StorageFull, "write the backup", "%w", err).
			WithHint("Free some space where %s is to lie, or name another place.", b.path)
		return b.full
	}
	return err
}

// placeForBackup is where a backup is to be, which has to be elsewhere and new.
func placeForBackup(home *store.Home, file string) (path string, err error) {
	path, err = filepath.Abs(file)
	if err != nil {
		return "", err
	}
	folder := filepath.Dir(path)
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		if within, err := filepath.EvalSymlinks(home.Path()); err == nil && (real == within || strings.HasPrefix(real, within+string(filepath.Separator))) {
			return "", fault.New(fault.InvalidRequest, "", "%s is in tapin's home, which it is to be a backup of", path).WithHint("Name a file elsewhere.")
		}
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fault.New(fault.InvalidRequest, "", "%s is there already", path).WithHint("Name another file; an older backup is never written over.")
	}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.NotFound, "", "there is no folder %s", folder)
	}
	return path, nil
}

func newBackupFile(path string) (*backupFile, error) {
	folder := filepath.Dir(path)
	temp, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*.part") // of mode 0600
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "", "there is no folder %s", folder)
	}
	made := &backupFile{file: temp, path: path}
	if err := made.noRoom(err); err != nil {
		return nil, err
	}
	return made, nil
}

// keep gives the file its name, once it is on the disk. One that came there
// meanwhile stays.
func (b *backupFile) keep() error {
	if err := errors.Join(b.file.Sync(), b.file.Close()); err != nil {
		return b.noRoom(err)
	}
	err := os.Link(b.file.Name(), b.path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // sticks know no links
		err = os.Rename(b.file.Name(), b.path)
	}
	if err != nil {
		return b.noRoom(err)
	}
	folder, err := os.Open(filepath.Dir(b.path))
	if err != nil {
		return err
	}
	_ = folder.Sync() // not every system can; the file itself is there
	return folder.Close()
}

func (b *backupFile) drop() {
	_ = b.file.Close()
	_ = os.Remove(b.file.Name())
}

// passphrase asks for one, twice where it is a new one that somebody types.
func (a *app) passphrase(ctx context.Context, file string, isNew bool) (secret.Text, error) {
	if file != "" {
		return waited(ctx, func() (secret.Text, error) { return a.passphraseIn(file) })
	}
	ask := a.secrets()
	pass, err := ask.ask(ctx, "Passphrase")
	if err != nil {
		return secret.Text{}, err
	}
	if _, typed := ask.terminal(); !typed || !isNew {
		return pass, nil
	}
	again, err := ask.ask(ctx, "The same again")
	if err != nil {
		return secret.Text{}, err
	}
	if !again.Equal(pass) {
		return secret.Text{}, fault.New(fault.InvalidRequest, "", "the two are not the same").WithHint("Run it again; nothing was made.")
	}
	return pass, nil
}

func (*app) passphraseIn(file string) (secret.Text, error) {
	f, err := os.Open(file) //nolint:gosec // the owner says which
	if errors.Is(err, fs.ErrNotExist) {
		return secret.Text{}, fault.New(fault.NotFound, "", "there is no file %s", clean(file))
	}
	if err != nil {
		return secret.Text{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return secret.Text{}, err
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 {
		return secret.Text{}, fault.New(fault.Forbidden, "", "%s is open to other users (mode %04o)", clean(file), mode.Perm()).
			WithHint("If nobody else can have read it, run: chmod 600 %s", shellWord(file))
	}
	line, err := bufio.NewReader(io.LimitReader(f, maxInput)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return secret.Text{}, err
	}
	return secret.New(strings.TrimRight(line, "\r\n")), nil
}

func (a *app) noHome() error {
	path, err := a.homePath()
	if err != nil {
		return err
	}
	return fault.New(fault.NotFound, "", "there is no home at %s", a.tilde(path)).WithHint("Name another one with --home or TAPIN_HOME.")
}

func (a *app) restoreCommand() *cobra.Command {
	var passphrase string
	var replace bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make tapin's home anew from a backup",
		Long: `Checks the whole of a backup, and puts its home where tapin's home is to be. A home
that is there already is only touched with --replace, and then put aside under
another name, never deleted. tapin must not run meanwhile.

What was begun or allowed when the backup was made does not come back to life:
sessions are over and hand-offs have ended, approvals are void, policies wait for
your word again, what you cleared of the payment guard is guarded again, invitations
and links are dead, devices sign in again, and what waited to be said in the chat or
to an agent is not said twice. A file of the backup that cannot be read grants
nothing: it is put aside, and named. Do not run two homes of one backup.

` + passphraseHelp,
		Example: `  tapin restore tapin-20261119-170000.backup
  tapin restore /media/stick/tapin.backup --replace`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.restore(cmd.Context(), args[0], passphrase, replace)
		},
	}
	cmd.Flags().StringVar(&passphrase, "passphrase-file", "", "a `file` with the passphrase as its first line")
	cmd.Flags().BoolVar(&replace, "replace", false, "put a home aside that is there already")
	return cmd
}

type restoreAnswer struct {
	Home  string       `json:"home"`
	At    time.Time    `json:"at"` // of the backup
	Key   vault.Source `json:"key,omitempty"`
	Aside string       `json:"put_aside,omitempty"`
	sidecar.Void
}

func (a *app) restore(ctx context.Context, file, passphrase string, replace bool) error {
	path, err := a.homePath()
	if err != nil {
		return err
	}
	nothing := func() error {
		return a.stopped("nothing was restored, and nothing was changed", "Run it again when it suits.")
	}
	from, err := waited(ctx, func() (*os.File, error) { return os.Open(file) }) //nolint:gosec // the owner says which
	if ctx.Err() != nil {
		return nothing()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "", "there is no file %s", clean(file))
	}
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	there, release, err := a.placeAlone(path)
	if err != nil {
		return err
	}
	defer release()
	pass, err := a.passphrase(ctx, passphrase, false)
	if ctx.Err() != nil {
		return nothing()
	}
	if err != nil {
		return err
	}
	var source io.Reader = from
	if info, err := from.Stat(); err == nil && !info.Mode().IsRegular() {
		source = patient{ctx, from}
	}
	begun := false
	done := a.progress("restoring the backup")
	defer done()
	var void sidecar.Void
	got, err := backup.Restore(ctx, path, bufio.NewReader(source), pass, backup.RestoreOptions{
		Vault: a.vaultOptions(), Replace: replace, Store: &store.Options{Logger: a.logger(), Step: a.env.OnDisk},
		Begin: func() error {
			begun = true
			if there == nil {
				return nil
			}
			// As far as it can be done: a home that is past repair keeps nobody from restoring.
			if _, err := endBrowsersAlone(context.WithoutCancel(ctx), there); err != nil {
				a.logger().Warn("browsers of the home that is there could not all be ended", "error", err)
			}
			return nil
		},
		Renew: func(home *store.Home, known uint64) error {
			var last uint64
			var err error
			if void, last, err = sidecar.Restored(home, time.Now(), known); err != nil {
				return err
			}
			return daemon.Restored(home, last)
		},
		Step: func(what string) {
			if a.env.OnDisk != nil {
				a.env.OnDisk("restore "+what, store.Named)
			}
		},
	})
	done()
	if err != nil && ctx.Err() != nil && !begun {
		return nothing()
	}
	if err != nil {
		return err
	}
	return a.answer(restoreAnswer{path, got.Head.At, got.Key, got.Aside, void}, func() {
		a.rows(row{"home", a.tilde(clean(path))}, row{"as of", got.Head.At.Local().Format("2006-01-02 15:04:05")},
			row{"key", keyPlace(got.Key)}, row{"put aside", a.tilde(clean(got.Aside))})
		a.printf("Sessions, links and sign-ins of devices are over.\n")
		for _, what := range []struct {
			n    int
			what string
			then string
		}{
			{void.Handoffs, "hand-off", "ended"}, {void.Approvals, "approval", "void"},
			{void.Policies, "policy", "to be confirmed again"}, {void.Messages, "message", "not given to the agent again"},
			{void.Cleared, "exemption from the payment guard", "void; what you cleared is guarded again"},
			{void.Invited, "invitation into the chat", "void"},
		} {
			if what.n > 0 {
				a.printf("%d %s: %s.\n", what.n, what.what, what.then)
			}
		}
		for _, u := range void.Unreadable {
			if u.Aside != "" {
				a.printf("%s cannot be read (%s) and grants nothing: put aside as %s.\n", clean(u.File), clean(u.Why), clean(filepath.Base(u.Aside)))
				continue
			}
			a.printf("%s cannot be read (%s); see %s.\n", clean(u.File), clean(u.Why), a.command("doctor"))
		}
		a.printf("Tokens and owners are those of then: see %s and %s.\n", a.command("token", "list"), a.command("owners"))
	})
}

func keyPlace(s vault.Source) string {
	switch s {
	case vault.FromKeychain:
		return "in this system's keychain"
	case vault.FromEnvironment:
		return "comes from TAPIN_VAULT_KEY"
	case vault.FromFile:
		return "in a file of the home; no keychain took it"
	}
	return ""
}

// placeAlone keeps tapin from running under a home that may be there, in
// whatever state, until release is called.
func (a *app) placeAlone(path string) (home *store.Home, release func(), err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // the owner chooses where the home is
		return nil, func() {}, nil
	}
	home, err = store.Glance(path)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := a.keepAlone(home)
	if err != nil {
		_ = home.Close()
		return nil, nil, err
	}
	return home, func() { unlock(); _ = home.Close() }, nil
}
