package cli

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/site"
)

type loginOptions struct {
	name, until, timeout string
	mobile, quiet        bool
}

func (a *app) loginCommand() *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "login SITE",
		Short: "Open a site for you to log in to, and keep the login",
		Long: `Opens a site in a browser of tapin's and hands it to you: by a link for this
machine or your phone. Log in as you always do, hold Done, and the login is
saved, sealed. Agents then start with it by its name, and never see a password.

A site that has a saved login keeps its name; a new one is called after the site.`,
		Example: `  tapin login github.com
  tapin login github.com --as github-work
  tapin login https://example.com/signin --until-url "*/home"`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.login(cmd.Context(), address(args[0]), o) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.name, "as", "", "the `name` of the login")
	flags.StringVar(&o.until, "until-url", "", "done when the address has this `part`; * stands for anything")
	flags.StringVar(&o.timeout, "timeout", "", "wait for you no longer than this `time` (30m)")
	flags.BoolVar(&o.mobile, "mobile", false, "show the site as a phone would")
	flags.BoolVar(&o.quiet, "quiet", false, "send no message: you are here")
	return cmd
}

func (a *app) login(ctx context.Context, url string, o loginOptions) error {
	of, err := site.Of(url)
	if err != nil {
		return err
	}
	most, err := parseSpan("--timeout", o.timeout)
	if err != nil {
		return err
	}
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if o.name == "" {
		if o.name, err = nameFor(ctx, client, of); err != nil {
			return err
		}
	}
	started, handed, err := a.startLogin(ctx, client, url, most, of, o)
	if err != nil {
		return err
	}
	over, err := a.awaitLogin(ctx, client, started, handed)
	if err != nil {
		a.giveUpLogin(ctx, client, started.SessionID)
		return err
	}
	if over.Status != "FINISHED" {
		return fault.New(fault.HandoffNotRunning, "", "the login was not finished: the hand-off ended as %s", strings.ToLower(strings.ReplaceAll(over.Status, "_", " "))).
			WithHint("Try again with: %s", a.command("login", url))
	}
	return a.keepLogin(ctx, client, started.SessionID, o.name)
}

// nameFor is the name of the login that a site has, or a new one.
func nameFor(ctx context.Context, client *api.Client, of site.Site) (string, error) {
	known, err := client.Contexts(ctx)
	if err != nil {
		return "", err
	}
	short, _, _ := strings.Cut(string(of), ".")
	if _, err := netip.ParseAddr(string(of)); err == nil {
		short = strings.ReplaceAll(string(of), ":", "-")
	}
	for _, c := range known.Contexts {
		if c.Domain != "" && site.Same(c.Domain, string(of)) {
			return c.Name, nil
		}
	}
	for _, c := range known.Contexts {
		if strings.EqualFold(c.Name, short) {
			return string(of), nil // another site's
		}
	}
	return short, nil
}

// startLogin opens the site and hands it over. What fails leaves no session.
func (a *app) startLogin(ctx context.Context, client *api.Client, url string, most int64, of site.Site, o loginOptions) (*api.StartAnswer, *api.Handoff, error) {
	done := a.progress("opening " + clean(url))
	defer done()
	save := true
	started, err := client.Start(ctx, api.StartRequest{URL: url, Context: o.name, SaveContext: &save, Mobile: o.mobile, Look: noPicture()})
	if err != nil {
		if active, ok := fault.Of(err).Data["session_id"].(string); ok && errors.Is(err, fault.SessionActive) {
			return nil, nil, fault.New(fault.SessionActive, "", "session %s is active", clean(active)).
				WithHint("Stop it first with: %s", a.command("stop"))
		}
		return nil, nil, err
	}
	req := api.HandoffRequest{Reason: "login", Instruction: "Log in to " + string(of) + ", then hold Done. The login is kept for your agents.", SessionID: started.SessionID, TimeoutMS: most}
	if o.until != "" {
		req.Verify = []api.Condition{{URL: o.until}}
	}
	if o.quiet {
		no := false
		req.Notify = &no
	}
	handed, err := client.StartHandoff(ctx, req)
	if err != nil {
		a.giveUpLogin(ctx, client, started.SessionID)
	}
	return started, handed, err
}

// awaitLogin shows the way and waits until the person is done.
func (a *app) awaitLogin(ctx context.Context, client *api.Client, started *api.StartAnswer, handed *api.Handoff) (*api.Handoff, error) {
	view := ""
	if started.LiveViewURL != nil {
		view = *started.LiveViewURL
	}
	way, err := a.wayIn(ctx, client, started.SessionID, view)
	if err != nil {
		return nil, err
	}
	typed := a.typedLines()
	opens := typed != nil && view != "" && opener(a.getenv) != nil
	a.tellWay(way, handed, opens, a.command("setup", "phone"))
	done := a.progress("waiting for you")
	defer done()
	type result struct {
		handoff *api.Handoff
		err     error
	}
	over := make(chan result, 1)
	go func() {
		defer guard.Catch("command line")
		h, err := await(ctx, client, handed.HandoffID, 0)
		over <- result{h, err}
	}()
	for {
		select {
		case r := <-over:
			return r.handoff, r.err
		case <-typed:
			if opens {
				if err := openHere(ctx, a.getenv, view); err != nil {
					a.errorf("No browser could be opened here: %s\n", clean(err.Error()))
				}
			}
		}
	}
}

// giveUpLogin ends the session of a login that came to nothing; what was saved
// before stays as it was.
func (a *app) giveUpLogin(ctx context.Context, client *api.Client, session string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	none := false
	_, _ = client.Stop(ctx, session, api.StopRequest{SaveContext: &none}) // the session ends by its deadline else
}

// keepLogin saves the login and says what is known of it.
func (a *app) keepLogin(ctx context.Context, client *api.Client, session, name string) error {
	done := a.progress("saving the login")
	defer done()
	save := true
	stopped, err := client.Stop(ctx, session, api.StopRequest{SaveContext: &save})
	if err != nil {
		return err
	}
	if !stopped.ContextSaved {
		return fault.New(fault.Internal, "save the login", "it was not saved").WithHint("See logs/sidecar.log in tapin's home, and try again.")
	}
	kept, err := client.Context(ctx, name)
	done()
	if err != nil {
		return err
	}
	return a.answer(kept, func() {
		p := a.paint(a.env.Stdout)
		a.printf("%s Saved. An agent starts with it by its name: %s\n", p.green("✓"), a.command("open", clean(kept.Domain), "--context", clean(kept.Name)))
		a.tellContext(kept)
		if kept.Lifetime == nil || kept.Lifetime.Count == 0 {
			a.printf("%s\n", p.dim("How long it lasts is known once it has run out for the first time; you are asked again then."))
		}
	})
}
