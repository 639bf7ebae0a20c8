package daemon

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"tapin/internal/config"
	"tapin/internal/store"
)

// reachFile tells other commands how phones get to this machine. It is there
// only while a daemon runs.
const reachFile = "reach.json"

// Stand is how far the way from a phone to this machine is.
type Stand string

// The stands.
const (
	NoWay     Stand = "none"      // none was asked for
	Opening   Stand = "opening"   // the tunnel program starts
	Asking    Stand = "asking"    // the owner has to allow it first; Hint says where
	Unproven  Stand = "unproven"  // there is an address; whether it leads here is not known yet
	Open      Stand = "open"      // it leads here: seen by asking it
	Astray    Stand = "astray"    // there is an address, and it does not lead here
	Resting   Stand = "resting"   // the program failed, and is started again
	Abandoned Stand = "abandoned" // it failed so often that it is now tried rarely
	Missing   Stand = "missing"   // the program is not on this machine
	Idle      Stand = "idle"      // public_url is another name than a tunnel would have
)

// Reach is what the daemon knows of how phones get to this machine.
type Reach struct {
	Tunnel    config.Tunnel `json:"tunnel"`
	Stand     Stand         `json:"stand"`
	URL       string        `json:"url,omitempty"` // the address, where there is one
	Details   string        `json:"details,omitempty"`
	Hint      string        `json:"hint,omitempty"`
	Restarts  int           `json:"restarts,omitempty"`
	CheckedAt *time.Time    `json:"checked_at,omitempty"`
	At        time.Time     `json:"at"`
}

// ReadReach reads what the running daemon of a home knows; ok is false if there
// is none, or it has not said anything yet.
func ReadReach(home *store.Home) (r Reach, ok bool, err error) {
	if pid, err := holder(home, daemonLock); err != nil || pid == 0 {
		return Reach{}, false, err
	}
	err = home.ReadJSON(reachFile, &r)
	if errors.Is(err, fs.ErrNotExist) {
		return Reach{}, false, nil
	}
	return r, err == nil, err
}

// reach is that knowledge, as it changes. It is safe for concurrent use.
type reach struct {
	home  *store.Home
	tell  func(Reach)
	fixed string // public_url, which wins over what a tunnel has

	mu      sync.Mutex
	now     Reach
	changed chan struct{} // closed at the next change of the address
}

func newReach(home *store.Home, kind config.Tunnel, fixed string, tell func(Reach)) *reach {
	r := &reach{home: home, tell: tell, fixed: fixed, changed: make(chan struct{})}
	if kind == "" {
		kind = config.TunnelNone
	}
	r.now = Reach{Tunnel: kind, Stand: NoWay, URL: fixed}
	switch {
	case fixed != "":
		r.now.Stand = Unproven
	case kind != config.TunnelNone:
		r.now.Stand = Opening
	}
	return r
}

// set changes what is known, and tells of it if anything is new.
func (r *reach) set(change func(*Reach)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.now
	change(&r.now)
	if r.fixed != "" {
		r.now.URL = r.fixed
	}
	if r.now.URL != was.URL {
		r.now.CheckedAt = nil
		close(r.changed)
		r.changed = make(chan struct{})
	}
	same := was
	same.CheckedAt, same.At = r.now.CheckedAt, r.now.At
	if same == r.now && !was.At.IsZero() {
		return
	}
	r.now.At = time.Now().UTC()
	// What others read of it is a convenience; a full disk must not cost the way itself.
	_ = r.home.WriteJSON(reachFile, r.now)
	if r.tell != nil {
		r.tell(r.now)
	}
}

// address is the address now, and what is closed when there is another.
func (r *reach) address() (url string, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.URL, r.changed
}

func (r *reach) forget() { _ = r.home.Remove(reachFile) }
