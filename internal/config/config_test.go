package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

const canary = "canary5f1d0c"

func TestNothingGivenMeansTheDefaults(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(filepath.Join("testdata", "defaults.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"no file":                       "",
		"a comment":                     "# nothing yet\n",
		"a document mark":               "---\n",
		"headings with nothing in them": "listen:\negress:\nprovider:\n",
		"an empty map":                  "{}",
		"what Render writes":            string(want),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _, err := config.Load(config.Inputs{File: []byte(file)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(config.Render(cfg))); diff != "" {
				t.Errorf("not the defaults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheConfigBlockUsersAlreadyHaveWorks(t *testing.T) {
	t.Parallel()
	cfg, origins, err := config.Load(config.Inputs{FileName: "home.yaml", File: []byte(`integrations:
  browserbase:
    enabled: true
    sidecar_port: 3999
    default_timeout: 1200       # 20 min per session
    idle_warning: 300
    handoff_timeout: 1h
    default_region: "us-west-2"
    block_ads: false
    solve_captchas: false
    record_sessions: true
    context_store: ".claude/state/browser-contexts.yaml"
`)})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Browserbase{
		Enabled: true, SidecarPort: 3999, DefaultTimeout: config.Duration(20 * time.Minute), IdleWarning: config.Duration(5 * time.Minute),
		HandoffTimeout: config.Duration(time.Hour), DefaultRegion: "us-west-2", RecordSessions: true, ContextStore: ".claude/state/browser-contexts.yaml",
	}
	if diff := cmp.Diff(want, cfg.Integrations.Browserbase); diff != "" {
		t.Error(diff)
	}
	if cfg.Listen.Control != "127.0.0.1:3999" || origins.Of("listen.control").String() != "home.yaml:4" {
		t.Errorf("sidecar_port does not set listen.control: %s from %v", cfg.Listen.Control, origins.Of("listen.control"))
	}
	if diff := cmp.Diff([]config.Duration{want.IdleWarning}, cfg.Notify.RemindAt); diff != "" {
		t.Errorf("remind_at does not follow idle_warning: %s", diff)
	}
}

func TestLaterSourcesOverrideEarlierOnes(t *testing.T) {
	t.Parallel()
	file := []byte("provider: browserbase\nmax_sessions: 2\ntunnel: tailscale\n")
	env := []string{"PATH=/bin", "TAPIN_PROVIDER=cdp", "TAPIN_MAX_SESSIONS=3", "TAPIN_LAN=", "TAPIN_HOME=/x", "TAPIN_VAULT_KEY=k", "TAPIN_CHAOS=full", "TAPIN_TEST_X=1"}
	cfg, origins, err := config.Load(config.Inputs{File: file, Env: env, Set: []string{"max_sessions=4", "max_sessions=5"}})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Provider != config.ProviderCDP || cfg.MaxSessions != 5 || cfg.Tunnel != config.TunnelTailscale || cfg.LAN != config.LANOff {
		t.Errorf("got provider %s, max_sessions %d, tunnel %s, lan %s", cfg.Provider, cfg.MaxSessions, cfg.Tunnel, cfg.LAN)
	}
	for path, want := range map[string]string{
		"provider": "TAPIN_PROVIDER", "max_sessions": "--set max_sessions", "tunnel": "config.yaml:3", "lan": "default",
	} {
		if got := origins.Of(path).String(); got != want {
			t.Errorf("%s comes from %q, want %q", path, got, want)
		}
	}
	if got := string(config.Explain(cfg, origins)); !strings.Contains(got, "provider: cdp # TAPIN_PROVIDER\n") {
		t.Errorf("Explain does not tell origins:\n%s", got)
	}
}

func TestControlAddressAndItsShortForm(t *testing.T) {
	t.Parallel()
	const port, control = "integrations.browserbase.sidecar_port=", "listen.control="
	for name, tt := range map[string]struct {
		in       config.Inputs
		control  string
		complain string
	}{
		"the address sets the port":             {config.Inputs{Set: []string{control + "[::1]:5"}}, "[::1]:5", ""},
		"the stronger source wins: port":        {config.Inputs{File: []byte("listen: {control: 'localhost:5'}"), Set: []string{port + "6"}}, "127.0.0.1:6", ""},
		"the stronger source wins: address":     {config.Inputs{File: []byte("integrations: {browserbase: {sidecar_port: 6}}"), Set: []string{control + "127.0.0.2:7"}}, "127.0.0.2:7", ""},
		"both may say the same":                 {config.Inputs{Set: []string{control + "127.0.0.1:8", port + "8"}}, "127.0.0.1:8", ""},
		"both at once must agree":               {config.Inputs{Set: []string{control + "127.0.0.1:8", port + "9"}}, "", "keep one of them"},
		"port 0 lets the system choose":         {config.Inputs{Set: []string{control + "127.0.0.1:0", "listen.public=127.0.0.1:0"}}, "127.0.0.1:0", ""},
		"every interface is refused":            {config.Inputs{Set: []string{control + "0.0.0.0:3849"}}, "", "must be a loopback address"},
		"an empty host is refused":              {config.Inputs{Set: []string{control + ":3849"}}, "", "must be a loopback address"},
		"a name that may resolve anywhere":      {config.Inputs{Set: []string{control + "localhost.example.com:1"}}, "", "must be a loopback address"},
		"a port that is none":                   {config.Inputs{Set: []string{control + "127.0.0.1:http"}}, "", "must end in a port"},
		"a port out of range":                   {config.Inputs{Set: []string{port + "65536"}}, "", "from 0 to 65535"},
		"both listeners on one address":         {config.Inputs{Set: []string{control + "127.0.0.1:3850", "listen.public=127.0.0.1:3850"}}, "", "must differ from listen.control"},
		"an address without a port is no guess": {config.Inputs{Set: []string{control + "127.0.0.1"}}, "", "must be host:port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _, err := config.Load(tt.in)
			if tt.complain != "" {
				if err == nil || !strings.Contains(err.Error(), tt.complain) {
					t.Fatalf("got %v, want %q", err, tt.complain)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Listen.Control != tt.control {
				t.Errorf("got %s, want %s", cfg.Listen.Control, tt.control)
			}
			if _, port, _ := strings.Cut(tt.control[strings.LastIndex(tt.control, ":"):], ":"); port != strconv.Itoa(cfg.Integrations.Browserbase.SidecarPort) {
				t.Errorf("sidecar_port %d does not follow %s", cfg.Integrations.Browserbase.SidecarPort, tt.control)
			}
		})
	}
}

func TestThePublicPortFollowsTheControlPortUnlessItIsSet(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set  []string
		want string
	}{
		"by default":                  {nil, "127.0.0.1:3850"},
		"beside a port of one's own":  {[]string{"listen.control=127.0.0.1:5000"}, "127.0.0.1:5001"},
		"by the short form":           {[]string{"integrations.browserbase.sidecar_port=6000"}, "127.0.0.1:6001"},
		"where the system chooses":    {[]string{"listen.control=127.0.0.1:0"}, "127.0.0.1:0"},
		"at the last port":            {[]string{"listen.control=127.0.0.1:65535"}, "127.0.0.1:65534"},
		"never where it is set":       {[]string{"listen.control=127.0.0.1:5000", "listen.public=0.0.0.0:7000"}, "0.0.0.0:7000"},
		"on loopback, whatever it is": {[]string{"listen.control=[::1]:5000"}, "127.0.0.1:5001"},
	} {
		cfg, _, err := config.Load(config.Inputs{Set: tt.set})
		if err != nil || cfg.Listen.Public != tt.want {
			t.Errorf("%s: %v, %v", name, cfg, err)
		}
	}
}

func TestProblemsAreNamedWhereTheyAre(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   config.Inputs
		want []string
	}{
		"all problems of a file at once": {config.Inputs{File: []byte("provder: local\nlisten:\n  contrl: x\n  control: 10.0.0.1:1\nmax_sessions: many\n")}, []string{
			`config.yaml:1:1: there is no setting provder; did you mean "provider"?`,
			`config.yaml:3:3: there is no setting listen.contrl; did you mean "control"?`,
			`config.yaml:4:3: listen.control must be a loopback address`,
			`config.yaml:5:1: max_sessions must be a whole number`,
		}},
		"a key in the wrong place":     {config.Inputs{File: []byte("sidecar_port: 1\n")}, []string{`config.yaml:1:1: there is no setting sidecar_port; did you mean "integrations.browserbase.sidecar_port"?`}},
		"swapped letters":              {config.Inputs{File: []byte("tunnle: none\n")}, []string{`did you mean "tunnel"?`}},
		"a choice":                     {config.Inputs{File: []byte("payment_guard: strcit\n")}, []string{`must be one of strict, warn, off; did you mean "strict"?`}},
		"a key twice":                  {config.Inputs{File: []byte("lan: off\nlan: watch\n")}, []string{"config.yaml:2:1: lan is written twice"}},
		"a list where a section is":    {config.Inputs{File: []byte("listen: [a]\n")}, []string{"listen must hold lines of key: value"}},
		"a value where a list is":      {config.Inputs{File: []byte("egress: {allow: a}\n")}, []string{"egress.allow must be a list, not a single value"}},
		"a section where a value is":   {config.Inputs{File: []byte("provider: {a: b}\n")}, []string{"provider must be a single value, not a map"}},
		"nesting in a list":            {config.Inputs{File: []byte("egress: {allow: [[a]]}\n")}, []string{"must not be nested deeper"}},
		"anchors":                      {config.Inputs{File: []byte("public_url: &a x\nuploads: *a\n")}, []string{"config.yaml:1:", "config.yaml:2:", "not supported"}},
		"two documents":                {config.Inputs{File: []byte("lan: off\n---\nlan: off\n")}, []string{"a second document"}},
		"broken YAML, with a caret":    {config.Inputs{File: []byte("provider: local\negress:\n  allow: [a, b\n")}, []string{"config.yaml:3:10: sequence end token", "\n    allow: ••• …\n           ^"}},
		"too long":                     {config.Inputs{File: []byte(strings.Repeat("#", 1<<20+1))}, []string{"longer than 1 MiB"}},
		"an unknown variable":          {config.Inputs{Env: []string{"TAPIN_PROVIDR=local"}}, []string{`TAPIN_PROVIDR: no setting has this variable; did you mean "TAPIN_PROVIDER"?`}},
		"two names for the browser":    {config.Inputs{Env: []string{"TAPIN_CHROME=/a", "TAPIN_BROWSER_PATH=/b"}}, []string{"TAPIN_BROWSER_PATH: browser.path is set by TAPIN_CHROME already"}},
		"an unknown flag":              {config.Inputs{Set: []string{"egress.alow=x"}}, []string{`--set egress.alow: there is no such setting; did you mean "egress.allow"?`}},
		"a section as a flag":          {config.Inputs{Set: []string{"listen=x"}}, []string{"--set listen: this is a section; set one of its keys, such as listen.control, listen.public"}},
		"a flag without a value":       {config.Inputs{Set: []string{"provider"}}, []string{"--set: must be written key=value"}},
		"a webhook in the clear":       {config.Inputs{Set: []string{"on_resume.webhook=http://a.example"}}, []string{"must begin with https://"}},
		"a webhook and a command":      {config.Inputs{Set: []string{"on_resume.webhook=https://a.example", "on_resume.command=x"}}, []string{"keep one of them"}},
		"a switch around the guard":    {config.Inputs{Set: []string{"browser.args=--proxy-server=x"}}, []string{"item 1 is --proxy-server, which tapin must decide itself"}},
		"a switch that is none":        {config.Inputs{Set: []string{"browser.args=--mute-audio,about:blank"}}, []string{"item 2 must be a switch"}},
		"an address as an allowance":   {config.Inputs{Set: []string{"egress.allow=https://a.example/"}}, []string{"no scheme or path"}},
		"everything as an allowance":   {config.Inputs{Set: []string{"egress.allow=*"}}, []string{"must be a host"}},
		"a group as an owner":          {config.Inputs{Set: []string{"telegram.owners=-100123"}}, []string{"groups and channels cannot be owners"}},
		"a pattern that is none":       {config.Inputs{Set: []string{"payment_guard_patterns=(pay"}}, []string{"is not a regular expression"}},
		"a public address with a path": {config.Inputs{Set: []string{"public_url=https://a.example/x"}}, []string{"must be scheme and host alone"}},
		"no time at all":               {config.Inputs{Set: []string{"integrations.browserbase.idle_warning=0"}}, []string{"must be longer than 0"}},
		"bytes that are not text":      {config.Inputs{Set: []string{"uploads=\xff"}}, []string{"must be UTF-8 text"}},
		"a header that would split":    {config.Inputs{Set: []string{"cdp.headers.X=a\nb"}}, []string{"cdp.headers entry X is not a valid HTTP header"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, origins, err := config.Load(tt.in)
			if !errors.Is(err, fault.InvalidRequest) || cfg != nil || origins != nil {
				t.Fatalf("got %v, %v", cfg, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the message lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestAllowancesOfEveryKind(t *testing.T) {
	t.Parallel()
	cfg, _, err := config.Load(config.Inputs{Set: []string{
		"egress.allow=intranet, *.corp.example, nas.local:8443, 10.0.0.0/8, 192.168.1.4, 192.168.1.4:80, ::1, [::1]:80, fd00::/8",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Egress.Allow) != 9 {
		t.Errorf("got %q", cfg.Egress.Allow)
	}
}

func TestHeadersCanBeSetOneByOne(t *testing.T) {
	t.Parallel()
	cfg, origins, err := config.Load(config.Inputs{
		File: []byte("cdp:\n  headers:\n    Authorization: file\n    X-Kept: kept\n"),
		Set:  []string{"cdp.headers.Authorization=a=b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, v := range cfg.CDP.Headers {
		got[name] = v.Reveal()
	}
	if diff := cmp.Diff(map[string]string{"Authorization": "a=b", "X-Kept": "kept"}, got); diff != "" {
		t.Error(diff)
	}
	if got := origins.Of("cdp.headers").String(); got != "--set cdp.headers.Authorization" {
		t.Errorf("the origin is %s", got)
	}
}

func TestNoSecretIsEverPrinted(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]config.Inputs{
		"an address that is none":       {Set: []string{"cdp.url=::" + canary}},
		"a proxy of the wrong kind":     {Env: []string{"TAPIN_BROWSER_UPSTREAM_PROXY=ftp://u:" + canary + "@h"}},
		"a header with a line break":    {Set: []string{"cdp.headers.X=" + canary + "\n"}},
		"headers that are no map":       {Env: []string{"TAPIN_CDP_HEADERS=" + canary}},
		"headers that are broken":       {Env: []string{"TAPIN_CDP_HEADERS={X: '" + canary}},
		"an open quote":                 {File: []byte("cdp:\n  url: \"wss://" + canary + "\n")},
		"a wrong indent":                {File: []byte("cdp:\n  url: wss://h\n    headers: wss://" + canary + ": x\n")},
		"a value in the place of a key": {File: []byte("cdp:\n  url:\n    wss://u:" + canary + "@h: 1\n")},
		"a key that is an address":      {File: []byte("wss://u:" + canary + "@h: 1\n")},
		"a bad escape":                  {File: []byte("cdp:\n  url: \"" + canary + "\\q\"\n")},
		"an alias":                      {File: []byte("cdp:\n  url: *" + canary + "\n")},
		"a tag":                         {File: []byte("cdp:\n  url: !" + canary + " x\n")},
		"a block header":                {File: []byte("cdp:\n  url: |" + canary + "\n")},
		"a tab":                         {File: []byte("cdp:\n\turl: " + canary + "\n")},
		"a flag without its key":        {Set: []string{canary + "!"}},
		"an address given as a flag":    {Set: []string{"wss://" + canary + "?a=b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := config.Load(in)
			if err == nil {
				t.Fatal("this must be refused")
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the message carries the secret:\n%v", err)
			}
		})
	}
	cfg, origins, err := config.Load(config.Inputs{Set: []string{
		"cdp.url=wss://" + canary, "cdp.headers.X=" + canary, "browser.upstream_proxy=http://u:" + canary + "@h", "on_resume.webhook=https://h/" + canary,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if out := string(config.Explain(cfg, origins)); strings.Contains(out, canary) || strings.Count(out, "•••") != 4 {
		t.Errorf("Explain does not mask:\n%s", out)
	}
}

func TestAProviderIsAskedForOnlyWhenItIsUsed(t *testing.T) {
	t.Parallel()
	cfg, _, err := config.Load(config.Inputs{File: []byte("provider: cdp\nintegrations: {browserbase: {enabled: false}}\n")})
	if err != nil {
		t.Fatalf("an unfinished provider must not keep tapin from starting: %v", err)
	}
	for provider, want := range map[config.Provider]error{
		config.ProviderLocal: nil, config.ProviderBrowserbase: fault.Disabled, config.ProviderCDP: fault.ProviderNotConfigured, "other": fault.InvalidRequest,
	} {
		if got := cfg.Ready(provider); !errors.Is(got, want) {
			t.Errorf("%s: got %v, want %v", provider, got, want)
		}
	}
	cfg.CDP.URL = secret.New("wss://h")
	if err := cfg.Ready(config.ProviderCDP); err != nil {
		t.Error(err)
	}
}

func TestPathsAreUnderTheHome(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	for path, want := range map[string]string{
		"browser-contexts.yaml": "/srv/tapin/browser-contexts.yaml",
		"/etc/x.yaml":           "/etc/x.yaml",
		"~/state/x.yaml":        "/home/ann/state/x.yaml",
		"../x":                  "/srv/x",
	} {
		if got := config.Under("/srv/tapin", path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestDurationsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "1800": 30 * time.Minute, "1.5": 1500 * time.Millisecond, "30m": 30 * time.Minute, "1h30m": 90 * time.Minute,
		"7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "250ms": 250 * time.Millisecond,
	} {
		var d config.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.Std() != want {
			t.Errorf("%q: got %v, %v; want %v", text, d, err, want)
		}
	}
	for _, text := range []string{"", "-1", "-5m", "soon", "5 minutes", "NaN", "Inf", "1e300", "99999999d", "d", "1d-1h", "1dd", "9000000h", "36500d1h"} {
		var d config.Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %v", text, d)
		}
	}
}

func TestADurationReadsBackAsItPrints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "unit")
		want := config.Duration(time.Duration(rapid.IntRange(0, 10000).Draw(t, "n")) * unit)
		var got config.Duration
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Fatalf("%d prints as %s and reads back as %d, %v", want, want, got, err)
		}
	})
}

func FuzzLoad(f *testing.F) {
	defaults, err := os.ReadFile(filepath.Join("testdata", "defaults.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(defaults, "TAPIN_PROVIDER=cdp", "cdp.headers.A=b")
	f.Add([]byte("listen: {control: '127.0.0.1:1'}"), "TAPIN_EGRESS_ALLOW=[a, b]", "max_sessions=2")
	f.Add([]byte("a: &a [*a]\n<<: *a\n? x\n: y\n--- |\n z"), "TAPIN_CDP_HEADERS={A: b}", "x")
	f.Add([]byte("cdp:\n  url: \"wss://h"), "TAPIN_NOTIFY_REMIND_AT=[]", "notify.remind_at=1,2d")
	f.Fuzz(func(t *testing.T, file []byte, env, set string) {
		cfg, origins, err := config.Load(config.Inputs{File: file, Env: []string{env}, Set: []string{set}})
		if err != nil {
			if !errors.Is(err, fault.InvalidRequest) {
				t.Fatalf("a problem with settings must be the caller's: %v", err)
			}
			return
		}
		// What was accepted must be accepted again as Render writes it, with
		// the secrets put aside since Render rightly hides them.
		cfg.CDP, cfg.Browser.UpstreamProxy, cfg.OnResume.Webhook = config.CDP{}, secret.Text{}, secret.Text{}
		first := config.Render(cfg)
		again, _, err := config.Load(config.Inputs{File: first})
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if diff := cmp.Diff(string(first), string(config.Render(again))); diff != "" {
			t.Fatal(diff)
		}
		_ = config.Explain(again, origins)
	})
}

func TestReadFileReadsOrdinaryFilesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain, long, pipe := filepath.Join(dir, "plain"), filepath.Join(dir, "long"), filepath.Join(dir, "pipe")
	if err := errors.Join(
		os.WriteFile(plain, []byte("max_sessions: 3\n"), 0o600),
		os.WriteFile(long, make([]byte, 3<<20), 0o600),
		syscall.Mkfifo(pipe, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path string
		size int
		code error
	}{
		"an ordinary file is read":           {plain, 16, nil},
		"a missing one is empty":             {filepath.Join(dir, "none"), 0, nil},
		"a long one is read to its bound":    {long, 1<<20 + 1, nil},
		"a folder is refused":                {dir, 0, fault.InvalidRequest},
		"a pipe is refused at once":          {pipe, 0, fault.InvalidRequest},
		"a device without an end is refused": {"/dev/zero", 0, fault.InvalidRequest},
		"what is under a file is refused":    {filepath.Join(plain, "config.yaml"), 0, fault.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := config.ReadFile(tt.path, "the-name")
			if len(data) != tt.size || !errors.Is(err, tt.code) {
				t.Fatalf("%d bytes, %v", len(data), err)
			}
			if err != nil && !strings.Contains(err.Error(), "the-name") {
				t.Fatalf("%v does not name the file", err)
			}
		})
	}
}

func TestASettingWithoutANameIsToldHowToWriteIt(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"=", "=x", "x", ""} {
		_, _, err := config.Load(config.Inputs{Set: []string{flag}})
		if err == nil || !strings.Contains(err.Error(), "--set: must be written key=value") {
			t.Errorf("%q: %v", flag, err)
		}
	}
}
