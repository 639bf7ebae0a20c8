package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"tapin/internal/browser/local"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/vault"
	"tapin/scripts"
)

func (s *setup) lookBrowser(_ context.Context, st *stage) {
	cfg, _, err := s.app.settings()
	if err == nil && cfg.Provider != config.ProviderLocal {
		st.State, st.Text = stepDone, fmt.Sprintf("Sessions use provider %s.", cfg.Provider)
		return
	}
	path := ""
	if err == nil {
		path = cfg.Browser.Path
	}
	c, err := local.Find(path)
	if err != nil {
		st.State, st.Text, st.Next = stepLeft, capital(strings.TrimPrefix(fault.Of(err).Details(), "find a browser: "))+".", fault.Of(err).Advice()
		return
	}
	st.State, st.Text, st.Next = stepDone, fmt.Sprintf("Chromium %s, at %s.", c.Version, c.Path), ""
}

func (s *setup) doBrowser(ctx context.Context, st *stage) error {
	s.say("%s %s", st.why, st.Text)
	if err := s.may(ctx, "Install one with this system's package manager?"); err != nil {
		return err
	}
	if err := s.app.installBrowser(ctx); err != nil {
		return err
	}
	s.lookBrowser(ctx, st)
	return nil
}

// installBrowser runs the script that make setup runs. What it says is for the
// person; a program that reads JSON sees nothing of it.
func (a *app) installBrowser(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", scripts.Setup, "setup.sh") //nolint:gosec // the script is a part of the program
	cmd.Env, cmd.Stdin = a.env.Environ, a.env.Stdin
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if !a.json {
		cmd.Stdout, cmd.Stderr = a.env.Stdout, a.env.Stderr
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		last := strings.TrimSpace(strings.ReplaceAll(strings.TrimSpace(said.String()), "\n", " "))
		if last == "" {
			last = "what was tried is above"
		}
		return fault.New(fault.SessionCreateFailed, "install a browser", "it did not work: %s", clean(last)).
			WithHint("Install Chrome, Chromium or Edge by hand, or name one with TAPIN_CHROME.")
	}
	return nil
}

// bot reports whether this tapin has a bot, with the settings that say so.
func (s *setup) bot(ctx context.Context) (*config.Config, bool) {
	home, err := s.app.openHome()
	if err != nil {
		return nil, false
	}
	defer func() { _ = home.Close() }()
	cfg, _, err := s.app.settings()
	if err != nil {
		return nil, false
	}
	bot, err := s.app.telegram(ctx, home, cfg)
	return cfg, err == nil && bot != nil
}

func (s *setup) lookTelegram(ctx context.Context, st *stage) {
	cfg, ok := s.bot(ctx)
	switch {
	case !ok:
		st.State, st.Text, st.Next = stepLeft, "There is no bot yet; the console in your browser is your inbox until then.", s.app.command("setup", "telegram")
	case len(cfg.Telegram.Owners) == 0 && s.app.owners() == 0:
		st.State, st.Text, st.Next = stepLeft, "There is a bot, but nobody is paired with it.", s.app.command("pair")
	default:
		st.State, st.Text, st.Next = stepDone, "There is a bot, and somebody it writes to.", ""
	}
}

// owners counts those who were paired. What runs knows best, but need not run.
func (a *app) owners() int {
	home, err := a.existingHome()
	if err != nil || home == nil {
		return 0
	}
	defer func() { _ = home.Close() }()
	var known struct {
		Owners []struct{} `json:"owners"`
	}
	if err := home.ReadJSON("owners.json", &known); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	return len(known.Owners)
}

func (s *setup) doTelegram(ctx context.Context, st *stage) error {
	if s.yes {
		return nil // a token has to be typed
	}
	_, known := s.bot(ctx)
	if !known {
		if err := s.askForBot(ctx, st); err != nil {
			return err
		}
	}
	s.say("Your account in Telegram has to be paired with the bot.")
	if err := s.may(ctx, "Pair it now? tapin has to run for that, and is started in the background."); err != nil {
		return err
	}
	if err := s.startWithBot(ctx, known); err != nil {
		return err
	}
	if err := s.app.pair(ctx); err != nil {
		return err
	}
	s.lookTelegram(ctx, st)
	return nil
}

// askForBot keeps a bot's token, once Telegram knows it.
func (s *setup) askForBot(ctx context.Context, st *stage) error {
	s.say("%s", st.why)
	s.say("Open @BotFather in Telegram, send /newbot, and paste the token it gives you.")
	for {
		token, err := s.app.askedSecret(ctx, "  Token (not shown; Enter skips):")
		if err != nil {
			return err
		}
		if token.IsEmpty() {
			return errSkipped
		}
		err = s.keepBot(ctx, token)
		if errors.Is(err, fault.Unauthorized) || errors.Is(err, fault.InvalidRequest) {
			s.say("%s", capital(fault.Of(err).Details())+".")
			continue
		}
		return err
	}
}

func (s *setup) keepBot(ctx context.Context, token secret.Text) error {
	home, err := s.app.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	cfg, _, err := s.app.settings()
	if err != nil {
		return err
	}
	done := s.app.progress("asking Telegram")
	name, err := daemon.BotName(ctx, daemon.Telegram{Token: token, APIURL: cfg.Telegram.APIURL})
	done()
	if err != nil {
		return err
	}
	s.say("It is @%s.", clean(name))
	return vault.NewCredentials(home, s.app.vaultOptions()).Keep(ctx, botToken, token)
}

// startWithBot sees that a tapin runs that knows the bot: one that was started
// before the bot was there does not.
func (s *setup) startWithBot(ctx context.Context, known bool) error {
	a := s.app
	home, err := a.openHome()
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	running, err := daemon.Find(home)
	if err != nil {
		return err
	}
	if running.Daemon != 0 && known {
		return nil
	}
	if running != (daemon.Running{}) {
		if n := openSessions(ctx, home); n > 0 {
			return fault.New(fault.Busy, "pair", "tapin runs without the bot, and has %s open", count(n, "session")).
				WithHint("When they are over: %s, %s, and then %s.", a.command("down"), a.command("up"), a.command("pair"))
		}
		done := a.progress("starting tapin again")
		err := new(downAnswer).end(ctx, home)
		done()
		if err != nil {
			return err
		}
	}
	return s.start(ctx, home)
}

func (s *setup) start(ctx context.Context, home *store.Home) error {
	done := s.app.progress("starting tapin")
	defer done()
	screen := &screen{app: s.app, home: home}
	_, err := screen.detach(ctx)
	return err
}

func (s *setup) lookPhone(_ context.Context, st *stage) {
	cfg, _, err := s.app.settings()
	if err != nil {
		st.State, st.Text = stepLeft, fault.Of(err).Details()
		return
	}
	st.State, st.Next = stepDone, ""
	switch {
	case cfg.PublicURL != "":
		st.Text = "Phones come by " + clean(cfg.PublicURL) + "."
	case cfg.Tunnel != config.TunnelNone:
		st.Text = fmt.Sprintf("Phones come by %s.", cfg.Tunnel)
		if _, err := daemon.FindTunnel(cfg.Tunnel); err != nil {
			st.State, st.Text, st.Next = stepLeft, fmt.Sprintf("tunnel is %s, but there is no %s on this machine.", cfg.Tunnel, cfg.Tunnel), daemon.TunnelAdvice(cfg.Tunnel)
		}
	case cfg.LAN != config.LANOff:
		st.Text = "Phones of the same network may watch; none may drive."
	default:
		st.State, st.Text, st.Next = stepLeft, "Only this machine can open the live view.", s.app.command("setup", "phone")
	}
}

func (s *setup) doPhone(ctx context.Context, st *stage) error {
	if s.yes {
		return nil // which way is the owner's to choose
	}
	s.say("%s", st.why)
	found := func(kind config.Tunnel, what string) string {
		if _, err := daemon.FindTunnel(kind); err != nil {
			return what + s.app.paint(s.app.env.Stdout).dim("  (not installed yet)")
		}
		return what
	}
	n, err := s.app.chosen(ctx, "  Which way?", []string{
		"none for now: this machine only",
		found(config.TunnelCloudflared, "cloudflared: a tunnel that needs no account"),
		found(config.TunnelTailscale, "tailscale: your machine's own name in Tailscale"),
		"an https address of your own, with a proxy in front of tapin",
		"the same Wi-Fi, to watch only",
	}, 0)
	if err != nil {
		return err
	}
	var set string
	switch n {
	case 0:
		return errSkipped
	case 1:
		set = "tunnel=cloudflared"
	case 2:
		set = "tunnel=tailscale"
	case 3:
		if set, err = s.askForAddress(ctx); err != nil {
			return err
		}
	case 4:
		set = "lan=watch"
	}
	if _, err := s.app.setSettings(ctx, set); err != nil {
		return err
	}
	s.lookPhone(ctx, st)
	return nil
}

func (s *setup) askForAddress(ctx context.Context) (string, error) {
	for {
		line, err := s.app.asked(ctx, "  Its address (https://…; Enter skips):", "")
		if err != nil {
			return "", err
		}
		if line == "" {
			return "", errSkipped
		}
		if u, err := url.Parse(line); err == nil && u.Scheme == "https" && u.Host != "" {
			return "public_url=" + line, nil
		}
		s.say("That is no https:// address.")
	}
}

var hostNames = map[string]string{"claude-code": "Claude Code", "codex": "Codex"}

// agentChanges are the files that have to change for the hosts that are here.
func (s *setup) agentChanges() (hosts []string, changes []change, err error) {
	o := installOptions{scope: "user"}
	e, err := s.app.server(o)
	if err != nil {
		return nil, nil, err
	}
	for _, host := range s.app.hostsHere() {
		if host == "json" {
			continue
		}
		hosts = append(hosts, host)
		entry, err := s.app.hostChange(host, e, o)
		if err != nil {
			return nil, nil, err
		}
		skill, err := skillChange(host, s.app.getenv("HOME"))
		if err != nil {
			return nil, nil, err
		}
		changes = append(changes, entry, skill)
	}
	return hosts, slices.DeleteFunc(changes, func(c change) bool { return bytes.Equal(c.old, c.new) }), nil
}

func (s *setup) lookAgent(_ context.Context, st *stage) {
	hosts, changes, err := s.agentChanges()
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = hostNames[h]
	}
	known := strings.Join(names, " and ")
	switch {
	case err != nil:
		st.State, st.Text, st.Next = stepLeft, fault.Of(err).Details(), fault.Of(err).Advice()
	case len(hosts) == 0:
		st.State, st.Text, st.Next = stepLeft, "No Claude Code and no Codex were found here; other hosts take an entry.", s.app.command("mcp", "install", "json")
	case len(changes) > 0:
		st.State, st.Text, st.Next = stepLeft, "Not everything is there yet for "+known+".", s.app.command("setup", "agent")
	default:
		st.State, st.Text, st.Next = stepDone, known+map[bool]string{true: " have", false: " has"}[len(hosts) > 1]+" tapin, and the skill to use it.", ""
	}
}

func (s *setup) doAgent(ctx context.Context, st *stage) error {
	hosts, changes, err := s.agentChanges()
	if err != nil {
		return err
	}
	if len(hosts) == 0 {
		return nil // there is nothing to write to; the entry is one command away
	}
	s.say("%s", st.why)
	for _, host := range hosts {
		if err := s.addTo(ctx, host, changes); errors.Is(err, errSkipped) && len(hosts) > 1 {
			continue
		} else if err != nil {
			return err
		}
	}
	s.lookAgent(ctx, st)
	return nil
}

func (s *setup) addTo(ctx context.Context, host string, changes []change) error {
	a, found := s.app, false
	for _, c := range changes {
		if c.what != host {
			continue
		}
		found = true
		if !a.json {
			a.printf("  %s\n", a.tilde(c.path))
			if !strings.HasSuffix(c.path, ".md") { // the skill is a page; its name says enough
				a.printf("%s", indentLines(a.difference(c), "    "))
			}
		}
	}
	if !found {
		return nil
	}
	if err := s.may(ctx, "Add tapin to "+hostNames[host]+"? The file as it was is kept beside it."); err != nil {
		return err
	}
	for _, c := range changes {
		if c.what == host {
			if _, err := c.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

func indentLines(text, indent string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(indent + line)
	}
	return out.String()
}

// capital begins a sentence.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
