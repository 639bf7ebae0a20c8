package handoff

// Current is the hand-off that runs in a session, or else the last one that did
// while this process lives. Options.OnChange hears when it is to be asked again.
// It waits for nothing but, where a hand-off is over, the disk.
func (r *Room) Current(session string) (rec Record, ok bool) {
	r.mu.Lock()
	id, l := r.last[session], r.bySession[session]
	if l != nil {
		rec = l.shown
	}
	r.mu.Unlock()
	if l != nil {
		return rec, true
	}
	if id == "" {
		return Record{}, false
	}
	rec, err := r.Get(id)
	return rec, err == nil
}

// showed tells that doors see something new. Called with the room's lock held.
func (r *Room) showed(l *live) {
	r.last[l.rec.SessionID] = l.id
	if r.opts.OnChange != nil {
		r.opts.OnChange(l.rec.SessionID)
	}
}

// Forget lets go of what was remembered of a session that is over.
func (r *Room) Forget(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, session)
}

// Phrases are the conditions of a hand-off in words.
func (r Record) Phrases() []string { return phrases(r.Book.Verify) }
