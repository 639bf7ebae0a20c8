package cli

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// phoneWithin is how long the first screen waits for a tunnel; what comes later
// is told when it comes.
const phoneWithin = 20 * time.Second

// leashCommand is how the daemon runs the programs of others.
func (a *app) leashCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "leash PROGRAM…",
		Short:              "Run a program until standard input ends",
		Hidden:             true,
		DisableFlagParsing: true, // they are the program's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.New(fault.InvalidRequest, "", "there is no program to run")
			}
			code, err := daemon.Leash(cmd.Context(), a.env.Stdin, args, a.env.Stderr)
			if err == nil && code != 0 {
				return exit(code)
			}
			return err
		},
	}
}

// phone is what is known of the way from a phone to this machine.
type phone struct {
	daemon.Reach
	Ready bool     `json:"ready"`         // a phone anywhere gets here: seen by trying
	LAN   []string `json:"lan,omitempty"` // where devices of the same network may watch
}

// phoneNow asks the running tapin of a home.
func (a *app) phoneNow(ctx context.Context, home *store.Home, client *api.Client) (p phone) {
	r, known, err := daemon.ReadReach(home)
	if err != nil || !known {
		r = daemon.Reach{Tunnel: config.TunnelNone, Stand: daemon.NoWay}
	}
	if at, err := client.Public(ctx); err == nil {
		p.LAN = at.LAN
		if !known && at.Source != "none" { // a sidecar without a daemon
			r.Stand, r.URL = daemon.Unproven, at.URL
		}
	}
	p.Reach = r
	p.Ready = p.Stand == daemon.Open
	return p
}

// settled reports whether there is anything to say that will not change in a moment.
func settled(s daemon.Stand) bool {
	return s != daemon.Opening && s != daemon.Unproven && s != ""
}

// awaitPhone waits until the way is known, as long as that may take at a start.
func (a *app) awaitPhone(ctx context.Context, home *store.Home, client *api.Client) phone {
	ctx, cancel := context.WithTimeout(ctx, phoneWithin)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		p := a.phoneNow(ctx, home, client)
		if settled(p.Stand) {
			return p
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return p
		}
	}
}

// words are the lines that say where a phone gets in, and what to do if it does
// not.
func (p phone) words(a *app) []string {
	ink := a.paint(a.env.Stdout)
	var lines []string
	switch p.Stand {
	case daemon.Open:
		lines = append(lines, ink.green("✓")+" "+clean(p.URL)+p.by()+", and it leads here")
	case daemon.Unproven, daemon.Opening:
		at := clean(p.URL)
		if at == "" {
			at = "the tunnel " + string(p.Tunnel) + " is being opened"
		}
		lines = append(lines, at+p.by()+" "+ink.dim("(not tried yet)"))
	case daemon.Asking:
		lines = append(lines, ink.bang()+" "+clean(p.Details), "  "+clean(p.Hint))
	case daemon.Astray, daemon.Missing, daemon.Resting, daemon.Abandoned, daemon.Idle:
		lines = append(lines, ink.bang()+" Your phone cannot reach this machine: "+clean(p.Details))
		if p.URL != "" {
			lines = append(lines, "  It is sent to "+clean(p.URL)+".")
		}
		if p.Hint != "" {
			lines = append(lines, "  "+clean(p.Hint))
		}
	case daemon.NoWay, "":
		lines = append(lines, "Only this machine can open the live view.", "For your phone: "+a.command("setup", "phone"))
	}
	for i, at := range p.LAN {
		if i == 0 {
			lines = append(lines, "In the same Wi-Fi, to watch only: "+clean(at))
			continue
		}
		lines = append(lines, "  or "+clean(at))
	}
	return lines
}

func (p phone) by() string {
	if p.Tunnel == "" || p.Tunnel == config.TunnelNone {
		return ""
	}
	return " by " + string(p.Tunnel)
}

var errNoNeighbours = errors.New("devices of the same network may not watch")

// nearby is a link as devices of the same network open it.
func nearby(open secret.Text, lan []string) (secret.Text, error) {
	at, err := url.Parse(open.Reveal())
	if len(lan) == 0 || err != nil {
		return secret.Text{}, errNoNeighbours // without its words, which may quote it
	}
	near, err := url.Parse(lan[0])
	if err != nil {
		return secret.Text{}, errNoNeighbours
	}
	at.Scheme, at.Host = near.Scheme, near.Host
	return secret.New(at.String()), nil
}

// phone prints where a phone gets in.
func (s *screen) phone(ctx context.Context) {
	client, err := s.app.clientOf(ctx, s.home)
	if err != nil {
		return
	}
	defer client.Close()
	done := func() {}
	if s.config.Tunnel != config.TunnelNone || s.config.PublicURL != "" {
		done = s.app.progress("finding a way for your phone")
	}
	p := s.app.awaitPhone(ctx, s.home, client)
	done()
	s.shown = p.Stand
	s.line("phone", p.words(s.app)...)
}

// reached tells of a change in the way after the first screen.
func (s *screen) reached(r daemon.Reach) {
	if s.app.json || r.Stand == s.shown || !settled(r.Stand) {
		return
	}
	s.shown = r.Stand
	ink := s.app.paint(s.app.env.Stdout)
	at := ink.dim(time.Now().Format("15:04:05"))
	for i, line := range (phone{Reach: r}).words(s.app) {
		if i > 0 {
			at = pad("", len("15:04:05"))
		}
		s.app.printf("  %s %s\n", at, line)
	}
}

// examinePhone is what the doctor finds of the way from a phone.
func (a *app) examinePhone(ctx context.Context, cfg *config.Config, home *store.Home, running daemon.Running) []finding {
	const name = "phone"
	var found []finding
	kind, now := cfg.Tunnel, daemon.Reach{}
	if home != nil && running.Daemon != 0 {
		// What runs may have been given other settings than those that are read here.
		if r, ok, err := daemon.ReadReach(home); err == nil && ok {
			now, kind = r, r.Tunnel
		}
	}
	if kind != config.TunnelNone {
		if program, err := daemon.FindTunnel(kind); err != nil {
			found = append(found, findingOf(name, warn, err))
		} else {
			found = append(found, finding{Name: name, Verdict: good, Text: string(kind) + " is " + a.tilde(program) + "."})
		}
	}
	if home == nil || running.Sidecar == 0 {
		if kind == config.TunnelNone && cfg.PublicURL == "" {
			found = append(found, finding{Name: name, Verdict: note, Text: "No tunnel and no public_url are set: a phone cannot reach this machine.",
				Fix: "Set tunnel: cloudflared or tailscale, or public_url; lan: watch lets phones of the same Wi-Fi watch."})
		}
		return found
	}
	client, err := a.clientOf(ctx, home)
	if err != nil {
		return append(found, findingOf(name, warn, err))
	}
	defer client.Close()
	at, err := client.CheckPublic(ctx)
	switch {
	case errors.Is(err, fault.Disabled):
	case err != nil:
		found = append(found, findingOf(name, warn, err))
	case at.Reached:
		found = append(found, finding{Name: name, Verdict: good, Text: at.URL + " leads to this machine."})
	case at.Source == "none" && kind == config.TunnelNone:
		found = append(found, finding{Name: name, Verdict: note, Text: "Your phone cannot reach this machine: there is no tunnel and no public_url.",
			Fix: "Set tunnel: cloudflared or tailscale, or public_url; lan: watch lets phones of the same Wi-Fi watch."})
	default:
		text, fix := "Your phone cannot reach this machine: "+at.Reason+".", at.Advice
		if at.Source == "none" && now.Details != "" {
			text, fix = "Your phone cannot reach this machine: "+now.Details, now.Hint
		}
		found = append(found, finding{Name: name, Verdict: warn, Text: text, Fix: fix})
	}
	return found
}
