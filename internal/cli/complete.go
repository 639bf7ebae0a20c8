package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/sidecar"
	"tapin/internal/vault"
)

// completeWithin bounds a completion: a shell that hangs is worse than none.
const completeWithin = time.Second

// offer completes the first argument of commands with what there is.
func (a *app) offer(root *cobra.Command) {
	running := func(ctx context.Context, c *api.Client) (ids []string) {
		if got, err := c.Handoffs(ctx, api.HandoffsQuery{Status: "RUNNING"}); err == nil {
			for _, h := range got.Handoffs {
				ids = append(ids, h.HandoffID+"\t"+h.Reason+" "+h.Before.Origin)
			}
		}
		return ids
	}
	pending := func(ctx context.Context, c *api.Client) (ids []string) {
		if got, err := c.Approvals(ctx, api.ApprovalsQuery{Status: "pending"}); err == nil {
			for _, p := range got.Approvals {
				ids = append(ids, p.ApprovalID+"\t"+p.Amount+" "+p.Currency+" to "+p.Payee)
			}
		}
		return ids
	}
	asked := map[string]func(context.Context, *api.Client) []string{
		"approve": pending, "deny": pending,
		"context show": contextNames, "context check": contextNames, "context rename": contextNames, "context delete": contextNames, "context export": contextNames,
		"runs": func(ctx context.Context, c *api.Client) (ids []string) {
			if got, err := c.Runs(ctx, api.RunsQuery{}); err == nil {
				for _, r := range got.Runs {
					ids = append(ids, r.RunID+"\t"+r.Goal)
				}
			}
			return ids
		},
		"todos done": func(ctx context.Context, c *api.Client) (ids []string) {
			if got, err := c.Todos(ctx); err == nil {
				for _, t := range got.Todos {
					ids = append(ids, t.TodoID+"\t"+t.Site)
				}
			}
			return ids
		},
		"link end": func(ctx context.Context, c *api.Client) (ids []string) {
			if got, err := c.Links(ctx); err == nil {
				for _, l := range got.Links {
					ids = append(ids, l.LinkID)
				}
			}
			return ids
		},
		"console sign-out": func(ctx context.Context, c *api.Client) (ids []string) {
			if got, err := c.ConsoleDevices(ctx); err == nil {
				for _, d := range got.Devices {
					ids = append(ids, d.DeviceID+"\t"+d.Name)
				}
			}
			return ids
		},
	}
	for _, turn := range []string{"status", "wait", "finish", "cancel", "extend", "park", "resume"} {
		asked["handoff "+turn] = running
	}
	for path, names := range asked {
		find(root, path).ValidArgsFunction = a.firstArgument(func(ctx context.Context) []string { return a.askQuickly(ctx, names) })
	}
	find(root, "token revoke").ValidArgsFunction = a.firstArgument(a.tokenNames)
	for _, path := range []string{"credential set", "credential delete"} {
		find(root, path).ValidArgsFunction = a.firstArgument(a.credentialNames)
	}
	complete(find(root, "open"), "context", func() []string { return a.askQuickly(root.Context(), contextNames) })
	tab := find(root, "tab")
	tab.ValidArgs = nil
	tab.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []cobra.Completion{"switch", "close"}, cobra.ShellCompDirectiveNoFileComp
		}
		return a.askQuickly(cmd.Context(), func(ctx context.Context, c *api.Client) (ids []string) {
			if got, err := c.Tabs(ctx, ""); err == nil {
				for _, t := range got.Tabs {
					ids = append(ids, t.TabID+"\t"+t.Title)
				}
			}
			return ids
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// find is the command of a path that this package itself names.
func find(root *cobra.Command, path string) *cobra.Command {
	cmd, rest, err := root.Find(strings.Fields(path))
	if err != nil || len(rest) > 0 {
		panic("no command " + path) // a mistake in this package
	}
	return cmd
}

func (a *app) firstArgument(names func(context.Context) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}

// askQuickly asks a running tapin, and offers nothing where none answers. What
// comes from pages must not steer the terminal here either.
func (a *app) askQuickly(ctx context.Context, names func(context.Context, *api.Client) []string) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	a.json = true // no progress among the completions
	client, err := a.client(ctx)
	if err != nil {
		return nil
	}
	defer client.Close()
	offered := names(ctx, client)
	for i, o := range offered {
		name, about, _ := strings.Cut(o, "\t")
		offered[i] = clean(name) + "\t" + clean(about)
	}
	return offered
}

func contextNames(ctx context.Context, c *api.Client) (names []string) {
	if got, err := c.Contexts(ctx); err == nil {
		for _, login := range got.Contexts {
			names = append(names, login.Name+"\t"+login.Domain)
		}
	}
	return names
}

func (a *app) tokenNames(context.Context) (names []string) {
	home, err := a.existingHome()
	if err != nil || home == nil {
		return nil
	}
	defer func() { _ = home.Close() }()
	known, err := sidecar.ListTokens(home)
	if err != nil {
		return nil
	}
	for _, t := range known {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

func (a *app) credentialNames(ctx context.Context) (names []string) {
	home, err := a.existingHome()
	if err != nil || home == nil {
		return nil
	}
	defer func() { _ = home.Close() }()
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	kept, err := vault.NewCredentials(home, a.vaultOptions()).List(ctx)
	if err != nil {
		return nil
	}
	for _, k := range kept {
		names = append(names, k.Site)
	}
	return names
}
