package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

// linkMinutes is how long a link from the terminal opens: it is for the device
// that lies beside it.
const linkMinutes = 60

func (a *app) linkCommand() *cobra.Command {
	req := api.LinkRequest{Minutes: linkMinutes}
	var watch bool
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Make a link into the live browser, for your phone",
		Long: `Makes a personal link into the live browser and prints it, on a terminal only:
whoever opens it first is in. A second device shows a number, and waits until
you let it in. The link ends with its time or with the session, whichever is
first.`,
		Example: "  tapin link\n  tapin link --watch --minutes 10\n  tapin link list",
		Args:    a.knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				req.Mode = "watch"
			}
			return a.mintLink(cmd.Context(), req)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "only to watch, never to drive")
	cmd.Flags().IntVar(&req.Minutes, "minutes", linkMinutes, "how long it opens, in `minutes`")
	cmd.Flags().StringVar(&req.SessionID, "session", "", "the session to open, by `ID`")
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the links, and who waits at them", Example: "  tapin link list", Args: arguments(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error { return a.listLinks(cmd.Context()) },
		},
		&cobra.Command{
			Use: "end ID", Short: "End a link, at once", Example: "  tapin link end lnk_06cz3qmhc04x2p5ae9gk8v71", Args: arguments(cobra.ExactArgs(1)),
			RunE: func(cmd *cobra.Command, args []string) error {
				return drive(cmd.Context(), a, "ending it", func(ctx context.Context, c *api.Client) (*api.RevokedLink, error) {
					return c.RevokeLink(ctx, args[0])
				}, func(got *api.RevokedLink) { a.printf("%s opens nothing any more.\n", clean(got.LinkID)) })
			},
		},
	)
	return cmd
}

func (a *app) mintLink(ctx context.Context, req api.LinkRequest) error {
	if a.json || !a.env.IsTerminal(a.env.Stdout) {
		// Before one is made: what stands in a file or a log would open it.
		return fault.New(fault.InvalidRequest, "", "a link that opens your browser is printed on a terminal only").
			WithHint("Run %s there, without a pipe and without --json.", a.command("link"))
	}
	var lan []string
	return drive(ctx, a, "making a link", func(ctx context.Context, c *api.Client) (*api.MintedLink, error) {
		if at, err := c.Public(ctx); err == nil {
			lan = at.LAN
		}
		return c.MintLink(ctx, req)
	}, func(got *api.MintedLink) {
		p := a.paint(a.env.Stdout)
		if got.ProviderView {
			a.printf("%s\n%s This is the provider's own view of the tab in front: whoever has the link can act in it, and it ends with the session.\n",
				p.bold(clean(got.OpenURL.Reveal())), p.bang())
			return
		}
		a.printf("%s\n", p.bold(clean(got.OpenURL.Reveal())))
		lives := time.Until(got.ExpiresAt).Round(time.Minute)
		a.printf("Opens for the first device, for %d minutes%s. End it with: %s\n",
			int(lives.Minutes()), map[string]string{"watch": ", to watch"}[got.Mode], a.command("link", "end", got.LinkID))
		if !isHere(got.URL) {
			a.printQR(got.OpenURL)
			return
		}
		a.printf("It leads to this machine; a phone cannot open it. For your phone: %s\n", a.command("setup", "phone"))
		if near, err := nearby(got.OpenURL, lan); err == nil {
			a.printf("In the same Wi-Fi a phone can watch by it, not drive:\n%s\n", p.bold(clean(near.Reveal())))
			a.printQR(near)
		}
	})
}

// isHere reports whether an address opens on this machine alone.
func isHere(address string) bool {
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	return strings.HasPrefix(address, "http://") && isLoopback(host)
}

func (a *app) listLinks(ctx context.Context) error {
	return drive(ctx, a, "asking", func(ctx context.Context, c *api.Client) (*api.Links, error) { return c.Links(ctx) },
		func(got *api.Links) {
			if len(got.Links) == 0 {
				a.printf("There are no links.\n")
			}
			for _, l := range got.Links {
				state := "not opened yet"
				if l.Claimed {
					state = "opened"
				}
				for _, n := range l.Waiting {
					state += fmt.Sprintf("; device %d waits", n)
				}
				a.printf("%s  %s  until %s  %s\n", clean(l.LinkID), pad(l.Mode, 5), l.ExpiresAt.Local().Format("2006-01-02 15:04"), state)
			}
		})
}

func (a *app) deviceCommand() *cobra.Command {
	var link string
	cmd := &cobra.Command{
		Use:   "device NUMBER",
		Short: "Let the device in that shows this number",
		Long: `Lets a device in that has opened a link and shows a number of two digits. The
device that had the link before is shut out. Do it only when the number is on a
screen that you have in your hand.`,
		Example: "  tapin device 47",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.Atoi(args[0])
			if err != nil || number < 10 || number > 99 {
				return fault.New(fault.InvalidRequest, "", "a device shows a number from 10 to 99").WithHint("It is on its screen.")
			}
			return drive(cmd.Context(), a, "letting it in", func(ctx context.Context, c *api.Client) (*api.Link, error) {
				id, err := a.waitsAt(ctx, c, link, number)
				if err != nil {
					return nil, err
				}
				return c.MoveLink(ctx, id, number)
			}, func(*api.Link) { a.printf("Device %d is in.\n", number) })
		},
	}
	cmd.Flags().StringVar(&link, "link", "", "the link it waits at, by `ID`, where two devices show the same number")
	return cmd
}

// waitsAt finds the one link at which a device waits with the number.
func (a *app) waitsAt(ctx context.Context, c *api.Client, link string, number int) (string, error) {
	all, err := c.Links(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, l := range all.Links {
		if slices.Contains(l.Waiting, number) && (link == "" || link == l.LinkID) {
			found = append(found, l.LinkID)
		}
	}
	switch len(found) {
	case 0:
		return "", fault.New(fault.NotFound, "", "no device waits with the number %d", number).
			WithHint("It shows it for ten minutes; open the link on it once more. %s lists who waits.", a.command("link", "list"))
	case 1:
		return found[0], nil
	}
	return "", fault.New(fault.InvalidRequest, "", "%d devices show the number %d", len(found), number).
		WithHint("Say at which link: %s", a.command("device", strconv.Itoa(number), "--link", found[0]))
}
