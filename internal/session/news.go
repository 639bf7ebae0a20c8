package session

import (
	"context"
	"encoding/json"
	"time"

	"tapin/internal/event"
	"tapin/internal/page"
	"tapin/internal/store"
)

// maxNews is how many surprises may wait to be told. A page that makes more of
// them than the disk takes is not worth more: status tells what is so now.
const maxNews = 256

// viewMoved tells that a provider's live view is of another tab now.
const viewMoved = "view_moved"

// surprise is what the feed tells of one. It names kinds and places, and
// nothing that a page says: a dialog's words may be anything.
type surprise struct {
	SessionID  string `json:"session_id"`
	TabID      string `json:"tab_id,omitempty"`
	Kind       string `json:"kind,omitempty"`   // of a question
	Dialog     string `json:"dialog,omitempty"` // its kind
	Origin     string `json:"origin,omitempty"`
	Name       string `json:"name,omitempty"` // of a permission
	DownloadID string `json:"download_id,omitempty"`
	State      string `json:"state,omitempty"` // of a download
}

// surprised puts what happened in a browser without being asked for into the
// queue of news. It is called by whoever listens to the browser, and so is quick.
// A session that has not been told of yet has no news: its start tells it all.
func (h *Host) surprised(rec *record, s page.Surprise) {
	session := rec.ID
	h.mu.Lock()
	of := h.sessions[session]
	h.mu.Unlock()
	if s.Download != nil && h.theirs(rec, of, s.Download.ID) {
		return
	}
	if of != nil && of.heldBy() != "" && h.opts.TellFront && (s.Kind == page.SurpriseTabOpened || s.Kind == page.SurpriseTabClosed) {
		s = page.Surprise{Kind: viewMoved} // that it did, and nothing else
	} else if of == nil || of.heldBy() != "" {
		return // while a person drives, nobody else is told what the page does
	}
	told := surprise{SessionID: session, TabID: s.Tab}
	if q := s.Question; q != nil {
		told.Kind, told.Dialog, told.Origin, told.Name = q.Kind, q.Dialog, q.Origin, q.Name
	}
	if d := s.Download; d != nil {
		told.DownloadID, told.State = d.ID, d.State
	}
	data, err := json.Marshal(told)
	if err != nil {
		return
	}
	select {
	case h.news <- event.Event{ID: store.NewID("sur"), Version: 1, Type: "session." + s.Kind, At: time.Now().UTC(), Data: data}:
	default:
		h.log.Warn("too much happens in a browser to tell of all of it", "session", session)
	}
}

// Run publishes surprises until ctx ends.
func (h *Host) Run(ctx context.Context) {
	for {
		select {
		case e := <-h.news:
			if err := h.deps.Pump.Deliver(ctx, e); err != nil && ctx.Err() == nil {
				h.log.Warn("an event is told later", "error", err)
			}
		case p := <-h.places:
			if p.download != "" {
				h.sawDownload(p.rec, p.download)
			} else {
				h.sawOrigin(p.rec, p.origin)
			}
		case <-ctx.Done():
			return
		}
	}
}
