package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/secret"
)

// samples are values other than the default for the keys whose form is
// checked; the rest get one by type. A new key that is checked fails here
// until it has a sample.
var samples = map[string]string{
	"listen.control":         "127.0.0.1:4100",
	"listen.public":          "0.0.0.0:4200",
	"public_url":             "https://tapin.example.com",
	"telegram.api_url":       "http://127.0.0.1:8081",
	"browser.locale":         "de-CH",
	"browser.timezone":       "Europe/Zurich",
	"browser.upstream_proxy": "socks5://user:pass@proxy.example.com:1080",
	"cdp.url":                "wss://cdp.example.com/devtools?key=1",
	"on_resume.webhook":      "https://hooks.example.com/x",
	"browser.args":           "--mute-audio,--lang=de",
	"integrations.browserbase.default_region": "eu-central-1",
}

func sample(s setting) string {
	if text, ok := samples[s.path]; ok {
		return text
	}
	t, many := s.typ, 1
	switch t.Kind() {
	case reflect.Map:
		return "{X-One: first, X-Two: second}"
	case reflect.Slice:
		t, many = t.Elem(), 2
	}
	text := "sample"
	switch zero := reflect.Zero(t).Interface(); {
	case values(t) != nil && t.Kind() == reflect.Bool:
		if reflect.ValueOf(Default()).Elem().FieldByIndex(s.index).Bool() {
			return "false"
		}
		return "true"
	case values(t) != nil:
		text = values(t)[1]
	case zero == any(Duration(0)):
		text = "77m"
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		text = "7"
	}
	if many == 2 {
		return text + "," + text + "1"
	}
	return text
}

// asFile writes one key as YAML.
func asFile(s setting, text string) string {
	switch s.typ.Kind() {
	case reflect.Slice:
		text = "[" + strings.ReplaceAll(text, ",", ", ") + "]"
	case reflect.Map:
	default:
		text = "'" + text + "'"
	}
	var out strings.Builder
	parts := strings.Split(s.path, ".")
	for i, part := range parts {
		out.WriteString(strings.Repeat("  ", i) + part + ":")
		if i < len(parts)-1 {
			out.WriteString("\n")
		}
	}
	return out.String() + " " + text + "\n"
}

// An item of a duration list must stay a duration with the suffix above.
func listFit(s setting, text string) string {
	if s.typ == reflect.TypeFor[[]Duration]() {
		return "5m,77m"
	}
	return text
}

func TestEveryKeyCanBeSetByFileVariableAndFlag(t *testing.T) {
	t.Parallel()
	for _, s := range settings {
		text := listFit(s, sample(s))
		for name, tt := range map[string]struct {
			in   Inputs
			from Source
		}{
			"file":     {Inputs{File: []byte(asFile(s, text))}, FromFile},
			"variable": {Inputs{Env: []string{s.env + "=" + text}}, FromEnv},
			"flag":     {Inputs{Set: []string{s.path + "=" + text}}, FromFlag},
		} {
			t.Run(s.path+" by "+name, func(t *testing.T) {
				t.Parallel()
				cfg, origins, err := Load(tt.in)
				if err != nil {
					t.Fatal(err)
				}
				if got := origins.Of(s.path).Source; got != tt.from {
					t.Errorf("the origin is %v, want %v", got, tt.from)
				}
				got := reflect.ValueOf(cfg).Elem().FieldByIndex(s.index).Interface()
				before := reflect.ValueOf(Default()).Elem().FieldByIndex(s.index).Interface()
				if reflect.DeepEqual(got, before) {
					t.Errorf("the value is still the default, %v", got)
				}
				// What all three sources say must be the same value.
				want, err := valueOf(text, s.typ)
				if err != nil {
					t.Fatal(err)
				}
				field := reflect.New(s.typ).Elem()
				if err := want.into(field); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(field.Interface(), got, cmp.Comparer(secret.Text.Equal)); diff != "" {
					t.Errorf("wrong value (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestEveryKeyIsDescribed(t *testing.T) {
	t.Parallel()
	seen := map[string]string{chromeVar: "browser.path"}
	for _, k := range Keys() {
		if !strings.HasSuffix(k.Doc, ".") || len(k.Doc) < 20 {
			t.Errorf("%s has no sentence in settings.go: %q", k.Path, k.Doc)
		}
		if k.Type == "" || k.Default == "" {
			t.Errorf("%s: type %q, default %q", k.Path, k.Type, k.Default)
		}
		if other, taken := seen[k.Env]; taken {
			t.Errorf("%s and %s share the variable %s", k.Path, other, k.Env)
		}
		seen[k.Env] = k.Path
	}
}

func TestEveryKeyOfTheContractExists(t *testing.T) {
	t.Parallel()
	const contract = `
		integrations.browserbase.enabled integrations.browserbase.sidecar_port integrations.browserbase.default_timeout
		integrations.browserbase.idle_warning integrations.browserbase.handoff_timeout integrations.browserbase.default_region
		integrations.browserbase.block_ads integrations.browserbase.solve_captchas integrations.browserbase.record_sessions
		integrations.browserbase.context_store listen.control listen.public provider browser.path browser.headful browser.args
		browser.upstream_proxy browser.locale browser.timezone cdp.url cdp.headers max_sessions public_url tunnel live_view
		payment_guard telegram.owners telegram.api_url notify.remind_at notify.screenshot on_resume.command on_resume.webhook
		pool.warm browser_tools.enabled lan uploads usage.cap_minutes payment_guard_patterns egress.allow egress.block_private
		retention.handoffs retention.journal retention.logs`
	for _, path := range strings.Fields(contract) {
		if settingByPath[path] == nil {
			t.Errorf("there is no %s", path)
		}
	}
}
