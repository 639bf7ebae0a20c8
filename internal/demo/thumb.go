package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/browser"
	"tapin/internal/browser/local"
	"tapin/internal/browser/phone"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

var _ Owner = (*Thumb)(nil)

// Thumb plays the owner: a second browser that is a phone, and what a thumb
// does on it. It sees the code in the text message and the puzzle on the glass;
// everything else it does as any owner would, with touches and keys.
type Thumb struct {
	owner    *api.Client
	shop     *Shop
	tell     func(Line)
	codes    <-chan string
	instance browser.Instance
	hand     *phone.Phone
	public   *api.Public
}

// ThumbOptions are what a thumb needs. All of them are required, but Chromium.
type ThumbOptions struct {
	Owner    *api.Client // with the owner's token, for the link and the sign-in that an owner has
	Shop     *Shop
	Codes    <-chan string // the text messages
	Tell     func(Line)
	Home     string      // under which its browser lives
	Chromium string      // empty means the one that is found
	Public   *api.Public // where the live view and the console are, the only place its browser may go
}

const (
	phonesFolder = "phone"
	phoneName    = "owner"
	// A phone that nobody looks after any more ends by itself.
	phoneLives = 10 * time.Minute
)

// NewThumb takes a phone in hand. Close puts it away.
func NewThumb(ctx context.Context, o ThumbOptions) (*Thumb, error) {
	if err := PutAway(ctx, o.Home); err != nil {
		return nil, err
	}
	instance, err := phones(o.Home, o.Chromium).Create(ctx, browser.Spec{
		ID: phoneName, KeepUntil: time.Now().Add(phoneLives), Policy: egress.Policy{BlockPrivate: true, Allow: []string{strings.TrimPrefix(o.Public.Local, "http://")}},
		Width: phone.Width, Height: phone.Height,
	})
	if err != nil {
		return nil, err
	}
	t := &Thumb{owner: o.Owner, shop: o.Shop, tell: o.Tell, codes: o.Codes, public: o.Public, instance: instance}
	instance.Conn().Dispatch()
	if t.hand, err = phone.New(ctx, instance.Conn(), instance.Ref().Context); err != nil {
		_ = t.Close(ctx)
		return nil, err
	}
	return t, nil
}

// phones makes the browsers that are phones. The epoch is the time: a later
// process always has a higher one.
func phones(home, chromium string) *local.Provider {
	return local.New(filepath.Join(home, phonesFolder), uint64(time.Now().UnixNano()), &local.Options{Chromium: chromium})
}

// PutAway ends a phone that a demo left behind because it was killed.
func PutAway(ctx context.Context, home string) error {
	provider := phones(home, "")
	left, err := provider.Own(ctx, nil)
	for _, ref := range left {
		if err == nil {
			err = provider.End(ctx, ref)
		}
	}
	return err
}

// Close ends the phone's browser.
func (t *Thumb) Close(ctx context.Context) error { return t.instance.End(ctx) }

func (t *Thumb) say(text string) {
	t.tell(Line{Who: You, Text: text})
}

// open goes to an address of tapin's, by the way that this machine has to it.
func (t *Thumb) open(ctx context.Context, address secret.Text) error {
	return t.hand.Open(ctx, strings.Replace(address.Reveal(), t.public.URL, t.public.Local, 1))
}

// drivable is what the glass shows whose owner can act.
const drivable = `document.documentElement.dataset.bar === "you" && document.querySelector("#picture").width > 1 && document.querySelector("#curtain").checkVisibility() === false`

// Help logs in, through the live view.
func (t *Thumb) Help(ctx context.Context, h *api.Handoff, _ string) error {
	return t.clumsy(t.help(ctx, h))
}

// clumsy says what it means that something was not seen on the phone.
func (t *Thumb) clumsy(err error) error {
	if missed, ok := errors.AsType[*phone.Missed](err); ok {
		return fault.New(fault.WaitTimeout, "play the owner", "%w", missed).
			WithHint("A machine under heavy load is too slow for it. Try again, or play the owner yourself, without --auto.")
	}
	return err
}

func (t *Thumb) help(ctx context.Context, h *api.Handoff) error {
	link, err := t.owner.MintLink(ctx, api.LinkRequest{SessionID: h.SessionID})
	if err != nil {
		return err
	}
	if err := t.open(ctx, link.OpenURL); err != nil {
		return err
	}
	if err := t.hand.Until(ctx, "the live page", drivable); err != nil {
		return err
	}
	t.say("Opened the link on the phone: the same live page, with a phone's own keyboard.")
	for _, f := range [][2]string{{"Email", "me@example.com"}, {"Password", "only a demo 1"}} {
		if err := t.write(ctx, f[0], f[1]); err != nil {
			return err
		}
	}
	if err := t.hand.Key(ctx, "Enter"); err != nil {
		return err
	}
	t.say("Typed an email and a password.")
	var code string
	select {
	case code = <-t.codes:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := t.write(ctx, "Code", code); err != nil {
		return err
	}
	t.say("Typed the code from the text message.")
	if err := t.solve(ctx); err != nil {
		return err
	}
	t.say("Put the leaf into its place.")
	if err := t.hand.Hold(ctx, "#done", `!document.querySelector("#done").classList.contains("holding")`); err != nil {
		return err
	}
	t.say("Held Done.")
	return nil
}

// field is the phone's own control over a field of the page.
func field(label string) string { return fmt.Sprintf(`#fields [aria-label="%s"]`, label) }

// write taps a field and types into it, key by key.
func (t *Thumb) write(ctx context.Context, label, text string) error {
	selector := field(label)
	err := again(ctx, func() error {
		if _, err := t.hand.Where(ctx, selector); err != nil {
			return err
		}
		if err := t.rest(ctx); err != nil {
			return err
		}
		return t.hand.Tap(ctx, selector)
	}, func(ctx context.Context) error {
		return t.hand.Until(ctx, "the focus in "+label, fmt.Sprintf(`document.activeElement?.matches(%q)`, selector))
	})
	if err != nil {
		return err
	}
	return t.hand.Type(ctx, text)
}

// again does something until its effect is seen, as a person does whose tap was
// too early or beside it.
func again(ctx context.Context, do func() error, seen func(context.Context) error) (err error) {
	const tries, glance = 4, 4 * time.Second
	for range tries {
		if err = do(); err != nil {
			return err
		}
		looking, stop := context.WithTimeout(ctx, glance)
		err = seen(looking)
		stop()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// rest waits until the view stands still.
func (t *Thumb) rest(ctx context.Context) error {
	return t.hand.Until(ctx, "a view that rests", `(() => {
		const r = document.querySelector("#picture").getBoundingClientRect(), place = [r.x, r.y, r.width, r.height].join(), now = performance.now()
		if (window.placed?.place !== place) window.placed = { place, since: now }
		return now - window.placed.since > 450
	})()`)
}

// solve puts the leaf into its place, as often as the shop wants.
func (t *Thumb) solve(ctx context.Context) error {
	return again(ctx, func() error { return t.point(ctx) }, func(ctx context.Context) error {
		return t.hand.Until(ctx, "the checkout", fmt.Sprintf(`document.querySelector(%q)`, field("Street")))
	})
}

// point taps the place of the leaf in the picture.
func (t *Thumb) point(ctx context.Context) error {
	gap, err := t.sees(ctx)
	if err != nil {
		return err
	}
	if err := t.rest(ctx); err != nil {
		return err
	}
	var v struct{ X, Y, W, H, Wide, High float64 }
	err = t.hand.Read(ctx, `JSON.stringify((() => {
		const r = document.querySelector("#picture").getBoundingClientRect(), s = document.querySelector("#plane").style
		return {X: r.x, Y: r.y, W: r.width, H: r.height, Wide: parseFloat(s.width), High: parseFloat(s.height)}
	})())`, &v)
	if err != nil {
		return err
	}
	x, y := place(v.Wide, v.High, gap)
	return t.hand.TapAt(ctx, phone.Point{X: v.X + x/v.Wide*v.W, Y: v.Y + y/v.High*v.H})
}

// sees waits for the puzzle, and is where its leaf belongs.
func (t *Thumb) sees(ctx context.Context) (gap int, err error) {
	if err := t.hand.Until(ctx, "the puzzle", `document.querySelectorAll("#fields > *").length === 0`); err != nil {
		return 0, err
	}
	for {
		if gap, shown := t.shop.Gap(); shown {
			return gap, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Decide says yes in the console, as it is asked there.
func (t *Thumb) Decide(ctx context.Context, a *api.Approval) error { return t.clumsy(t.decide(ctx, a)) }

func (t *Thumb) decide(ctx context.Context, a *api.Approval) error {
	signIn, err := t.owner.ConsoleSignIn(ctx)
	if err != nil {
		return err
	}
	if err := t.open(ctx, signIn.OpenURL); err != nil {
		return err
	}
	ask := fmt.Sprintf(`[data-do="approve"][data-id=%q]`, a.ApprovalID)
	if _, err := t.hand.Where(ctx, ask); err != nil {
		return err
	}
	t.say("Read the question in the console, and approve it there.") // told first: the agent goes on at once
	return again(ctx, func() error { return t.press(ctx, ask) }, func(ctx context.Context) error {
		return t.hand.Until(ctx, "the question answered", fmt.Sprintf(`!document.querySelector(%q)`, ask))
	})
}

// press taps a button of the console, and the one that asks whether it is meant.
func (t *Thumb) press(ctx context.Context, button string) error {
	const sure = `dialog[open] .button.main`
	asked, err := t.hand.See(ctx, fmt.Sprintf(`document.querySelector(%q) !== null`, sure))
	if err != nil {
		return err
	}
	if asked != "true" {
		if err := t.hand.Tap(ctx, button); err != nil {
			return err
		}
	}
	return t.hand.Tap(ctx, sure)
}
