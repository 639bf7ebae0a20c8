package oneshot

import "time"

// answerWithin is how long a busy machine may take for what takes a moment.
const answerWithin = 30 * time.Second

// readyNow is how many contexts wait.
func (p *pool) readyNow() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready)
}

// guestsNow is how many contexts the browser has, -1 when there is none.
func (h *house) guestsNow() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		return -1
	}
	return h.now.guests
}
