package standin

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// remoteUploads is where files are that were sent, as pages' machine sees it.
const remoteUploads = "/tmp/.uploads/"

// session is one, with its browser.
type session struct {
	server    *Server
	id        string
	metadata  map[string]any
	keepAlive bool
	context   string
	persist   bool
	foreign   bool
	region    string
	created   time.Time
	expires   time.Time
	timer     *time.Timer // ends it when its time is over, or nobody came

	// Under the server's lock.
	status  string
	ended   time.Time
	keys    map[string]time.Time // ways in that are good, until when
	conns   map[net.Conn]bool
	entered int

	browsing sync.Mutex // held by whoever starts or ends the browser
	browser  *chromium
}

// add is called with the lock held.
func (s *Server) add(b *createBody, timeout time.Duration) *session {
	now := time.Now().UTC()
	made := &session{
		server: s, id: newID(), metadata: b.UserMetadata, keepAlive: b.KeepAlive, region: "us-west-2",
		created: now, expires: now.Add(timeout), status: "RUNNING", keys: map[string]time.Time{}, conns: map[net.Conn]bool{},
	}
	if b.Region != nil {
		made.region = *b.Region
	}
	if set := b.BrowserSettings; set != nil && set.Context != nil {
		made.context, made.persist = set.Context.ID, set.Context.Persist
	}
	made.timer = time.AfterFunc(min(timeout, s.opts.ConnectWithin), func() { made.end("TIMED_OUT") })
	s.sessions[made.id] = made
	return made
}

// told is the session in the words of the API. Called with the lock held.
func (x *session) told(ways bool) map[string]any {
	out := map[string]any{
		"id": x.id, "createdAt": x.created, "updatedAt": time.Now().UTC(), "startedAt": x.created, "expiresAt": x.expires,
		"projectId": x.server.opts.Project, "status": x.status, "proxyBytes": 0, "keepAlive": x.keepAlive, "region": x.region,
	}
	if x.metadata != nil {
		out["userMetadata"] = x.metadata
	}
	if x.context != "" {
		out["contextId"] = x.context
	}
	if !x.ended.IsZero() {
		out["endedAt"] = x.ended
	}
	if ways {
		key := rand.Text()
		x.keys[key] = time.Now().Add(x.server.opts.KeyLife)
		host := x.server.Addr()
		if x.server.opts.Through != nil {
			host = x.server.opts.Through()
		}
		out["connectUrl"] = "ws://" + host + "/connect?signingKey=" + key + "&sessionId=" + x.id
		out["seleniumRemoteUrl"] = "http://" + host + "/webdriver"
		out["signingKey"] = key
	}
	return out
}

func (x *session) now() string {
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	return x.status
}

func (x *session) uploads() string { return filepath.Join(x.server.dir, "uploads-"+x.id) }

// start gives the session its browser, when somebody comes.
func (x *session) start() (*chromium, error) {
	x.browsing.Lock()
	defer x.browsing.Unlock()
	if x.now() != "RUNNING" {
		return nil, errors.New("the session is over")
	}
	if x.browser != nil {
		return x.browser, nil
	}
	var err error
	if x.server.opts.Shared {
		x.server.mu.Lock()
		defer x.server.mu.Unlock()
		if x.server.shared == nil {
			x.server.shared, err = launch(filepath.Join(x.server.dir, "shared"))
		}
		x.browser = x.server.shared
		return x.browser, err
	}
	profile := filepath.Join(x.server.dir, "profile-"+x.id)
	x.server.mu.Lock()
	k := x.server.contexts[x.context]
	x.server.mu.Unlock()
	if k != nil {
		if _, err := os.Stat(k.dir); err == nil {
			if err := os.CopyFS(profile, os.DirFS(k.dir)); err != nil {
				return nil, err
			}
		}
	}
	x.browser, err = launch(profile)
	return x.browser, err
}

// end ends the session; what a context is to keep is kept.
func (x *session) end(status string) {
	x.browsing.Lock()
	defer x.browsing.Unlock()
	s := x.server
	s.mu.Lock()
	if x.status != "RUNNING" {
		s.mu.Unlock()
		return
	}
	x.timer.Stop()
	conns := x.conns
	x.conns = map[net.Conn]bool{}
	k, persist, closed := s.contexts[x.context], x.persist, s.closed
	s.mu.Unlock()
	if b := x.browser; b != nil && !s.opts.Shared {
		if k != nil && persist && !closed {
			b.quit()
			keep(b.profile, k)
		}
		b.kill()
		_ = os.RemoveAll(b.profile)
	}
	for c := range conns {
		_ = c.Close()
	}
	_ = os.RemoveAll(x.uploads())
	s.mu.Lock()
	x.status, x.ended = status, time.Now().UTC()
	if k != nil && persist {
		k.updated = x.ended
	}
	s.mu.Unlock()
}

// keep puts a profile in the place of the one a context had.
func keep(profile string, k *kept) {
	_ = os.RemoveAll(k.dir)
	for _, gone := range []string{"SingletonLock", "SingletonCookie", "SingletonSocket", "DevToolsActivePort"} {
		_ = os.Remove(filepath.Join(profile, gone))
	}
	_ = os.Rename(profile, k.dir)
}

// enter lets a client into a browser, if its way in is still good.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	s.mu.Lock()
	x := s.sessions[values.Get("sessionId")]
	var good bool
	if x != nil {
		until, known := x.keys[values.Get("signingKey")]
		good = known && time.Now().Before(until)
		if x.foreign {
			s.note("somebody else's session was entered")
		}
		if !good && x.status == "RUNNING" {
			s.note("a way in that is too old was used")
		}
	}
	s.mu.Unlock()
	switch {
	case x == nil:
		http.Error(w, "Not Found", http.StatusNotFound)
		return
	case !good:
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	case x.now() != "RUNNING":
		http.Error(w, "Gone", http.StatusGone)
		return
	}
	browser, err := x.start()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	x.carry(w, r, browser)
}

// carry passes messages between a client and the browser, and takes the part of
// the machine in between: the client's disk is not this one.
func (x *session) carry(w http.ResponseWriter, r *http.Request, b *chromium) {
	ctx := r.Context()
	inner, _, err := websocket.Dial(ctx, b.ws, &websocket.DialOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		http.Error(w, "the browser is gone", http.StatusInternalServerError)
		return
	}
	defer func() { _ = inner.CloseNow() }()
	tap := &tap{ResponseWriter: w}
	outer, err := websocket.Accept(tap, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled, InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer func() { _ = outer.CloseNow() }()
	inner.SetReadLimit(256 << 20)
	outer.SetReadLimit(256 << 20)
	if !x.came(tap.conn) {
		return
	}
	done := make(chan struct{}, 2)
	pass := func(from, to *websocket.Conn, change func([]byte) []byte) {
		defer func() { done <- struct{}{} }()
		for {
			kind, raw, err := from.Read(ctx)
			if err != nil {
				return
			}
			if to.Write(ctx, kind, change(raw)) != nil {
				return
			}
		}
	}
	go pass(outer, inner, x.elsewhere)
	go pass(inner, outer, func(raw []byte) []byte { return raw })
	<-done
	x.left(tap.conn)
}

// tap remembers the connection that a WebSocket was made of.
type tap struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack takes the connection over.
func (t *tap) Hijack() (c net.Conn, rw *bufio.ReadWriter, err error) {
	t.conn, rw, err = http.NewResponseController(t.ResponseWriter).Hijack()
	return t.conn, rw, err
}

func (x *session) came(c net.Conn) bool {
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	if x.status != "RUNNING" {
		return false
	}
	if x.entered == 0 {
		x.timer.Reset(time.Until(x.expires))
	}
	x.entered++
	x.conns[c] = true
	return true
}

// left ends a session that is not kept alive when the last one goes.
func (x *session) left(c net.Conn) {
	x.server.mu.Lock()
	delete(x.conns, c)
	over := x.status == "RUNNING" && !x.keepAlive && len(x.conns) == 0
	x.server.mu.Unlock()
	if over {
		x.end("COMPLETED")
	}
}

// elsewhere makes paths mean what they mean on the browser's machine: what was
// uploaded is there, and nothing of the client is.
func (x *session) elsewhere(raw []byte) []byte {
	switch {
	case strings.Contains(string(raw), `"DOM.setFileInputFiles"`):
		var m map[string]any
		if json.Unmarshal(raw, &m) != nil {
			return raw
		}
		params, _ := m["params"].(map[string]any)
		files, _ := params["files"].([]any)
		for i, f := range files {
			name, _ := f.(string)
			if rest, ok := strings.CutPrefix(name, remoteUploads); ok {
				files[i] = filepath.Join(x.uploads(), filepath.Base(rest))
			} else {
				files[i] = filepath.Join("/nonexistent", filepath.Base(name))
				x.server.mu.Lock()
				x.server.note("a path of the client's machine was given to the browser")
				x.server.mu.Unlock()
			}
		}
		if changed, err := json.Marshal(m); err == nil {
			return changed
		}
	case strings.Contains(string(raw), `"Browser.setDownloadBehavior"`) && strings.Contains(string(raw), `"downloadPath":"/`):
		x.server.mu.Lock()
		x.server.note("downloads were sent to a folder of the client's machine")
		x.server.mu.Unlock()
	}
	return raw
}

// views are where the tabs can be seen.
func (x *session) views() map[string]any {
	base := "https://www.browserbase.com/devtools-fullscreen/inspector.html?wss=connect.browserbase.com/debug/" + x.id
	pages := []any{}
	x.browsing.Lock()
	b := x.browser
	x.browsing.Unlock()
	if b != nil {
		for _, t := range b.tabs() {
			at := base + "/devtools/page/" + t.ID
			pages = append(pages, map[string]any{"id": t.ID, "url": t.URL, "title": t.Title, "faviconUrl": "", "debuggerUrl": at, "debuggerFullscreenUrl": at})
		}
	}
	out := map[string]any{"debuggerUrl": base, "debuggerFullscreenUrl": base, "wsUrl": "wss://connect.browserbase.com/debug/" + x.id, "pages": pages}
	if len(pages) > 0 {
		first := pages[0].(map[string]any)
		out["debuggerUrl"], out["debuggerFullscreenUrl"] = first["debuggerUrl"], first["debuggerFullscreenUrl"]
	}
	return out
}
