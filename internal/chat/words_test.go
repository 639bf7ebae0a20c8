package chat_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tapin/internal/chat"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestWhatTheOwnerReads(t *testing.T) {
	t.Parallel()
	base := chat.Handoff{Status: "RUNNING", Reason: "login", Task: "Pay the bill.", Origin: "https://login.chase.com", Attempts: 1, Deadline: noon.Add(30 * time.Minute), OnTimeout: "close"}
	with := func(change func(*chat.Handoff)) chat.Handoff {
		h := base
		change(&h)
		return h
	}
	announced := func(h chat.Handoff) string { return chat.Announce(h, noon, chat.Reach{}).Plain }
	for name, tt := range map[string]struct {
		got   string
		wants []string
	}{
		"a login":        {announced(base), []string{"Login needed on chase.com", "I'm trying to pay the bill on chase.com but I need you to log in.", "login.chase.com", "30 minutes", "This link gives full browser access — don't forward it."}},
		"a CAPTCHA":      {announced(with(func(h *chat.Handoff) { h.Reason, h.Task = "captcha", "" })), []string{"Hit a CAPTCHA on chase.com. Can you handle it?"}},
		"confusion":      {announced(with(func(h *chat.Handoff) { h.Reason = "manual_recovery" })), []string{"I'm on chase.com trying to pay the bill but I'm not sure what to do next. Can you take a look?"}},
		"still blocked":  {announced(with(func(h *chat.Handoff) { h.Follows = "hof_x" })), []string{"Still blocked: login needed on chase.com"}},
		"an instruction": {announced(with(func(h *chat.Handoff) { h.Instruction = "Use the\nblue <b>card</b> \u202eevil" })), []string{"“Use the blue <b>card</b> evil”"}},
		"no encryption":  {announced(with(func(h *chat.Handoff) { h.Origin = "http://chase.com" })), []string{"chase.com (not encrypted)"}},
		"a name in a foreign script is shown for what it is": {announced(with(func(h *chat.Handoff) { h.Origin = "https://xn--chas-zvf.com" })), []string{"xn--"}},
		"no page":                              {announced(with(func(h *chat.Handoff) { h.Origin = "" })), []string{"no site that I could read"}},
		"a link in the text":                   {chat.Announce(base, noon, chat.Reach{URL: "https://t.example/live/x"}).Plain, []string{"Here's the browser: https://t.example/live/x"}},
		"a link of the provider's":             {chat.Announce(base, noon, chat.Reach{URL: "https://p.example/x", Foreign: true}).Plain, []string{"to anybody who has it", "may be recorded"}},
		"out of reach":                         {chat.Announce(base, noon, chat.Reach{Trouble: "Your phone cannot reach this machine."}).Plain, []string{"Your phone cannot reach this machine."}},
		"a reminder":                           {chat.Reminder(with(func(h *chat.Handoff) { h.Deadline = noon.Add(20 * time.Minute) }), noon), []string{"Still waiting for your help on chase.com — the session will close in 20 minutes."}},
		"a time-out":                           {chat.TimedOut(base), []string{"Closed the browser session. I'll retry “Pay the bill” when you're available."}},
		"a time-out that gives the wheel back": {chat.TimedOut(with(func(h *chat.Handoff) { h.OnTimeout = "return" })), []string{"I have the browser back"}},
		"what was typed":                       {chat.Typed(14, "password", "https://secure.chase.com"), []string{"Typed 14 characters into a password field on chase.com."}},
		"one character":                        {chat.Typed(1, "one-time-code", "https://chase.com"), []string{"Typed 1 character into a one time code field on chase.com."}},
		"no logins":                            {chat.Inventory(nil, noon), []string{"No logins are saved yet."}},
		"logins":                               {chat.Inventory([]chat.Saved{{"verizon", "verizon.com", "verified", noon.Add(-48 * time.Hour)}}, noon), []string{"• verizon (verizon.com) — verified, used 2 days ago"}},
	} {
		for _, want := range tt.wants {
			if !strings.Contains(tt.got, want) {
				t.Errorf("%s: %q lacks %q", name, tt.got, want)
			}
		}
	}
}

func TestTheBoldPartIsTheHeadlineAlsoAfterEmoji(t *testing.T) {
	t.Parallel()
	text := chat.Announce(chat.Handoff{Reason: "login", Origin: "https://x.example", Task: "🧾 pay", Deadline: noon}, noon, chat.Reach{})
	units := utf16.Encode([]rune(text.Plain))
	at := text.Bold[0]
	if got := string(utf16.Decode(units[at.Offset : at.Offset+at.Length])); got != "Login needed on x.example" {
		t.Errorf("bold is %q", got)
	}
}

func TestAClippedTextFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		most := rapid.IntRange(1, 40).Draw(t, "most")
		got := chat.Clip(s, most)
		if chat.Units(got) > most || !utf8.ValidString(got) && utf8.ValidString(s) {
			t.Fatalf("%q became %q, of %d units", s, got, chat.Units(got))
		}
		if chat.Units(s) <= most && got != s {
			t.Fatalf("%q fits and became %q", s, got)
		}
	})
}
