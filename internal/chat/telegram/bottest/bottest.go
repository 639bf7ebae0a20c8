// Package bottest is a Bot API for tests: a server as strict as the real one
// about what it is sent, with people at its other end. It owns the chats, the
// updates and the failures that a test asks for. It must never accept what the
// real one refuses, nor forget a fault that it noticed: Problems tells them.
package bottest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Token is the bot's, in the form of a real one.
const Token = "8000000001:AAFakeFakeFakeFakeFakeFakeFakeFake00"

// Username is the bot's.
const Username = "tapin_test_bot"

// Message is one message as somebody who opens the chat sees it.
type Message struct {
	ID       int
	Chat     int64
	FromBot  bool
	Text     string // or the caption of a photo
	Photo    []byte
	Buttons  []Button
	ReplyTo  int
	At       time.Time
	Edits    int
	EditedAt time.Time
	entities string // as they were sent, to see whether an edit changes anything
	markup   string
	date     time.Time // moved by Age
}

// Button is one of an inline keyboard.
type Button struct {
	Text   string `json:"text"`
	Data   string `json:"callback_data"`
	URL    string `json:"url"`
	WebApp *struct {
		URL string `json:"url"`
	} `json:"web_app"`
}

// Opens is where a button leads.
func (b Button) Opens() string {
	if b.WebApp != nil {
		return b.WebApp.URL
	}
	return b.URL
}

// Button finds the button of a message whose words begin so.
func (m Message) Button(words string) (Button, bool) {
	for _, b := range m.Buttons {
		if strings.HasPrefix(b.Text, words) {
			return b, true
		}
	}
	return Button{}, false
}

// Call is one request that was understood.
type Call struct {
	Method string
	At     time.Time
	OK     bool
}

// Failure is an answer in place of the real one.
type Failure struct {
	Status     int           // of the answer: 429, 500, …
	RetryAfter int           // seconds, with 429
	Hang       time.Duration // the answer comes after this, or never if the caller leaves before
	Applied    bool          // what was asked is done first, and only the answer is lost; with status 200 it is late
}

// Server is a Bot API. It is safe for concurrent use.
type Server struct {
	URL string

	server   *http.Server
	listener net.Listener
	ended    context.Context //nolint:containedctx // the server's lifetime
	end      context.CancelFunc

	mu        sync.Mutex
	changed   chan struct{} // closed at the next change
	fail      func(method string) *Failure
	users     map[int64]*user
	messages  map[int64][]*Message
	lastID    int
	updates   []update
	lastTaken []update // what was confirmed last, for duplicates
	nextID    int64
	queries   map[string]bool // callback queries; true once answered
	polling   int
	calls     []Call
	problems  []string
	manners   Manners
}

type user struct {
	name    string
	started bool
	blocked bool
}

type update struct {
	id   int64
	kind string
	body json.RawMessage
}

// New starts a server on this machine.
func New() (*Server, error) {
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return Serve(ln), nil
}

// Serve is a server at a listener.
func Serve(ln net.Listener) *Server {
	s := &Server{
		URL: "http://" + ln.Addr().String(), listener: ln, changed: make(chan struct{}),
		users: map[int64]*user{}, messages: map[int64][]*Message{}, queries: map[string]bool{}, lastID: 100, nextID: 5000,
	}
	s.ended, s.end = context.WithCancel(context.Background())
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(ln) }()
	return s
}

// Close ends the server and every open poll.
func (s *Server) Close() {
	s.end()
	_ = s.server.Close()
}

// Manners are how the server behaves beside its answers.
type Manners struct {
	Duplicate bool // each update is delivered twice
	Reorder   bool // batches come in the wrong order
	NoDelete  bool // no message can be deleted
}

// Behave changes the server's manners.
func (s *Server) Behave(m Manners) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.manners = m
}

// FailWith has a function decide over every request; nil means that none fails.
func (s *Server) FailWith(fail func(method string) *Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
	s.tell()
}

// Problems are the mistakes in what the server was sent.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// Calls are the requests so far.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Chat is what somebody sees who opens the chat with that person.
func (s *Server) Chat(id int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view(id)
}

func (s *Server) view(id int64) []Message {
	var out []Message
	for _, m := range s.messages[id] {
		out = append(out, *m)
	}
	return out
}

// Await waits until a chat is as asked for.
func (s *Server) Await(ctx context.Context, chat int64, is func([]Message) bool) ([]Message, error) {
	for {
		s.mu.Lock()
		now, changed := s.view(chat), s.changed
		s.mu.Unlock()
		if is(now) {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return now, fmt.Errorf("the chat did not become as expected: %w", ctx.Err())
		}
	}
}

// Settled waits until every update has been taken and confirmed.
func (s *Server) Settled(ctx context.Context) error {
	for {
		s.mu.Lock()
		left, changed := len(s.updates), s.changed
		s.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d updates were not taken: %w", left, ctx.Err())
		}
	}
}

// Pending are the updates that were not confirmed, as the server would deliver
// them again.
func (s *Server) Pending() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, u := range s.updates {
		b.Write(u.body)
	}
	return b.String()
}

// tell wakes who waits. Called with the lock held.
func (s *Server) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// problem notes a mistake. Called with the lock held.
func (s *Server) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// refusal is how the real server says no.
type refusal struct {
	status int
	why    string
	after  int
}

func bad(format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, why: "Bad Request: " + fmt.Sprintf(format, args...)}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/bot"+Token+"/")
	if !ok {
		write(w, &refusal{status: http.StatusUnauthorized, why: "Unauthorized"}, nil)
		return
	}
	method := rest
	f, err := readForm(r)
	if err != nil {
		s.mu.Lock()
		s.problem("%s: %v", method, err)
		s.mu.Unlock()
		write(w, bad("can't parse the request"), nil)
		return
	}
	s.mu.Lock()
	decide := s.fail
	s.mu.Unlock()
	var failure *Failure
	if decide != nil {
		failure = decide(method)
	}
	if failure != nil && !failure.Applied {
		s.failed(w, r, method, failure)
		return
	}
	result, no := s.handle(r.Context(), method, f)
	if failure != nil && failure.Status != http.StatusOK {
		s.failed(w, r, method, failure)
		return
	}
	if failure != nil {
		s.hang(r, failure.Hang)
	}
	s.mu.Lock()
	s.calls = append(s.calls, Call{Method: method, At: time.Now(), OK: no == nil})
	s.tell()
	s.mu.Unlock()
	write(w, no, result)
}

func (s *Server) failed(w http.ResponseWriter, r *http.Request, method string, f *Failure) {
	s.mu.Lock()
	s.calls = append(s.calls, Call{Method: method, At: time.Now()})
	s.mu.Unlock()
	if !s.hang(r, f.Hang) {
		return
	}
	status := f.Status
	if status == 0 {
		status = http.StatusBadGateway
	}
	write(w, &refusal{status: status, why: http.StatusText(status), after: f.RetryAfter}, nil)
}

// hang lets a caller wait, and reports whether it is still there.
func (s *Server) hang(r *http.Request, long time.Duration) bool {
	if long <= 0 {
		return true
	}
	t := time.NewTimer(long)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-s.ended.Done():
	}
	return false
}

func write(w http.ResponseWriter, no *refusal, result any) {
	w.Header().Set("Content-Type", "application/json")
	if no == nil {
		_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result})
		return
	}
	body := map[string]any{"ok": false, "error_code": no.status, "description": no.why}
	if no.after > 0 {
		body["parameters"] = map[string]any{"retry_after": no.after}
	}
	w.WriteHeader(no.status)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *Server) handle(ctx context.Context, method string, f *form) (any, *refusal) {
	if method == "getUpdates" {
		return s.poll(ctx, f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := methods[method]
	if !ok {
		s.problem("%s is no method", method)
		return nil, &refusal{status: http.StatusNotFound, why: "Not Found"}
	}
	for name := range f.values {
		if !slices.Contains(known.fields, name) {
			s.problem("%s has no field %s", method, name)
		}
	}
	result, no := known.do(s, f)
	if no != nil && !slices.ContainsFunc(expected, func(part string) bool { return strings.Contains(no.why, part) }) {
		s.problem("%s: %s", method, no.why)
	}
	return result, no
}

// expected are refusals that even a faultless bot gets.
var expected = []string{
	"blocked by the user", "can't initiate conversation", "message to delete not found", "message can't be deleted",
	"message to edit not found", "query is too old", "message to be replied not found",
}

// poll is getUpdates.
func (s *Server) poll(ctx context.Context, f *form) (any, *refusal) {
	s.mu.Lock()
	for name := range f.values {
		if !slices.Contains([]string{"offset", "limit", "timeout", "allowed_updates"}, name) {
			s.problem("getUpdates has no field %s", name)
		}
	}
	offset, _ := strconv.ParseInt(f.values["offset"], 10, 64)
	timeout, _ := strconv.Atoi(f.values["timeout"])
	limit, _ := strconv.Atoi(f.values["limit"])
	if limit <= 0 || limit > 100 {
		limit = 100
	}
	if timeout > 50 {
		s.problem("getUpdates waits %d s", timeout)
	}
	var allowed []string
	if raw := f.values["allowed_updates"]; raw != "" && json.Unmarshal([]byte(raw), &allowed) != nil {
		s.problem("getUpdates: allowed_updates is no list")
	}
	s.confirm(offset)
	s.polling++
	me := s.polling
	s.tell()
	s.mu.Unlock()
	until := time.NewTimer(time.Duration(timeout) * time.Second)
	defer until.Stop()
	for {
		s.mu.Lock()
		if me != s.polling {
			s.mu.Unlock()
			return nil, &refusal{status: http.StatusConflict, why: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}
		}
		batch := s.batch(offset, limit, allowed)
		changed := s.changed
		s.mu.Unlock()
		if len(batch) > 0 || timeout == 0 {
			return batch, nil
		}
		select {
		case <-changed:
		case <-until.C:
			return []any{}, nil
		case <-ctx.Done():
			return nil, bad("gone")
		case <-s.ended.Done():
			return nil, bad("gone")
		}
	}
}

// confirm forgets what was taken. Called with the lock held.
func (s *Server) confirm(offset int64) {
	var kept []update
	for _, u := range s.updates {
		if offset == 0 || u.id >= offset {
			kept = append(kept, u)
			continue
		}
		if s.manners.Duplicate {
			s.lastTaken = append(s.lastTaken, u)
		}
	}
	s.updates = kept
}

func (s *Server) batch(offset int64, limit int, allowed []string) []json.RawMessage {
	var out []json.RawMessage
	for _, u := range s.lastTaken { // again, although they were confirmed
		out = append(out, u.body)
	}
	s.lastTaken = nil
	for _, u := range s.updates {
		if u.id >= offset && len(out) < limit && (len(allowed) == 0 || slices.Contains(allowed, u.kind)) {
			out = append(out, u.body)
			if s.manners.Duplicate {
				out = append(out, u.body)
			}
		}
	}
	if s.manners.Reorder {
		slices.Reverse(out)
	}
	return out
}
