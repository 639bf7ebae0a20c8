package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"tapin/internal/fault"
)

// userName is what useradd takes everywhere.
var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// separate is a tapin that runs as a user of its own, so that an agent with a
// shell cannot read what the owner's tapin keeps.
type separate struct {
	machine machine
	service service
	agent   *user.User  // whose agents may drive; nil means nobody's yet
	group   *user.Group // that may read the agent's token
}

// separateUser checks everything that can be checked before anything is done.
func (m machine) separateUser(s service, agent string) (*separate, error) {
	if !userName.MatchString(s.user) || s.user == "root" {
		return nil, fault.New(fault.InvalidRequest, "", "%q is no name for a user of tapin's own", clean(s.user)).WithHint("Use one such as tapin.")
	}
	if !m.root {
		return nil, fault.New(fault.Forbidden, "", "only root can give tapin a user of its own").
			WithHint("Run it with sudo; --print shows the file without that.")
	}
	if agent == "" {
		agent = m.caller
	}
	p := &separate{machine: m, service: s}
	if agent != "" {
		var err error
		if p.agent, err = user.Lookup(agent); err != nil {
			return nil, fault.New(fault.NotFound, "", "there is no user %q on this machine", clean(agent))
		}
		if p.group, err = user.LookupGroupId(p.agent.Gid); err != nil {
			return nil, fault.New(fault.NotFound, "", "the group of %s is not known on this machine", agent)
		}
		if agent == s.user {
			return nil, fault.New(fault.InvalidRequest, "", "the agents must not be %s themselves", agent).
				WithHint("Then they could read everything that tapin keeps.")
		}
	}
	if _, err := user.Lookup(s.user); err != nil && m.os == macOS {
		return nil, fault.New(fault.NotFound, "", "there is no user %s on this machine", s.user).
			WithHint("Make it first: sysadminctl -addUser %s -home %s -shell /usr/bin/false", s.user, stateFolder(m.os))
	}
	return p, reachable(s.program)
}

// reachable refuses a program that another user cannot run.
func reachable(program string) error {
	for path := program; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 || path == "/home" || path == "/root" || path == "/Users" {
			return fault.New(fault.InvalidRequest, "", "another user cannot run %s, because of %s", program, path).
				WithHint("Install it for everybody first: install -m 755 %s /usr/local/bin/tapin", shellWord(program))
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}

// steps are everything that is done, in order; each may be repeated.
func (p *separate) steps() []step {
	m, s := p.machine, p.service
	state := stateFolder(m.os)
	var steps []step
	if _, err := user.Lookup(s.user); err != nil {
		steps = append(steps, m.runStep("useradd", "--system", "--user-group", "--home-dir", state, "--no-create-home", "--shell", "/usr/sbin/nologin", s.user))
	}
	steps = append(steps, step{fmt.Sprintf("make   %s, of %s (0711)", state, s.user), func(context.Context) error { return p.makeState(state) }})
	if p.agent != nil {
		steps = append(steps, p.tokenSteps()...)
	}
	return append(steps, m.install(s)...)
}

func (p *separate) makeState(folder string) error {
	owner, err := user.Lookup(p.service.user)
	if err != nil {
		return err
	}
	uid, gid, err := ids(owner.Uid, owner.Gid)
	if err != nil {
		return err
	}
	// Mkdir, not MkdirAll: whatever has that name already must be a folder of
	// this user, and nobody else's.
	if err := os.Mkdir(folder, 0o711); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // others reach the one file in it that they may read
		return err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fault.New(fault.InvalidRequest, "", "%s is no folder", folder).WithHint("Move it away first.")
	}
	return errors.Join(os.Chown(folder, uid, gid), os.Chmod(folder, 0o711)) //nolint:gosec // as above
}

// tokenSteps give the agents of a user a token of their own, in a file that
// their group can read. The token inside the home stays for tapin alone.
func (p *separate) tokenSteps() []step {
	name, made := p.tokenName(), "tokens/"+p.tokenName()+".token"
	var steps []step
	if _, err := os.Stat(filepath.Join(p.service.home, made)); err != nil {
		as := []string{"runuser", "-u", p.service.user, "--"}
		if p.machine.os == macOS {
			as = []string{"sudo", "-u", p.service.user}
		}
		steps = append(steps, p.machine.runStep(append(as, p.service.program, "--home", p.service.home, "token", "new", name)...))
	}
	return append(steps, step{
		fmt.Sprintf("write  %s, for the group %s to read (0640)", p.tokenCopy(), p.group.Name),
		func(context.Context) error { return p.copyToken(made, p.tokenCopy()) },
	})
}

// tokenName is a name for a token that a name of a user makes.
func (p *separate) tokenName() string {
	return "user-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, strings.ToLower(p.agent.Username[:min(len(p.agent.Username), 27)]))
}

func (p *separate) tokenCopy() string {
	return filepath.Join(stateFolder(p.machine.os), "agent-"+p.tokenName()+".token")
}

// copyToken reads nothing outside of the home, and never writes through a name
// that somebody has put there before: root does this in folders of others.
func (p *separate) copyToken(from, to string) error {
	home, err := os.OpenRoot(p.service.home)
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	raw, err := home.ReadFile(from)
	if err != nil {
		return err
	}
	_, gid, err := ids(p.agent.Uid, p.group.Gid)
	if err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // a name of ours
	if err != nil {
		return err
	}
	_, err = file.Write(raw)
	// The group first: the mode must not open it to another one.
	return errors.Join(err, file.Chown(0, gid), file.Chmod(0o640), file.Close())
}

func ids(uid, gid string) (u, g int, err error) {
	u, uerr := strconv.Atoi(uid)
	g, gerr := strconv.Atoi(gid)
	return u, g, errors.Join(uerr, gerr)
}
