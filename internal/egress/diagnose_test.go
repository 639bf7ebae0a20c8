package egress

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	public := names{"example.com": {"::ffff:93.184.215.14", "2606:2800::1"}, "www.wikipedia.org": {"185.15.59.224"}}
	with := func(more names) names {
		all := names{}
		for _, n := range []names{public, more} {
			for k, v := range n {
				all[k] = v
			}
		}
		return all
	}
	for name, tt := range map[string]struct {
		resolver       Resolver
		answers, dns64 bool
		says           string // in the text or fix of what is not well, or of dns64
	}{
		"an ordinary network":                  {public, true, true, "does not use DNS64"},
		"DNS64 with the well-known prefix":     {with(names{"ipv4only.arpa": {"64:ff9b::c000:aa"}}), true, true, "well-known prefix"},
		"DNS64 with a global prefix":           {with(names{"ipv4only.arpa": {"2a00:1450:64:64::c000:ab"}}), true, false, "2a00:1450:64:64::/96"},
		"DNS64 with a /64 layout":              {with(names{"ipv4only.arpa": {"2a00:1450:64:64:c0:0:aa00:0"}}), true, false, "2a00:1450:64:64::/64"},
		"DNS64 with a private prefix":          {with(names{"ipv4only.arpa": {"64:ff9b:1::c000:aa"}}), true, false, "Name 64:ff9b:1::/96 under egress.allow"},
		"a VPN with fake addresses":            {with(names{"example.com": {"198.18.0.4"}}), false, true, "198.18.0.0/15"},
		"a VPN with fake addresses in 28/8":    {with(names{"www.wikipedia.org": {"28.0.0.9"}}), false, true, "28.0.0.0/8"},
		"an overlay's fake addresses":          {with(names{"example.com": {"100.64.3.2"}}), false, true, "100.64.0.0/10"},
		"a captive portal":                     {with(names{"example.com": {"192.168.0.1"}}), false, true, "captive portal"},
		"no DNS at all":                        {names{}, false, true, "No public name"},
		"a resolver that fails in another way": {lookupFunc(func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("down") }), false, true, "could not be found out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Diagnose(t.Context(), tt.resolver)
			if len(got) != 2 || got[0].OK != tt.answers || got[1].OK != tt.dns64 {
				t.Fatalf("%+v", got)
			}
			all := ""
			for _, f := range got {
				all += f.Text + f.Fix
				if f.Name == "" || f.Text == "" || f.OK != (f.Fix == "") {
					t.Errorf("%+v", f)
				}
			}
			if !strings.Contains(all, tt.says) {
				t.Errorf("%q is not in %q", tt.says, all)
			}
		})
	}
}
