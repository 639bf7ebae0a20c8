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
		Example: "  tapin skill install\n  tapin skill install print",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
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
		if skillFolder(host) == "" {
			if err := a.answer(map[string]string{"skill": string(skills.Tapin)}, func() { a.printf("%s", skills.Tapin) }); err != nil {
				return err
			}
			continue
		}
		c, err := skillChange(host, root)
		if err != nil {
			return err
		}
		if err := a.apply(ctx, c, o); err != nil {
			return err
		}
	}
	return nil
}

// skillFolder is where a host looks for skills. Codex reads the folder that
// agents share.
func skillFolder(host string) string {
	return map[string]string{"claude-code": ".claude", "codex": ".agents"}[host]
}

// skillChange is what has to become of the skill of a host.
func skillChange(host, root string) (change, error) {
	c, err := edit(filepath.Join(root, skillFolder(host), "skills", "tapin", "SKILL.md"), func([]byte) ([]byte, error) { return skills.Tapin, nil })
	c.what = host
	if c.old == nil {
		c.mode = 0o644
	}
	return c, err
}
