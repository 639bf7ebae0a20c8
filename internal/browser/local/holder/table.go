package holder

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// maxPaused bounds the paused requests that are remembered per browser, the
// newest ones; a page that piles up more has gone on without the older ones.
const maxPaused = 512

// table is what a new client must know of the browser: not a log of what
// happened, but what is so. Each entry is the browser's own event, repeated
// word for word. It is guarded by its owner's lock.
type table struct {
	targets   map[string]*entry // by target id
	sessions  map[string]*entry // by session id
	waiting   map[string]bool   // sessions that wait for the debugger
	dialogs   map[string]*entry // by session id
	choosers  map[string]*entry // by session id
	crashes   map[string]*entry // by session id
	paused    map[string]*entry // by session and request id
	downloads map[string]*entry // by guid, the beginning
	progress  map[string]*entry // by guid, the latest
	frame     *entry            // the last picture
	unacked   map[frameKey]int  // pictures a client got and has not acknowledged
	order     uint64
	maxID     int64
}

type entry struct {
	order   uint64
	raw     []byte
	session string // the session it came on
}

// frameKey names a cast: the browser gives all frames of one cast the same number.
type frameKey struct {
	session string
	cast    int64
}

func newTable() *table {
	return &table{
		targets: map[string]*entry{}, sessions: map[string]*entry{}, waiting: map[string]bool{},
		dialogs: map[string]*entry{}, choosers: map[string]*entry{}, crashes: map[string]*entry{},
		paused: map[string]*entry{}, downloads: map[string]*entry{}, progress: map[string]*entry{},
		unacked: map[frameKey]int{},
	}
}

// envelope is the part of a message the table looks at.
type envelope struct {
	ID      int64  `json:"id"`
	Method  string `json:"method"`
	Session string `json:"sessionId"`
	Params  struct {
		SessionID  json.RawMessage `json:"sessionId"` // a string, or the number of a cast
		RequestID  string          `json:"requestId"`
		GUID       string          `json:"guid"`
		State      string          `json:"state"`
		Waiting    bool            `json:"waitingForDebugger"`
		TargetID   string          `json:"targetId"`
		TargetInfo struct {
			TargetID string `json:"targetId"`
		} `json:"targetInfo"`
	} `json:"params"`
}

func (e *envelope) childSession() string {
	var s string
	_ = json.Unmarshal(e.Params.SessionID, &s)
	return s
}

func (e *envelope) cast() int64 {
	n, _ := strconv.ParseInt(string(e.Params.SessionID), 10, 64)
	return n
}

// tracked are the events that change the table; everything else passes unread.
var tracked = map[string]bool{
	"Target.targetCreated": true, "Target.targetInfoChanged": true, "Target.targetDestroyed": true,
	"Target.attachedToTarget": true, "Target.detachedFromTarget": true,
	"Page.javascriptDialogOpening": true, "Page.javascriptDialogClosed": true,
	"Page.fileChooserOpened": true, "Page.screencastFrame": true,
	"Fetch.requestPaused": true, "Fetch.authRequired": true,
	"Browser.downloadWillBegin": true, "Browser.downloadProgress": true,
	"Inspector.targetCrashed": true, "Inspector.targetReloadedAfterCrash": true,
}

// fromBrowser notes an event. present says whether a client will get it. What
// it came as is copied: the next message takes its place.
func (t *table) fromBrowser(e *envelope, raw []byte, present bool) {
	t.order++
	if e.Method == "Page.screencastFrame" {
		t.picture(e, raw, present)
		return
	}
	note := &entry{order: t.order, raw: bytes.Clone(raw), session: e.Session}
	switch e.Method {
	case "Target.targetCreated", "Target.targetInfoChanged":
		// A change is told as a creation: to the next client it is one.
		if old := t.targets[e.Params.TargetInfo.TargetID]; old != nil {
			note.order = old.order
		}
		note.raw = bytes.Replace(raw, []byte("Target.targetInfoChanged"), []byte("Target.targetCreated"), 1)
		t.targets[e.Params.TargetInfo.TargetID] = note
	case "Target.targetDestroyed":
		delete(t.targets, e.Params.TargetID)
	case "Target.attachedToTarget":
		id := e.childSession()
		t.sessions[id] = note
		t.waiting[id] = e.Params.Waiting
	case "Target.detachedFromTarget":
		t.forgetSession(e.childSession())
	case "Page.javascriptDialogOpening":
		t.dialogs[e.Session] = note
	case "Page.javascriptDialogClosed":
		delete(t.dialogs, e.Session)
	case "Page.fileChooserOpened":
		t.choosers[e.Session] = note
	case "Inspector.targetCrashed":
		t.crashes[e.Session] = note
	case "Inspector.targetReloadedAfterCrash":
		delete(t.crashes, e.Session)
	case "Fetch.requestPaused", "Fetch.authRequired":
		t.paused[e.Session+"\x00"+e.Params.RequestID] = note
		if len(t.paused) > maxPaused {
			oldest := slices.MinFunc(slices.Collect(maps.Keys(t.paused)), func(a, b string) int { return cmp.Compare(t.paused[a].order, t.paused[b].order) })
			delete(t.paused, oldest)
		}
	case "Browser.downloadWillBegin":
		t.downloads[e.Params.GUID] = note
	case "Browser.downloadProgress":
		t.progress[e.Params.GUID] = note
		if present && e.Params.State != "inProgress" {
			t.forgetDownload(e.Params.GUID)
		}
	}
}

// picture notes one where the last one was: they come by the dozen a second.
func (t *table) picture(e *envelope, raw []byte, present bool) {
	if t.frame == nil {
		t.frame = &entry{}
	}
	t.frame.order, t.frame.session, t.frame.raw = t.order, e.Session, append(t.frame.raw[:0], raw...)
	if present {
		t.unacked[frameKey{e.Session, e.cast()}]++
	}
}

// watched are the commands that change the table.
var watched = map[string]bool{
	"Runtime.runIfWaitingForDebugger": true,
	"Fetch.continueRequest":           true, "Fetch.failRequest": true, "Fetch.fulfillRequest": true,
	"Fetch.continueResponse": true, "Fetch.continueWithAuth": true, "Fetch.disable": true,
	"DOM.setFileInputFiles": true, "Page.screencastFrameAck": true, "Page.stopScreencast": true,
	"Page.navigate": true, "Page.reload": true,
}

// fromClient notes a command that settles something.
func (t *table) fromClient(e *envelope) {
	switch e.Method {
	case "Runtime.runIfWaitingForDebugger":
		t.waiting[e.Session] = false
	case "Fetch.continueRequest", "Fetch.failRequest", "Fetch.fulfillRequest", "Fetch.continueResponse", "Fetch.continueWithAuth":
		delete(t.paused, e.Session+"\x00"+e.Params.RequestID)
	case "Fetch.disable":
		t.forget(t.paused, e.Session)
	case "DOM.setFileInputFiles":
		delete(t.choosers, e.Session)
	case "Page.screencastFrameAck":
		if key := (frameKey{e.Session, e.cast()}); t.unacked[key] > 1 {
			t.unacked[key]--
		} else {
			delete(t.unacked, key)
		}
	case "Page.stopScreencast":
		t.forgetFrames(e.Session)
	case "Page.navigate", "Page.reload":
		delete(t.choosers, e.Session)
		delete(t.crashes, e.Session)
	}
}

func (t *table) forgetSession(id string) {
	delete(t.sessions, id)
	delete(t.waiting, id)
	delete(t.dialogs, id)
	delete(t.choosers, id)
	delete(t.crashes, id)
	t.forget(t.paused, id)
	t.forgetFrames(id)
}

func (t *table) forgetFrames(session string) {
	maps.DeleteFunc(t.unacked, func(k frameKey, _ int) bool { return k.session == session })
	if t.frame != nil && t.frame.session == session {
		t.frame = nil
	}
}

func (t *table) forget(m map[string]*entry, session string) {
	maps.DeleteFunc(m, func(_ string, e *entry) bool { return e.session == session })
}

func (t *table) forgetDownload(guid string) {
	delete(t.downloads, guid)
	delete(t.progress, guid)
}

// takeUnacked returns the pictures the last client left without an
// acknowledgement; unanswered, they would stop the cast.
func (t *table) takeUnacked() map[frameKey]int {
	out := t.unacked
	t.unacked = map[frameKey]int{}
	return out
}

// replay is the table as events, in the order in which they became true:
// targets, then sessions (a parent before its children), then what is open in them.
func (t *table) replay() [][]byte {
	var out [][]byte
	add := func(m map[string]*entry) {
		for _, e := range slices.SortedFunc(maps.Values(m), func(a, b *entry) int { return cmp.Compare(a.order, b.order) }) {
			out = append(out, e.raw)
		}
	}
	add(t.targets)
	sessions := map[string]*entry{}
	for id, e := range t.sessions {
		if !t.waiting[id] {
			e = &entry{order: e.order, raw: bytes.Replace(e.raw, []byte(`"waitingForDebugger":true`), []byte(`"waitingForDebugger":false`), 1)}
		}
		sessions[id] = e
	}
	add(sessions)
	for _, m := range []map[string]*entry{t.crashes, t.dialogs, t.choosers, t.paused, t.downloads, t.progress} {
		add(m)
	}
	if t.frame != nil {
		out = append(out, t.frame.raw)
	}
	return out
}

// replayed drops what was only kept until somebody had heard of it.
func (t *table) replayed() {
	for guid, e := range t.progress {
		if !bytes.Contains(e.raw, []byte(`"inProgress"`)) {
			t.forgetDownload(guid)
		}
	}
}

// glance reads id and method off the beginning of a message without decoding
// it: both ends write them first. ok is false when they do not.
func glance(raw []byte) (id int64, method string, ok bool) {
	rest, found := bytes.CutPrefix(raw, []byte(`{"id":`))
	if found {
		end := bytes.IndexAny(rest, ",}")
		if end <= 0 {
			return 0, "", false
		}
		n, err := strconv.ParseInt(string(rest[:end]), 10, 64)
		if err != nil {
			return 0, "", false
		}
		id, rest = n, rest[end:]
		rest, found = bytes.CutPrefix(rest, []byte(`,"method":"`))
		if !found {
			return id, "", true
		}
	} else if rest, found = bytes.CutPrefix(raw, []byte(`{"method":"`)); !found {
		return 0, "", false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return 0, "", false
	}
	return id, string(rest[:end]), true
}

// look is glance with the slow way as its fallback.
func look(raw []byte) (id int64, method string) {
	if id, method, ok := glance(raw); ok {
		return id, method
	}
	var e envelope
	_ = json.Unmarshal(raw, &e)
	return e.ID, e.Method
}

// withoutPicture is a message about a picture, without it: that is most of the
// message, and nothing here looks at it.
func withoutPicture(raw []byte) []byte {
	const before = `"data":"`
	at := bytes.Index(raw[:min(len(raw), 256)], []byte(before))
	if at < 0 {
		return raw
	}
	at += len(before)
	end := bytes.IndexByte(raw[at:], '"') // there is none in base64, nor anything escaped
	if end < 0 {
		return raw
	}
	return slices.Concat(raw[:at], raw[at+end:])
}
