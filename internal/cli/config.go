package cli

import (
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"tapin/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show, check and change the settings",
		Long: `Settings come from config.yaml in tapin's home, then from the environment
(listen.control is TAPIN_LISTEN_CONTROL), then from --set. Later ones win.`,
		Example: `  tapin config show
  tapin config set tunnel=cloudflared
  tapin config edit`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "show", Short: "Show every setting, and where it comes from",
			Long:    "Shows every setting with its value, and behind it where that comes from. Secrets\nare masked.",
			Example: "  tapin config show\n  tapin config show --json", Args: arguments(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error { return a.configShow() },
		},
		&cobra.Command{
			Use: "check", Short: "Check whether the settings are valid",
			Long:    "Reads the settings as tapin would, and names each mistake with its line.",
			Example: "  tapin config check", Args: arguments(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error { return a.configCheck() },
		},
		a.configSetCommand(), a.configEditCommand(),
		&cobra.Command{
			Use: "keys", Short: "List what can be set, and what it is for",
			Long:    "Lists every setting with its type, its default and what it is for.",
			Example: "  tapin config keys\n  tapin config keys --json", Args: arguments(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error { return a.configKeys() },
		},
	)
	return cmd
}

func (a *app) configShow() error {
	cfg, origins, err := a.settings()
	if err != nil {
		return err
	}
	var answer struct {
		Settings map[string]any    `json:"settings"`
		Origins  map[string]string `json:"origins"`
	}
	if err := yaml.Unmarshal(config.Render(cfg), &answer.Settings); err != nil {
		return err
	}
	answer.Origins = map[string]string{}
	for _, k := range config.Keys() {
		answer.Origins[k.Path] = origins.Of(k.Path).String()
	}
	return a.answer(answer, func() { a.printf("%s", config.Explain(cfg, origins)) })
}

func (a *app) configCheck() error {
	_, origins, err := a.settings()
	if err != nil {
		return err
	}
	home, err := a.homePath()
	if err != nil {
		return err
	}
	set := 0
	for _, k := range config.Keys() {
		if origins.Of(k.Path).Source != config.FromDefault {
			set++
		}
	}
	file := filepath.Join(home, configFile)
	return a.answer(map[string]any{"file": file, "set": set}, func() {
		a.printf("%s The settings are valid: %d set, the rest are defaults.\n", a.paint(a.env.Stdout).green("✓"), set)
	})
}

func (a *app) configKeys() error {
	type key struct {
		Path    string   `json:"path"`
		Type    string   `json:"type"`
		Default string   `json:"default"`
		Doc     string   `json:"doc"`
		Env     string   `json:"env"`
		Values  []string `json:"values,omitempty"`
	}
	var keys []key
	for _, k := range config.Keys() {
		keys = append(keys, key(k))
	}
	return a.answer(map[string]any{"keys": keys}, func() {
		p := a.paint(a.env.Stdout)
		for _, k := range keys {
			a.printf("%s  %s\n    %s\n", p.bold(k.Path), p.dim(k.Type+", default "+k.Default), k.Doc)
		}
	})
}
