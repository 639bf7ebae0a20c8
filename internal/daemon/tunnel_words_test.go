package daemon

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the programs print, from their sources and from what people have posted.
const (
	cloudflaredStart = `2026-02-03T13:19:49Z INF Thank you for trying Cloudflare Tunnel. Doing so, without a Cloudflare account, is a quick way to experiment and try it out. However, be aware that these account-less Tunnels have no uptime guarantee, are subject to the Cloudflare Online Services Terms of Use (https://www.cloudflare.com/website-terms/), and Cloudflare reserves the right to investigate your use of Tunnels for violations of such terms. If you intend to use Tunnels in production you should use a pre-created named tunnel by following: https://developers.cloudflare.com/cloudflare-one/connections/connect-apps
2026-02-03T13:19:49Z INF Requesting new quick Tunnel on trycloudflare.com...
2026-02-03T13:19:53Z INF +--------------------------------------------------------------------------------------------+
2026-02-03T13:19:53Z INF |  Your quick Tunnel has been created! Visit it at (it may take some time to be reachable):  |
2026-02-03T13:19:53Z INF |  https://four-dashed-word-url.trycloudflare.com                                            |
2026-02-03T13:19:53Z INF +--------------------------------------------------------------------------------------------+
2026-02-03T13:19:53Z INF Version 2026.1.2 (Checksum 0f1a)
2026-02-03T13:19:53Z INF GOOS: linux, GOVersion: go1.24.9, GoArch: amd64
2026-02-03T13:19:53Z INF Settings: map[config:/home/me/.tapin/tunnel.yml ha-connections:1 no-autoupdate:true protocol:quic url:http://127.0.0.1:3850]
2026-02-03T13:19:53Z INF Generated Connector ID: 26c1b1ae-8f3c-4a1f-a6b7-0c5f4f9a8f11
2026-02-03T13:19:53Z INF Initial protocol quic
2026-02-03T13:19:53Z INF Starting metrics server on 127.0.0.1:20241/metrics
`
	cloudflaredUp   = "2026-02-03T13:19:54Z INF Registered tunnel connection connIndex=0 connection=26c1b1ae-8f3c-4a1f-a6b7-0c5f4f9a8f11 event=0 ip=198.41.200.13 location=fra08 protocol=quic\n"
	cloudflaredDown = `2026-02-03T14:22:25Z WRN Failed to serve tunnel connection error="timeout: no recent network activity" connIndex=0 event=0 ip=198.41.200.13
2026-02-03T14:22:25Z INF Unregistered tunnel connection connIndex=0
2026-02-03T14:22:25Z INF Retrying connection in up to 1s connIndex=0 event=0 ip=198.41.200.13
`
	cloudflaredForgotten = `2026-02-03T19:01:13Z ERR Register tunnel error from server side error="Unauthorized: Tunnel not found" connIndex=0 event=0 ip=198.41.192.227
`
	cloudflaredNoNetwork = `2026-02-03T13:19:49Z INF Requesting new quick Tunnel on trycloudflare.com...
failed to request quick Tunnel: Post "https://api.trycloudflare.com/tunnel": dial tcp: lookup api.trycloudflare.com: no such host
`
	cloudflaredTooOften = `2026-05-29T09:25:34Z ERR Error unmarshaling QuickTunnel response: error code: 1015 error="invalid character 'e' looking for beginning of value" status_code="429 Too Many Requests"
failed to unmarshal quick Tunnel: invalid character 'e' looking for beginning of value
`
	tailscaleStart = `Available on the internet:

https://desk.tail9f3a.ts.net/
|-- proxy http://127.0.0.1:3850

Press Ctrl+C to exit.
`
	tailscaleAsk = `
Funnel is not enabled on your tailnet.
To enable, visit:

         https://login.tailscale.com/f/funnel?node=nho4oGYG7X11CNTRL

`
)

func TestWhatTunnelProgramsSayIsUnderstood(t *testing.T) {
	t.Parallel()
	const quick = "https://four-dashed-word-url.trycloudflare.com"
	for name, tt := range map[string]struct {
		hear listener
		said string
		want heard
	}{
		"cloudflared has a name and no connection yet": {hearCloudflared, cloudflaredStart, heard{url: quick}},
		"cloudflared is connected":                     {hearCloudflared, cloudflaredStart + cloudflaredUp, heard{url: quick, up: true}},
		"an older cloudflared is connected": {hearCloudflared,
			cloudflaredStart + "2022-06-01T16:23:12Z INF Connection c206cf44-945f-4c3c-a85c-af60c6338dc2 registered connIndex=0 location=ORD\n", heard{url: quick, up: true}},
		"cloudflared lost its connection":                     {hearCloudflared, cloudflaredStart + cloudflaredUp + cloudflaredDown, heard{url: quick}},
		"cloudflared is connected again":                      {hearCloudflared, cloudflaredStart + cloudflaredUp + cloudflaredDown + cloudflaredUp, heard{url: quick, up: true}},
		"cloudflared is forgotten, and would ask for ever":    {hearCloudflared, cloudflaredForgotten, heard{lost: true, remark: `Register tunnel error from server side error="Unauthorized: Tunnel not found" connIndex=0 event=0 ip=198.41.192.227`}},
		"the address in a complaint of cloudflared is no way": {hearCloudflared, cloudflaredNoNetwork, heard{remark: `failed to request quick Tunnel: Post "https://api.trycloudflare.com": dial tcp: lookup api.trycloudflare.com: no such host`}},
		"cloudflared asked too often":                         {hearCloudflared, strings.SplitAfter(cloudflaredTooOften, "\n")[0], heard{remark: `Error unmarshaling QuickTunnel response: error code: 1015 error="invalid character 'e' looking for beginning of value" status_code="429 Too Many Requests"`}},
		"somebody else's page in the box is no way":           {hearCloudflared, "2026-02-03T13:19:53Z INF |  https://evil.example/.trycloudflare.com   |\n", heard{}},

		"tailscale has a name":                        {hearTailscale, tailscaleStart, heard{url: "https://desk.tail9f3a.ts.net", up: true}},
		"tailscale has a name at another port":        {hearTailscale, strings.Replace(tailscaleStart, "ts.net/", "ts.net:8443/", 1), heard{url: "https://desk.tail9f3a.ts.net:8443", up: true}},
		"tailscale needs the owner's leave":           {hearTailscale, tailscaleAsk, heard{ask: "https://login.tailscale.com/f/funnel?node=nho4oGYG7X11CNTRL"}},
		"tailscale got the owner's leave":             {hearTailscale, tailscaleAsk + "Success.\n" + tailscaleStart, heard{url: "https://desk.tail9f3a.ts.net", up: true}},
		"a port that tailscale has another use for":   {hearTailscale, "error: foreground already exists under this port\n", heard{taken: true, remark: "error: foreground already exists under this port"}},
		"a port that is configured in tailscale":      {hearTailscale, "background configuration already exists, use `tailscale funnel --https=443 off` to remove the existing configuration\n", heard{taken: true, remark: "background configuration already exists, use `tailscale funnel --https=443 off` to remove the existing configuration"}},
		"a name outside of its sentence is no way":    {hearTailscale, "see https://desk.tail9f3a.ts.net/\n", heard{remark: "see https://desk.tail9f3a.ts.net"}},
		"another site in tailscale's place is no way": {hearTailscale, "Available on the internet:\n\nhttps://evil.example/\n", heard{expects: "name", remark: "https://evil.example"}},
		"a tailscale that does not run": {hearTailscale, "failed to connect to local tailscaled; it doesn't appear to be running (sudo systemctl start tailscaled ?)\n",
			heard{remark: "failed to connect to local tailscaled; it doesn't appear to be running (sudo systemctl start tailscaled ?)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h heard
			for line := range strings.Lines(tt.said) {
				tt.hear(&h, strings.TrimRight(line, "\n"))
			}
			if diff := cmp.Diff(tt.want, h, cmp.AllowUnexported(heard{})); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func TestWhatIsKeptOfALineNamesNoPage(t *testing.T) {
	t.Parallel()
	const line = `2026-02-03T13:25:01Z ERR  error="Unable to reach the origin service" dest=https://a-b.trycloudflare.com/live/lnk_0123/ws?x=1 event=0`
	const want = `error="Unable to reach the origin service" dest=https://a-b.trycloudflare.com event=0`
	if got := tidy(line); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tidy(strings.Repeat("ü", 1000)); len([]rune(got)) != maxRemark+1 {
		t.Errorf("a long line has %d characters", len([]rune(got)))
	}
	if got := tidy("a\x1b[31mred\x00\x7f"); strings.ContainsAny(got, "\x1b\x00\x7f") {
		t.Errorf("control characters are kept: %q", got)
	}
}

// FuzzTunnelWords holds both listeners to one rule: no line of any kind makes an
// address of a site that is not the tunnel's own.
func FuzzTunnelWords(f *testing.F) {
	for _, said := range []string{cloudflaredStart, cloudflaredUp, cloudflaredDown, cloudflaredForgotten, cloudflaredNoNetwork, cloudflaredTooOften, tailscaleStart, tailscaleAsk} {
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said string) {
		for domain, hear := range map[string]listener{".trycloudflare.com": hearCloudflared, ".ts.net": hearTailscale} {
			var h heard
			for line := range strings.SplitSeq(said, "\n") {
				hear(&h, line)
				if len([]rune(h.remark)) > maxRemark+1 {
					t.Fatalf("a remark has %d bytes", len(h.remark))
				}
			}
			if h.ask != "" && !strings.HasPrefix(h.ask, "https://login.tailscale.com/") {
				t.Fatalf("the owner is sent to %q", h.ask)
			}
			if h.url == "" {
				continue
			}
			u, err := url.Parse(h.url)
			if err != nil || u.Scheme != "https" || !strings.HasSuffix(u.Hostname(), domain) || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "api"+domain {
				t.Fatalf("the address is %q (%v)", h.url, err)
			}
		}
	})
}
