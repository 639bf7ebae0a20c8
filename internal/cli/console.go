package cli

import (
	"context"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

func (a *app) consoleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Sign in to your inbox on the web",
		Long: `Shows an address that signs one device in to the console: what waits for you,
what runs, the saved logins, and what was done. It works once, and for a few
minutes; the device stays signed in. It is shown on a terminal only, where no
log and no agent reads along.`,
		Example: "  tapin console\n  tapin console devices\n  tapin console sign-out dev_…",
		Args:    a.knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.consoleSignIn(cmd.Context()) },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "devices", Short: "List the devices that are signed in", Example: "  tapin console devices", Args: arguments(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error { return a.consoleDevices(cmd.Context()) },
		},
		&cobra.Command{
			Use: "sign-out DEVICE", Short: "Sign a device out, and end what it has open", Args: arguments(cobra.ExactArgs(1)),
			Example: "  tapin console devices\n  tapin console sign-out dev_…",
			RunE:    func(cmd *cobra.Command, args []string) error { return a.signOutDevice(cmd.Context(), args[0]) },
		},
	)
	return cmd
}

// consoleSignIn shows a sign-in. Whoever reads it first is the owner, so it goes
// to a terminal or nowhere.
func (a *app) consoleSignIn(ctx context.Context) error {
	if a.json || !a.env.IsTerminal(a.env.Stdout) {
		// Before one is made: what stands in a file or a log would sign somebody in.
		return fault.New(fault.InvalidRequest, "", "a sign-in is shown on a terminal only").
			WithHint("Run %s there, without a pipe and without --json.", a.command("console"))
	}
	return drive(ctx, a, "making a sign-in", func(ctx context.Context, c *api.Client) (*api.ConsoleSignIn, error) {
		return c.ConsoleSignIn(ctx)
	}, func(got *api.ConsoleSignIn) {
		p := a.paint(a.env.Stdout)
		a.printf("\n  %s\n\n  %s\n\n", p.bold("Open this to sign in to the console"), clean(got.OpenURL.Reveal()))
		if isHere(got.OpenURL.Reveal()) {
			a.printf("  %s It leads to this machine; a phone cannot open it.\n    For your phone: %s\n\n", p.bang(), p.bold(a.command("setup", "phone")))
		} else {
			a.printQR(got.OpenURL)
		}
		a.printf("  %s\n\n", p.dim("It signs one device in, until "+got.ExpiresAt.Local().Format("15:04")+". Show it to nobody."))
	})
}

// printQR draws an address, where that is possible.
func (a *app) printQR(address secret.Text) {
	lines, err := qrLines(address, a.paint(a.env.Stdout))
	if err != nil {
		return // it can be typed
	}
	for _, line := range lines {
		a.printf("  %s\n", line)
	}
	a.printf("\n")
}

func (a *app) consoleDevices(ctx context.Context) error {
	return drive(ctx, a, "asking", func(ctx context.Context, c *api.Client) (*api.ConsoleDevices, error) {
		return c.ConsoleDevices(ctx)
	}, func(got *api.ConsoleDevices) {
		if len(got.Devices) == 0 {
			a.printf("No device is signed in; sign one in with: %s\n", a.command("console"))
		}
		for _, d := range got.Devices {
			a.printf("%s  %s  %s\n", clean(d.DeviceID), pad(clean(d.Name), 26), a.paint(a.env.Stdout).dim("seen "+d.SeenAt.Local().Format("2006-01-02 15:04")))
		}
	})
}

func (a *app) signOutDevice(ctx context.Context, id string) error {
	return drive(ctx, a, "signing it out", func(ctx context.Context, c *api.Client) (*api.SignedOutDevice, error) {
		return c.SignOutDevice(ctx, id)
	}, func(*api.SignedOutDevice) { a.printf("Signed out. Whatever it had open is closed.\n") })
}

// console tells on the first screen where the inbox is. As long as no device is
// signed in there is a sign-in with it, where somebody looks.
func (s *screen) console(ctx context.Context) {
	client, err := s.app.clientOf(ctx, s.home)
	if err != nil {
		return
	}
	defer client.Close()
	where, err := client.Public(ctx)
	if err != nil {
		return // a sidecar without one
	}
	p := s.app.paint(s.app.env.Stdout)
	known, err := client.ConsoleDevices(ctx)
	var made *api.ConsoleSignIn
	if err == nil && len(known.Devices) == 0 && s.app.env.IsTerminal(s.app.env.Stdout) {
		made, _ = client.ConsoleSignIn(ctx)
	}
	if made == nil {
		s.line("console", where.URL+"/console", p.dim("Sign a device in with: "+s.app.command("console")))
		return
	}
	s.line("console", made.OpenURL.Reveal(), p.dim("Signs one device in, until "+made.ExpiresAt.Local().Format("15:04")+". Show it to nobody."))
	if isHere(made.OpenURL.Reveal()) {
		return
	}
	if lines, err := qrLines(made.OpenURL, p); err == nil {
		s.line("", lines...)
	}
}
