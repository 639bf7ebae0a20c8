package event

// The types of the feed. They are names that others rely on: one that has been
// told once keeps its meaning.
const (
	SessionStarted     = "session.started"
	SessionRecovered   = "session.recovered"
	SessionReconnected = "session.reconnected"
	SessionStopped     = "session.stopped"
	SessionEnded       = "session.ended"

	HandoffFinished  = "handoff.finished"
	HandoffCancelled = "handoff.cancelled"
	HandoffTimedOut  = "handoff.timed_out"

	DaemonGaveUp = "daemon.gave_up" // the sidecar could not be kept running
	WakeFailed   = "wake.failed"    // a stopped agent could not be woken
	WakeMissed   = "wake.missed"    // hand-offs may have ended that nobody was woken for
)

// HandoffEnded is the data of the three events that end a hand-off.
type HandoffEnded struct {
	HandoffID string `json:"handoff_id"`
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id,omitempty"`
	Status    string `json:"status"`
}

// EndsHandoff reports whether an event of this type ends a hand-off.
func EndsHandoff(kind string) bool {
	return kind == HandoffFinished || kind == HandoffCancelled || kind == HandoffTimedOut
}

// Trouble is the data of what the daemon tells: what did not work, in a
// sentence for people, and what it was about.
type Trouble struct {
	Details   string `json:"details"`
	Hint      string `json:"hint,omitempty"`
	Count     int    `json:"count,omitempty"` // failures, tries or events, as the type says
	HandoffID string `json:"handoff_id,omitempty"`
	WakeID    string `json:"wake_id,omitempty"`
}
