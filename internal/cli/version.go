package cli

import (
	"bytes"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the build; a build without it knows its commit at best.
var version string

// built is what a program knows of how it was made.
type built struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func build() built {
	b := built{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		changed := false
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value[:min(12, len(s.Value))]
			case "vcs.modified":
				changed = s.Value == "true"
			}
		}
		if changed && b.Commit != "" {
			b.Commit += " with changes"
		}
	}
	if b.Version == "" {
		b.Version = "development"
	}
	return b
}

func buildVersion() string { return build().Version }

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show which tapin this is",
		Example: "  tapin version\n  tapin version --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := build()
			return a.answer(b, func() {
				a.rows(row{"tapin", b.Version}, row{"commit", b.Commit}, row{"go", b.Go}, row{"platform", b.Platform})
			})
		},
	}
}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a completion script for your shell",
		Example: `  source <(tapin completion bash)
  tapin completion zsh > "${fpath[1]}/_tapin"
  tapin completion fish > ~/.config/fish/completions/tapin.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var script bytes.Buffer
			var err error
			switch root := cmd.Root(); args[0] {
			case "bash":
				err = root.GenBashCompletionV2(&script, true)
			case "zsh":
				err = root.GenZshCompletion(&script)
			default:
				err = root.GenFishCompletion(&script, true)
			}
			if err != nil {
				return err
			}
			return a.answer(map[string]string{"shell": args[0], "script": script.String()}, func() { a.printf("%s", &script) })
		},
	}
}
