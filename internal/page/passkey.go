package page

import (
	"context"
	"strings"
	"sync"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"

	"tapin/internal/browser"
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

// passkeys counts the requests for passkeys that the browser has answered. No
// event tells of one, and a page that could be watched for it would notice; but
// the browser keeps statistics, and in one that is all ours they are our pages'.
type passkeys struct {
	mu       sync.Mutex
	counted  bool // there is a count to compare with
	answered int64
	acted    chan struct{} // told when something was done to a page
}

// The statistics are read so often while nobody asks for the tabs anyway, and so
// long after something was done to a page. It takes the browser a millisecond, in
// which it does nothing else: an action's own answer does not wait for it.
const (
	passkeysEvery = 2 * time.Second
	passkeysAfter = 100 * time.Millisecond
)

// countPasskeys notes where the count stands, and looks after it from now on.
func (t *Tabs) countPasskeys(ctx context.Context) {
	var n int64
	if !browser.IsUnused(t.inst) { // where no page has been, none has asked
		var ok bool
		if n, ok = t.passkeysAnswered(ctx); !ok {
			return
		}
	}
	t.passkeys.mu.Lock()
	t.passkeys.counted, t.passkeys.answered = true, n
	t.passkeys.mu.Unlock()
	t.watch(func(ctx context.Context) {
		t.passkeys.keepLooking(ctx, t.root.Conn().Done(), func() {
			if front := t.front(); front != nil && !front.untouched() {
				t.lookForPasskeys(ctx)
			}
		})
	})
}

// keepLooking looks again and again until it is over.
func (p *passkeys) keepLooking(ctx context.Context, over <-chan struct{}, look func()) {
	next := time.NewTimer(passkeysEvery)
	defer next.Stop()
	for acted := p.acted; ; {
		select {
		case <-acted:
			acted = nil // one that acts all the time does not put it off
			next.Reset(passkeysAfter)
		case <-next.C:
			look()
			acted = p.acted
			next.Reset(passkeysEvery)
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// actedNow has the statistics read soon.
func (p *passkeys) actedNow() {
	select {
	case p.acted <- struct{}{}:
	default: // it is going to be
	}
}

// lookForPasskeys tells of requests for a passkey since the last look. The
// statistics do not say which page it was: a site only asks when it is in front.
func (t *Tabs) lookForPasskeys(ctx context.Context) {
	p := &t.passkeys
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.counted {
		return
	}
	n, ok := t.passkeysAnswered(ctx)
	if !ok || n <= p.answered {
		return
	}
	p.answered = n
	_ = t.readAddresses(ctx) // it may have moved on since
	if tab := t.front(); tab != nil {
		tab.wantedPasskey()
	}
}

// passkeysAnswered is how many requests the browser has answered so far; false
// where it does not say, or also counts what is not ours.
func (t *Tabs) passkeysAnswered(ctx context.Context) (int64, bool) {
	if !t.inst.Exclusive() {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	got, err := proto.Call(ctx, t.root, cdpbrowser.GetHistograms, cdpbrowser.GetHistogramsParams{Query: "WebAuthentication."})
	if err != nil {
		return 0, false
	}
	n := int64(0)
	for _, h := range got.Histograms {
		if strings.HasSuffix(h.Name, "GetAssertion.Result") || strings.HasSuffix(h.Name, "MakeCredential.Result") {
			n += h.Count
		}
	}
	return n, true
}

// wantedPasskey notes that the page asked for one, and tells of it once a page.
func (t *Tab) wantedPasskey() {
	address, _ := t.Address()
	asked := Question{Kind: AskPasskey, Origin: originOf(address)}
	t.questions.mu.Lock()
	known := t.questions.passkey != nil
	t.questions.passkey = &asked
	t.questions.mu.Unlock()
	if !known {
		t.tabs.tell(Surprise{Kind: SurprisePasskey, Tab: t.ID(), Question: &asked})
	}
}
