package standin

import (
	"net/http"
	"strings"
	"time"
)

// Fault is something that goes wrong with a request. The zero value of a field
// means that this does not.
type Fault struct {
	On    string // method and the beginning of the path, as in "POST /v1/sessions"
	Exact bool   // the path is all of On
	Times int    // how often; 0 means once

	Delay  time.Duration // before it is done
	Refuse int           // it is not done; this status is answered
	After  string        // Retry-After of the refusal
	Words  string        // message of the refusal
	Unsent bool          // it is not done; the line breaks
	Twice  bool          // it is done twice, as a retrying middleman would
	Lose   bool          // it is done; the line breaks before the answer
	Late   time.Duration // it is done this long after the line broke
	Break  int           // it is done; this status is answered all the same
	Garble bool          // it is done; the answer breaks off in the middle
}

// Inject adds a fault for requests to come. The first one that fits is taken.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// Mend takes all faults back.
func (s *Server) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) faultFor(r *http.Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := r.Method + " " + r.URL.Path
	for _, f := range s.faults {
		if f.Times > 0 && (what == f.On || !f.Exact && strings.HasPrefix(what, f.On)) {
			f.Times--
			return *f
		}
	}
	return Fault{}
}

// breakLine ends the connection without an answer.
func breakLine(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}
