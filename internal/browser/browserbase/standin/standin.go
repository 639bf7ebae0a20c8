// Package standin is Browserbase as its API documents it, on this machine, with a real browser behind every session.
// It owns the rules of that API: which requests are right, what each plan allows, how long a key is good.
// It must never be more lenient than the documentation, nor be imported by anything but tests.
package standin

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Plan is what an account may do.
type Plan struct {
	Name          string
	KeepAlive     bool
	MaxTimeout    time.Duration
	Clamps        bool // a longer timeout is cut, not refused
	Concurrent    int
	CreatesMinute int
}

// Free is the plan without a price. What is not documented of it is had in both
// forms: Clamps says whether a timeout that is too long is refused or cut.
func Free() Plan {
	return Plan{Name: "FREE", MaxTimeout: 15 * time.Minute, Concurrent: 3, CreatesMinute: 5}
}

// Developer is a paid plan.
func Developer() Plan {
	return Plan{Name: "DEVELOPER", KeepAlive: true, MaxTimeout: 6 * time.Hour, Concurrent: 25, CreatesMinute: 1000}
}

// Options are what the stand-in is like; nil means the defaults.
type Options struct {
	Plan          Plan          // default Developer
	Key           string        // the API key; default one is made up
	Project       string        // the project of the key
	KeyLife       time.Duration // how long a way in is good; default 1 h
	ConnectWithin time.Duration // a session that nobody enters ends then; default 5 min
	Ending        time.Duration // how long a release takes to be done
	// Shared lets all sessions have the same browser: for tests that do nothing in it.
	Shared bool
	// Through is what ways in lead to instead of the stand-in itself: host:port
	// of a line to it. It is asked each time.
	Through func() string
}

// Server is the stand-in. It is safe for concurrent use.
type Server struct {
	opts     Options
	listener net.Listener
	http     *http.Server
	dir      string
	tasks    sync.WaitGroup
	busy     atomic.Int32 // requests under way, also those whose line is broken

	mu       sync.Mutex
	sessions map[string]*session
	contexts map[string]*kept
	creates  []time.Time
	faults   []*Fault
	requests []Request
	wrong    []string // what no client may do
	shared   *chromium
	closed   bool
}

// Request is one that came, in the words of the API.
type Request struct {
	Method, Path, Query string
	Body                json.RawMessage
	Status              int // what it was answered; 0 means nothing
	At                  time.Time
}

// New starts a stand-in on loopback.
func New(opts *Options) (*Server, error) {
	s := &Server{sessions: map[string]*session{}, contexts: map[string]*kept{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Plan.Name == "" {
		s.opts.Plan = Developer()
	}
	if s.opts.Key == "" {
		s.opts.Key = "bb_live_" + rand.Text()
	}
	if s.opts.Project == "" {
		s.opts.Project = newID()
	}
	if s.opts.KeyLife <= 0 {
		s.opts.KeyLife = time.Hour
	}
	if s.opts.ConnectWithin <= 0 {
		s.opts.ConnectWithin = 5 * time.Minute
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "standin"); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	s.tasks.Go(func() { _ = s.http.Serve(s.listener) })
	return s, nil
}

// Close ends every browser and the stand-in.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	all := make([]*session, 0, len(s.sessions))
	for _, each := range s.sessions {
		all = append(all, each)
	}
	shared := s.shared
	s.mu.Unlock()
	err := s.http.Close()
	for _, each := range all {
		each.end("COMPLETED")
	}
	if shared != nil {
		shared.kill()
	}
	s.tasks.Wait()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// URL is what BROWSERBASE_BASE_URL is to be.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Addr is where it listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Key is the API key.
func (s *Server) Key() string { return s.opts.Key }

// Project is the project of the key.
func (s *Server) Project() string { return s.opts.Project }

// SetPlan changes the plan of the account.
func (s *Server) SetPlan(p Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Plan = p
}

// Requests are all that came so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Wrong is what clients did that the API does not know or that they must not:
// unknown fields, stale keys, sessions of others.
func (s *Server) Wrong() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.wrong)
}

// note is called with the lock held.
func (s *Server) note(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// Session is one as it is now.
type Session struct {
	ID, Status       string
	Context          string
	KeepAlive        bool
	Metadata         map[string]any
	Connected        int // connections open now
	Entered          int // connections ever
	Created, Expires time.Time
}

// Settled reports whether everything that was asked for has been done.
func (s *Server) Settled() bool { return s.busy.Load() == 0 }

// Sessions are all that were ever made, the oldest first; with a status only those.
func (s *Server) Sessions(status string) []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Session
	for _, each := range s.sessions {
		if status == "" || each.status == status {
			out = append(out, Session{
				ID: each.id, Status: each.status, Context: each.context, KeepAlive: each.keepAlive, Metadata: each.metadata,
				Connected: len(each.conns), Entered: each.entered, Created: each.created, Expires: each.expires,
			})
		}
	}
	slices.SortFunc(out, func(a, b Session) int { return a.Created.Compare(b.Created) })
	return out
}

// Contexts are the ids of those that exist.
func (s *Server) Contexts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for id := range s.contexts {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// Foreign makes a session that is somebody else's in the same account. Whoever
// touches it is noted in Wrong.
func (s *Server) Foreign(metadata map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := s.add(&createBody{UserMetadata: metadata}, time.Hour)
	made.foreign = true
	return made.id
}

// Expire makes every way in that was given out so far too old.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range s.sessions {
		clear(each.keys)
	}
}

// Cut breaks the connections of all sessions.
func (s *Server) Cut() {
	s.mu.Lock()
	var conns []net.Conn
	for _, each := range s.sessions {
		for c := range each.conns {
			conns = append(conns, c)
		}
	}
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// End ends a session as Browserbase itself would.
func (s *Server) End(id, status string) {
	s.mu.Lock()
	each := s.sessions[id]
	s.mu.Unlock()
	if each != nil {
		each.end(status)
	}
}

// newID looks as those of Browserbase do.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// kept is a context: a profile on the disk.
type kept struct {
	id               string
	dir              string
	created, updated time.Time
}

func (s *Server) newKept() *kept {
	now := time.Now().UTC()
	k := &kept{id: newID(), created: now, updated: now}
	k.dir = filepath.Join(s.dir, "context-"+k.id)
	s.contexts[k.id] = k
	return k
}
