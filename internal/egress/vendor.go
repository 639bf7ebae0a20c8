package egress

import "strings"

// vendorHosts are what Chromium calls of its own accord. A host that people or
// pages use as well is not here: accounts.google.com (log in), www.google.com,
// www.googleapis.com, fonts.googleapis.com, *.gstatic.com, dl.google.com, and
// clients5 and clients6, which Google's own web applications call.
var vendorHosts = map[string]bool{
	"safebrowsing.google.com":                         true,
	"safebrowsing.googleapis.com":                     true,
	"safebrowsinghttpgateway.googleapis.com":          true,
	"sb-ssl.google.com":                               true,
	"google-ohttp-relay-safebrowsing.fastly-edge.com": true,
	"google-ohttp-relay-query.fastly-edge.com":        true,
	"update.googleapis.com":                           true,
	"clientservices.googleapis.com":                   true,
	"optimizationguide-pa.googleapis.com":             true,
	"content-autofill.googleapis.com":                 true,
	"passwordsleakcheck-pa.googleapis.com":            true,
	"chromewebstore.googleapis.com":                   true,
	"chromesyncpasswords-pa.googleapis.com":           true,
	"chromereporting-pa.googleapis.com":               true,
	"chromefeedcontentsuggestions-pa.googleapis.com":  true,
	"chromekanonymity-pa.googleapis.com":              true,
	"chromekanonymityauth-pa.googleapis.com":          true,
	"chromekanonymityquery-pa.googleapis.com":         true,
	"firebaseperusertopics-pa.googleapis.com":         true,
	"securitydomain-pa.googleapis.com":                true,
	"nearbysharing-pa.googleapis.com":                 true,
	"clients1.google.com":                             true,
	"clients2.google.com":                             true,
	"clients3.google.com":                             true,
	"clients4.google.com":                             true,
	"clients2.googleusercontent.com":                  true,
	"android.clients.google.com":                      true,
	"mtalk.google.com":                                true,
	"mtalk4.google.com":                               true,
}

// vendorDomains are denied with everything below them: component downloads and
// reliability beacons, no pages.
var vendorDomains = []string{"gvt1.com", "gvt2.com"}

func isVendor(name string) bool {
	if vendorHosts[name] {
		return true
	}
	for _, d := range vendorDomains {
		if name == d || strings.HasSuffix(name, "."+d) {
			return true
		}
	}
	// alt1-mtalk to alt8-mtalk: the push service's spares.
	return strings.HasPrefix(name, "alt") && strings.HasSuffix(name, "-mtalk.google.com")
}
