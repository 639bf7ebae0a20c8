package standin

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	regions = []string{"us-west-2", "us-east-1", "eu-central-1", "ap-southeast-1"}
	systems = []string{"windows", "mac", "linux", "mobile", "tablet"}
	states  = []string{"PENDING", "RUNNING", "ERROR", "TIMED_OUT", "COMPLETED"}
	query   = regexp.MustCompile(`^user_metadata(?:\['[^'\]]+'\])+:'[^']*'$`)
	step    = regexp.MustCompile(`\['([^'\]]+)'\]`)
)

// answer is what a request is answered with.
type answer struct {
	status int
	body   any
	after  string
}

func ok(body any) answer { return answer{status: http.StatusOK, body: body} }

func no(status int, message string) answer {
	return answer{status: status, body: map[string]any{"statusCode": status, "error": http.StatusText(status), "message": message}}
}

// bad is a request that no client may make.
func (s *Server) bad(r *http.Request, message string) answer {
	s.mu.Lock()
	s.note("%s %s: %s", r.Method, r.URL.Path, message)
	s.mu.Unlock()
	return no(http.StatusBadRequest, message)
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/sessions", s.serve(s.create))
	mux.HandleFunc("GET /v1/sessions", s.serve(s.list))
	mux.HandleFunc("GET /v1/sessions/{id}", s.serve(s.retrieve))
	mux.HandleFunc("POST /v1/sessions/{id}", s.serve(s.update))
	mux.HandleFunc("GET /v1/sessions/{id}/debug", s.serve(s.debug))
	mux.HandleFunc("POST /v1/sessions/{id}/uploads", s.serve(s.upload))
	mux.HandleFunc("POST /v1/contexts", s.serve(s.createContext))
	mux.HandleFunc("GET /v1/contexts/{id}", s.serve(s.getContext))
	mux.HandleFunc("DELETE /v1/contexts/{id}", s.serve(s.deleteContext))
	mux.HandleFunc("GET /v1/projects/{id}/usage", s.serve(s.usage))
	mux.HandleFunc("GET /connect", s.enter)
	mux.HandleFunc("/", s.serve(func(r *http.Request, _ []byte) answer {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.note("%s %s is not part of the API", r.Method, r.URL.Path)
		return no(http.StatusNotFound, "Not Found")
	}))
	return mux
}

// serve checks what every request must have, and lets go wrong what is to.
func (s *Server) serve(do func(r *http.Request, body []byte) answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.busy.Add(1)
		defer s.busy.Add(-1)
		body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
		at := len(s.record(r, body)) - 1
		if err != nil {
			return
		}
		f := s.faultFor(r)
		if f.Delay > 0 {
			select {
			case <-time.After(f.Delay):
			case <-r.Context().Done():
			}
		}
		var a answer
		switch {
		case f.Unsent:
			breakLine(w)
			return
		case f.Late > 0:
			breakLine(w)
			s.busy.Add(1)
			s.tasks.Go(func() {
				defer s.busy.Add(-1)
				time.Sleep(f.Late)
				s.checked(do, r, body)
			})
			return
		case f.Refuse != 0:
			a = no(f.Refuse, f.Words)
			a.after = f.After
		default:
			a = s.checked(do, r, body)
			if f.Twice {
				a = s.checked(do, r, body)
			}
		}
		if f.Lose {
			breakLine(w)
			return
		}
		if f.Break != 0 {
			a = no(f.Break, "something went wrong")
		}
		s.mu.Lock()
		s.requests[at].Status = a.status
		s.mu.Unlock()
		a.write(w, f.Garble)
	}
}

func (a answer) write(w http.ResponseWriter, garble bool) {
	if a.after != "" {
		w.Header().Set("Retry-After", a.after)
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	raw, err := json.Marshal(a.body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(a.status)
	if garble {
		raw = raw[:len(raw)/2]
	}
	_, _ = w.Write(raw)
}

func (s *Server) record(r *http.Request, body []byte) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	req := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, At: time.Now()}
	if json.Valid(body) {
		req.Body = body
	}
	s.requests = append(s.requests, req)
	return s.requests
}

func (s *Server) checked(do func(r *http.Request, body []byte) answer, r *http.Request, body []byte) answer {
	if keys := r.Header.Values("X-BB-API-Key"); len(keys) != 1 || keys[0] != s.opts.Key {
		return no(http.StatusUnauthorized, "Unauthorized")
	}
	if strings.Contains(r.URL.RawQuery, s.opts.Key) {
		return s.bad(r, "the key is in the address")
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/uploads"):
		if kind != "multipart/form-data" {
			return s.bad(r, "an upload is a form")
		}
	case r.Method == http.MethodPost && kind != "application/json":
		return s.bad(r, "the body must be application/json")
	case r.Method != http.MethodPost && len(body) > 0:
		return s.bad(r, "this request has no body")
	}
	return do(r, body)
}

// strict refuses what the API does not know.
func strict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// createBody is the documented body, and nothing else.
type createBody struct {
	ProjectID       *string          `json:"projectId"`
	ExtensionID     *string          `json:"extensionId"`
	BrowserSettings *browserSettings `json:"browserSettings"`
	Timeout         *int             `json:"timeout"`
	KeepAlive       bool             `json:"keepAlive"`
	Proxies         json.RawMessage  `json:"proxies"`
	ProxySettings   json.RawMessage  `json:"proxySettings"`
	Region          *string          `json:"region"`
	UserMetadata    map[string]any   `json:"userMetadata"`
}

type browserSettings struct {
	Context *struct {
		ID      string `json:"id"`
		Persist bool   `json:"persist"`
	} `json:"context"`
	ExtensionID             *string   `json:"extensionId"`
	Viewport                *viewport `json:"viewport"`
	BlockAds                *bool     `json:"blockAds"`
	SolveCaptchas           *bool     `json:"solveCaptchas"`
	RecordSession           *bool     `json:"recordSession"`
	LogSession              *bool     `json:"logSession"`
	AdvancedStealth         *bool     `json:"advancedStealth"`
	Verified                *bool     `json:"verified"`
	CaptchaImageSelector    *string   `json:"captchaImageSelector"`
	CaptchaInputSelector    *string   `json:"captchaInputSelector"`
	IgnoreCertificateErrors *bool     `json:"ignoreCertificateErrors"`
	AllowedDomains          []string  `json:"allowedDomains"`
	OS                      *string   `json:"os"`
}

type viewport struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// check is what is wrong with a body, if anything.
func (b *createBody) check() string {
	switch {
	case b.Timeout != nil && (*b.Timeout < 60 || *b.Timeout > 21600):
		return "timeout must be between 60 and 21600"
	case b.Region != nil && !slices.Contains(regions, *b.Region):
		return "region must be one of " + strings.Join(regions, ", ")
	}
	if raw, _ := json.Marshal(b.UserMetadata); len(raw) > 512 {
		return "userMetadata must be at most 512 characters"
	}
	set := b.BrowserSettings
	switch {
	case set == nil:
		return ""
	case set.OS != nil && !slices.Contains(systems, *set.OS):
		return "browserSettings.os must be one of " + strings.Join(systems, ", ")
	case set.Viewport != nil && (set.Viewport.Width < 1 || set.Viewport.Height < 1):
		return "browserSettings.viewport must have a width and a height"
	case set.Context != nil && set.Context.ID == "":
		return "browserSettings.context.id is required"
	}
	return ""
}

func (s *Server) create(r *http.Request, body []byte) answer {
	var b createBody
	if err := strict(body, &b); err != nil {
		return s.bad(r, err.Error())
	}
	if wrong := b.check(); wrong != "" {
		return s.bad(r, wrong)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	plan, now := s.opts.Plan, time.Now()
	if b.ProjectID != nil && *b.ProjectID != s.opts.Project {
		return no(http.StatusForbidden, "the project is not yours")
	}
	if b.KeepAlive && !plan.KeepAlive {
		return no(http.StatusForbidden, "Keep alive sessions are not supported on the "+plan.Name+" plan")
	}
	timeout := min(time.Hour, plan.MaxTimeout)
	if b.Timeout != nil {
		timeout = time.Duration(*b.Timeout) * time.Second
	}
	if timeout > plan.MaxTimeout {
		if !plan.Clamps {
			return no(http.StatusBadRequest, "timeout is over the maximum of the "+plan.Name+" plan")
		}
		timeout = plan.MaxTimeout
	}
	if set := b.BrowserSettings; set != nil && set.Context != nil && s.contexts[set.Context.ID] == nil {
		return no(http.StatusNotFound, "Context not found")
	}
	s.creates = slices.DeleteFunc(s.creates, func(at time.Time) bool { return now.Sub(at) > time.Minute })
	running := 0
	for _, each := range s.sessions {
		if each.status == "RUNNING" && !each.foreign {
			running++
		}
	}
	if running >= plan.Concurrent || len(s.creates) >= plan.CreatesMinute {
		a := no(http.StatusTooManyRequests, "You've exceeded your max concurrent sessions limit (limit "+strconv.Itoa(plan.Concurrent)+", currently "+strconv.Itoa(running)+").")
		a.after = "60"
		return a
	}
	s.creates = append(s.creates, now)
	made := s.add(&b, timeout)
	return answer{status: http.StatusCreated, body: made.told(true)}
}

func (s *Server) list(r *http.Request, _ []byte) answer {
	values := r.URL.Query()
	for name, given := range values {
		if name != "q" && name != "status" || len(given) != 1 {
			return s.bad(r, "the query parameter "+name+" is not known")
		}
	}
	status, q := values.Get("status"), values.Get("q")
	if status != "" && !slices.Contains(states, status) {
		return s.bad(r, "status must be one of "+strings.Join(states, ", "))
	}
	if values.Has("q") && !query.MatchString(q) {
		return s.bad(r, "q cannot be understood")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []any{} // a bare array, also when it is empty
	for _, each := range s.sessions {
		if (status == "" || each.status == status) && (q == "" || matches(each.metadata, q)) {
			told := each.told(false)
			if status == "" && each.status == "RUNNING" && len(out) > 1000 {
				break
			}
			out = append(out, told)
		}
	}
	return ok(out)
}

// matches walks into the metadata as the query says.
func matches(metadata map[string]any, q string) bool {
	path, value, _ := strings.Cut(q, "]:")
	var at any = metadata
	for _, name := range step.FindAllStringSubmatch(path+"]", -1) {
		m, isMap := at.(map[string]any)
		if !isMap {
			return false
		}
		at = m[name[1]]
	}
	return at == strings.Trim(value, "'")
}

// of is the session of a path; whoever asks for one that is not theirs is noted.
func (s *Server) of(r *http.Request) (*session, *answer) {
	found := s.sessions[r.PathValue("id")]
	if found == nil {
		a := no(http.StatusNotFound, "Session not found")
		return nil, &a
	}
	if found.foreign {
		s.note("%s %s touches somebody else's session", r.Method, r.URL.Path)
	}
	return found, nil
}

func (s *Server) retrieve(r *http.Request, _ []byte) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, a := s.of(r)
	if a != nil {
		return *a
	}
	return ok(found.told(found.status == "RUNNING"))
}

func (s *Server) update(r *http.Request, body []byte) answer {
	var b struct {
		ProjectID *string `json:"projectId"`
		Status    string  `json:"status"`
	}
	if err := strict(body, &b); err != nil {
		return s.bad(r, err.Error())
	}
	if b.Status != "REQUEST_RELEASE" {
		return s.bad(r, "status must be REQUEST_RELEASE")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, a := s.of(r)
	if a != nil {
		return *a
	}
	if b.ProjectID != nil && *b.ProjectID != s.opts.Project {
		return no(http.StatusForbidden, "the project is not yours")
	}
	if found.status == "RUNNING" {
		wait := s.opts.Ending
		s.tasks.Go(func() {
			time.Sleep(wait)
			found.end("COMPLETED")
		})
	}
	return ok(found.told(false))
}

func (s *Server) debug(r *http.Request, _ []byte) answer {
	if in := r.URL.Query().Get("expiresIn"); in != "" {
		if n, err := strconv.Atoi(in); err != nil || n < 1 || n > 21600 {
			return s.bad(r, "expiresIn must be between 1 and 21600")
		}
	}
	s.mu.Lock()
	found, a := s.of(r)
	s.mu.Unlock()
	if a != nil {
		return *a
	}
	if found.now() != "RUNNING" {
		return no(http.StatusGone, "Session is not running")
	}
	return ok(found.views())
}

func (s *Server) upload(r *http.Request, body []byte) answer {
	s.mu.Lock()
	found, a := s.of(r)
	s.mu.Unlock()
	if a != nil {
		return *a
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, err := r.MultipartReader()
	if err != nil {
		return s.bad(r, "an upload is a form")
	}
	part, err := form.NextPart()
	if err != nil || part.FormName() != "file" || part.FileName() == "" {
		return s.bad(r, "the form must have a file")
	}
	if err := os.MkdirAll(found.uploads(), 0o700); err != nil {
		return no(http.StatusInternalServerError, "the disk is full")
	}
	out, err := os.Create(filepath.Join(found.uploads(), filepath.Base(part.FileName())))
	if err != nil {
		return no(http.StatusInternalServerError, "the disk is full")
	}
	defer func() { _ = out.Close() }()
	if _, err := io.Copy(out, part); err != nil {
		return s.bad(r, "the form breaks off")
	}
	if _, err := form.NextPart(); err == nil {
		return s.bad(r, "the form has more than one part")
	}
	return ok(map[string]any{"message": "File uploaded successfully"})
}

func (s *Server) createContext(r *http.Request, body []byte) answer {
	var b struct {
		ProjectID *string `json:"projectId"`
		Name      *string `json:"name"`
	}
	if err := strict(body, &b); err != nil {
		return s.bad(r, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.ProjectID != nil && *b.ProjectID != s.opts.Project {
		return no(http.StatusForbidden, "the project is not yours")
	}
	made := s.newKept()
	return answer{status: http.StatusCreated, body: map[string]any{
		"id": made.id, "uploadUrl": "https://example.invalid/unsupported", "publicKey": "none", "cipherAlgorithm": "AES-256-CBC", "initializationVectorSize": 16,
	}}
}

func (s *Server) getContext(r *http.Request, _ []byte) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.contexts[r.PathValue("id")]
	if k == nil {
		return no(http.StatusNotFound, "Context not found")
	}
	return ok(map[string]any{"id": k.id, "createdAt": k.created, "updatedAt": k.updated, "projectId": s.opts.Project})
}

func (s *Server) deleteContext(r *http.Request, _ []byte) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.contexts[r.PathValue("id")]
	if k == nil {
		return no(http.StatusNotFound, "Context not found")
	}
	delete(s.contexts, k.id)
	_ = os.RemoveAll(k.dir)
	return answer{status: http.StatusNoContent}
}

func (s *Server) usage(r *http.Request, _ []byte) answer {
	if r.PathValue("id") != s.opts.Project {
		return no(http.StatusNotFound, "Project not found")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	minutes := 0
	for _, each := range s.sessions {
		until := each.ended
		if until.IsZero() {
			until = time.Now()
		}
		minutes += int(max(until.Sub(each.created), time.Minute).Round(time.Minute) / time.Minute)
	}
	return ok(map[string]any{"browserMinutes": minutes, "proxyBytes": 0})
}
