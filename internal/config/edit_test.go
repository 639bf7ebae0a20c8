package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestEditChangesOneKeyAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, path, value, want string }{
		"an empty file":              {"", "tunnel", "tailscale", "tunnel: tailscale\n"},
		"a file of comments":         {"# mine\n", "listen.control", "127.0.0.1:4000", "# mine\nlisten:\n  control: \"127.0.0.1:4000\"\n"},
		"a key with a comment":       {"tunnel: none # later\nlan: watch\n", "tunnel", "cloudflared", "tunnel: cloudflared # later\nlan: watch\n"},
		"a key that is there":        {"# a\nmax_sessions: 2\n\n# b\ntunnel: none\n", "max_sessions", "3", "# a\nmax_sessions: 3\n\n# b\ntunnel: none\n"},
		"a further key of a section": {"listen:\n    public: 127.0.0.1:1\n# end\nlan: watch\n", "listen.control", "127.0.0.1:2", "listen:\n    public: 127.0.0.1:1\n    control: \"127.0.0.1:2\"\n# end\nlan: watch\n"},
		"a section of comments":      {"listen:\n  # control: x\nlan: watch\n", "listen.control", "127.0.0.1:2", "listen:\n  control: \"127.0.0.1:2\"\n  # control: x\nlan: watch\n"},
		"a list over several lines":  {"egress:\n  allow:\n    - a.example\n    - b.example\n  block_private: true\n", "egress.allow", "c.example", "egress:\n  allow: [c.example]\n  block_private: true\n"},
		"no break at the end":        {"lan: watch", "tunnel", "none", "lan: watch\ntunnel: none\n"},
		"three sections deep":        {"integrations:\n  browserbase:\n    block_ads: true\nlan: watch\n", "integrations.browserbase.idle_warning", "4m", "integrations:\n  browserbase:\n    block_ads: true\n    idle_warning: 4m\nlan: watch\n"},
		"a value with a hash":        {"public_url: \"https://a.example\" # mine\n", "public_url", "https://b.example", "public_url: \"https://b.example\" # mine\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Edit([]byte(tt.file), "config.yaml", tt.path, tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, path, value, says string }{
		"no such key":               {"", "tunel", "none", `did you mean "tunnel"`},
		"no such value":             {"", "tunnel", "ngrok", "tunnel"},
		"a file that is broken":     {"tunnel: [\n", "lan", "watch", "config.yaml:"},
		"a secret":                  {"", "cdp.url", "wss://hunter2", "secret"},
		"what contradicts the rest": {"", "listen.control", "0.0.0.0:1", "loopback"},
		"a section in braces":       {"listen: {public: \"127.0.0.1:1\"}\n", "listen.control", "127.0.0.1:2", "without changing something else"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Edit([]byte(tt.file), "config.yaml", tt.path, tt.value)
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("said %v", err)
			}
		})
	}
}

// Whatever a file looks like, either the key has the value afterwards and all
// else is as before, or nothing is returned.
func TestEditLosesNoComment(t *testing.T) {
	t.Parallel()
	pieces := []string{"# one\n", "\n", "tunnel: none # two\n", "listen:\n", "  control: 127.0.0.1:5000\n", "  # three\n", "lan: 'off'\n", "egress:\n  allow:\n  - a.example # four\n", "max_sessions: 2\n"}
	rapid.Check(t, func(t *rapid.T) {
		file := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "file"), "")
		key := rapid.SampledFrom([][2]string{{"tunnel", "tailscale"}, {"listen.public", "127.0.0.1:6001"}, {"egress.block_private", "false"}, {"max_sessions", "7"}}).Draw(t, "key")
		got, err := Edit([]byte(file), "config.yaml", key[0], key[1])
		if err != nil {
			return
		}
		for line := range strings.Lines(file) {
			if _, comment, ok := strings.Cut(line, "#"); ok && strings.Count(string(got), "#"+comment) < strings.Count(file, "#"+comment) {
				t.Fatalf("lost %q of\n%s\nin\n%s", comment, file, got)
			}
		}
		again, err := Edit(got, "config.yaml", key[0], key[1])
		if err != nil || string(again) != string(got) {
			t.Fatalf("a second time: %v\n%s", err, again)
		}
	})
}
