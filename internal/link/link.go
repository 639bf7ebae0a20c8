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
	Waiting   []waiting `json:"waiting,omitempty"`
}

// waiting is a device that came second.
type waiting struct {
	Number int       `json:"number"`
	Device digest    `json:"device"`
	Until  time.Time `json:"until"`
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

// Room has all links. It is safe for concurrent use.
type Room struct {
	home *store.Home

	mu      sync.Mutex
	guesses map[string]guesses       // by link: wrong tokens in the minute that runs
	changed map[string]chan struct{} // by link: closed at its next change
}

type guesses struct {
	since time.Time
	count int
}

// New makes a room of the links that a home keeps.
func New(home *store.Home) *Room {
	return &Room{home: home, guesses: map[string]guesses{}, changed: map[string]chan struct{}{}}
}

// Mint makes a link into a session. The token is for its owner alone, and is
// never to be had again.
func (r *Room) Mint(_ context.Context, session string, mode Mode, until time.Time) (Link, secret.Text, error) {
	if mode != Drive && mode != Watch {
		return Link{}, secret.Text{}, fault.New(fault.InvalidRequest, "make a link", "%q is no mode of a link", mode).WithHint("Use drive or watch.")
	}
	token := newToken()
	rec := record{
		ID: store.NewID(prefix), SessionID: session, Mode: mode,
		CreatedAt: time.Now().UTC(), ExpiresAt: until.UTC(), Token: digestOf(token),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.home.WriteJSON(file(rec.ID), rec); err != nil {
		return Link{}, secret.Text{}, fault.Wrap(fault.Internal, "make a link", err)
	}
	return rec.link(), token, nil
}

// Claim takes a link's token and gives the device that showed it a secret of
// its own. The first device gets in. A further one is refused with a number,
// and gets in with its secret once the owner has moved the link to it.
func (r *Room) Claim(_ context.Context, id string, token secret.Text) (device secret.Text, err error) {
	const op = "claim a link"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(op, id)
	if err != nil {
		return secret.Text{}, err
	}
	if !rec.Token.is(digestOf(token)) {
		if !r.mayGuess(id) {
			return secret.Text{}, fault.New(fault.RateLimited, op, "too many wrong tokens were shown to this link").WithHint("Wait a minute.")
		}
		return secret.Text{}, expired(op) // whether the link exists is nobody's business
	}
	return r.admit(op, rec)
}

// Admit is Claim for somebody who needs no token, because he is known to sit at
// this very machine. Whoever calls it has made sure of that.
func (r *Room) Admit(_ context.Context, id string) (device secret.Text, err error) {
	const op = "open a link on this machine"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(op, id)
	if err != nil {
		return secret.Text{}, err
	}
	return r.admit(op, rec)
}

// admit lets a device in, or has it wait for the owner's word. Called with the
// lock held.
func (r *Room) admit(op string, rec *record) (device secret.Text, err error) {
	device = newToken()
	if rec.Device == "" {
		rec.Device = digestOf(device)
		return device, r.write(op, rec)
	}
	if len(rec.Waiting) >= maxWaiting {
		return secret.Text{}, fault.New(fault.RateLimited, op, "other devices wait for this link already").WithHint("Wait until the owner has decided about them.")
	}
	number, err := freeNumber(rec.Waiting)
	if err != nil {
		return secret.Text{}, fault.Wrap(fault.Internal, op, err)
	}
	rec.Waiting = append(rec.Waiting, waiting{number, digestOf(device), time.Now().Add(waitWithin).UTC()})
	if err := r.write(op, rec); err != nil {
		return secret.Text{}, err
	}
	return device, fault.New(fault.LinkClaimed, op, "another device uses this link").With("number", number).
		WithHint("The owner can move it to this device by the number %d.", number)
}

// Enter finds the link that a device has claimed. A device that still waits gets
// LINK_CLAIMED with its number.
func (r *Room) Enter(_ context.Context, id string, device secret.Text) (Link, error) {
	const op = "open a link"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(op, id)
	if err != nil {
		return Link{}, err
	}
	shown := digestOf(device)
	if rec.Device.is(shown) {
		return rec.link(), nil
	}
	for _, w := range rec.Waiting {
		if w.Device.is(shown) {
			return Link{}, fault.New(fault.LinkClaimed, op, "another device uses this link").With("number", w.Number).
				WithHint("The owner can move it to this device by the number %d.", w.Number)
		}
	}
	return Link{}, expired(op)
}

// Move gives a link to the device that shows the number. The one that had it is
// shut out.
func (r *Room) Move(_ context.Context, id string, number int) (Link, error) {
	const op = "move a link"
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live(op, id)
	if err != nil {
		return Link{}, err
	}
	for _, w := range rec.Waiting {
		if w.Number == number {
			rec.Device, rec.Waiting = w.Device, nil
			return rec.link(), r.write(op, rec)
		}
	}
	return Link{}, fault.New(fault.NotFound, op, "no device waits with the number %d", number).
		WithHint("The number is on the waiting device's screen, for %d minutes.", int(waitWithin.Minutes()))
}

// Revoke ends a link. Ending one that is over is no error.
func (r *Room) Revoke(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !store.ValidID(prefix, id) {
		return fault.New(fault.NotFound, "end a link", "there is no such link")
	}
	return r.remove(id)
}

// RevokeOf ends all links into a session, because it is over.
func (r *Room) RevokeOf(ctx context.Context, session string) error {
	links, err := r.List(ctx)
	for _, l := range links {
		if l.SessionID == session {
			err = errors.Join(err, r.Revoke(ctx, l.ID))
		}
	}
	return err
}

// List tells of all links that live, the oldest first, and removes those that
// do not.
func (r *Room) List(context.Context) ([]Link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
		if rec, err := r.live("list links", id); err == nil {
			out = append(out, rec.link())
		}
	}
	return out, nil
}

// Get is one link.
func (r *Room) Get(_ context.Context, id string) (Link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.live("find a link", id)
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
func (r *Room) live(op, id string) (*record, error) {
	if !store.ValidID(prefix, id) {
		return nil, expired(op)
	}
	rec := &record{}
	switch err := r.home.ReadJSON(file(id), rec); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, expired(op)
	case err != nil || rec.ID != id:
		return nil, fault.New(fault.Internal, op, "the record of the link cannot be read")
	}
	now := time.Now()
	if !now.Before(rec.ExpiresAt) {
		_ = r.remove(id)
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

func (r *Room) write(op string, rec *record) error {
	err := r.home.WriteJSON(file(rec.ID), rec)
	r.tell(rec.ID)
	return fault.Wrap(fault.Internal, op, err)
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
	l := Link{ID: r.ID, SessionID: r.SessionID, Mode: r.Mode, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, Claimed: r.Device != ""}
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

// freeNumber is a number of two digits that no waiting device shows.
func freeNumber(taken []waiting) (int, error) {
	for {
		n, err := rand.Int(rand.Reader, big.NewInt(90))
		if err != nil {
			return 0, err
		}
		number := int(n.Int64()) + 10
		free := true
		for _, w := range taken {
			free = free && w.Number != number
		}
		if free {
			return number, nil
		}
	}
}
