package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/mcpserver"
	"tapin/internal/sidecar"
)

func (a *app) mcpCommand() *cobra.Command {
	var o mcpserver.Options
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve an MCP host over standard input and output",
		Long: `Serves the tools of tapin to an MCP host, such as Claude Code or Codex, over
standard input and output. The browser belongs to tapin and not to the host:
one that dies or connects twice loses nothing. If tapin is not running, the
first call of a tool starts it in the background.

A host writes an entry for it with "tapin mcp install".`,
		Example: `  tapin mcp                       as a host starts it
  tapin mcp --slim                only what most pages need, and the hand-off
  tapin mcp install claude-code   add it to a host`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveMCP(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.Slim, "slim", false, "offer only the hand-off and the core of the browser tools")
	cmd.Flags().StringSliceVar(&o.Caps, "caps", nil, "offer only these groups of tools, such as browser,handoff")
	cmd.AddCommand(a.mcpInstallCommand())
	return cmd
}

// serveMCP speaks the protocol on standard output, where nothing else may stand.
func (a *app) serveMCP(ctx context.Context, o mcpserver.Options) error {
	o.Version, o.Logger = buildVersion(), a.logger()
	// Settings that cannot be read are told by whatever starts the sidecar.
	if cfg, _, err := a.settings(); err == nil {
		o.NoOneShots = !cfg.BrowserTools.Enabled
	}
	server, err := mcpserver.New(&o)
	if err != nil {
		return err
	}
	a.json = true // no progress on a terminal that is not there
	return server.Run(ctx, a.env.Stdin, a.env.Stdout, a.agentClient)
}

// agentClient is a client of the sidecar with the agent's token. Where nothing
// runs it starts a daemon, and leaves it running.
func (a *app) agentClient(ctx context.Context) (*api.Client, error) {
	home, err := a.openHome()
	if err != nil {
		return nil, err
	}
	defer func() { _ = home.Close() }()
	address, err := a.sidecarAt(ctx, home)
	if errors.Is(err, api.ErrNotRunning) {
		s := &screen{app: a, home: home}
		// BUSY: somebody else has started it meanwhile.
		if _, err := s.detach(ctx); err != nil && !errors.Is(err, fault.Busy) {
			return nil, err
		}
		address, err = a.sidecarAt(ctx, home)
	}
	if err != nil {
		return nil, err
	}
	return clientWith(home, address, sidecar.AgentTokenFile)
}
