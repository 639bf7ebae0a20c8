package canary

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

// street is a small site for single navigations, with canaries beside it.
type street struct {
	site, secure *httptest.Server
	loop, own    *bird // own is a port of tapin's
	moving       *bird // its IPv4 side is the site's
	pair         string
}

func newStreet(t *testing.T) *street {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, `<!doctype html><link rel=icon href="data:,"><title>site</title>`)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	})
	mux.HandleFunc("/all", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.ReplaceAll(`<!doctype html><link rel=icon href="data:,"><title>all</title><script>
			fetch("http://@HOST@/"); fetch("https://@HOST@/"); new WebSocket("ws://@HOST@/"); new WebSocket("wss://@HOST@/"); new EventSource("http://@HOST@/")
		</script>`, "@HOST@", r.URL.Query().Get("h")))
	})
	b := &street{site: httptest.NewServer(mux), secure: httptest.NewUnstartedServer(mux)}
	b.secure.Config.ErrorLog = quiet()
	b.secure.StartTLS()
	for _, s := range []*httptest.Server{b.site, b.secure} {
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	}
	birds := newAviary(t, b.secure.TLS.Certificates[0])
	b.loop, b.own = birds.hatch(t, nil, nil), birds.hatch(t, nil, nil)
	pairs := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	t.Cleanup(func() { _ = pairs.Close() })
	b.moving = birds.hatch(t, nil, func(ln net.Listener) {
		b.pair = "127.0.0.1:" + portOf(ln)
		go func() { _ = pairs.Serve(ln) }()
	})
	return b
}

// strict allows the site, and names tapin's own port although nothing may open it.
func (b *street) strict() egress.Policy {
	return egress.Policy{
		BlockPrivate: true, OwnPorts: []uint16{b.own.port},
		Allow: []string{hostOf(b.site), hostOf(b.secure), b.pair, fmt.Sprintf("127.0.0.1:%d", b.own.port), fmt.Sprintf("[::1]:%d", b.own.port)},
	}
}

// wide allows everything that can be allowed.
func (b *street) wide() egress.Policy {
	return egress.Policy{OwnPorts: []uint16{b.own.port}, Allow: []string{"127.0.0.0/8", "::1", "0.0.0.0", "::", "localhost", "*.localhost", "*.test", machineName()}}
}

func TestARefusedNavigationNamesItsRule(t *testing.T) {
	t.Parallel()
	ctx := testwait.Context(t)
	b, run := newStreet(t), shortDir(t)
	inst := start(ctx, t, run, b.strict())
	told := listen(inst)
	tabs, err := page.Open(ctx, inst, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tabs.Close()
	tab, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}

	fill := strings.NewReplacer("@SITE@", b.site.URL, "@SECURE@", b.secure.URL, "@LOOP@", strconv.Itoa(int(b.loop.port)),
		"@OWN@", strconv.Itoa(int(b.own.port)), "@MOVING@", strconv.Itoa(int(b.moving.port)), "@MACHINE@", machineName())
	refused := func(name, address, rule string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			if strings.Contains(address, "[::") && !hasIPv6() {
				t.Skip("this machine has no IPv6")
			}
			at, err := tab.Navigate(ctx, fill.Replace(address), page.WaitDOM)
			if fault.Of(err).Code != fault.BlockedTarget {
				t.Fatalf("the tab went to %+v, %v", at, err)
			}
			if got := fault.Of(err).Data["rule"]; got != rule {
				t.Fatalf("refused by %v, want %s", got, rule)
			}
		})
	}
	opened := func(name, address, title string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			at, err := tab.Navigate(ctx, fill.Replace(address), page.WaitDOM)
			if err != nil || at.Title != title {
				t.Fatalf("the tab went to %+v, %v", at, err)
			}
		})
	}

	refused("http", "http://127.0.0.1:@LOOP@/", "loopback")
	refused("http over IPv6", "http://[::1]:@LOOP@/", "loopback")
	refused("http to a short spelling", "http://127.1:@LOOP@/", "loopback")
	refused("https", "https://127.0.0.1:@LOOP@/", "loopback")
	refused("https over IPv6", "https://[::1]:@LOOP@/", "loopback")
	refused("localhost", "http://localhost:@LOOP@/", "private-name")
	refused("the machine's name over https", "https://@MACHINE@:@LOOP@/", "private-name")
	refused("a redirect", "@SITE@/to?u=http://127.0.0.1:@LOOP@/", "loopback")
	refused("a redirect to https", "@SITE@/to?u=https://127.0.0.1:@LOOP@/", "loopback")
	refused("a redirect from https", "@SECURE@/to?u=http://127.0.0.1:@LOOP@/", "loopback")
	refused("a redirect from https to https", "@SECURE@/to?u=https://127.0.0.1:@LOOP@/", "loopback")
	refused("a name", "http://v4loop.test:@LOOP@/", "loopback")
	refused("a name over https", "https://v4loop.test:@LOOP@/", "loopback")
	refused("a name with a public address first", "http://mixed-public.test:@LOOP@/", "loopback")
	opened("a name that has not moved yet", "http://rebind-page.test:@MOVING@/", "site")
	refused("a name that has moved", "http://rebind-page.test:@MOVING@/", "loopback")
	refused("a name that has moved, over https", "https://rebind-page.test:@MOVING@/", "loopback")
	refused("tapin's own port, allowed by its address", "http://127.0.0.1:@OWN@/", egress.RuleOwnPort)
	opened("the site meanwhile", "@SITE@/", "site")

	if err := inst.SetPolicy(ctx, egress.Policy{Allow: []string{"http://127.0.0.1/"}}); err == nil {
		t.Error("a policy that cannot be read was taken")
	}
	refused("http after a policy that could not be read", "http://127.0.0.1:@LOOP@/", "loopback")
	for name, bird := range map[string]*bird{"the canary": b.loop, "tapin's own port": b.own, "the canary behind the name": b.moving} {
		if hits := bird.touched(); hits != "" {
			t.Errorf("%s was reached: %s", name, hits)
		}
	}

	if err := inst.SetPolicy(ctx, b.wide()); err != nil {
		t.Fatal(err)
	}
	opened("the canary under a wide policy", "http://127.0.0.1:@LOOP@/", "canary")
	opened("the canary by its name under a wide policy", "https://v4loop.test:@LOOP@/", "canary")
	refused("tapin's own port, allowed by its range", "http://127.0.0.1:@OWN@/", egress.RuleOwnPort)
	refused("tapin's own port over IPv6", "http://[::1]:@OWN@/", egress.RuleOwnPort)
	refused("tapin's own port on 0.0.0.0", "http://0.0.0.0:@OWN@/", egress.RuleOwnPort)
	refused("tapin's own port over https", "https://127.0.0.1:@OWN@/", egress.RuleOwnPort)
	refused("tapin's own port, allowed by a name", "http://v4loop.test:@OWN@/", egress.RuleOwnPort)
	refused("tapin's own port on localhost", "https://localhost:@OWN@/", egress.RuleOwnPort)
	refused("tapin's own port on another loopback address", "http://127.8.9.1:@OWN@/", egress.RuleOwnPort)
	refused("a redirect to tapin's own port", "@SECURE@/to?u=https://127.0.0.1:@OWN@/", egress.RuleOwnPort)
	refused("the guard's own port", "http://127.0.0.1:"+guardPort(ctx, t, inst)+"/", egress.RuleOwnPort)
	refused("the guard's own port over https", "https://127.0.0.1:"+guardPort(ctx, t, inst)+"/", egress.RuleOwnPort)

	before := len(told.of(b.own.port))
	opened("a page that tries tapin's own port in every way", fmt.Sprintf("@SITE@/all?h=127.0.0.1:%d", b.own.port), "all")
	testwait.For(t, "five refusals", func() bool { return len(told.of(b.own.port)) >= before+5 })
	for _, block := range told.of(b.own.port) {
		if block.Rule != egress.RuleOwnPort {
			t.Errorf("refused by %q", block.Rule)
		}
	}
	tabs.Close()
	end(t, run, inst.Ref())
	if hits := b.own.touched(); hits != "" {
		t.Errorf("tapin's own port was reached: %s", hits)
	}
}

var proxyFlag = regexp.MustCompile(`--proxy-server=http://127\.0\.0\.1:(\d+)`)

// guardPort is where the browser's guard listens.
func guardPort(ctx context.Context, t *testing.T, inst browser.Instance) string {
	t.Helper()
	var info struct {
		CommandLine string `json:"commandLine"`
	}
	if err := inst.Conn().Root().Call(ctx, "SystemInfo.getInfo", nil, &info); err != nil {
		t.Fatal(err)
	}
	found := proxyFlag.FindStringSubmatch(info.CommandLine)
	if found == nil {
		t.Fatal("the browser has no guard")
	}
	return found[1]
}

func TestABrowserWhosePolicyCannotBeReadDoesNotStart(t *testing.T) {
	t.Parallel()
	inst, err := local.New(shortDir(t), 1, nil).Create(testwait.Context(t), browser.Spec{
		ID: store.NewID("ses") + "-1", KeepUntil: testwait.Late(), Policy: egress.Policy{Allow: []string{"*"}},
	})
	if fault.Of(err).Code != fault.SessionCreateFailed {
		t.Fatalf("made %v, %v", inst, err)
	}
}

func TestAGuardWithoutAPolicyRefusesEverything(t *testing.T) {
	t.Parallel()
	ctx := testwait.Context(t)
	b, run := newStreet(t), shortDir(t)
	inst := start(ctx, t, run, b.wide())
	inst.Conn().Dispatch()

	// A second guard, in front of a browser context of its own.
	var mu sync.Mutex
	var told []egress.Block
	blocks := func() []egress.Block {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(told)
	}
	guard := egress.NewProxy(&egress.ProxyOptions{Resolver: &resolver{asked: map[string]int{}}, OnBlock: func(b egress.Block) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, b)
	}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = guard.Serve(ln) }()
	t.Cleanup(func() { _ = guard.Close(context.Background()) })
	behind, err := proto.Call(ctx, inst.Conn().Root(), target.CreateBrowserContext, target.CreateBrowserContextParams{
		ProxyServer: "http://" + ln.Addr().String(), ProxyBypassList: "<-loopback>",
	})
	if err != nil {
		t.Fatal(err)
	}
	// A tab each: what one attempt leaves behind is not in the way of the next.
	tab := func() browsertest.Tab {
		t.Helper()
		made, err := proto.Call(ctx, inst.Conn().Root(), target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: behind.BrowserContextID})
		if err != nil {
			t.Fatal(err)
		}
		return browsertest.Attach(ctx, t, inst, made.TargetID)
	}
	navigate := func(address string) func() {
		return func() { _ = tab().Session.Call(ctx, "Page.navigate", map[string]string{"url": address}, nil) }
	}
	eval := func(script string) func() {
		return func() { _, _ = tab().TryEval(ctx, script) }
	}
	at := netip.AddrPortFrom(loop4, b.loop.port).String()
	attempts := []struct {
		name string
		make func()
	}{
		{"a navigation", navigate("http://" + at + "/")},
		{"a navigation over https", navigate("https://" + at + "/")},
		{"a navigation to a name", navigate("http://v4loop.test:" + strconv.Itoa(int(b.loop.port)) + "/")},
		{"a fetch", eval(`fetch("http://` + at + `/", {mode: "no-cors"}).catch(String)`)},
		{"a WebSocket", eval(`new Promise(r => { new WebSocket("ws://` + at + `/").onclose = () => r("closed") })`)},
		{publicAttempt, navigate("http://" + public.String() + "/")},
	}
	for _, a := range attempts {
		before := len(blocks())
		a.make()
		now := blocks()
		if len(now) == before {
			t.Errorf("%s was not refused", a.name)
		}
		for _, b := range now[before:] {
			if b.Rule != egress.RuleNoPolicy {
				t.Errorf("%s was refused by %q", a.name, b.Rule)
			}
		}
	}
	if hits := b.loop.touched(); hits != "" {
		t.Errorf("the canary was reached: %s", hits)
	}

	if err := guard.SetPolicy(b.wide()); err != nil {
		t.Fatal(err)
	}
	for _, a := range attempts {
		before := b.loop.count("tcp " + loop4.String())
		if a.name == publicAttempt {
			continue
		}
		a.make()
		if b.loop.count("tcp "+loop4.String()) == before {
			t.Errorf("under a policy that allows it, %s did not get there", a.name)
		}
	}
}

// publicAttempt is only made while nothing can come of it: tests stay on this machine.
const publicAttempt = "a navigation to a public address"
