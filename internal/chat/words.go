package chat

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"tapin/internal/site"
)

// Handoff is what the feed tells of a hand-off, as far as people are told.
type Handoff struct {
	HandoffID   string    `json:"handoff_id"`
	SessionID   string    `json:"session_id"`
	Status      string    `json:"status"`
	Reason      string    `json:"reason"`
	Instruction string    `json:"instruction,omitempty"`
	Task        string    `json:"task,omitempty"`
	Origin      string    `json:"origin"`
	StartedBy   string    `json:"started_by"`
	FinishedBy  string    `json:"finished_by,omitempty"`
	Attempts    int       `json:"attempts"`
	Follows     string    `json:"follows,omitempty"`
	Notify      bool      `json:"notify"`
	Photo       bool      `json:"photo"`
	Deadline    time.Time `json:"deadline"`
	Reminder    int       `json:"reminder,omitempty"`
	OnTimeout   string    `json:"on_timeout"`
	Parked      bool      `json:"parked"`
	TodoID      string    `json:"todo_id,omitempty"`
}

// Running reports whether the owner's word is still wanted.
func (h Handoff) Running() bool { return h.Status == "RUNNING" }

// Site is where the page is, as a person should read it, by our own reading.
func (h Handoff) Site() string {
	s, err := site.Of(h.Origin)
	if err != nil {
		return "a page"
	}
	return site.Display(s)
}

// Reach is how the owner gets to the page from where they read the message.
type Reach struct {
	URL     string // to be shown in the text; empty where a button opens it
	Trouble string // why a phone cannot get there; empty when it can
	Foreign bool   // the link is the provider's: nobody signs in there
}

// Announce asks the owner for help.
func Announce(h Handoff, now time.Time, r Reach) Text {
	var b builder
	b.bold(headline(h))
	b.say("\n" + plea(h))
	if said := Clean(h.Instruction); said != "" {
		b.say("\n\n“" + said + "”")
	}
	b.say("\n\nThe page is on " + place(h) + ".")
	if h.Parked {
		b.say("\nParked: the browser is saved and closed. Resume it when you have time, until " + span(h.Deadline.Sub(now)) + " from now.")
		return b.text()
	}
	b.say(" You have " + span(h.Deadline.Sub(now)) + ".")
	switch {
	case r.Trouble != "":
		b.say("\n" + r.Trouble)
	case r.URL != "":
		b.say("\nHere's the browser: " + r.URL)
	}
	switch {
	case r.Foreign:
		b.say("\nThis link gives full browser access to anybody who has it, and what you do there may be recorded — don't forward it.")
	case r.Trouble == "":
		b.say("\nThis link gives full browser access — don't forward it.")
	}
	return b.text()
}

func headline(h Handoff) string {
	again := ""
	if h.Follows != "" || h.Attempts > 1 {
		again = "Still blocked: "
	}
	what := map[string]string{
		"login": "Login", "2fa": "Code", "captcha": "CAPTCHA", "permission": "Permission",
	}[h.Reason]
	if what == "" {
		what = "Help"
	}
	if again != "" {
		what = strings.ToLower(what[:1]) + what[1:]
		if h.Reason == "captcha" {
			what = "CAPTCHA"
		}
	}
	return again + what + " needed on " + h.Site()
}

// plea says what the agent was doing, what blocks it, and what is asked.
func plea(h Handoff) string {
	where, task := h.Site(), doing(h.Task)
	trying := "I'm on " + where + " but"
	if task != "" {
		trying = "I'm trying to " + task + " on " + where + " but"
	}
	switch h.Reason {
	case "login":
		return trying + " I need you to log in."
	case "2fa":
		return trying + " I need a code that only you get."
	case "captcha":
		if task != "" {
			return "Hit a CAPTCHA on " + where + " while trying to " + task + ". Can you handle it?"
		}
		return "Hit a CAPTCHA on " + where + ". Can you handle it?"
	case "permission":
		return trying + " it asks for a permission that only you can give."
	}
	if task != "" {
		return "I'm on " + where + " trying to " + task + " but I'm not sure what to do next. Can you take a look?"
	}
	return "I'm on " + where + " and I'm not sure what to do next. Can you take a look?"
}

// place is the origin as we read it, with what a person should notice about it.
func place(h Handoff) string {
	host := strings.TrimPrefix(strings.TrimPrefix(h.Origin, "https://"), "http://")
	switch {
	case host == "" || strings.Contains(host, "/"):
		return "no site that I could read"
	case strings.HasPrefix(h.Origin, "http://"):
		return host + " (not encrypted)"
	}
	return host
}

// doing is a task in the middle of a sentence.
func doing(task string) string {
	task = strings.TrimRight(Clean(task), ". ")
	first, size := utf8.DecodeRuneInString(task)
	second, _ := utf8.DecodeRuneInString(task[size:])
	if unicode.IsUpper(first) && unicode.IsLower(second) {
		return string(unicode.ToLower(first)) + task[size:]
	}
	return task
}

// Ended is what the message says once its hand-off is over.
func Ended(h Handoff) Text {
	var b builder
	b.bold(headline(h))
	b.say("\n" + Outcome(h))
	return b.text()
}

// Outcome is how a hand-off ended.
func Outcome(h Handoff) string {
	switch {
	case h.Status == "FINISHED" && h.FinishedBy == "verify":
		return "Done — I could see it for myself. I'm carrying on, thank you."
	case h.Status == "FINISHED" && h.FinishedBy == "agent":
		return "I have it back and am carrying on."
	case h.Status == "FINISHED":
		return "Done. I'm carrying on, thank you."
	case h.Status == "TIMED_OUT":
		return TimedOut(h)
	case h.Status == "CANCELLED" && h.FinishedBy == "owner":
		return "Aborted. The browser session is closed and its login saved."
	case h.Status == "CANCELLED" && h.FinishedBy == "agent":
		return "No longer needed; I called it off."
	case h.Status == "CANCELLED":
		return "The browser is gone, so this cannot go on."
	}
	return "This is over."
}

// TimedOut tells that nobody came.
func TimedOut(h Handoff) string {
	if h.OnTimeout == "return" {
		return "Time is up on " + h.Site() + ". I have the browser back and will see what I can do."
	}
	what := "it"
	if task := Clean(h.Task); task != "" {
		what = "“" + strings.TrimRight(task, ". ") + "”"
	}
	return "Closed the browser session. I'll retry " + what + " when you're available."
}

// Reminder is for an owner who has not come yet.
func Reminder(h Handoff, now time.Time) string {
	then := "the session will close in "
	if h.OnTimeout == "return" {
		then = "I go on without you in "
	}
	return "Still waiting for your help on " + h.Site() + " — " + then + span(h.Deadline.Sub(now)) + "."
}

// TimeLeft is said to somebody who asked for more.
func TimeLeft(h Handoff, now time.Time) string {
	return "You have " + span(h.Deadline.Sub(now)) + " now."
}

// Ending is the last call.
func Ending(h Handoff, now time.Time) string {
	if h.Parked {
		return "What you put off on " + h.Site() + " is given up in " + span(h.Deadline.Sub(now)) + "."
	}
	return "Only " + span(h.Deadline.Sub(now)) + " left on " + h.Site() + "."
}

// Expiring warns of the end of a session that no hand-off holds.
func Expiring(left time.Duration) string {
	return "The browser session closes in " + span(left) + "; logins are saved."
}

// Reasked goes back to an owner who said done, and it was not.
func Reasked(h Handoff) Text {
	var b builder
	b.bold("Not done yet on " + h.Site())
	b.say("\nWhat I was told to look for is not there. Have another look, or hand it back as it is.")
	return b.text()
}

// Typed tells what was typed, by kind and place and never by value.
func Typed(characters int, field, origin string) string {
	what := fmt.Sprintf("%d characters", characters)
	if characters == 1 {
		what = "1 character"
	}
	if field == "" {
		field = "text"
	}
	return "Typed " + what + " into a " + strings.ReplaceAll(field, "-", " ") + " field on " + Handoff{Origin: origin}.Site() + "."
}

// What is said in answer to a word.
const (
	DeletedYours    = " Your message is deleted."
	NotDeletedYours = " I could not delete your message: please delete it yourself."
	NothingToType   = "There was nothing after “type:”, so nothing was typed."
	LateText        = "Nothing is waiting for a text now. It went nowhere."
	AlmostType      = "If that was to be typed, write it after “type:”, with the colon. It went nowhere."
	ThatIsOver      = "That one is over."
	NoRetry         = "There is nothing to retry."
	RetryPassedOn   = "The agent has been asked to try again."
	MayBeTyped      = "It may have been typed, or some of it: look at the field before you send it again."
	NotReached      = "I could not do that just now. Please try again in a moment."
	PhotoFailed     = "The picture could not be sent. Ask for it again."
	BackInAMoment   = "Something of tapin stopped and is being started again. Your page is kept."
	BackAgain       = "It is back; you can go on."
	Parked          = "Put off. The browser is saved and closed; tap Resume when you have time."
	Resumed         = "The browser is back where it was."
	WhichRetry      = "Which one shall be tried again?"
	NoDevice        = "No device waits with that number."
	Moved           = "Moved. The other device is shut out."
)

// Which asks between several things that a word could answer.
func Which(items []Item) string {
	var labels []string
	for _, item := range items {
		labels = append(labels, item.Label)
	}
	return "Which one do you mean: " + strings.Join(labels, ", or ") + "? Reply to its message, or tap:"
}

// Waiting tells of a second device that wants in.
func Waiting(number int) string {
	return fmt.Sprintf("Another device has opened the live view and shows the number %d. If that is you, move it there.", number)
}

// Welcome greets who has just become an owner.
const Welcome = "You are paired. When your agent needs you, I write here: a picture, what is asked, and a link into the live browser.\n\n" + Commands

// Commands are all words of the grammar.
const Commands = "While I wait for you: “type: …” types into the field you tapped, “screenshot”, “done”, “abort”, “later”, “+15”.\n" +
	"At any time: “sites”, “retry”. Everything else goes to your agent."

// Saved is one line of the answer to "sites".
type Saved struct {
	Name, Domain, Freshness string
	LastUsed                time.Time
}

// Inventory answers "sites".
func Inventory(all []Saved, now time.Time) string {
	if len(all) == 0 {
		return "No logins are saved yet."
	}
	var b strings.Builder
	b.WriteString("Saved logins:")
	for _, s := range all {
		name := Clean(s.Name)
		if d := Clean(s.Domain); d != "" && d != name {
			name += " (" + d + ")"
		}
		fmt.Fprintf(&b, "\n• %s — %s", name, s.Freshness)
		if !s.LastUsed.IsZero() {
			b.WriteString(", used " + ago(now.Sub(s.LastUsed)))
		}
	}
	return b.String()
}

func ago(d time.Duration) string {
	switch {
	case d < 36*time.Hour:
		if d < time.Hour {
			return "just now"
		}
		return span(d) + " ago"
	default:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24+0.5))
	}
}

// span is a time as people say it, rounded to what matters.
func span(d time.Duration) string {
	d = max(d, 0)
	unit := func(n int, name string) string {
		if n == 1 {
			return "1 " + name
		}
		return fmt.Sprintf("%d %ss", n, name)
	}
	switch {
	case d < 90*time.Second:
		return unit(int(d.Seconds()+0.5), "second")
	case d < 90*time.Minute:
		return unit(int(d.Minutes()+0.5), "minute")
	default:
		return unit(int(d.Hours()+0.5), "hour")
	}
}

// Clean is a text of somebody else's without what would deceive in a message:
// control characters, and marks that turn or hide what is around them.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d':
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// Span is a part of a text, in UTF-16 units as messengers count them.
type Span struct{ Offset, Length int }

// Text is a message: plain words, and which of them are bold. Nothing in it is
// markup, so nothing in it needs escaping.
type Text struct {
	Plain string
	Bold  []Span
}

// Units is the length of a text as messengers count it.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// Clip shortens a text to so many UTF-16 units, between characters.
func Clip(s string, most int) string {
	if Units(s) <= most {
		return s
	}
	n := 0
	for i, r := range s {
		if n += max(1, utf16.RuneLen(r)); n > most-1 {
			return strings.TrimRight(s[:i], " \n\u200d") + "…"
		}
	}
	return s
}

type builder struct {
	words strings.Builder
	marks []Span
}

func (b *builder) say(s string) { b.words.WriteString(s) }

func (b *builder) bold(s string) {
	b.marks = append(b.marks, Span{Units(b.words.String()), Units(s)})
	b.say(s)
}

func (b *builder) text() Text { return Text{Plain: b.words.String(), Bold: b.marks} }
