package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/fault"
)

func compile(t testing.TB, p Policy) *Rules {
	t.Helper()
	r, err := p.Compile()
	if err != nil {
		t.Fatal(err)
	}
	r.machine.list = func() ([]net.Addr, error) { return nil, nil }
	return r
}

func TestTheAddressTable(t *testing.T) {
	t.Parallel()
	strict := compile(t, Policy{BlockPrivate: true})
	open := compile(t, Policy{})
	for _, tt := range []struct{ addr, strict, open string }{
		{"93.184.215.14", "", ""},
		{"8.8.8.8", "", ""},
		{"1.1.1.1", "", ""},
		{"172.15.255.255", "", ""},
		{"172.32.0.0", "", ""},
		{"100.63.255.255", "", ""},
		{"100.128.0.0", "", ""},
		{"198.17.255.255", "", ""},
		{"198.20.0.0", "", ""},
		{"223.255.255.255", "", ""},
		{"2606:4700::1111", "", ""},
		{"2a00:1450:4001::200e", "", ""},
		{"2001:4860:4860::8888", "", ""},
		{"2001:200::1", "", ""},
		{"64:ff9b::808:808", "", ""},
		{"127.0.0.1", "loopback", ""},
		{"127.255.255.254", "loopback", ""},
		{"::1", "loopback", ""},
		{"0.0.0.0", "unspecified", ""},
		{"0.1.2.3", "unspecified", ""},
		{"::", "unspecified", ""},
		{"10.0.0.1", "private", ""},
		{"10.255.255.255", "private", ""},
		{"172.16.0.1", "private", ""},
		{"172.31.255.255", "private", ""},
		{"192.168.1.1", "private", ""},
		{"fc00::1", "private", ""},
		{"fdff::1", "private", ""},
		{"fec0::1", "private", ""},
		{"169.254.0.1", "link-local", ""},
		{"fe80::1", "link-local", ""},
		{"febf::1", "link-local", ""},
		{"100.64.0.1", "shared", ""},
		{"100.127.255.255", "shared", ""},
		{"198.18.0.1", "benchmarking", ""},
		{"198.19.255.255", "benchmarking", ""},
		{"2001:2::1", "benchmarking", ""},
		{"169.254.169.254", "metadata", "metadata"},
		{"169.254.170.2", "metadata", "metadata"},
		{"100.100.100.200", "metadata", "metadata"},
		{"168.63.129.16", "metadata", "metadata"},
		{"fd00:ec2::254", "metadata", "metadata"},
		{"fd20:ce::254", "metadata", "metadata"},
		{"64:ff9b::a9fe:a9fe", "metadata", "metadata"},
		{"::ffff:169.254.169.254", "metadata", "metadata"},
		{"2002:a9fe:a9fe::1", "metadata", "metadata"},
		{"224.0.0.1", "multicast", "multicast"},
		{"239.255.255.255", "multicast", "multicast"},
		{"ff02::1", "multicast", "multicast"},
		{"240.0.0.1", "reserved", "reserved"},
		{"255.255.255.255", "broadcast", "broadcast"},
		{"192.0.0.1", "reserved", "reserved"},
		{"192.0.2.1", "documentation", "documentation"},
		{"198.51.100.1", "documentation", "documentation"},
		{"203.0.113.1", "documentation", "documentation"},
		{"2001:db8::1", "documentation", "documentation"},
		{"3fff::1", "documentation", "documentation"},
		{"192.88.99.1", "transition", "transition"},
		{"100::1", "discard", "discard"},
		{"2001:10::1", "orchid", "orchid"},
		{"2001:2f::1", "orchid", "orchid"},
		{"5f00::1", "segment-routing", "segment-routing"},
		{"2001:3::1", "reserved", "reserved"},
		{"4000::1", "reserved", "reserved"},
		{"64:ff9b::a00:1", "private", ""},
		{"64:ff9b::7f00:1", "loopback", ""},
		{"64:ff9b:1::808:808", "nat64", "nat64"},
		{"64:ff9b:1::a00:1", "private", "private"},
		{"64:ff9b:1:808:8:800::", "nat64", "nat64"},
		{"64:ff9b:1:a00:0:100::", "private", "private"},
		{"::ffff:8.8.8.8", "ipv4-mapped", "ipv4-mapped"},
		{"::ffff:127.0.0.1", "loopback", ""},
		{"::ffff:10.0.0.1", "private", ""},
		{"::8.8.8.8", "ipv4-compatible", "ipv4-compatible"},
		{"::127.0.0.1", "loopback", "loopback"},
		{"2002:808:808::1", "6to4", "6to4"},
		{"2002:7f00:1::1", "loopback", "loopback"},
		{"2001:0:4136:e378:8000:63bf:f7f7:f7f7", "teredo", "teredo"},
		{"2001:0:4136:e378:8000:63bf:80ff:fffe", "loopback", "loopback"},
		{"2a00:1450::5efe:808:808", "isatap", "isatap"},
		{"2a00:1450::200:5efe:a00:1", "private", "private"},
		{"fe80::1%eth0", "zone", "zone"},
		{"2606:4700::1111%1", "zone", "zone"},
	} {
		a := netip.MustParseAddr(tt.addr)
		for policy, want := range map[*Rules]string{strict: tt.strict, open: tt.open} {
			if got := policy.judgeAddr(target{name: "site.example", port: 443}, a); got != want {
				t.Errorf("%s with block_private %v: rule %q, want %q", tt.addr, policy.blockPrivate, got, want)
			}
		}
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	rules := compile(t, Policy{BlockPrivate: true, Allow: []string{"intranet.local", "bücher.internal", "dev.test:8080"}, OwnPorts: []uint16{3849}})
	const invalid = "INVALID_URL"
	for raw, want := range map[string]string{
		"https://example.com/":                         "",
		"HTTPS://EXAMPLE.COM":                          "",
		" https://example.com/a b ":                    "",
		"http://example.com:8080/?u=http://10.0.0.1":   "",
		"https://bücher.example/":                      "",
		"https://a_b.example./":                        "",
		"https://user:pw@example.com/":                 "",
		"http://intranet.local/":                       "",
		"http://BÜCHER.internal/":                      "",
		"https://accounts.google.com/":                 "",
		"https://www.google.com/":                      "",
		"https://fonts.googleapis.com/css":             "",
		"https://clients6.google.com/":                 "",
		"http://2130706433/":                           "loopback",
		"http://0x7f000001/":                           "loopback",
		"http://0x7f.1/":                               "loopback",
		"http://0177.0.0.1/":                           "loopback",
		"http://127.1/":                                "loopback",
		"http://127.0.0.1./":                           "loopback",
		"http://%31%32%37.0.0.1/":                      "loopback",
		"http://１２７.０.０.１/":                            "loopback",
		"http://127。0。0。1/":                            "loopback",
		"http://①②⑦.⓪.0.1/":                            "loopback",
		"http://𝟏𝟐𝟕.0.0.1/":                            "loopback",
		"http://12\u200b7.0.0.1/":                      "loopback",
		"http://[::1]/":                                "loopback",
		"http://[::ffff:127.0.0.1]/":                   "loopback",
		"http://[0:0:0:0:0:ffff:7f00:1]:80/":           "loopback",
		"http://0/":                                    "unspecified",
		"http://0x/":                                   "unspecified",
		"http://example.com@10.0.0.1/":                 "private",
		"http://a:b@c@192.168.0.1/":                    "private",
		"http://10.1:8080/":                            "private",
		"http://012.0.0.1/":                            "private",
		"http://169.254.169.254/latest/meta-data":      "metadata",
		"http://[fd00:ec2::254]/":                      "metadata",
		"http://[fe80::1%25eth0]/":                     "zone",
		"http://localhost/":                            "private-name",
		"http://LOCALHOST:3000/":                       "private-name",
		"http://ｌｏｃａｌｈｏｓｔ/":                            "private-name",
		"http://localhost./":                           "private-name",
		"http://app.localhost/":                        "private-name",
		"http://printer.local/":                        "private-name",
		"http://metadata.google.internal/":             "private-name",
		"http://router.home.arpa/":                     "private-name",
		"http://home.arpa/":                            "private-name",
		"http://router/":                               "private-name",
		"http://sub.intranet.local/":                   "private-name",
		"https://update.googleapis.com/":               "vendor",
		"https://clients2.google.com/":                 "vendor",
		"https://edgedl.me.gvt1.com/":                  "vendor",
		"https://alt3-mtalk.google.com:5228/":          "vendor",
		"https://safebrowsing.googleapis.com./":        "vendor",
		"":                                             invalid,
		"example.com":                                  invalid,
		"//example.com":                                invalid,
		"file:///etc/passwd":                           invalid,
		"view-source:http://example.com":               invalid,
		"chrome://settings":                            invalid,
		"devtools://devtools":                          invalid,
		"javascript:alert(1)":                          invalid,
		"data:text/html,x":                             invalid,
		"ws://example.com":                             invalid,
		"http:example.com":                             invalid,
		"http:/example.com":                            invalid,
		`http:\\127.0.0.1\`:                            invalid,
		`http://example.com\@127.0.0.1/`:               invalid,
		"http://":                                      invalid,
		"http:///path":                                 invalid,
		"http://:80/":                                  invalid,
		"http://user@/":                                invalid,
		"http://exa\tmple.com/":                        invalid,
		"http://exa mple.com/":                         invalid,
		"http://exa%00mple.com/":                       invalid,
		"http://a..b/":                                 invalid,
		"http://1.2.3.4.5/":                            invalid,
		"http://256.0.0.1/":                            invalid,
		"http://4294967296/":                           invalid,
		"http://09.0.0.1/":                             invalid,
		"http://[::1/":                                 invalid,
		"http://[127.0.0.1]/":                          invalid,
		"http://example.com:0/":                        invalid,
		"http://example.com:99999/":                    invalid,
		"http://%zz/":                                  invalid,
		"http://" + strings.Repeat("a", 300) + ".com/": invalid,
	} {
		err := CheckURL(raw, rules)
		got := ""
		if err != nil {
			f := fault.Of(err)
			got = string(f.Code)
			if f.Code == fault.BlockedTarget {
				got, _ = f.Data["rule"].(string)
				if f.Data["host"] == "" || f.Advice() == "" {
					t.Errorf("%s: data %v, hint %q", raw, f.Data, f.Advice())
				}
			}
			if strings.Contains(err.Error(), "pw") {
				t.Errorf("%s: the error shows the user's part: %v", raw, err)
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
	if err := CheckURL("https://example.com", nil); !errors.Is(err, fault.BlockedTarget) {
		t.Errorf("without rules everything must be refused, got %v", err)
	}
	if err := CheckURL("view-source:x", rules); !strings.Contains(err.Error(), "view-source") {
		t.Errorf("the scheme is not named: %v", err)
	}
	if err := CheckURL("http://198.18.0.7/", rules); !strings.Contains(fault.Of(err).Advice(), "fake-IP") {
		t.Errorf("no word of fake-IP VPNs: %v", fault.Of(err).Advice())
	}
}

func TestAnAllowEntryOpensOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	const own = 3849
	for name, tt := range map[string]struct {
		allow  []string
		open   bool // block_private off
		target string
		addr   string // what the name resolves to
		want   string
	}{
		"a host may be private":                         {[]string{"nas.example"}, false, "nas.example:5000", "10.0.0.2", ""},
		"its subdomain may not":                         {[]string{"nas.example"}, false, "a.nas.example:5000", "10.0.0.2", "private"},
		"another host at the same address may not":      {[]string{"nas.example"}, false, "evil.example:5000", "10.0.0.2", "private"},
		"the address itself may not":                    {[]string{"nas.example"}, false, "10.0.0.2:5000", "10.0.0.2", "private"},
		"a host never opens metadata":                   {[]string{"nas.example"}, false, "nas.example:80", "169.254.169.254", "metadata"},
		"a host never opens multicast":                  {[]string{"nas.example"}, false, "nas.example:80", "224.0.0.1", "multicast"},
		"a wildcard covers subdomains":                  {[]string{"*.corp.example"}, false, "a.b.corp.example:80", "10.0.0.2", ""},
		"a wildcard does not cover the name itself":     {[]string{"*.corp.example"}, false, "corp.example:80", "10.0.0.2", "private"},
		"a wildcard does not cover a lookalike":         {[]string{"*.corp.example"}, false, "evilcorp.example:80", "10.0.0.2", "private"},
		"a port is only that port":                      {[]string{"nas.example:5000"}, false, "nas.example:5001", "10.0.0.2", "private"},
		"a wildcard with a port":                        {[]string{"*.nas.example:5000"}, false, "x.nas.example:5000", "10.0.0.2", ""},
		"an address however named":                      {[]string{"10.0.0.2"}, false, "evil.example:1", "10.0.0.2", ""},
		"an address with a port is that port only":      {[]string{"10.0.0.2:80"}, false, "10.0.0.2:81", "10.0.0.2", "private"},
		"an IPv6 address with a port":                   {[]string{"[fd00::2]:80"}, false, "[fd00::2]:80", "fd00::2", ""},
		"a mapped spelling is the address":              {[]string{"::ffff:10.0.0.2"}, false, "x.example:80", "10.0.0.2", ""},
		"an address as a mapped literal":                {[]string{"10.0.0.2"}, false, "[::ffff:10.0.0.2]:80", "::ffff:10.0.0.2", ""},
		"a range":                                       {[]string{"10.0.0.0/24"}, false, "x.example:80", "10.0.0.77", ""},
		"outside of a range":                            {[]string{"10.0.0.0/24"}, false, "x.example:80", "10.0.1.77", "private"},
		"a range never opens metadata":                  {[]string{"169.254.0.0/16"}, false, "x.example:80", "169.254.169.254", "metadata"},
		"metadata by its own address":                   {[]string{"169.254.169.254"}, false, "x.example:80", "169.254.169.254", ""},
		"a private name by its address":                 {[]string{"10.0.0.0/8"}, false, "nas.local:80", "10.0.0.2", ""},
		"a private name elsewhere":                      {[]string{"10.0.0.0/8"}, false, "nas.local:80", "8.8.8.8", "private-name"},
		"a private name by name":                        {[]string{"nas.local"}, false, "nas.local:80", "10.0.0.2", ""},
		"a private name when private ranges are open":   {nil, true, "nas:80", "10.0.0.2", ""},
		"a range of a translator, public inside":        {[]string{"64:ff9b:1::/48"}, false, "x.example:80", "64:ff9b:1::808:808", ""},
		"a range of a translator, private inside":       {[]string{"64:ff9b:1::/48"}, false, "x.example:80", "64:ff9b:1::a00:1", "private"},
		"a range of a translator, and what is inside":   {[]string{"64:ff9b:1::/48", "10.0.0.0/8"}, false, "x.example:80", "64:ff9b:1::a00:1", ""},
		"our own port by a host entry":                  {[]string{"localhost"}, false, "localhost:3849", "127.0.0.1", RuleOwnPort},
		"our own port by an address":                    {[]string{"127.0.0.1:3849"}, false, "127.0.0.1:3849", "127.0.0.1", RuleOwnPort},
		"our own port when private ranges are open":     {nil, true, "x.example:3849", "::1", RuleOwnPort},
		"our own port at 0.0.0.0":                       {nil, true, "0.0.0.0:3849", "0.0.0.0", RuleOwnPort},
		"our own port through a mapped address":         {nil, true, "[::ffff:7f00:1]:3849", "::ffff:127.0.0.1", RuleOwnPort},
		"our own port at an interface's address":        {[]string{"9.9.9.1"}, true, "9.9.9.1:3849", "9.9.9.1", RuleOwnPort},
		"our own port number on another machine":        {nil, true, "10.0.0.9:3849", "10.0.0.9", ""},
		"another port at this machine's public address": {nil, false, "x.example:6379", "9.9.9.1", RuleOwnAddress},
		"the same by name":                              {[]string{"x.example"}, false, "x.example:6379", "9.9.9.1", ""},
		"the same when private ranges are open":         {nil, true, "x.example:6379", "9.9.9.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := compile(t, Policy{BlockPrivate: !tt.open, Allow: tt.allow, OwnPorts: []uint16{own}})
			r.machine.list = func() ([]net.Addr, error) {
				return []net.Addr{&net.IPNet{IP: net.ParseIP("9.9.9.1"), Mask: net.CIDRMask(24, 32)}}, nil
			}
			to, err := parseTarget(tt.target)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.judgeAddr(to, netip.MustParseAddr(tt.addr)); got != tt.want {
				t.Fatalf("rule %q, want %q", got, tt.want)
			}
		})
	}
	if got := compile(t, Policy{Allow: []string{"update.googleapis.com"}}).judgeName(target{name: "update.googleapis.com", port: 443}); got != RuleVendor {
		t.Errorf("an allow entry opened a vendor host: %q", got)
	}
}

func TestCompileNamesTheBadEntry(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{
		"", " ", "*", "*.", "a.*.b", "*a.example", "https://example.com", "example.com/path", "10.0.0.1/8", "10.0.0.0/33",
		"0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104", "example.com:0", "example.com:http", "example.com:70000", "[::1", "[::1]:x", "fe80::1%eth0",
		"[fe80::1%25eth0]:80", "*.10.0.0.1", "0x7f.1", "2130706433", "a b", "exa\x00mple", "10.0.0.0/8:80",
	} {
		_, err := Policy{Allow: []string{"good.example", entry}}.Compile()
		f := fault.Of(err)
		if f == nil || f.Code != fault.InvalidRequest || f.Data["entry"] != entry || f.Hint == "" {
			t.Errorf("%q: %v %+v", entry, err, f)
		}
	}
	if _, err := (Policy{OwnPorts: []uint16{0}}).Compile(); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("own port 0: %v", err)
	}
}

func TestAPolicySurvivesJSON(t *testing.T) {
	t.Parallel()
	in := Policy{BlockPrivate: true, Allow: []string{"a.example", "10.0.0.0/8"}, OwnPorts: []uint16{1, 2}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Policy
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Fatal(diff)
	}
}

func TestTheMachinesAddressesAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads, ip := 0, "9.9.9.1"
		m := &machine{list: func() ([]net.Addr, error) {
			reads++
			return []net.Addr{&net.IPNet{IP: net.ParseIP(ip)}}, nil
		}}
		if !m.has(netip.MustParseAddr("9.9.9.1")) || m.has(netip.MustParseAddr("9.9.9.2")) || reads != 1 {
			t.Fatalf("the first list is wrong, %d reads", reads)
		}
		ip = "9.9.9.2"
		time.Sleep(machineFresh)
		if !m.has(netip.MustParseAddr("9.9.9.2")) || m.has(netip.MustParseAddr("9.9.9.1")) || reads != 2 {
			t.Fatalf("the list is stale after %d reads", reads)
		}
		m.list = func() ([]net.Addr, error) { return nil, errors.New("out of files") }
		time.Sleep(machineFresh)
		if !m.has(netip.MustParseAddr("9.9.9.2")) {
			t.Fatal("a failed read forgot the list")
		}
	})
}

func TestPunycode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"bücher.example": "xn--bcher-kva.example",
		"BÜCHER.example": "xn--bcher-kva.example",
		"münchen.de":     "xn--mnchen-3ya.de",
		"他们为什么不说中文":      "xn--ihqwcrb4cv8a8dqg056pqjye",
		"почемужеонинеговорятпорусски": "xn--b1abfaaepdrnnbgefbadotcwatmq2g4l",
		"3年b組金八先生": "xn--3b-ww4c5e180e575a65lsy2b",
	} {
		if got, err := toASCII(in); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", in, got, err, want)
		}
	}
	if _, err := toASCII(strings.Repeat("ü", 200)); err == nil {
		t.Error("a label that cannot be one was accepted")
	}
}

// Every spelling of an IPv4 address that a browser reads must be judged as that address.
func TestEverySpellingOfAnAddressIsTheAddress(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint32().Draw(t, "address")
		parts := rapid.IntRange(1, 4).Draw(t, "parts")
		bytes := []uint32{n >> 24, n >> 16 & 0xff, n >> 8 & 0xff}
		spelled := make([]string, parts)
		for i := range parts {
			v := n
			if i < parts-1 {
				v = bytes[i]
			} else if i > 0 {
				v = n & (1<<(32-8*i) - 1)
			}
			spelled[i] = fmt.Sprintf(rapid.SampledFrom([]string{"%d", "0x%x", "0%o", "0X%X"}).Draw(t, "base"), v)
		}
		raw := strings.Join(spelled, ".")
		got, err := parseHost(raw)
		want := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		if err != nil || got.addr != want {
			t.Fatalf("%s: %v, %v, want %v", raw, got.addr, err, want)
		}
	})
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"http://example.com", "https://[::1]:80/", "http://0x7f.1", "http://u:p@１.1", "a:b", "http://%31",
		"http://[::ffff:10.0.0.1]/", "http://localhost./", "http://169.254.169.254\\@example.com", "http://①.0.0.1", "http://[fe80::1%25eth0]:1"} {
		f.Add(s)
	}
	rules, err := Policy{BlockPrivate: true}.Compile()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		err := CheckURL(raw, rules)
		if err == nil {
			trimmed := strings.ToLower(strings.TrimLeft(raw, "\x00\t\n\v\f\r "))
			if !strings.HasPrefix(trimmed, "http://") && !strings.HasPrefix(trimmed, "https://") {
				t.Fatalf("%q passed", raw)
			}
			// Another reader of addresses must not see this machine or its network in it.
			if u, err := url.Parse(raw); err == nil {
				addr, err := netip.ParseAddr(u.Hostname())
				addr = addr.Unmap()
				if err == nil && (addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() || addr.IsMulticast()) {
					t.Fatalf("%q passed, and leads to %s", raw, addr)
				}
				if name := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."); name == "localhost" || strings.HasSuffix(name, ".localhost") {
					t.Fatalf("%q passed, and leads to %s", raw, name)
				}
			}
			return
		}
		if code := fault.Of(err).Code; code != fault.InvalidURL && code != fault.BlockedTarget {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"example.com", "*.a.b:80", "10.0.0.0/8", "[::1]:1", "::1", "bücher.de"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		r, err := Policy{BlockPrivate: true, Allow: []string{entry}, OwnPorts: []uint16{9}}.Compile()
		if err != nil {
			if fault.Of(err).Code != fault.InvalidRequest {
				t.Fatal(err)
			}
			return
		}
		if r.judgeAddr(target{name: "localhost", port: 9}, netip.IPv6Loopback()) != RuleOwnPort {
			t.Fatalf("%q opened our own port", entry)
		}
	})
}
