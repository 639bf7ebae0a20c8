package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tapin/internal/fault"
	"tapin/skills"
)

func (a *app) skillCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skill",
		Short: "Teach an agent to use tapin well",
		Long: `A skill is a page that an agent reads when it needs it: which tool when, how to
hand over to the owner, how to wait, what never to do.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var o installOptions
	install := &cobra.Command{
		Use:       "install [claude-code|codex|print]",
		Short:     "Put the skill where an agent finds it",
		Example:   "  tapin skill install\n  tapin skill install claude-code --scope project",
		ValidArgs: []cobra.Completion{"claude-code", "codex", "print"},
		Args:      arguments(cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs)),
		RunE:      func(cmd *cobra.Command, args []string) error { return a.skillInstall(cmd.Context(), args, o) },
	}
	o.flags(install)
	cmd.AddCommand(install)
	return cmd
}

func (a *app) skillInstall(ctx context.Context, hosts []string, o installOptions) error {
	root := a.getenv("HOME")
	switch o.scope {
	case "user":
	case "project":
		here, err := os.Getwd()
		if err != nil {
			return err
		}
		root = here
	default:
		return fault.New(fault.InvalidRequest, "", "a skill has no scope %q", clean(o.scope)).WithHint("Use user or project.")
	}
	if len(hosts) == 0 {
		if hosts = a.hostsHere(); hosts[0] == "json" {
			hosts = []string{"claude-code"}
		}
	}
	for _, host := range hosts {
		// Codex reads the folder that agents share.
		folder := map[string]string{"claude-code": ".claude", "codex": ".agents"}[host]
		if folder == "" {
			a.printf("%s", skills.Tapin)
			continue
		}
		c, err := edit(filepath.Join(root, folder, "skills", "tapin", "SKILL.md"), func([]byte) ([]byte, error) { return skills.Tapin, nil })
		if err != nil {
			return err
		}
		c.what = host
		if c.old == nil {
			c.mode = 0o644
		}
		if err := a.apply(ctx, c, o); err != nil {
			return err
		}
	}
	return nil
}
