package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/chat"
	"tapin/internal/chat/telegram/bottest"
	"tapin/internal/testwait"
)

// thePassword looks different in every encoding.
const thePassword = `my"Secure/Päss 123`

// TestTalk plays what the owner lives through, with the real processes, a real
// browser, a second one as the phone, and a strict Bot API. One world serves all
// scenes: each is a session of its own.
func TestTalk(t *testing.T) {
	t.Parallel()
	k := newTalk(t, "max_sessions=2")
	k.up()
	ctx, cancel := context.WithTimeout(context.Background(), 3*testwait.Limit())
	t.Cleanup(cancel)
	phone := browsertest.NewPhone(ctx, t, browsertest.Network{})

	// Criteria 2 and 4, scenarios 2 and 7: the agent meets a login, the owner gets
	// a picture and a link, taps in, sends the password, taps Sign in, says done.
	// Criteria 1 and 5, scenario 1: with the saved login nobody is asked.
	t.Run("a login, with the password sent in the chat, and never again", func(t *testing.T) {
		k := k.in(t)
		k.opens("/", map[string]any{"context": "bank"})
		id := k.handsOver(map[string]any{"reason": "login", "task": "Pay the phone bill"})
		asked := k.reads("I'm trying to pay the phone bill on 127.0.0.1 but I need you to log in.")
		if len(asked.Photo) == 0 || !strings.Contains(asked.Text, "don't forward it") {
			t.Errorf("the message: %q, photo of %d bytes", asked.Text, len(asked.Photo))
		}
		for _, b := range []string{"Done", "Abort", "Screenshot", "+15 min", "Later"} {
			if _, ok := asked.Button(b); !ok {
				t.Errorf("there is no button %s: %+v", b, asked.Buttons)
			}
		}
		k.tapsIn(phone, asked)
		phone.Tap(`#fields [aria-label="Password"]`)
		sent := k.bot.Say(theOwner, "type: "+thePassword, 0)
		k.reads("Typed 18 characters into a password field on 127.0.0.1. Your message is deleted.")
		for _, m := range k.bot.Chat(theOwner) {
			if m.ID == sent || strings.Contains(m.Text, "mySecure") {
				t.Errorf("it is still in the chat: %+v", m)
			}
		}
		k.tapsBelow(phone)
		k.within("the login", func() bool { return len(k.bank.tries()) == 1 })
		if got := k.bank.tries(); got[0] != "robin "+thePassword {
			t.Errorf("the bank saw %q", got)
		}
		k.says("done")
		over := k.must("agent", "GET", "/handoff/"+id+"?wait_ms=5000", nil)
		if over.text("status") != "FINISHED" || over.text("finished_by") != "owner" {
			t.Fatalf("got %v", over.body)
		}
		k.sees("the message without buttons", func(m bottest.Message) bool { return m.ID == asked.ID && len(m.Buttons) == 0 })
		k.must("agent", "POST", "/session/stop", map[string]any{"save_context": true})

		before := len(k.bot.Chat(theOwner))
		k.opens("/", map[string]any{"context": "bank"})
		if got := k.must("agent", "GET", "/session/status", nil).text("title"); got != "Dashboard" {
			t.Errorf("the saved login opens %q", got)
		}
		k.must("agent", "POST", "/session/stop", map[string]any{})
		if after := len(k.bot.Chat(theOwner)); after != before {
			t.Errorf("the owner was disturbed %d times", after-before)
		}
		k.says("sites")
		k.reads("• bank")
	})

	// Criterion 3, scenario 3; and scenario 5, when the agent does not know what to do.
	for reason, words := range map[string][2]string{
		"captcha":         {"Hit a CAPTCHA on 127.0.0.1", "go ahead"},
		"manual_recovery": {"I'm not sure what to do next. Can you take a look?", "okay, try now"},
	} {
		t.Run("a challenge that is handed over as "+reason, func(t *testing.T) {
			k := k.in(t)
			k.opens("/challenge", nil)
			id := k.handsOver(map[string]any{"reason": reason, "task": "check the balance"})
			k.tapsIn(phone, k.reads(words[0]))
			k.tapsBelow(phone)
			k.within("the page after the tap", func() bool {
				return k.must("owner", "GET", "/session/status", nil).text("title") == "Human"
			})
			k.says(words[1])
			over := k.must("agent", "GET", "/handoff/"+id+"?wait_ms=5000", nil)
			if over.text("status") != "FINISHED" {
				t.Fatalf("got %v", over.body)
			}
			if got := k.must("agent", "GET", "/session/status", nil).text("title"); got != "Human" {
				t.Errorf("the page is %q", got)
			}
			k.must("agent", "POST", "/session/stop", map[string]any{})
		})
	}

	// Scenario 6, in seconds instead of minutes.
	t.Run("nobody comes", func(t *testing.T) {
		k := k.in(t)
		k.opens("/", nil)
		k.handsOver(map[string]any{"reason": "login", "task": "pay the rent", "timeout_ms": 6000, "on_timeout": "close"})
		// How many seconds are left depends on how long the words took to be sent.
		reminded := regexp.MustCompile(`^Still waiting for your help on 127\.0\.0\.1 — the session will close in [1-5] seconds?\.$`)
		k.sees("the reminder", func(m bottest.Message) bool { return reminded.MatchString(m.Text) })
		over := k.reads("Closed the browser session. I'll retry “pay the rent” when you're available.")
		k.bot.Tap(theOwner, over.ID, "Try again")
		k.settled()
		inbox := k.must("agent", "GET", "/inbox?wait_ms=5000", nil)
		if got := fmt.Sprint(inbox.body["messages"]); !strings.Contains(got, "retry") || !strings.Contains(got, "pay the rent") {
			t.Errorf("the agent's inbox: %s", got)
		}
		if got := k.must("agent", "GET", "/session/status", nil); got.body["active"] != false {
			t.Errorf("the session is still there: %v", got.body)
		}
	})

	// Criterion 6: a sidecar that dies with a session that nobody uses any more.
	t.Run("the sidecar dies and leaves a session behind", func(t *testing.T) {
		k := k.in(t)
		k.opens("/", nil)
		browsers := append(k.holders(), k.pids("browser")...)
		session := k.must("agent", "GET", "/session/status", nil).text("session_id")
		before := len(k.bot.Chat(theOwner))
		k.orphans(session)
		if got := k.must("agent", "GET", "/session/status", nil); got.body["active"] != false {
			t.Errorf("the session is still there: %v", got.body)
		}
		k.gone(browsers...)
		if after := len(k.bot.Chat(theOwner)); after != before {
			t.Errorf("the owner, who was asked nothing, was told something: %+v", k.bot.Chat(theOwner)[before:])
		}
	})

	// Criterion 6b: one that dies while a person is at the page, which is taken up
	// again. The owner hears of it only when it takes over five seconds.
	t.Run("the sidecar dies while the owner is at the page", func(t *testing.T) {
		browsertest.Long(t)
		k := k.in(t)
		k.opens("/", nil)
		id := k.handsOver(map[string]any{"reason": "login"})
		asked := k.sees("the message", func(m bottest.Message) bool { return strings.Contains(m.Text, "log in") && len(m.Buttons) > 0 })
		k.tapsIn(phone, asked)
		phone.Tap(`#fields [aria-label="Password"]`)
		k.bot.Say(theOwner, "type: half", 0)
		k.reads("Typed 4 characters")
		session, browsers := k.must("owner", "GET", "/session/status", nil).text("session_id"), k.pids("browser")
		k.orphans(session)
		if now := k.must("owner", "GET", "/session/status", nil); now.text("session_id") != session || !slices.Equal(k.pids("browser"), browsers) {
			t.Fatalf("the owner's session was not taken up again: %v", now.body)
		}

		told := k.counted(chat.BackInAMoment) // of the stop before, where that took its time
		held := k.holdsBack()
		k.bot.Say(theOwner, "type: way", 0) // while nobody serves
		k.within("the word of the stop", func() bool { return k.counted(chat.BackInAMoment) > told })
		if took := held(); took < 5*time.Second { // short: before that nobody may be told
			t.Errorf("the owner was told after %v", took)
		}
		k.reads(chat.BackAgain)
		k.reads("Typed 3 characters")
		phone.Until("the page again", drivable)
		k.says("done")
		if got := k.must("agent", "GET", "/handoff/"+id+"?wait_ms=5000", nil).text("status"); got != "FINISHED" {
			t.Fatalf("it is %s", got)
		}
		k.must("agent", "POST", "/session/press", map[string]any{"key": "Enter", "screenshot": false})
		k.within("the login", func() bool {
			all := k.bank.tries()
			return strings.HasSuffix(all[len(all)-1], " halfway")
		})
		k.must("agent", "POST", "/session/stop", map[string]any{})
	})
	k.absent(thePassword, bottest.Token, "halfway")
}

// The Mini App: opened from the chat over https, by the owner and nobody else;
// a second device waits for the owner's word.
func TestTalkTheLiveViewInsideTelegram(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	k := newTalk(t, "public_url=https://tapin.example")
	k.up()
	k.opens("/", nil)
	k.handsOver(map[string]any{"reason": "login"})
	asked := k.reads("I need you to log in")
	open, ok := asked.Button("Open")
	if !ok || open.WebApp == nil || !strings.HasPrefix(open.WebApp.URL, "https://tapin.example/tg/lnk_") {
		t.Fatalf("the button: %+v", asked.Buttons)
	}
	tunnel := k.tunnel("tapin.example")
	ctx, cancel := context.WithTimeout(context.Background(), 3*testwait.Limit())
	defer cancel()
	at := strings.Replace(open.WebApp.URL, "https://tapin.example", tunnel, 1)

	resp := k.fetch(http.MethodGet, at, "")
	if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors https://web.telegram.org") || resp.Header.Get("X-Frame-Options") != "" {
		t.Errorf("Telegram may not frame it: %s", csp)
	}
	if other := k.fetch(http.MethodGet, strings.Replace(at, "/tg/", "/live/", 1), ""); other.Header.Get("X-Frame-Options") != "DENY" {
		t.Error("everybody may frame the live view")
	}
	for name, data := range map[string]string{
		"a stranger":    bottest.WebAppData(99, time.Now()),
		"yesterday's":   bottest.WebAppData(theOwner, time.Now().Add(-24*time.Hour)),
		"a made-up one": strings.Replace(bottest.WebAppData(99, time.Now()), "99", fmt.Sprint(theOwner), 1),
		"nothing":       "",
	} {
		body := fmt.Sprintf(`{"data":%q}`, data)
		if resp := k.fetch(http.MethodPost, at+"/claim", body); resp.StatusCode < 400 {
			t.Errorf("%s got in: %d", name, resp.StatusCode)
		}
	}
	phone := browsertest.NewPhone(ctx, t, browsertest.Network{})
	phone.Open(bottest.OpenWebApp(at, theOwner))
	phone.Until("the live page", `document.querySelector("#fields [aria-label=Password]")`)
	if got := phone.See(`document.cookie + location.hash`); got != "" {
		t.Errorf("the page keeps %q", got)
	}
	phone.Tap(`#fields [aria-label="Password"]`)
	k.bot.Say(theOwner, "type: fromTheChat", 0)
	k.reads("Typed 11 characters into a password field")

	// The same owner opens it again, from another Telegram of theirs.
	second := browsertest.NewPhone(ctx, t, browsertest.Network{})
	second.Open(bottest.OpenWebApp(at, theOwner))
	second.Until("the live page", `document.querySelector("#fields [aria-label=Password]")`)

	// A browser with the session's own address shows a number; the chat moves it.
	view := k.must("owner", "POST", "/links", map[string]any{})
	first := browsertest.NewPhone(ctx, t, browsertest.Network{})
	link := strings.Replace(view.text("open_url"), "https://tapin.example", tunnel, 1)
	first.Open(link)
	first.Until("the live page", `document.querySelector("#fields [aria-label=Password]")`)
	phone.Open("about:blank")
	phone.Open(link)
	moving := k.sees("a number", func(m bottest.Message) bool { _, ok := m.Button("Move to device"); return ok })
	k.bot.Tap(theOwner, moving.ID, "Move to device")
	phone.Until("the live page", `document.querySelector("#fields [aria-label=Password]")`)
	k.says("abort")
}

// tunnel brings an https name to the public listener, as a tunnel does.
func (k *talk) tunnel(name string) string {
	k.t.Helper()
	local, err := url.Parse(k.must("owner", "GET", "/public", nil).text("local"))
	if err != nil {
		k.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(local)
		r.Out.Host = name
		r.Out.Header.Set("X-Forwarded-Proto", "https")
		if r.In.Header.Get("Origin") != "" {
			r.Out.Header.Set("Origin", "https://"+name)
		}
	}}
	return k.serve(proxy)
}
