package handoff

import (
	"testing"
	"time"
)

// TestAClockThatWasPutBackKeepsNobodyBusy has a person who was there "tomorrow".
func TestAClockThatWasPutBackKeepsNobodyBusy(t *testing.T) {
	t.Parallel()
	tomorrow := noon.Add(24 * time.Hour)
	r := aRecord(func(r *Record) { r.Book.HumanAt, r.Book.IdleSince = tomorrow, tomorrow }).doubted(noon)
	if !r.busy(noon.Add(busyFor-time.Second), time.Time{}) || r.busy(noon.Add(busyFor), time.Time{}) {
		t.Errorf("the person is busy from %v on", r.Book.HumanAt)
	}
	if at, ok := r.reminderDue(); ok && at.After(tomorrow) {
		t.Errorf("the reminder comes at %v", at)
	}
}
