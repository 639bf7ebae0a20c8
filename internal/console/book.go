package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	bookFile = "console.json"
	// signInWithin is how long a printed sign-in works.
	signInWithin = 10 * time.Minute
	// signedInFor is how long a device stays signed in after it was last seen.
	signedInFor = 30 * 24 * time.Hour
	// seenStep is how exactly it is kept when a device was seen.
	seenStep   = time.Hour
	maxSignIns = 8  // that wait; the oldest gives way
	maxDevices = 24 // the one not seen for the longest time gives way
	// maxLinks is how many links one device may have made that still live.
	maxLinks = 8
)

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

// ledger is the book as it is kept, in one file: a sign-in is spent and its
// device signed in by the same write.
type ledger struct {
	SignIns []signIn `json:"sign_ins"`
	Devices []device `json:"devices"`
}

type signIn struct {
	Token     digest    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}

type device struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Secret    digest    `json:"secret"`
	CreatedAt time.Time `json:"created_at"`
	SeenAt    time.Time `json:"seen_at"`
	Links     []linked  `json:"links,omitempty"` // that it made, the oldest first
	// Ended says that it is signed out, and its links are being revoked.
	Ended bool `json:"ended,omitempty"`
}

type linked struct {
	ID      string `json:"id"`
	Session string `json:"session"`
}

func (d device) in(now time.Time) bool { return !d.Ended && now.Before(d.SeenAt.Add(signedInFor)) }

// book knows who is signed in. It is safe for concurrent use.
type book struct {
	links Links

	mu   sync.Mutex
	now  ledger // what stands in the file; nobody is in while it cannot be read
	kept *store.Truth[ledger]
}

// openBook reads the book, and revokes the links of devices that were being
// signed out. While it cannot be read nobody is in, and nobody can sign in.
func openBook(ctx context.Context, home *store.Home, links Links, log *slog.Logger) *book {
	b := &book{links: links}
	b.kept = store.OpenTruth(home, bookFile, &b.now, nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.sweep(ctx); err != nil {
		log.Warn("links of devices that are signed out could not be ended yet", "error", err)
	}
	return b
}

// mint makes a token with which one device can sign in.
func (b *book) mint() (secret.Text, time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.kept.Ready(); err != nil {
		return secret.Text{}, time.Time{}, err
	}
	token, until := newToken(), time.Now().Add(signInWithin).UTC()
	next := b.next()
	next.SignIns = append(next.SignIns, signIn{digestOf(token), until})
	if most := len(next.SignIns) - maxSignIns; most > 0 {
		next.SignIns = next.SignIns[most:]
	}
	if err := b.write("make a sign-in", next); err != nil {
		return secret.Text{}, time.Time{}, err
	}
	return token, until, nil
}

// claim spends a token: the device gets a secret of its own. A device that is
// in already spends the token and stays as it is.
func (b *book) claim(ctx context.Context, token secret.Text, name, already string) (own secret.Text, err error) {
	const op = "sign in"
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.kept.Ready(); err != nil {
		return secret.Text{}, err
	}
	next, shown := b.next(), digestOf(token)
	at := slices.IndexFunc(next.SignIns, func(s signIn) bool { return s.Token.is(shown) })
	if at < 0 {
		return secret.Text{}, fault.New(fault.Unauthorized, op, "this sign-in was used already, or it is over").
			WithHint("Run tapin console for a new one.")
	}
	next.SignIns = slices.Delete(next.SignIns, at, at+1)
	if already != "" {
		return secret.Text{}, b.write(op, next)
	}
	own = newToken()
	now := time.Now().UTC()
	made := device{ID: store.NewID("dev"), Name: name, Secret: digestOf(own), CreatedAt: now, SeenAt: now}
	next.Devices = append(next.Devices, made)
	slices.SortStableFunc(next.Devices, func(x, y device) int { return y.SeenAt.Compare(x.SeenAt) })
	for i := maxDevices; i < len(next.Devices); i++ {
		next.Devices[i].Ended = true
	}
	if err := b.write(op, next); err != nil {
		return secret.Text{}, err
	}
	_ = b.sweep(ctx) // what could not be revoked now is at the next sign-in or start
	return own, nil
}

// enter finds the device that has a secret, and reports whether it is time to
// renew what its browser keeps.
func (b *book) enter(own secret.Text) (id string, renew bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.kept.Ready(); err != nil {
		return "", false, err
	}
	shown, now := digestOf(own), time.Now()
	for i, d := range b.now.Devices {
		if !d.Secret.is(shown) || !d.in(now) {
			continue
		}
		if now.Sub(d.SeenAt) < seenStep {
			return d.ID, false, nil
		}
		next := b.next()
		next.Devices[i].SeenAt = now.UTC()
		return d.ID, true, b.write("sign in", next)
	}
	return "", false, fault.New(fault.Unauthorized, "sign in", "this browser is not signed in").WithHint("Run tapin console for a sign-in.")
}

// isIn reports whether a device is signed in, and notes that it was seen.
func (b *book) isIn(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.kept.Ready()
	now := time.Now()
	i := slices.IndexFunc(b.now.Devices, func(d device) bool { return d.ID == id && d.in(now) })
	if i >= 0 && now.Sub(b.now.Devices[i].SeenAt) >= seenStep {
		next := b.next()
		next.Devices[i].SeenAt = now.UTC()
		_ = b.write("note who is there", next) // it is in, whether that is noted or not
	}
	return i >= 0
}

// signOut ends a device and the links it made. That it is out is on the disk
// before the links are revoked: a kill in between leaves nothing open for long.
func (b *book) signOut(ctx context.Context, id string) error {
	const op = "sign a device out"
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.next()
	i := slices.IndexFunc(next.Devices, func(d device) bool { return d.ID == id && !d.Ended })
	if i < 0 {
		return fault.New(fault.NotFound, op, "no such device is signed in")
	}
	next.Devices[i].Ended = true
	if err := b.write(op, next); err != nil {
		return err
	}
	return b.sweep(ctx)
}

// open makes a link for a device. An older one of it into the same session that
// nobody has used, and the oldest beyond what a device may have, are revoked.
func (b *book) open(ctx context.Context, id, session string, unclaimed func(link string) bool) (secret.Text, error) {
	const op = "open a browser"
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	i := slices.IndexFunc(b.now.Devices, func(d device) bool { return d.ID == id && d.in(now) })
	if i < 0 {
		return secret.Text{}, fault.New(fault.Unauthorized, op, "this device is signed out")
	}
	link, path, err := b.links.Open(ctx, session)
	if err != nil {
		return secret.Text{}, err
	}
	next := b.next()
	d, kept := &next.Devices[i], []linked(nil)
	var given []string
	for _, l := range d.Links {
		if l.Session == session && unclaimed(l.ID) {
			given = append(given, l.ID)
		} else {
			kept = append(kept, l)
		}
	}
	d.Links = kept
	if err := b.give(ctx, op, next, d, linked{link, session}, given...); err != nil {
		// It must not be there without the book's knowing whose it is.
		return secret.Text{}, errors.Join(err, b.links.Revoke(ctx, link))
	}
	return path, nil
}

// give writes down that a device has a link, then revokes those it gives up for
// it: the named, and the oldest beyond what a device may have. Called with the
// lock held.
func (b *book) give(ctx context.Context, op string, next ledger, d *device, l linked, up ...string) error {
	d.Links = append(slices.Clone(d.Links), l)
	for len(d.Links) > maxLinks {
		up, d.Links = append(up, d.Links[0].ID), d.Links[1:]
	}
	if err := b.write(op, next); err != nil {
		return err
	}
	for _, id := range up {
		_ = b.links.Revoke(ctx, id) // it dies with its session otherwise
	}
	return nil
}

// adopt notes that a device is let in by a link that somebody else made.
func (b *book) adopt(ctx context.Context, id, link string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.next()
	for i := range next.Devices {
		d := &next.Devices[i]
		if d.ID != id || d.Ended {
			continue
		}
		if slices.ContainsFunc(d.Links, func(l linked) bool { return l.ID == link }) {
			return nil
		}
		return b.give(ctx, "open a link", next, d, linked{ID: link})
	}
	return fault.New(fault.Unauthorized, "open a link", "this device is not let in")
}

// list tells of the devices that are in, the one last seen first.
func (b *book) list() []Device {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Device
	now := time.Now()
	for _, d := range b.now.Devices {
		if !d.in(now) {
			continue
		}
		made := Device{ID: d.ID, Name: d.Name, Kind: "console", CreatedAt: d.CreatedAt, SeenAt: d.SeenAt}
		for _, l := range d.Links {
			made.links = append(made.links, l.ID)
		}
		out = append(out, made)
	}
	slices.SortStableFunc(out, func(x, y Device) int { return cmp.Or(y.SeenAt.Compare(x.SeenAt), cmp.Compare(x.ID, y.ID)) })
	return out
}

// sweep forgets devices that are out, once their links are revoked. Called with
// the lock held, as all below.
func (b *book) sweep(ctx context.Context) error {
	next, now := b.next(), time.Now()
	var errs []error
	still := next.Devices[:0]
	for _, d := range next.Devices {
		if d.in(now) {
			still = append(still, d)
			continue
		}
		var err error
		for _, l := range d.Links {
			err = errors.Join(err, b.links.Revoke(ctx, l.ID))
		}
		if err != nil {
			d.Ended = true
			still, errs = append(still, d), append(errs, err)
		}
	}
	if len(still) == len(b.now.Devices) {
		return errors.Join(errs...)
	}
	next.Devices = still
	return errors.Join(append(errs, b.write("sign devices out", next))...)
}

// next is a copy of what stands in the file, without what is over, to be changed
// and written.
func (b *book) next() ledger {
	var next ledger
	now := time.Now()
	for _, s := range b.now.SignIns {
		if now.Before(s.ExpiresAt) {
			next.SignIns = append(next.SignIns, s)
		}
	}
	next.Devices = slices.Clone(b.now.Devices)
	return next
}

func (b *book) write(op string, next ledger) error {
	if err := b.kept.Write(next); err != nil {
		return fault.Wrap(fault.Internal, op, err)
	}
	b.now = next
	return nil
}

func newToken() secret.Text {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return secret.New(base64.RawURLEncoding.EncodeToString(raw[:]))
}
