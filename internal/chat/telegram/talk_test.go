package telegram

import (
	"bytes"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/chat"
	"tapin/internal/chat/telegram/bottest"
	"tapin/internal/event"
	"tapin/internal/handoff"
	"tapin/internal/page"
)

func TestAnIdleOwnerIsRemindedOnceAndThenToldThatItIsOver(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		rec := h.begin(handoff.StartOptions{Task: "Pay the bill", Timeout: 30 * time.Minute, OnTimeout: "close"})
		asked := h.reads("I'm trying to pay the bill on bank.example but I need you to log in.")
		if len(asked.Photo) == 0 {
			t.Error("there is no picture")
		}
		time.Sleep(10*time.Minute + time.Second)
		h.settle()
		h.reads("Still waiting for your help on bank.example — the session will close in 20 minutes.")
		time.Sleep(15 * time.Minute)
		h.settle()
		h.reads("Only 5 minutes left on bank.example.")
		time.Sleep(5 * time.Minute)
		h.settle()
		over := h.reads("Closed the browser session. I'll retry “Pay the bill” when you're available.")
		if got := h.status(rec.ID); got.Status != handoff.TimedOut || h.page.closed != 1 {
			t.Errorf("it is %s, and %d sessions were closed", got.Status, h.page.closed)
		}
		if n := h.count("Still waiting"); n != 1 {
			t.Errorf("%d reminders", n)
		}
		for _, m := range h.bot.Chat(robin) {
			if m.ID == asked.ID && len(m.Buttons) > 1 {
				t.Errorf("it still has buttons: %+v", m.Buttons)
			}
		}
		h.bot.Tap(robin, over.ID, "Try again")
		h.settle()
		found, err := h.inbox.Wait(t.Context(), 0, 0, 0)
		h.must(err)
		if len(found) != 1 || found[0].Kind != "retry" || found[0].HandoffID != rec.ID {
			t.Errorf("the agent's inbox: %+v", found)
		}
	})
}

func TestRelayTypesExactlyWhatWasWritten(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.page.focus = true
		rec := h.begin(handoff.StartOptions{})
		var ids []int
		for _, text := range []string{"type: MyPass  Word", "type:  leading", "type: done", "type:", "Type: ünï🔑"} {
			ids = append(ids, h.say(text))
		}
		if diff := cmp.Diff([]string{"MyPass  Word", " leading", "done", "ünï🔑"}, h.page.heard()); diff != "" {
			t.Errorf("typed: %s", diff)
		}
		if h.status(rec.ID).Status != handoff.Running {
			t.Error("“type: done” ended it")
		}
		h.reads("Typed 12 characters into a password field on bank.example. Your message is deleted.")
		h.reads(chat.NothingToType)
		for _, m := range h.bot.Chat(robin) {
			if slices.Contains(ids, m.ID) && m.Text != "type:" {
				t.Errorf("%q is still there", m.Text)
			}
		}
		// Sent in one breath: the text first, then the word.
		h.bot.Say(robin, "type: last", 0)
		h.say("done")
		if got := h.page.heard(); got[len(got)-1] != "last" || h.status(rec.ID).Status != handoff.Finished {
			t.Errorf("typed %q, and it is %s", got, h.status(rec.ID).Status)
		}
		h.say("type: canary-late")
		h.reads(chat.LateText)
		if len(h.page.heard()) != 5 {
			t.Errorf("a late text was typed: %q", h.page.heard())
		}
		h.absent("canary-late")
	})
}

// absent checks that a text is nowhere: not in the chat, on the disk, in the
// log or in the agent's inbox.
func (h *house) absent(canary string) {
	h.t.Helper()
	found, err := h.inbox.Wait(h.t.Context(), 0, 0, 0)
	h.must(err)
	for _, m := range found {
		if strings.Contains(m.Text, canary) {
			h.t.Errorf("%s is in the inbox", canary)
		}
	}
	if strings.Contains(h.log(), canary) || strings.Contains(h.chat(robin), canary) || strings.Contains(h.bot.Pending(), canary) {
		h.t.Errorf("%s is in the log or in the chat:\n%s\n%s", canary, h.log(), h.chat(robin))
	}
	_ = filepath.WalkDir(h.home.Path(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(canary)) {
				h.t.Errorf("%s is in %s", canary, path)
			}
		}
		return nil
	})
}

func TestARelayThatDidNotWorkSaysSo(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.begin(handoff.StartOptions{})
		h.say("type: canary-unfocused")
		h.reads("No field is waiting for text: tap the field in the live view first. Nothing was typed. Your message is deleted.")
		h.page.focus = true
		h.bot.Behave(bottest.Manners{NoDelete: true})
		h.say("type: hunter22")
		h.reads("Typed 8 characters into a password field on bank.example. I could not delete your message: please delete it yourself.")
		h.bot.Behave(bottest.Manners{})
		h.say("type canary-nocolon")
		h.reads(chat.AlmostType)
		h.absent("canary-")
	})
}

func TestWhoIsNotTheOwnerHasNoEffect(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.page.focus = true
		rec := h.begin(handoff.StartOptions{})
		asked := h.reads("bank.example")
		before := len(h.bot.Calls())
		from := func(id int64) map[string]any { return map[string]any{"id": id, "is_bot": false, "first_name": "X"} }
		in := func(id int64, kind string) map[string]any { return map[string]any{"id": id, "type": kind} }
		message := func(more map[string]any) map[string]any {
			m := map[string]any{"message_id": 9000, "date": time.Now().Unix(), "from": from(robin), "chat": in(robin, "private"), "text": "type: canary-x"}
			maps.Copy(m, more)
			return m
		}
		h.bot.Say(kim, "type: canary-stranger", 0)
		h.bot.Say(kim, "done", 0)
		h.bot.Say(kim, "/start wrongcode", 0)
		h.bot.Push("message", message(map[string]any{"chat": in(-100123, "supergroup")}))
		h.bot.Push("message", message(map[string]any{"forward_origin": map[string]any{"type": "user", "date": 1, "sender_user": from(robin)}}))
		h.bot.Push("message", message(map[string]any{"via_bot": map[string]any{"id": 5, "is_bot": true, "first_name": "b"}}))
		h.bot.Push("message", message(map[string]any{"edit_date": 5}))
		h.bot.Push("message", message(map[string]any{"sender_chat": in(-1, "channel")}))
		h.bot.Push("message", message(map[string]any{"text": nil, "caption": "done", "photo": []any{}}))
		h.bot.Push("message", message(map[string]any{"from": map[string]any{"id": robin, "is_bot": true, "first_name": "b"}}))
		h.bot.Push("callback_query", map[string]any{"id": "x1", "from": from(robin), "chat_instance": "1", "data": "abort:" + rec.ID, "message": message(map[string]any{"chat": in(-100123, "supergroup")})})
		h.bot.Press(kim, asked.ID, "abort:"+rec.ID)
		for _, data := range []string{"", "abort", "abort:", "abort:hof_00000000000000000000000x", "explode:" + rec.ID, strings.Repeat("x", 65), "move:x:y", "in:abc"} {
			h.bot.Press(robin, asked.ID, data)
		}
		h.settle()
		if got := h.status(rec.ID); got.Status != handoff.Running || got.Version != rec.Version || len(h.page.heard()) != 0 {
			t.Errorf("it is %s, version %d, typed %q", got.Status, got.Version, h.page.heard())
		}
		h.room.mu.Lock()
		counted := maps.Clone(h.room.progress.Refused)
		h.room.mu.Unlock()
		for kind, least := range map[string]int{byStranger: 3, byGroup: 3, byForward: 2, byEdit: 1, byStale: 5, byCode: 1, byOther: 2} {
			if counted[kind] < least {
				t.Errorf("%d of kind %s were counted, want %d: %v", counted[kind], kind, least, counted)
			}
		}
		for _, c := range h.bot.Calls()[before:] {
			if strings.HasPrefix(c.Method, "send") {
				t.Errorf("somebody was answered: %v\n%s", c, h.chat(kim))
			}
		}
		if len(h.bot.Chat(kim)) != 3 {
			t.Errorf("the stranger was spoken to:\n%s", h.chat(kim))
		}
		if log := h.log(); strings.Contains(log, "canary") || strings.Contains(log, "4711") || strings.Contains(log, bottest.Token) {
			t.Errorf("it was logged:\n%s", log)
		}
	})
}

func TestAnUpdateTakesEffectOnceHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.page.focus = true
		h.bot.Behave(bottest.Manners{Duplicate: true, Reorder: true})
		rec := h.begin(handoff.StartOptions{Timeout: 20 * time.Minute})
		asked := h.reads("bank.example")
		h.bot.Say(robin, "type: one", 0)
		h.bot.Tap(robin, asked.ID, "+15 min")
		h.bot.Say(robin, "hello agent", 0)
		h.bot.Say(robin, "type: two", 0)
		h.settle()
		from := map[string]any{"id": robin, "is_bot": false, "first_name": "R"}
		message := map[string]any{"message_id": 9000, "date": time.Now().Unix(), "from": from, "chat": map[string]any{"id": robin, "type": "private"}}
		replay := func(id int64, text string) {
			message["text"] = text
			h.bot.Replay("message", id, message)
			h.settle()
		}
		replay(h.bot.LastUpdate(), "type: replayed")
		if got := h.status(rec.ID).Deadline.Sub(rec.Deadline); got != 15*time.Minute {
			t.Errorf("%v were added", got)
		}
		h.say("help")
		helped, answers := h.bot.LastUpdate(), h.count(chat.Commands)
		h.bot.Tap(robin, asked.ID, "Later")
		h.settle()
		parked := h.bot.LastUpdate()
		h.bot.Tap(robin, asked.ID, "Resume")
		h.settle()
		for range 2 { // and after a kill
			replay(helped, "help")
			h.bot.Replay("callback_query", parked, map[string]any{"id": "q9000", "from": from, "chat_instance": "1", "data": "later:" + rec.ID, "message": message})
			h.settle()
			if got := h.count(chat.Commands); got != answers || h.status(rec.ID).Parked {
				t.Errorf("%d answers, parked again: %v", got, h.status(rec.ID).Parked)
			}
			h.killRoom()
			h.settle()
		}
		if diff := cmp.Diff([]string{"one", "two"}, h.page.heard()); diff != "" {
			t.Errorf("typed: %s", diff)
		}
		found, err := h.inbox.Wait(t.Context(), 0, 0, 0)
		h.must(err)
		if len(found) != 1 || found[0].Text != "hello agent" {
			t.Errorf("the inbox: %+v", found)
		}
		// After a week of silence ids may begin anywhere.
		h.bot.Behave(bottest.Manners{})
		h.say("done")
		h.stopRoom()
		h.stopSidecar()
		time.Sleep(8 * 24 * time.Hour)
		h.startSidecar()
		h.startRoom()
		h.bot.SkipUpdates(17)
		h.say("still there?")
		if found, _ = h.inbox.Wait(t.Context(), 0, 0, 0); len(found) != 2 {
			t.Errorf("a word after a week was lost: %+v", found)
		}
	})
}

func TestEveryButtonDoesWhatItSays(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		rec := h.begin(handoff.StartOptions{Timeout: 20 * time.Minute})
		asked := h.reads("bank.example")
		h.bot.Tap(robin, asked.ID, "Screenshot")
		h.settle()
		pictures := 0
		for _, m := range h.bot.Chat(robin) {
			if len(m.Photo) > 0 {
				pictures++
			}
		}
		if pictures != 2 {
			t.Errorf("%d pictures", pictures)
		}
		h.bot.Tap(robin, asked.ID, "+15 min")
		h.settle()
		if got := h.reads("You have 35 minutes"); got.ID != asked.ID {
			t.Errorf("the message was not changed: %s", h.chat(robin))
		}
		h.bot.Tap(robin, asked.ID, "Later")
		h.settle()
		parked := h.reads("Parked: the browser is saved and closed.")
		if _, ok := parked.Button("Resume"); !ok || parked.ID != asked.ID || !h.status(rec.ID).Parked {
			t.Fatalf("parked: %+v", parked)
		}
		h.bot.Tap(robin, parked.ID, "Resume")
		h.settle()
		again := h.reads("You have 20 minutes")
		if _, ok := again.Button("Done"); !ok || h.status(rec.ID).Parked {
			t.Fatalf("resumed: %+v", again)
		}
		h.bot.Tap(robin, asked.ID, "Abort")
		h.settle()
		over := h.reads("Aborted. The browser session is closed and its login saved.")
		if len(over.Buttons) != 0 || h.status(rec.ID).Status != handoff.Cancelled {
			t.Errorf("aborted: %+v", over)
		}
		h.bot.Press(robin, asked.ID, "more:"+rec.ID) // a button that is long gone
		h.settle()
	})
}

func TestDoneThatIsNotDoneGoesBackToTheOwnerWithAPicture(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		rec := h.begin(handoff.StartOptions{Verify: []page.Condition{{Text: "Welcome"}}})
		h.say("all yours")
		back := h.reads("Not done yet on bank.example")
		if len(back.Photo) == 0 || h.status(rec.ID).Status != handoff.Running {
			t.Fatalf("it is %s; %+v", h.status(rec.ID).Status, back.Buttons)
		}
		h.bot.Tap(robin, back.ID, "Done anyway")
		h.settle()
		if got := h.status(rec.ID); got.Status != handoff.Finished || got.Verified.Held {
			t.Errorf("got %+v", got)
		}
		for _, m := range h.bot.Chat(robin) {
			if m.FromBot && len(m.Buttons) > 0 {
				t.Errorf("%q still has buttons", m.Text)
			}
		}
	})
}

func TestSeveralHandoffsAreToldApartByReply(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		first := h.begin(handoff.StartOptions{SessionID: "ses_1", Task: "first"})
		second := h.begin(handoff.StartOptions{SessionID: "ses_2", Task: "second"})
		h.say("done")
		which := h.reads("Which one do you mean")
		if h.status(first.ID).Status != handoff.Running || h.status(second.ID).Status != handoff.Running || len(which.Buttons) != 2 {
			t.Fatalf("something was done: %+v", which)
		}
		h.page.focus = true
		h.say("type: canary-which")
		if len(h.page.heard()) != 0 {
			t.Error("it was typed into one of them")
		}
		h.absent("canary-which")
		h.bot.Say(robin, "done", h.reads("trying to second").ID)
		h.settle()
		if h.status(first.ID).Status != handoff.Running || h.status(second.ID).Status != handoff.Finished {
			t.Error("the reply did not decide")
		}
		i := slices.IndexFunc(which.Buttons, func(b bottest.Button) bool { return strings.Contains(b.Text, "(first)") })
		if i < 0 {
			t.Fatalf("nobody can tell them apart: %+v", which.Buttons)
		}
		h.bot.Tap(robin, which.ID, which.Buttons[i].Text)
		h.settle()
		if h.status(first.ID).Status != handoff.Finished {
			t.Error("the button did not decide")
		}
	})
}

func TestAWordFromBeforeIsNoAnswer(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.page.focus = true
		h.say("hello")
		// Written while the machine slept; delivered when another hand-off runs.
		h.stopRoom()
		h.bot.Say(robin, "type: canary-early", 0)
		h.bot.FailWith(func(method string) *bottest.Failure {
			if method == "getUpdates" {
				return &bottest.Failure{Status: http.StatusBadGateway}
			}
			return nil
		})
		h.startRoom()
		rec := h.begin(handoff.StartOptions{})
		h.settle()
		h.reads("bank.example")
		h.bot.FailWith(nil)
		time.Sleep(time.Minute)
		h.settle()
		if got := h.page.heard(); len(got) != 0 {
			t.Errorf("typed %q", got)
		}
		h.say("done")
		if h.status(rec.ID).Status != handoff.Finished {
			t.Error("a later word was not heard")
		}
	})
}

func TestAYesIsNoAnswerToAPaymentThatNobodyHasSeen(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.say("hello")
		var away atomic.Bool
		away.Store(true)
		h.bot.FailWith(func(method string) *bottest.Failure {
			if strings.HasPrefix(method, "send") && away.Load() {
				return &bottest.Failure{Status: http.StatusTooManyRequests, RetryAfter: 30}
			}
			return nil
		})
		h.must(event.NewPump(h.feed, h.home, nil).Deliver(t.Context(), event.Event{
			ID: "apr_06cz3qmhc04x2p5ae9gk8v71", Version: 1, Type: "approval.requested",
			Data: []byte(`{"approval_id":"apr_06cz3qmhc04x2p5ae9gk8v71","status":"pending","site":"shop.example","question":"May I pay?","claim":{"amount":"900.00","currency":"EUR"}}`),
		}))
		h.settle()
		h.say("yes") // to something else: the question has not come through
		messages, err := h.inbox.Wait(t.Context(), 0, 10, 0)
		h.must(err)
		if len(messages) != 2 || messages[1].Text != "yes" {
			t.Errorf("it was taken for an answer: the inbox has %d messages", len(messages))
		}
		away.Store(false)
		time.Sleep(2 * time.Minute)
		h.settle()
		h.reads("May I pay?")
		h.say("yes") // this house takes none, and says so
		if messages, err = h.inbox.Wait(t.Context(), 0, 10, 0); err != nil || len(messages) != 2 {
			t.Errorf("the answer went to the agent: %d messages, %v", len(messages), err)
		}
	})
}
