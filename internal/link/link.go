// Package link makes the links that let a person into a live browser, and
// knows which device may use them. It owns their records: for whom a link is,
// which device has claimed it, and when it dies. It must never keep, log or
// tell a token in the clear: the record holds digests, and the one who is given
// a token is the only one who has it.
package link

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/big"
	"strings"
	"sync"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	prefix     = "lnk"
	tokenBytes = 32
	// waitWithin is how long a second device waits for the owner's word.
	waitWithin = 10 * time.Minute
	// maxWaiting bounds how many devices wait at a link: the owner is asked about
	// a number, and must be able to find it.
	maxWaiting = 3
	// maxNumbers bounds how many wait at all links together: there are ninety.
	maxNumbers = 45
	// guessesPerMinute bounds how often a wrong token may be shown to one link.
	guessesPerMinute = 10
)

// Mode is what a link allows.
type Mode string

// The modes.
const (
	Drive Mode = "drive"
	Watch Mode = "watch"
)

// Link is what may be known of a link.
type Link struct {
	ID        string    `json:"link_id"`
	SessionID string    `json:"session_id"`
	Mode      Mode      `json:"mode"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Claimed   bool      `json:"claimed"`
	Waiting   []int     `json:"waiting,omitempty"` // the numbers that waiting devices show
	Open      bool      `json:"open,omitempty"`    // it may be known to anybody, and has no token that anybody knows
}

// record is a link as it is kept.
type record struct {
	ID        string    `json:"link_id"`
	SessionID string    `json:"session_id"`
	Mode      Mode      `json:"mode"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Token     digest    `json:"token"`
	Device    digest    `json:"device,omitempty"`
	Who       string    `json:"who,omitempty"` // has it, where that is known for certain
	Overheard bool      `json:"overheard,omitempty"`
	Waiting   []waiting `json:"waiting,omitempty"`
	Open      bool      `json:"open,omitempty"`
	Over      bool      `json:"over,omitempty"` // all that is left is to tell it

	Version int          `json:"version"`
	Outbox  event.Outbox `json:"outbox,omitempty"`
}

// waiting is a device that came second.
type waiting struct {
	Number int       `json:"number"`
	Device digest    `json:"device"`
	Until  time.Time `json:"until"`

	Overheard bool `json:"overheard,omitempty"`
}

// digest stands for a token on the disk. Tokens are 256 random bits, so that a
// plain digest of one tells nothing.
type digest string

func digestOf(token secret.Text) digest {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return digest(hex.EncodeToString(sum[:]))
}

func (d digest) is(other digest) bool {
	return d != "" && subtle.ConstantTimeCompare([]byte(d), []byte(other)) == 1
}

// Options are what a room works with besides; nil and zero values mean the defaults.
type Options struct {
	Pump *event.Pump // tells the feed what happens to links; nil: nobody is told
}

// Room has all links. It is safe for concurrent use.
type Room struct {
	home *store.Home
	opts Options

	mu      sync.Mutex
	guesses map[string]guesses       // by link: wrong tokens in the minute that runs
	changed map[string]chan struct{} // by link: closed at its next change
}

type guesses struct {
	since time.Time
	count int
}

// New makes a room of the links that a home keeps.
func New(home *store.Home, opts *Options) *Room {
	r := &Room{home: home, guesses: map[string]guesses{}, changed: map[string]chan struct{}{}}
	if opts != nil {
		r.opts = *opts
	}
	return r
}

// Mint makes a link into a session. The token is for its owner alone, and is
// never to be had again.
func (r *Room) Mint(ctx context.Context, session string, mode Mode, until time.Time) (Link, secret.Text, error) {
	if mode != Drive && mode != Watch {
		return Link{}, secret.Text{}, fault.New(fault.InvalidRequest, "make a link", "%q is no mode of a link", mode).WithHint("Use drive or watch.")
	}
	token := newToken()
	rec := &record{
		ID: store.NewID(prefix), SessionID: session, Mode: mode,
		CreatedAt: time.Now().UTC(), ExpiresAt: until.UTC(), Token: digestOf(token),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.change(ctx, "make a link", rec, event.LinkMinted, 0); err != nil {
		return Link{}, secret.Text{}, err
	}
	return rec.link(), token, nil
}

// View is the link of a session that may be known to anybody, made by the first
// who asks for it. No token opens it: a device gets in by Admit, or knocks and
// waits for the owner's word.
func (r *Room) View(ctx context.Context, session string, until time.Time) (Link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	links, err := r.list(ctx)
	if err != nil {
		return Link{}, err
	}
	for _, l := range links {
		if l.Open && l.SessionID == session {
			return l, nil
		}
	}
	rec := &record{
		ID: store.NewID(prefix), SessionID: session, Mode: Drive, Open: true,
		CreatedAt: time.Now().UTC(), ExpiresAt: until.UTC(), Token: digestOf(newToken()),
	}
	return rec.link(), r.change(ctx, "make a link", rec, event.LinkMinted, 0)
}

// Revoke ends a link. Ending one that is over is no error.
func (r *Room) Revoke(ctx context.Context, id string) error {
	const op = "end a link"
	r.mu.Lock()
	defer r.mu.Unlock()
	if !store.ValidID(prefix, id) {
		return fault.New(fault.NotFound, op, "there is no such link")
	}
	rec, err := r.live(ctx, op, id)
	if errors.Is(err, fault.LinkExpired) {
		return nil
	}
	if err != nil {
		return errors.Join(err, r.remove(id)) // what cannot be read must not open anything
	}
	return r.finish(ctx, rec)
}

// RevokeOf ends all links into a session, because it is over.
func (r *Room) RevokeOf(ctx context.Context, session string) error {
	return r.Sweep(ctx, func(id string) bool { return id != session })
}

// Sweep ends the links into sessions that do not live.
func (r *Room) Sweep(ctx context.Context, lives func(session string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	links, err := r.list(ctx)
	for _, l := range links {
		if lives(l.SessionID) {
			continue
		}
		rec, gone := r.live(ctx, "end a link", l.ID)
		if gone == nil {
			err = errors.Join(err, r.finish(ctx, rec))
		}
	}
	return err
}

// List tells of all links that live, the oldest first, and removes those that
// do not.
func (r *Room) List(ctx context.Context) ([]Link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list(ctx)
}

func (r *Room) list(ctx context.Context) ([]Link, error) {
	names, err := r.home.List("links")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "list links", err)
	}
	var out []Link
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok {
			continue
		}
		if rec, err := r.live(ctx, "list links", id); err == nil {
			r.deliver(ctx, rec) // a kill may have kept its news
			out = append(out, rec.link())
		}
	}
	return out, nil
}

// Get is one link.
func (r *Room) Get(ctx context.Context, id string) (Link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(ctx, "find a link", id)
	if err != nil {
		return Link{}, err
	}
	return rec.link(), nil
}

// Changed is closed when that link is claimed, moved or ended: who is in must
// show his secret again. The end of its time comes without a word; the link
// tells when.
func (r *Room) Changed(id string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.changed[id]
	if changed == nil {
		changed = make(chan struct{})
		r.changed[id] = changed
	}
	return changed
}

// tell wakes who waits for a change. Called with the lock held.
func (r *Room) tell(id string) {
	if changed := r.changed[id]; changed != nil {
		close(changed)
		delete(r.changed, id)
	}
}

// live reads a link that is not over; one that is, is removed. Called with the
// lock held, as all below.
func (r *Room) live(ctx context.Context, op, id string) (*record, error) {
	if !store.ValidID(prefix, id) {
		return nil, expired(op)
	}
	rec := &record{}
	switch err := r.home.ReadRecord(file(id), rec, store.Of(&rec.ID, id)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, expired(op)
	case err != nil:
		return nil, fault.Wrap(fault.Internal, op, err)
	}
	now := time.Now()
	if rec.Over || !now.Before(rec.ExpiresAt) {
		_ = r.finish(ctx, rec)
		return nil, expired(op)
	}
	still := rec.Waiting[:0]
	for _, w := range rec.Waiting {
		if now.Before(w.Until) {
			still = append(still, w)
		}
	}
	rec.Waiting = still
	return rec, nil
}

// finish ends a link: its end is on the disk before it is told, and its record
// goes when that has been done.
func (r *Room) finish(ctx context.Context, rec *record) error {
	if !rec.Over {
		rec.Over, rec.Device, rec.Waiting = true, "", nil
		if err := r.change(ctx, "end a link", rec, event.LinkEnded, 0); err != nil {
			return errors.Join(err, r.remove(rec.ID)) // better untold than open
		}
	} else {
		r.deliver(ctx, rec)
	}
	if len(rec.Outbox) > 0 {
		return nil // not told yet: whoever looks at it next does it
	}
	return r.remove(rec.ID)
}

func (r *Room) remove(id string) error {
	delete(r.guesses, id)
	defer r.tell(id)
	if err := r.home.Remove(file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Internal, "end a link", err)
	}
	return nil
}

func (r *Room) mayGuess(id string) bool {
	now := time.Now()
	g := r.guesses[id]
	if now.Sub(g.since) >= time.Minute {
		g = guesses{since: now}
	}
	g.count++
	r.guesses[id] = g
	return g.count <= guessesPerMinute
}

func (r *record) link() Link {
	l := Link{ID: r.ID, SessionID: r.SessionID, Mode: r.Mode, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, Claimed: r.Device != "", Open: r.Open}
	if r.Overheard {
		l.Mode = Watch // whoever listened on the way could be that device too
	}
	for _, w := range r.Waiting {
		l.Waiting = append(l.Waiting, w.Number)
	}
	return l
}

func expired(op string) error {
	return fault.New(fault.LinkExpired, op, "there is no such link, or it is over")
}

func file(id string) string { return "links/" + id + ".json" }

func newToken() secret.Text {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return secret.New(base64.RawURLEncoding.EncodeToString(b[:]))
}

// freeNumber is a number of two digits that no waiting device shows, at whatever
// link: the owner may name it without the link. Called with the lock held.
func (r *Room) freeNumber(ctx context.Context, op string) (int, error) {
	links, err := r.list(ctx)
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, l := range links {
		for _, n := range l.Waiting {
			taken[n] = true
		}
	}
	if len(taken) > maxNumbers {
		return 0, fault.New(fault.RateLimited, op, "too many devices wait").WithHint("Wait until the owner has decided about them.")
	}
	for {
		n, err := rand.Int(rand.Reader, big.NewInt(90))
		if err != nil {
			return 0, fault.Wrap(fault.Internal, op, err)
		}
		if number := int(n.Int64()) + 10; !taken[number] {
			return number, nil
		}
	}
}
