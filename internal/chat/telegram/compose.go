package telegram

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"image"
	"image/jpeg"
	_ "image/png" // a provider may send one
	"strconv"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/chat"
	"tapin/internal/config"
	"tapin/internal/fault"
)

// The verbs of buttons. With an id behind them they stay within 64 bytes.
const (
	verbDone   = "done"
	verbAnyway = "anyway"
	verbAbort  = "abort"
	verbShot   = "shot"
	verbMore   = "more"
	verbLater  = "later"
	verbResume = "resume"
	verbRetry  = "retry"
	verbMove   = "move"
	verbYes    = "yes"
	verbNo     = "no"
	verbLetIn  = "in"
	verbRefuse = "out"

	verbPolicy   = "policy"
	verbNoPolicy = "nopolicy"
)

func press(text, verb, id string) button { return button{Text: text, Data: verb + ":" + id} }

// compose makes the message of a card as it should be now.
func (r *Room) compose(ctx context.Context, t task, fresh bool) (post, []byte, error) {
	if t.pay != nil {
		var picture []byte
		if fresh {
			picture = r.crop(ctx, t.pay)
		}
		return t.pay.compose(t.chat), picture, nil
	}
	p, now := post{chat: t.chat}, time.Now()
	if t.over {
		p.text = chat.Ended(t.hand)
		if t.hand.TodoID != "" {
			p.buttons = &keyboard{Rows: [][]button{{press("Try again", verbRetry, t.hand.TodoID)}}}
		}
		return p, nil, nil
	}
	if t.hand.Parked {
		p.text = chat.Announce(t.hand, now, chat.Reach{})
		p.buttons = &keyboard{Rows: [][]button{{press("Resume", verbResume, t.card), press("Abort", verbAbort, t.card)}}}
		return p, nil, nil
	}
	reach, open, err := r.reach(ctx, t.hand)
	if err != nil {
		return post{}, nil, err
	}
	p.text = chat.Announce(t.hand, now, reach)
	p.buttons = controls(t.card, open, t.hand.Attempts > 1)
	var picture []byte
	if fresh {
		picture = r.photo(ctx, t)
	}
	return p, picture, nil
}

// controls are the buttons of a hand-off.
func controls(id string, open *button, anyway bool) *keyboard {
	k := &keyboard{}
	if open != nil {
		k.Rows = append(k.Rows, []button{*open})
	}
	done := []button{press("Done", verbDone, id)}
	if anyway {
		done = append(done, press("Done anyway", verbAnyway, id))
	}
	k.Rows = append(k.Rows, append(done, press("Abort", verbAbort, id)),
		[]button{press("Screenshot", verbShot, id), press("+15 min", verbMore, id), press("Later", verbLater, id)})
	return k
}

// composePrompt makes a further message about a card.
func (r *Room) composePrompt(ctx context.Context, t task) (p post, picture []byte, err error) {
	p, now := post{chat: t.chat, reply: t.shown.last().ID}, time.Now()
	switch t.kind {
	case remind:
		p.text.Plain = chat.Reminder(t.hand, now)
	case ending:
		p.text.Plain = chat.Ending(t.hand, now)
		p.buttons = &keyboard{Rows: [][]button{{press("+15 min", verbMore, t.card), press("Later", verbLater, t.card)}}}
		if t.hand.Parked {
			p.buttons = &keyboard{Rows: [][]button{{press("Resume", verbResume, t.card)}}}
		}
	case timedOut:
		p.text.Plain = chat.TimedOut(t.hand)
		if t.hand.TodoID != "" {
			p.buttons = &keyboard{Rows: [][]button{{press("Try again", verbRetry, t.hand.TodoID)}}}
		}
	case reasked:
		var open *button
		if _, open, err = r.reach(ctx, t.hand); err != nil {
			return post{}, nil, err
		}
		p.text = chat.Reasked(t.hand)
		p.buttons = controls(t.card, open, true)
		if r.opts.Screenshot != config.ScreenshotNone {
			picture, _ = r.screenshot(ctx, t.card) // the words do without
		}
	}
	return p, picture, nil
}

// reach makes a personal way to the page. A token in it is in this message
// alone: a message that is changed gets a way of its own.
func (r *Room) reach(ctx context.Context, h chat.Handoff) (chat.Reach, *button, error) {
	ctx, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	c, err := r.sidecar(ctx)
	if err != nil {
		return chat.Reach{}, nil, err
	}
	minted, err := c.MintLink(ctx, api.LinkRequest{SessionID: h.SessionID})
	switch {
	case err != nil && !errors.Is(err, fault.Busy) && ctx.Err() == nil:
		// Whatever it is, it must not keep the owner from being told.
		return chat.Reach{Trouble: "There is no live view of this page. “type: …”, “screenshot” and “done” work from here."}, nil, nil
	case err != nil:
		return chat.Reach{}, nil, err
	}
	public, err := c.Public(ctx)
	if err != nil {
		return chat.Reach{}, nil, err
	}
	if base, ok := strings.CutPrefix(public.URL, "https://"); ok && public.Source != "none" {
		return chat.Reach{}, &button{Text: "Open the browser", WebApp: &webApp{URL: "https://" + base + "/tg/" + minted.LinkID}}, nil
	}
	// Nothing that a phone can reach. On the machine itself it can be opened.
	return chat.Reach{URL: minted.OpenURL.Reveal()}, nil, nil
}

// photo is the picture for the announcement. It is handed out once, so it is
// kept in memory until everybody has it.
func (r *Room) photo(ctx context.Context, t task) []byte {
	if !t.hand.Photo || r.opts.Screenshot == config.ScreenshotNone {
		return nil
	}
	r.mu.Lock()
	kept := r.photos[t.card]
	r.mu.Unlock()
	if kept != nil {
		return kept
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	c, err := r.sidecar(ctx)
	if err != nil {
		return nil
	}
	shot, err := c.HandoffPhoto(ctx, t.card)
	if err != nil {
		return nil // delivered before, or lost with a kill: the words have to do
	}
	picture := r.presentable(shot.Bytes)
	r.mu.Lock()
	r.photos[t.card] = picture
	r.mu.Unlock()
	return picture
}

// screenshot is the picture of now that the owner asked for.
func (r *Room) screenshot(ctx context.Context, id string) ([]byte, error) {
	c, err := r.sidecar(ctx)
	if err != nil {
		return nil, err
	}
	shot, err := c.HandoffScreenshot(ctx, id)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(shot.Screenshot)
}

// presentable blurs a picture where that is wanted. One that cannot be blurred
// is not shown.
func (r *Room) presentable(picture []byte) []byte {
	if r.opts.Screenshot != config.ScreenshotBlur {
		return picture
	}
	blurred, err := blur(picture)
	if err != nil {
		r.log.Warn("a picture could not be blurred and is left out", "error", err)
		return nil
	}
	return blurred
}

// blurTo is how many cells a blurred picture has across: a layout can be
// recognised, no word can be read.
const blurTo = 24

// blur averages a picture over large cells, which nothing brings back, and
// paints it smoothly.
func blur(picture []byte) ([]byte, error) {
	img, _, err := image.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, fault.New(fault.ProviderError, "blur a picture", "it is none that can be read")
	}
	b := img.Bounds()
	if b.Dx() < 2 || b.Dy() < 2 || b.Dx() > 1<<14 || b.Dy() > 1<<14 {
		return nil, fault.New(fault.ProviderError, "blur a picture", "it has no size")
	}
	w := blurTo
	h := max(2, w*b.Dy()/b.Dx())
	cells := make([][3]float64, w*h)
	for y := range h {
		for x := range w {
			cells[y*w+x] = average(img, b.Min.X+x*b.Dx()/w, b.Min.Y+y*b.Dy()/h, b.Min.X+max((x+1)*b.Dx()/w, x*b.Dx()/w+1), b.Min.Y+max((y+1)*b.Dy()/h, y*b.Dy()/h+1))
		}
	}
	const width = 480
	height := max(2, width*b.Dy()/b.Dx())
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			at := between(cells, w, h, float64(x)*float64(w-1)/float64(width-1), float64(y)*float64(h-1)/float64(height-1))
			i := out.PixOffset(x, y)
			out.Pix[i], out.Pix[i+1], out.Pix[i+2], out.Pix[i+3] = uint8(at[0]), uint8(at[1]), uint8(at[2]), 255
		}
	}
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, out, &jpeg.Options{Quality: 70}); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func average(img image.Image, x0, y0, x1, y1 int) (sum [3]float64) {
	stepX, stepY := max(1, (x1-x0)/8), max(1, (y1-y0)/8)
	n := 0.0
	for y := y0; y < y1; y += stepY {
		for x := x0; x < x1; x += stepX {
			r, g, b, _ := img.At(x, y).RGBA()
			sum[0], sum[1], sum[2] = sum[0]+float64(r>>8), sum[1]+float64(g>>8), sum[2]+float64(b>>8)
			n++
		}
	}
	for i := range sum {
		sum[i] /= n
	}
	return sum
}

func between(cells [][3]float64, w, h int, x, y float64) (out [3]float64) {
	x0, y0 := int(x), int(y)
	x1, y1 := min(x0+1, w-1), min(y0+1, h-1)
	fx, fy := x-float64(x0), y-float64(y0)
	for i := range out {
		top := cells[y0*w+x0][i]*(1-fx) + cells[y0*w+x1][i]*fx
		low := cells[y1*w+x0][i]*(1-fx) + cells[y1*w+x1][i]*fx
		out[i] = top*(1-fy) + low*fy
	}
	return out
}

func ownerButtons(id int64) *keyboard {
	n := strconv.FormatInt(id, 10)
	return &keyboard{Rows: [][]button{{press("Let them in", verbLetIn, n), press("No", verbRefuse, n)}}}
}
