package page

import (
	"context"

	"github.com/chromedp/cdproto/webauthn"
)

// declinePasskeys makes a site's request for a passkey fail within milliseconds,
// as if the person had pressed cancel, so that the site shows its other way in.
// Without it the browser waits for minutes behind a prompt that nobody sees.
//
// There is a key of every kind, because the browser waits for a kind it has not
// got. Each is touched at once and never recognises its owner: it has no passkey
// to offer, and refuses to make one. The page sees nothing else. A browser
// elsewhere may not know how, and is no worse for it.
func (t *Tab) declinePasskeys(ctx context.Context) {
	_ = t.session.Send(ctx, webauthn.Enable.Method, webauthn.EnableParams{})
	for _, kind := range []webauthn.AuthenticatorTransport{
		webauthn.AuthenticatorTransportUsb, webauthn.AuthenticatorTransportNfc, webauthn.AuthenticatorTransportBle,
		webauthn.AuthenticatorTransportHybrid, webauthn.AuthenticatorTransportSmartCard, webauthn.AuthenticatorTransportInternal,
	} {
		_ = t.session.Send(ctx, webauthn.AddVirtualAuthenticator.Method, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: kind,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: false, AutomaticPresenceSimulation: true,
		}})
	}
}
