package handoff

import (
	"slices"
	"testing"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func aRecord(change func(*Record)) Record {
	r := Record{
		ID: "hof_1", Version: 1, Status: Running, Reason: Login, SessionID: aSession, Generation: 1, OnTimeout: CloseOnTimeout,
		CreatedAt: noon, Deadline: noon.Add(30 * time.Minute), Attempts: 1,
		Book: bookkeeper{Timeout: 30 * time.Minute, Latest: noon.Add(time.Hour), RemindAt: []time.Duration{10 * time.Minute, 20 * time.Minute}, IdleSince: noon},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func TestWhatBecomesOfAHandoff(t *testing.T) {
	t.Parallel()
	asked := func(r *Record) { r.Book.Verify = []page.Condition{{Text: "Welcome"}} }
	parked := func(r *Record) { r.Parked = true }
	over := func(s Status) func(*Record) { return func(r *Record) { r.Status, r.FinishedBy = s, Owner } }
	at := noon.Add(5 * time.Minute)
	after := &Snapshot{URL: "https://a.example/x"}
	for name, tt := range map[string]struct {
		from    func(*Record)
		event   Event
		want    Status
		effects []Effect
		code    fault.Code
		also    func(Record) bool
	}{
		"the owner is done": {nil, done{by: Owner, now: at, after: after}, Finished, []Effect{returnWheel, dropPhoto, tellFinished}, "",
			func(r Record) bool {
				return r.After == after && r.FinishedBy == Owner && r.FinishedAt.Equal(at) && r.Verified == nil && len(r.Delta) == 6
			}},
		"the owner is done, and a run hears of it": {func(r *Record) { r.RunID = "run_1" }, done{by: Owner, now: at, after: after}, Finished, []Effect{returnWheel, addEvidence, dropPhoto, tellFinished}, "", nil},
		"the owner is done and the page cannot be read": {nil, done{by: Owner, now: at}, Finished, []Effect{returnWheel, dropPhoto, tellFinished}, "",
			func(r Record) bool { return r.After == nil && r.Delta == nil && r.ResumeHint != "" }},
		"the agent finishes while nobody is there":         {nil, done{by: Agent, now: at, human: at.Add(-time.Minute)}, Finished, []Effect{returnWheel, dropPhoto, tellFinished}, "", nil},
		"the agent finishes while a person types":          {nil, done{by: Agent, now: at, human: at.Add(-59 * time.Second)}, Running, nil, fault.HumanInControl, nil},
		"the agent finishes while a person replies":        {func(r *Record) { r.Book.HumanAt = at.Add(-time.Second) }, done{by: Agent, now: at}, Running, nil, fault.HumanInControl, nil},
		"done that is not so goes back to the person":      {asked, done{by: Owner, now: at, held: []bool{false}}, Running, []Effect{tellReasked}, "", func(r Record) bool { return r.Attempts == 2 && !r.Verified.Held && r.After == nil }},
		"done that is so is verified":                      {asked, done{by: Owner, now: at, held: []bool{true}}, Finished, []Effect{returnWheel, dropPhoto, tellFinished}, "", func(r Record) bool { return r.Verified.Held }},
		"the owner hands it back anyway":                   {asked, done{by: Owner, now: at, held: []bool{false}, anyway: true}, Finished, []Effect{returnWheel, dropPhoto, tellFinished}, "", func(r Record) bool { return !r.Verified.Held }},
		"a condition that was not looked at does not hold": {asked, done{by: Owner, now: at}, Running, []Effect{tellReasked}, "", nil},
		"the agent's done that is not so asks nobody":      {asked, done{by: Agent, now: at, held: []bool{false}}, Running, nil, fault.HumanInControl, nil},
		"the agent cannot hand itself back anyway":         {asked, done{by: Agent, now: at, held: []bool{false}, anyway: true}, Running, nil, fault.HumanInControl, nil},
		"verification that does not hold at the last look": {asked, done{by: Verify, now: at, held: []bool{false}}, Running, nil, "", nil},
		"verification that a touch came before":            {func(r *Record) { asked(r); r.FinishesAt = at }, done{by: Verify, now: at, held: []bool{true}, human: at.Add(-time.Second)}, Running, []Effect{tellStayed}, "", func(r Record) bool { return r.FinishesAt.IsZero() }},
		"done while parked":                                {parked, done{by: Owner, now: at}, Running, nil, fault.HandoffNotRunning, nil},
		"done twice":                                       {over(Finished), done{by: Agent, now: at, after: after}, Finished, nil, "", func(r Record) bool { return r.FinishedBy == Owner && r.After == nil }},
		"done after it was cancelled":                      {over(Cancelled), done{by: Owner, now: at}, Cancelled, nil, fault.HandoffNotRunning, nil},
		"done after its time":                              {over(TimedOut), done{by: Owner, now: at}, TimedOut, nil, fault.HandoffNotRunning, nil},

		"the owner aborts":                       {nil, cancel{by: Owner, now: at}, Cancelled, []Effect{closeSession, dropPhoto, tellCancelled}, "", func(r Record) bool { return r.After == nil && r.Verified == nil }},
		"the agent cancels":                      {func(r *Record) { r.RunID = "run_1" }, cancel{by: Agent, now: at}, Cancelled, []Effect{returnWheel, dropPhoto, tellCancelled}, "", func(r Record) bool { return r.After == nil }},
		"the agent cancels what is parked":       {parked, cancel{by: Agent, now: at}, Cancelled, []Effect{unparkBrowser, returnWheel, dropPhoto, tellCancelled}, "", func(r Record) bool { return !r.Parked }},
		"the agent cancels while a person types": {nil, cancel{by: Agent, now: at, human: at}, Running, nil, fault.HumanInControl, nil},
		"cancelled twice":                        {over(Cancelled), cancel{by: Agent, now: at}, Cancelled, nil, "", func(r Record) bool { return r.FinishedBy == Owner }},
		"cancelled after it was finished":        {over(Finished), cancel{by: Owner, now: at}, Finished, nil, fault.HandoffNotRunning, nil},
		"the browser is lost":                    {nil, gone{now: at, why: "it crashed"}, Cancelled, []Effect{dropPhoto, tellCancelled}, "", nil},
		"the browser is lost afterwards":         {over(Finished), gone{now: at}, Finished, nil, "", nil},

		"more time":                     {nil, extend{by: Owner, now: at, more: 15 * time.Minute}, Running, []Effect{keepBrowser, tellExtended}, "", func(r Record) bool { return r.Deadline.Equal(noon.Add(45 * time.Minute)) }},
		"as much more time as there is": {nil, extend{by: Owner, now: at, more: 3 * time.Hour}, Running, []Effect{keepBrowser, tellExtended}, "", func(r Record) bool { return r.Deadline.Equal(noon.Add(time.Hour)) }},
		"no more time than there is":    {func(r *Record) { r.Deadline = r.Book.Latest }, extend{by: Owner, now: at, more: time.Minute}, Running, nil, fault.InvalidRequest, nil},
		"more time afterwards":          {over(TimedOut), extend{now: at, more: time.Minute}, TimedOut, nil, fault.HandoffNotRunning, nil},

		"later":                         {nil, park{by: Owner, now: at}, Running, []Effect{parkBrowser, tellParked}, "", func(r Record) bool { return r.Parked && r.Deadline.Equal(at.Add(parkFor)) }},
		"later, twice":                  {parked, park{by: Owner, now: at}, Running, nil, "", nil},
		"parked under a person's hands": {nil, park{by: Agent, now: at, human: at}, Running, nil, fault.HumanInControl, nil},
		"parked afterwards":             {over(Finished), park{by: Owner, now: at}, Finished, nil, fault.HandoffNotRunning, nil},
		"back again":                    {parked, resumed{now: at, generation: 2}, Running, []Effect{keepBrowser, tellResumed}, "", func(r Record) bool { return !r.Parked && r.Generation == 2 && r.Deadline.Equal(at.Add(30*time.Minute)) }},
		"back again, twice":             {nil, resumed{now: at, generation: 1}, Running, nil, "", nil},
		"back again afterwards":         {over(TimedOut), resumed{now: at}, TimedOut, nil, fault.HandoffNotRunning, nil},

		"time passes":                                   {nil, tick{now: at}, Running, nil, "", nil},
		"time for a reminder":                           {nil, tick{now: noon.Add(10 * time.Minute)}, Running, []Effect{tellReminder}, "", func(r Record) bool { return r.Book.Reminded == 1 }},
		"two reminders slept through":                   {nil, tick{now: noon.Add(21 * time.Minute)}, Running, []Effect{tellReminder}, "", func(r Record) bool { return r.Book.Reminded == 2 }},
		"a reminder for one who is there":               {nil, tick{now: noon.Add(10 * time.Minute), human: noon.Add(9 * time.Minute)}, Running, []Effect{save}, "", nil},
		"the last call":                                 {func(r *Record) { r.Book.Reminded = 2 }, tick{now: noon.Add(25 * time.Minute)}, Running, []Effect{tellEnding}, "", nil},
		"time is up":                                    {nil, tick{now: noon.Add(30 * time.Minute)}, TimedOut, []Effect{closeSession, leaveTodo, dropPhoto, tellTimedOut}, "", func(r Record) bool { return r.FinishedBy == Time && r.TodoID != "" }},
		"time is up for a laptop that slept through it": {nil, tick{now: noon.Add(5 * time.Hour), human: at}, TimedOut, []Effect{save, closeSession, leaveTodo, dropPhoto, tellTimedOut}, "", nil},
		"time is up, and the agent goes on":             {func(r *Record) { r.OnTimeout = ReturnOnTimeout }, tick{now: noon.Add(30 * time.Minute)}, TimedOut, []Effect{returnWheel, dropPhoto, tellTimedOut}, "", func(r Record) bool { return r.TodoID == "" }},
		"time is up for what is parked":                 {func(r *Record) { r.OnTimeout, r.Parked = ReturnOnTimeout, true }, tick{now: noon.Add(30 * time.Minute)}, TimedOut, []Effect{closeSession, leaveTodo, dropPhoto, tellTimedOut}, "", nil},
		"time passes afterwards":                        {over(Finished), tick{now: noon.Add(5 * time.Hour)}, Finished, nil, "", nil},
		"what holds at the deadline comes too late":     {asked, tick{now: noon.Add(30 * time.Minute), held: []bool{true}}, TimedOut, []Effect{closeSession, leaveTodo, dropPhoto, tellTimedOut}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := aRecord(tt.from)
			got, effects, err := next(from, tt.event)
			if got.Status != tt.want || !slices.Equal(effects, tt.effects) {
				t.Errorf("got %s with %q, want %s with %q", got.Status, effects, tt.want, tt.effects)
			}
			if tt.code != "" {
				wantCode(t, err, tt.code)
			} else if err != nil {
				t.Error(err)
			}
			if tt.also != nil && !tt.also(got) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestRemindersComeNoLaterThanAThirdOfTheTime(t *testing.T) {
	t.Parallel()
	m := time.Minute
	for name, tt := range map[string]struct {
		wanted  []time.Duration
		timeout time.Duration
		want    []time.Duration
	}{
		"a long one as configured":   {[]time.Duration{10 * m}, 30 * m, []time.Duration{10 * m}},
		"a short one at a third":     {[]time.Duration{10 * m}, 6 * m, []time.Duration{2 * m}},
		"several, in order":          {[]time.Duration{20 * m, 5 * m}, 30 * m, []time.Duration{5 * m, 20 * m}},
		"those past the end are out": {[]time.Duration{5 * m, 40 * m}, 30 * m, []time.Duration{5 * m}},
		"none":                       {nil, 30 * m, nil},
	} {
		if got := reminders(tt.wanted, tt.timeout); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
