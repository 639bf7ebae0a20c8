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

	LinkMinted  = "link.minted"
	LinkClaimed = "link.claimed" // the first device has it
	LinkWaiting = "link.waiting" // a further device shows a number, and waits for the owner's word
	LinkMoved   = "link.moved"   // to the device that showed the number
	LinkEnded   = "link.ended"

	PublicChanged = "public.changed" // links begin with another address now

	OwnerPaired  = "owner.paired"
	OwnerWaiting = "owner.waiting" // somebody had a code, and waits for an owner's word
	OwnerRefused = "owner.refused"
	OwnerRemoved = "owner.removed"

	DaemonGaveUp = "daemon.gave_up"    // the sidecar could not be kept running; only earlier versions gave up
	CrashLoop    = "daemon.crash_loop" // the sidecar fails again and again; it is started on and on
	WakeFailed   = "wake.failed"       // a stopped agent could not be woken
	WakeMissed   = "wake.missed"       // hand-offs may have ended that nobody was woken for
	RoomFailed   = "room.failed"       // a background room failed and is started again
	RoomGivenUp  = "room.given_up"     // it failed too often; everything else goes on
	RoomLeftOut  = "room.left_out"     // the sidecar died of it again and again, and goes on without it
	RoomBack     = "room.back"         // it works again
	FileSetAside = "file.set_aside"    // a file that could not be used was put aside and made anew
	FileUnread   = "file.unread"       // a file that holds the truth cannot be read, and is kept as it is
	TunnelFailed = "tunnel.failed"     // phones may not reach this machine until somebody mends it
)

// RoomNews is the data of the three events of a background room.
type RoomNews struct {
	Room    string `json:"room"`
	Details string `json:"details"`
	Hint    string `json:"hint,omitempty"`
	Count   int    `json:"count,omitempty"` // failures
}

// HandoffEnded is the data of the three events that end a hand-off.
type HandoffEnded struct {
	HandoffID string `json:"handoff_id"`
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id,omitempty"`
	Status    string `json:"status"`
	// FinishedBy is owner, agent, verify or time; nobody when the session ended.
	FinishedBy string `json:"finished_by,omitempty"`
}

// ByAgent reports whether the agent ended the hand-off itself, and so knows.
func (e HandoffEnded) ByAgent() bool { return e.FinishedBy == "agent" }

// EndsHandoff reports whether an event of this type ends a hand-off.
func EndsHandoff(kind string) bool {
	return kind == HandoffFinished || kind == HandoffCancelled || kind == HandoffTimedOut
}

// LinkNews is the data of what happens to a link. It holds nothing that opens one.
type LinkNews struct {
	LinkID    string `json:"link_id"`
	SessionID string `json:"session_id"`
	Mode      string `json:"mode"`
	Number    int    `json:"number,omitempty"` // of the device that waits, or was let in
}

// PublicNews is the data of PublicChanged.
type PublicNews struct {
	URL        string `json:"url"` // what links begin with now
	Discovered bool   `json:"discovered"`
}

// OwnerNews is the data of what happens to who may speak for the owner.
type OwnerNews struct {
	ID   int64  `json:"id"` // in Telegram
	Name string `json:"name,omitempty"`
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
