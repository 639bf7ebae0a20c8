package egress

import "golang.org/x/net/idna"

// spelling is what a browser makes of a host that a person or a page wrote: UTS
// 46, without its rules on which letters a registry would sell.
var spelling = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.CheckJoiners(false), idna.ValidateLabels(false), idna.VerifyDNSLength(true))

// toASCII lower-cases a host and writes what is not ASCII as a browser would:
// look-alikes of ASCII become ASCII, other labels punycode.
func toASCII(h string) (string, error) {
	ascii, err := spelling.ToASCII(h)
	if err != nil {
		return "", errHost
	}
	return ascii, nil
}
