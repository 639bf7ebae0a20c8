package page

import (
	"slices"
	"strings"
	"sync"

	proto "github.com/chromedp/cdproto/cdp"

	"tapin/internal/cdp"
)

// The kinds of questions a page can put that are no part of the page itself.
const (
	AskDialog      = "dialog"
	AskPermission  = "permission"
	AskFileChooser = "file_chooser"
	AskHTTPAuth    = "http_auth"
	AskPasskey     = "passkey" // declined already; the site has another way in
)

// Question is something the browser would ask a person in front of it. Nothing
// waits for the answer but a dialog, which stops its page.
type Question struct {
	Kind     string `json:"kind"`
	Origin   string `json:"origin,omitempty"`   // who asks
	Dialog   string `json:"dialog,omitempty"`   // alert, confirm, prompt or beforeunload
	Message  string `json:"message,omitempty"`  // what a dialog says
	Default  string `json:"default,omitempty"`  // what a prompt offers
	Name     string `json:"name,omitempty"`     // the permission that was refused, because nobody had granted it
	Realm    string `json:"realm,omitempty"`    // what the site calls the place the password is for
	Multiple bool   `json:"multiple,omitempty"` // whether several files may be chosen
}

// The kinds of surprises beside questions.
const (
	SurpriseQuestion     = "question"
	SurpriseCrash        = "crash"
	SurpriseDownload     = "download"
	SurpriseTabOpened    = "tab_opened"
	SurpriseTabClosed    = "tab_closed"
	SurprisePopupRefused = "popup_refused"
	SurprisePasskey      = "passkey"
	SurpriseReloaded     = "reloaded" // its dialog could not be answered any more
)

// Surprise is something that happened in the browser without being asked for.
type Surprise struct {
	Kind     string
	Tab      string    // its id, empty where it is no tab's
	Question *Question // for SurpriseQuestion and SurprisePasskey
	Download *Download // for SurpriseDownload
}

// questions are what a tab's page waits or has been refused for, dialogs aside.
type questions struct {
	mu      sync.Mutex
	login   *login
	chooser *chooser
	refused []permission
	passkey *Question // the page asked for one, and was declined
}

type chooser struct {
	frame    proto.FrameID
	session  *cdp.Session
	node     proto.BackendNodeID
	multiple bool
}

// Pending are the open questions of the tab, the one that blocks it first.
func (t *Tab) Pending() []Question {
	var out []Question
	if d := t.Dialog(); d != nil {
		out = append(out, d.question())
	}
	q := &t.questions
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.login != nil {
		out = append(out, q.login.question())
	}
	if q.chooser != nil {
		out = append(out, Question{Kind: AskFileChooser, Multiple: q.chooser.multiple})
	}
	for _, p := range q.refused {
		out = append(out, p.question())
	}
	if q.passkey != nil {
		out = append(out, *q.passkey)
	}
	return out
}

// forget drops the questions of a document that is gone; those of frames stay
// with their frames.
func (q *questions) forget(gone proto.FrameID, main bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if main {
		q.login, q.refused, q.passkey = nil, nil, nil
	}
	if q.chooser != nil && (main || q.chooser.frame == gone) {
		q.chooser = nil
	}
}

// refuse notes a permission the page did not get; false means that it was known.
func (q *questions) refuse(p permission) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slices.Contains(q.refused, p) || len(q.refused) >= maxRefused {
		return false
	}
	q.refused = append(q.refused, p)
	return true
}

func (q *questions) answered(p permission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refused = slices.DeleteFunc(q.refused, func(o permission) bool { return o == p })
}

func (d *Dialog) question() Question {
	return Question{Kind: AskDialog, Origin: d.Origin, Dialog: d.Kind, Message: d.Message, Default: d.Default}
}

// ask tells whoever listens of a question.
func (t *Tab) ask(q Question) {
	t.mu.Lock()
	t.turns[q.Kind]++
	t.mu.Unlock()
	t.tabs.tell(Surprise{Kind: SurpriseQuestion, Tab: t.ID(), Question: &q})
}

// tell passes a surprise on; the listener must be quick.
func (t *Tabs) tell(s Surprise) {
	t.changes.tell()
	if tell := t.owner.Load().onSurprise; tell != nil {
		tell(s)
	}
}

// originOf is the origin of an address, without anything that may be secret.
func originOf(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	host, _, _ = strings.Cut(host, "#")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	return scheme + "://" + host
}
