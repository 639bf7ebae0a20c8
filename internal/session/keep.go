package session

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/page"
)

const (
	// lastTurnWithin is what an action under way gets when its session ends.
	lastTurnWithin = 2 * time.Second
	// readWithin bounds the reading of a browser's state, and lastReadWithin that
	// of one that ends: there will be no other chance. A browser that has been at
	// two hundred sites takes some 20 s on a small machine.
	readWithin     = 15 * time.Second
	lastReadWithin = 45 * time.Second
)

// errStopped cuts off what is under way in a session that is told to stop.
var errStopped = errors.New("the session was stopped")

// Saved are the saved logins. Safe for concurrent use.
type Saved interface {
	// Checkout locks a login for a session and reads it; one that does not exist
	// yet is begun, and found is false. In use elsewhere it is CONTEXT_LOCKED.
	Checkout(ctx context.Context, name, session string) (state browser.State, found bool, err error)
	// Save keeps the state of a login that the session has checked out. The
	// address is that of the page in front.
	Save(ctx context.Context, name, session, address string, state browser.State) error
	// Release lets go of a login; one that is not held is no error.
	Release(ctx context.Context, name, session string) error
	// Stale notes that a login was asked for although this one was used.
	Stale(ctx context.Context, name, why string) error
	// Verified notes that a page which needs the login was seen without one.
	Verified(ctx context.Context, name, how string) error
}

// How a login was found to work.
const (
	ByAgent   = "agent"
	ByHandoff = "handoff"
)

// Sealer keeps what must not lie in the clear.
type Sealer interface {
	Seal(name, origin string, plaintext []byte) ([]byte, error)
	Open(name, origin string, sealed []byte) ([]byte, error)
}

// saves reports whether this session's login is to be saved.
func (s *Session) saves() bool {
	rec := s.record()
	return rec.Context != "" && !rec.NoSave && s.host.deps.Saved != nil
}

// reading is what makes a browser logged in, and where it was.
type reading struct {
	address string
	state   browser.State
}

// read reads the state of a browser. Whoever calls it holds the turn, or has
// ended all turns.
func (s *Session) read(ctx context.Context, within time.Duration) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tabs := s.view().tabs
	state, _, err := tabs.ReadState(ctx)
	if err != nil {
		return reading{}, err
	}
	return reading{whereabouts(ctx, tabs), state}, nil
}

// save reads the state of the browser and keeps it as the login that this
// session was started with.
func (h *Host) save(ctx context.Context, s *Session, within time.Duration) error {
	now, err := s.read(ctx, within)
	if err != nil {
		return err
	}
	return h.saveLogin(ctx, s, now)
}

func (h *Host) saveLogin(ctx context.Context, s *Session, now reading) error {
	return h.deps.Saved.Save(ctx, s.record().Context, s.ID(), now.address, now.state)
}

// whereabouts is the address of the tab in front, as the browser knows it.
func whereabouts(ctx context.Context, tabs *page.Tabs) string {
	if err := tabs.Refresh(ctx); err != nil {
		return ""
	}
	list := tabs.List()
	if len(list) == 0 {
		return ""
	}
	address, _ := list[len(list)-1].Address()
	return address
}

// saveNow saves the login in between. That it could not be is said, and keeps
// nobody from going on: the next time, or the end, tries again. It has the turn
// until release is called.
func (h *Host) saveNow(ctx context.Context, s *Session) (release func()) {
	if !s.saves() || s.await(ctx) != nil {
		return func() {}
	}
	if err := h.save(ctx, s, readWithin); err != nil {
		h.log.Warn("a login could not be saved", "session", s.ID(), "context", s.record().Context, "error", err)
	}
	return func() { <-s.turn }
}

// saveLast saves the login of a session that ends. Whoever still acts in it gets
// a moment to finish; a browser that is lost has nothing to save but what was
// saved before.
func (h *Host) saveLast(ctx context.Context, s *Session) bool {
	s.mu.Lock()
	wanted := s.saveAs
	s.mu.Unlock()
	rec := s.record()
	if rec.Context == "" || h.deps.Saved == nil || s.view().inst.Conn().Err() != nil {
		return false
	}
	if wanted == nil && rec.NoSave || wanted != nil && !*wanted {
		return false
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-time.After(lastTurnWithin):
	}
	if err := h.save(ctx, s, lastReadWithin); err != nil {
		h.log.Warn("a login could not be saved at the end", "session", s.ID(), "context", rec.Context, "error", err)
		return false
	}
	return true
}

// checkout takes the saved login that a session is to be started with.
func (h *Host) checkout(ctx context.Context, rec *record) (browser.State, error) {
	login := h.records.copy(rec).Context
	if login == "" {
		return browser.State{}, nil
	}
	state, found, err := h.deps.Saved.Checkout(ctx, login, rec.ID)
	if err != nil {
		return browser.State{}, err
	}
	return state, h.records.change(ctx, rec, "", func(r *record) { r.Restored, r.Private = found, found })
}

// watchLogin saves the login of a session in use every now and then.
func (h *Host) watchLogin(s *Session) {
	if s.saves() {
		h.timers(s).keepSaving()
	}
}

// saveUsed saves the login of a session that was used since it was last saved,
// and that no person is in.
func (h *Host) saveUsed(ctx context.Context, s *Session) {
	used := s.Info().LastUsedAt
	s.mu.Lock()
	idle := !used.After(s.savedUse)
	s.savedUse = used
	s.mu.Unlock()
	if !idle && s.heldBy() == "" {
		h.saveNow(ctx, s)()
	}
}

// Stale notes that the saved login of a session did not do.
func (h *Host) Stale(ctx context.Context, id string) error {
	rec, err := h.known(id)
	if err != nil || rec.Context == "" || !rec.Restored || h.deps.Saved == nil {
		return err
	}
	return h.deps.Saved.Stale(ctx, rec.Context, "a login was asked for")
}

// Verified notes that the login of a session did what it is for.
func (h *Host) Verified(ctx context.Context, id string) error {
	s, err := h.Get(id)
	if err != nil {
		return err
	}
	if err := s.permit(ctx); err != nil {
		return err
	}
	name := s.record().Context
	if name == "" || h.deps.Saved == nil {
		return fault.New(fault.InvalidRequest, "verify a login", "this session uses no saved login").
			WithHint("Start the session with context.")
	}
	return h.deps.Saved.Verified(ctx, name, ByAgent)
}

// kept is what brings a lost browser back, sealed: its login, and where it was.
type kept struct {
	Address string          `json:"address"`
	State   json.RawMessage `json:"state"`
}

func stateFile(id string) string { return "sessions/" + id + ".state" }

// keepState keeps what a lost browser can be restored from. It is a second
// line: that it failed is said, and stops nothing unless the browser itself is
// lost. What was kept for somebody before is not for this one in any case.
func (h *Host) keepState(ctx context.Context, s *Session) error {
	err := h.writeState(ctx, s)
	if err == nil {
		return nil
	}
	h.log.Warn("the state of a browser could not be kept", "session", s.ID(), "error", err)
	h.dropState(s.ID())
	if lost := s.view().inst.Conn().Err(); lost != nil {
		return lost
	}
	return nil
}

func (h *Host) writeState(ctx context.Context, s *Session) error {
	if h.deps.Sealer == nil {
		return nil
	}
	now, err := s.read(ctx, readWithin)
	if err != nil {
		return err
	}
	return h.sealState(s, now)
}

func (h *Host) sealState(s *Session, now reading) (err error) {
	k := kept{Address: now.address}
	if k.State, err = now.state.Encode(); err != nil {
		return err
	}
	plain, err := json.Marshal(k)
	if err != nil {
		return err
	}
	sealed, err := h.deps.Sealer.Seal(s.ID(), "", plain)
	if err != nil {
		return err
	}
	return h.deps.Home.Write(stateFile(s.ID()), sealed)
}

// readState is what keepState has kept, if anything.
func (h *Host) readState(id string) (address string, state browser.State, err error) {
	if h.deps.Sealer == nil {
		return "", browser.State{}, nil
	}
	sealed, err := h.deps.Home.Read(stateFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", browser.State{}, nil
	}
	if err != nil {
		return "", browser.State{}, err
	}
	plain, err := h.deps.Sealer.Open(id, "", sealed)
	if err != nil {
		return "", browser.State{}, err
	}
	var k kept
	if err := json.Unmarshal(plain, &k); err != nil {
		return "", browser.State{}, err
	}
	state, err = browser.DecodeState(k.State)
	return k.Address, state, err
}

func (h *Host) dropState(id string) {
	h.forgetOrigin(id)
	if err := h.deps.Home.Remove(stateFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.log.Warn("the kept state of a session could not be removed", "session", id, "error", err)
	}
}

// place is where a browser has been, or what a person has loaded there.
type place struct {
	rec      *record
	origin   string
	download string
}

// passOrigin leaves it to somebody else to write down where a browser has been:
// whoever hears of it listens to the browser, and must be quick.
func (h *Host) passOrigin(rec *record, origin string) { h.pass(place{rec: rec, origin: origin}) }

func (h *Host) pass(p place) {
	select {
	case h.places <- p:
	default:
		h.log.Warn("a browser has been to more places than can be kept", "session", p.rec.ID)
	}
}

// sawOrigin remembers where a browser has been, so that what is stored there is
// found again after a restart.
func (h *Host) sawOrigin(rec *record, origin string) {
	err := h.records.change(context.WithoutCancel(h.life), rec, "", func(r *record) {
		if !slices.Contains(r.Origins, origin) && len(r.Origins) < maxOrigins {
			r.Origins = append(slices.Clone(r.Origins), origin)
		}
	})
	if err != nil {
		h.log.Warn("where a browser has been could not be kept", "error", err)
	}
}

// maxOrigins bounds what a record remembers.
const maxOrigins = 200
