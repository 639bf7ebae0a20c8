package page

import (
	"cmp"
	"slices"
	"sync"

	proto "github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"tapin/internal/cdp"
)

// frames follows the documents of a tab across the processes they live in, by
// the browser's events alone: a page without frames costs no question.
type frames struct {
	main proto.FrameID

	mu      sync.Mutex
	all     map[proto.FrameID]*frame
	born    int
	changed news // a document came or went
}

// frame is one document. It is a value: what it says was so when it was asked.
type frame struct {
	id, parent proto.FrameID
	session    *cdp.Session
	world      runtime.ExecutionContextID // ours in it; 0 means not asked for yet
	has        part                       // of the engine, in that world
	order      int
	asked      chan struct{} // closed when the world is known; nil while nobody asks
}

func newFrames(main proto.FrameID, s *cdp.Session) *frames {
	f := &frames{main: main, all: map[proto.FrameID]*frame{}}
	f.put(main, "", s)
	f.follow(s)
	return f
}

// follow hears of the frames that live in one session.
func (f *frames) follow(s *cdp.Session) {
	cdp.Listen(s, cdppage.FrameAttached, func(e cdppage.EventFrameAttached) { f.put(e.FrameID, e.ParentFrameID, s) })
	cdp.Listen(s, cdppage.FrameNavigated, func(e cdppage.EventFrameNavigated) { f.put(e.Frame.ID, e.Frame.ParentID, s) })
	cdp.Listen(s, cdppage.FrameDetached, func(e cdppage.EventFrameDetached) {
		// One that swaps its process is told of again by the other.
		if e.Reason != cdppage.FrameDetachedReasonSwap {
			f.remove(e.FrameID, s)
		}
	})
}

// put notes a new document in a frame.
func (f *frames) put(id, parent proto.FrameID, s *cdp.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed.tell()
	if old := f.all[id]; old != nil {
		if parent == "" {
			parent = old.parent
		}
		f.all[id] = &frame{id: id, parent: parent, session: s, order: old.order}
		return
	}
	f.born++
	f.all[id] = &frame{id: id, parent: parent, session: s, order: f.born}
}

// remove forgets a frame and everything in it, if that session still has it.
func (f *frames) remove(id proto.FrameID, s *cdp.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.all[id]; known != nil && known.session == s && id != f.main {
		f.cut(id)
	}
}

// lose forgets the frames of a session that ended.
func (f *frames) lose(id target.SessionID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for frameID, known := range f.all {
		if known.session.ID() == id && frameID != f.main {
			f.cut(frameID)
		}
	}
}

func (f *frames) cut(id proto.FrameID) {
	f.changed.tell()
	delete(f.all, id)
	for child, known := range f.all {
		if known.parent == id {
			f.cut(child)
		}
	}
}

// list is the tree, parents first, in the order in which frames came.
func (f *frames) list() []frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]frame, 0, len(f.all))
	for _, known := range f.all {
		out = append(out, *known)
	}
	slices.SortFunc(out, func(a, b frame) int { return cmp.Compare(a.order, b.order) })
	return out
}

// alone reports whether a document is all that there is.
func (f *frames) alone(only frame) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) == 1 && f.all[only.id] != nil
}

func (f *frames) get(id proto.FrameID) (frame, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.all[id]
	if known == nil {
		return frame{}, false
	}
	return *known, true
}

// numbered is the frame that its parent knows by that number.
func (f *frames) numbered(order int) (frame, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.all {
		if known.order == order {
			return *known, true
		}
	}
	return frame{}, false
}

// in is what is known of a frame in which that world is ours, or else nil. The
// caller holds the lock.
func (f *frames) in(of frame) *frame {
	if known := f.all[of.id]; known != nil && known.session == of.session && known.world == of.world {
		return known
	}
	return nil
}

// equipment is how much of the engine our world in a document has.
func (f *frames) equipment(of frame) part {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.in(of); known != nil {
		return known.has
	}
	return core
}

// equipped notes it, unless another document came meanwhile: its world may have
// the same number, where it is in a new process.
func (f *frames) equipped(of frame, has part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.in(of); known != nil {
		known.has = has
	}
}

// entering makes the caller the one who asks for our world in a document, or
// else gives what is closed when somebody else has its answer.
func (f *frames) entering(of frame) (asked chan struct{}, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.all[of.id]
	if known == nil || known.session != of.session {
		return nil, true // what is gone has nobody to share with
	}
	if known.asked != nil {
		return known.asked, false
	}
	known.asked = make(chan struct{})
	return known.asked, true
}

// entered takes the answer of the one who asked; 0 means that there was none.
func (f *frames) entered(of frame, asked chan struct{}, world runtime.ExecutionContextID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if asked == nil {
		return
	}
	close(asked)
	if known := f.all[of.id]; known != nil && known.asked == asked {
		known.asked = nil
		if known.world == of.world && world != 0 {
			known.world, known.has = world, core
		}
	}
}

// learn remembers our world in a frame, unless another document came meanwhile.
func (f *frames) learn(of frame, world runtime.ExecutionContextID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.in(of); known != nil {
		known.world, known.has = world, core
	}
}
