package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/session"
)

const (
	bodyTime  = 30 * time.Second // for a body to arrive
	writeTime = time.Minute      // for an answer to be taken
)

// call is one request on its way through the door.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	log    *slog.Logger
	row    *route
	id     string // of the session in the path ("" means the active one), or another name in it
	caller string // whose token it is
	role   Role   // what it allows
	status int    // 0 until the answer began
}

// ServeHTTP takes a request through the door: names and origins first, then
// the token, then a slot, and only then the body.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	row, id, allow := s.router.find(r.Method, r.URL.Path)
	c := &call{w: w, r: r, log: s.log, row: row, id: id}
	s.metrics.inFlight.Inc()
	defer func() {
		trouble := recover()
		if cut, _ := trouble.(error); trouble != nil && !errors.Is(cut, http.ErrAbortHandler) {
			s.log.Error("handler panicked", "route", c.route(), "panic", guard.Describe(trouble))
			guard.Note("API door", trouble)
			trouble = http.ErrAbortHandler
			if c.status == 0 {
				trouble = nil
				c.fail(fault.Internal)
			}
		}
		s.metrics.inFlight.Dec()
		took := time.Since(began)
		s.metrics.observe(row, c.status, took)
		s.log.Debug("request", "route", c.route(), "status", c.status, "took", took)
		if trouble != nil {
			panic(trouble)
		}
	}()
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Time{}) // the last answer's is still there
	if r.Body != http.NoBody {
		// Also for a body that we refuse: net/http waits for the rest of it.
		_ = conn.SetReadDeadline(began.Add(bodyTime))
	}
	if err := s.admit(c, allow); err != nil {
		c.fail(err)
	}
}

func (s *Server) admit(c *call, allow []string) error {
	if err := s.ours(c.r); err != nil {
		return err
	}
	if c.row != nil && c.row.who == Anyone {
		return c.row.serve(s, c)
	}
	role, name, err := s.authenticate(c.r)
	if err != nil {
		return err
	}
	c.caller, c.role = name, role
	if role == Owner {
		c.r = c.r.WithContext(session.As(c.r.Context(), session.Owner))
	}
	defer visitorOf(c.r).serve()()
	switch {
	case c.row == nil && len(allow) > 0:
		c.w.Header().Set("Allow", strings.Join(allow, ", "))
		return c.refuse(http.StatusMethodNotAllowed, fault.New(fault.InvalidRequest, "", "this path does not take that method").
			WithHint("It takes %s.", strings.Join(allow, ", ")))
	case c.row == nil:
		return fault.New(fault.NotFound, "", "there is no such route").WithHint("GET /openapi.json lists them all.")
	case role < c.row.who:
		return fault.New(fault.Forbidden, "", "%s is for the %s, and this is the token of an %s", c.route(), c.row.who, role)
	}
	if !c.row.stream {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		default:
			return fault.New(fault.Busy, "", "%d calls are under way already", cap(s.slots))
		}
	}
	return c.row.serve(s, c)
}

func (c *call) route() string {
	if c.row == nil {
		return unmatched
	}
	return c.row.label()
}

// body reads the request's body, unless its headers already rule it out.
func (c *call) body(most int64) ([]byte, error) {
	if given := c.r.Header.Get("Content-Type"); given != "" {
		media, params, err := mime.ParseMediaType(given)
		// curl -d calls every body a form; what counts is what is in it. A page of
		// another site gets nothing from that: it has no token.
		known := media == "application/json" || media == "application/x-www-form-urlencoded"
		if charset, ok := params["charset"]; err != nil || !known || ok && !strings.EqualFold(charset, "utf-8") {
			return nil, fault.New(fault.InvalidRequest, "", "the body must be JSON").WithHint("Send Content-Type: application/json.")
		}
	}
	if given := c.r.Header.Get("Content-Encoding"); given != "" && given != "identity" {
		return nil, fault.New(fault.InvalidRequest, "", "the body must not be compressed").WithHint("Leave out Content-Encoding.")
	}
	tooLarge := fault.New(fault.PayloadTooLarge, "", "the body is over %d bytes", most)
	if c.r.ContentLength > most {
		c.hangUp()
		return nil, tooLarge
	}
	raw, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		c.hangUp()
		return nil, tooLarge
	}
	if err != nil {
		c.hangUp()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, fault.New(fault.InvalidRequest, "", "the body did not arrive within %s", bodyTime)
		}
		return nil, fault.New(fault.InvalidRequest, "", "the body broke off")
	}
	// From here on a read only watches for the caller's leaving.
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	return raw, nil
}

// hangUp ends the connection after the answer, so that what the caller still
// sends is not read.
func (c *call) hangUp() { c.w.Header().Set("Connection", "close") }

// begin sends the header. An answer that is not taken in time ends with its
// connection instead of holding a slot.
func (c *call) begin(status int, media string, length int) {
	h := c.w.Header()
	h.Set("Content-Type", media)
	if length >= 0 {
		h.Set("Content-Length", strconv.Itoa(length))
	}
	c.guard()
	c.status = status
	c.w.WriteHeader(status)
}

// guard sets what every answer carries, and the time it has to be taken.
func (c *call) guard() {
	h := c.w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	c.extend()
}

// extend gives the next write its time.
func (c *call) extend() {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(writeTime))
}

// answer writes a success. A picture is written as the browser encoded it.
func (c *call) answer(answer any) error {
	picture := ""
	if page, ok := answer.(interface{ Detach() string }); ok {
		picture = page.Detach()
	}
	out, err := splice(`{"ok":true`, answer)
	if err != nil {
		return err
	}
	if picture == "" {
		return c.send(http.StatusOK, "application/json", append(out, '}'))
	}
	if !plain(picture) {
		return fault.New(fault.ProviderError, "", "the browser's picture is not base64")
	}
	out = append(out, `,"screenshot":"`...)
	c.begin(http.StatusOK, "application/json", len(out)+len(picture)+2)
	_, err = c.w.Write(out)
	if err == nil {
		_, err = io.WriteString(c.w, picture)
	}
	if err == nil {
		_, err = io.WriteString(c.w, `"}`)
	}
	return c.gone(err)
}

// plain reports whether a picture can stand in JSON as it is. Base64 can; what
// is not base64 must not be able to end the text early.
func plain(picture string) bool {
	return strings.IndexByte(picture, '"') < 0 && strings.IndexByte(picture, '\\') < 0
}

func (c *call) send(status int, media string, body []byte) error {
	c.begin(status, media, len(body))
	_, err := bytes.NewReader(body).WriteTo(c.w)
	return c.gone(err)
}

// gone cuts off an answer that could not be written to its end; there is
// nobody left to tell.
func (*call) gone(err error) error {
	if err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// fail answers with an error.
func (c *call) fail(err error) {
	if c.status != 0 {
		panic(http.ErrAbortHandler)
	}
	f := fault.Of(err)
	_ = c.refuse(f.Code.Status(), f)
}

func (c *call) refuse(status int, f *fault.Error) error {
	switch f.Code {
	case fault.Internal:
		c.log.Error("call failed", "route", c.route(), "err", f.Err)
	case fault.Unauthorized:
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="tapin"`)
	case fault.RateLimited, fault.Busy:
		after := 1
		if told, ok := f.Data["retry_after_s"].(int); ok {
			after = max(after, told)
		}
		c.w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	out, err := splice(`{"ok":false`, problem(f))
	if err != nil {
		return err
	}
	data := maps.Clone(f.Data)
	for _, own := range []string{"ok", "error", "details", "hint"} {
		delete(data, own)
	}
	if full, err := splice(string(out), data); err == nil && len(data) > 0 {
		out = full
	}
	return c.send(status, "application/json", append(out, '}'))
}

func problem(f *fault.Error) *api.Problem {
	return &api.Problem{Error: string(f.Code), Details: f.Details(), Hint: f.Advice()}
}

// splice appends the members of an object to one that was begun, and leaves
// it open.
func splice(begun string, members any) ([]byte, error) {
	out := bytes.NewBufferString(begun)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(members); err != nil {
		return nil, err
	}
	b := bytes.TrimSuffix(out.Bytes(), []byte("}\n"))
	if b[len(begun)] != '{' {
		return nil, errors.New("an answer must be an object")
	}
	if len(b) == len(begun)+1 {
		return b[:len(begun)], nil
	}
	b[len(begun)] = ','
	return b, nil
}
