package telegram

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tapin/internal/chat"
	"tapin/internal/chat/telegram/bottest"
	"tapin/internal/config"
	"tapin/internal/handoff"
)

func TestAnHoursOutageLosesNothingAndEndsWithoutAFlood(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.begin(handoff.StartOptions{SessionID: "ses_0", Task: "before", Timeout: time.Hour, OnTimeout: "close"})
		var calls atomic.Int64
		h.bot.FailWith(func(string) *bottest.Failure {
			calls.Add(1)
			return &bottest.Failure{Status: http.StatusBadGateway}
		})
		var ids []string
		for i, task := range []string{"one", "two", "three"} {
			ids = append(ids, h.begin(handoff.StartOptions{SessionID: "ses_" + task, Task: task, Timeout: 30 * time.Minute, OnTimeout: "close"}).ID)
			time.Sleep(time.Duration(i+1) * 5 * time.Minute)
		}
		running := h.begin(handoff.StartOptions{SessionID: "ses_r", Task: "still running", Timeout: time.Hour, OnTimeout: "close"})
		time.Sleep(30 * time.Minute)
		h.bot.Say(robin, "are you there?", 0)
		// The three and the first are over by now, or nearly so.
		if n := calls.Load(); n > 200 {
			t.Errorf("it was tried %d times in an hour", n)
		}
		h.bot.FailWith(nil)
		began := time.Now()
		time.Sleep(2 * time.Minute)
		h.settle()
		var after []bottest.Message
		for _, m := range h.bot.Chat(robin) {
			if m.FromBot && m.At.After(began.Add(-time.Second)) {
				after = append(after, m)
			}
		}
		if len(after) > 7 {
			t.Errorf("%d messages at once:\n%s", len(after), h.chat(robin))
		}
		for _, task := range []string{"one", "two", "three"} {
			if n := h.count("I'll retry “" + task + "”"); n != 1 {
				t.Errorf("%q was told %d times:\n%s", task, n, h.chat(robin))
			}
		}
		if n := h.count("trying to still running"); n != 1 {
			t.Errorf("the one that runs was announced %d times", n)
		}
		found, err := h.inbox.Wait(t.Context(), 0, 0, 0)
		h.must(err)
		if len(found) != 1 {
			t.Errorf("the inbox: %+v", found)
		}
		_, _ = ids, running
	})
}

func TestTheServersWishToBeLeftAloneIsRespected(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		var sends []time.Time
		h.bot.FailWith(func(method string) *bottest.Failure {
			if strings.HasPrefix(method, "send") {
				if sends = append(sends, time.Now()); len(sends) <= 2 {
					return &bottest.Failure{Status: http.StatusTooManyRequests, RetryAfter: 40}
				}
			}
			return nil
		})
		h.begin(handoff.StartOptions{})
		time.Sleep(3 * time.Minute)
		h.settle()
		if len(sends) != 3 || sends[1].Sub(sends[0]) < 40*time.Second || sends[2].Sub(sends[1]) < 40*time.Second {
			t.Errorf("tried at %v", sends)
		}
		if n := h.count("bank.example"); n != 1 {
			t.Errorf("announced %d times", n)
		}
	})
}

func TestAnAnnouncementWhoseAnswerWasLostIsMadeAgainAndBothEnd(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		var lost atomic.Bool
		h.bot.FailWith(func(method string) *bottest.Failure {
			if method == "sendPhoto" && lost.CompareAndSwap(false, true) {
				return &bottest.Failure{Applied: true, Hang: 5 * time.Minute}
			}
			return nil
		})
		rec := h.begin(handoff.StartOptions{Timeout: 50 * time.Minute})
		time.Sleep(2 * time.Minute)
		h.settle()
		chat := h.bot.Chat(robin)
		if len(chat) != 2 {
			t.Fatalf("%d announcements:\n%s", len(chat), h.chat(robin))
		}
		h.bot.Tap(robin, chat[0].ID, "+15 min") // the first, which nobody knew of
		h.settle()
		h.bot.Tap(robin, chat[1].ID, "Done")
		h.settle()
		if h.status(rec.ID).Status != handoff.Finished {
			t.Error("it is not done")
		}
		for _, m := range h.bot.Chat(robin) {
			if len(m.Buttons) > 0 {
				t.Errorf("%d still has buttons", m.ID)
			}
		}
	})
}

func TestAnOwnerMayAnswerBeforeTheServerHasToldUsThatTheyWereAsked(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"the answer of the server is slow": false, "we are killed before it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live(t, func(h *house) {
				h.page.focus = true
				h.say("hello")
				h.bot.FailWith(func(method string) *bottest.Failure {
					if method == "sendPhoto" {
						return &bottest.Failure{Applied: true, Status: http.StatusOK, Hang: 3 * time.Second}
					}
					return nil
				})
				rec := h.begin(handoff.StartOptions{})
				time.Sleep(200 * time.Millisecond)
				h.reads("I need you to log in")
				h.bot.Say(robin, "type: quick", 0)
				if killed {
					h.stopRoom()
					h.room.say(note{Chat: robin, Text: "first"}, "a") // holds up the second try
					h.bot.FailWith(func(method string) *bottest.Failure {
						if method == "sendMessage" {
							return &bottest.Failure{Status: http.StatusBadGateway}
						}
						return nil
					})
					h.startRoom()
				}
				time.Sleep(time.Second)
				h.bot.FailWith(nil)
				time.Sleep(10 * time.Second)
				h.settle()
				if got := h.page.heard(); len(got) != 1 || got[0] != "quick" || h.count(chat.LateText) != 0 {
					t.Errorf("typed %q:\n%s\n%s", got, h.chat(robin), h.log())
				}
				h.say("done")
				if got := h.status(rec.ID).Status; got != handoff.Finished {
					t.Errorf("it is %s", got)
				}
			})
		})
	}
}

func TestAReminderIsNotSentTwice(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.begin(handoff.StartOptions{Timeout: 30 * time.Minute})
		h.bot.FailWith(func(method string) *bottest.Failure {
			if method == "sendMessage" {
				return &bottest.Failure{Applied: true, Hang: 5 * time.Minute}
			}
			return nil
		})
		time.Sleep(11 * time.Minute)
		h.killRoom()
		h.bot.FailWith(nil)
		time.Sleep(2 * time.Minute)
		h.settle()
		if n := h.count("Still waiting"); n != 1 {
			t.Errorf("%d reminders", n)
		}
	})
}

func TestAPictureThatIsRefusedIsLeftOut(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.bot.FailWith(func(method string) *bottest.Failure {
			if method == "sendPhoto" {
				return &bottest.Failure{Status: http.StatusNotFound}
			}
			return nil
		})
		h.begin(handoff.StartOptions{})
		if m := h.reads("I need you to log in"); len(m.Photo) != 0 || len(m.Buttons) == 0 {
			t.Errorf("got %+v", m)
		}
	})
}

func TestPicturesAreBlurredOrLeftOutAsConfigured(t *testing.T) {
	t.Parallel()
	for choice, want := range map[config.Screenshot]bool{config.ScreenshotFull: true, config.ScreenshotBlur: true, config.ScreenshotNone: false} {
		t.Run(string(choice), func(t *testing.T) {
			t.Parallel()
			live(t, func(h *house) {
				h.stopRoom()
				h.opts.Screenshot = choice
				h.startRoom()
				h.begin(handoff.StartOptions{})
				m := h.reads("I need you to log in")
				if (len(m.Photo) > 0) != want {
					t.Fatalf("a picture of %d bytes", len(m.Photo))
				}
				if same := h.page.photo.Base64 == encode(m.Photo); want && same != (choice == config.ScreenshotFull) {
					t.Errorf("it is the page itself: %v", same)
				}
			})
		})
	}
}

func TestLongWordsAndMarkupGoThroughAsTheyAre(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		odd := strings.Repeat("<b>&amp; _x_ *y* [a](http://evil.example) `z` 👩‍👩‍👧 ", 14)
		h.begin(handoff.StartOptions{Instruction: odd, Task: strings.Repeat("ü ä ", 120)})
		m := h.reads("[a](http://evil.example)")
		if chat.Units(m.Text) <= maxCaption || len(m.Photo) != 0 {
			t.Errorf("%d units and a picture of %d bytes", chat.Units(m.Text), len(m.Photo))
		}
		if all := h.bot.Chat(robin); len(all) != 2 || len(all[0].Photo) == 0 {
			t.Errorf("%d messages", len(all))
		}
	})
}

func TestAnOwnerWhoDeletedTheMessageIsAskedAnew(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		rec := h.begin(handoff.StartOptions{Timeout: 20 * time.Minute})
		h.bot.Forget(robin, h.reads("bank.example").ID)
		_, err := h.handoffs.Extend(t.Context(), handoff.Owner, rec.ID, 15*time.Minute)
		h.must(err)
		h.settle()
		if m := h.reads("bank.example"); len(m.Buttons) == 0 {
			t.Errorf("got %+v", m)
		}
	})
}

func TestAnOwnerWhoBlockedTheBotDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.bot.Block(robin, true)
		rec := h.begin(handoff.StartOptions{})
		h.settle()
		if _, ok := h.find(kim, "bank.example"); !ok {
			t.Fatalf("the other owner does not know:\n%s", h.log())
		}
		h.bot.Say(kim, "done", 0)
		h.settle()
		if h.status(rec.ID).Status != handoff.Finished {
			t.Error("the other owner was not heard")
		}
	}, robin, kim)
}

func TestTheOwnerHearsOfASidecarThatIsAwayForLongAndOfNoOther(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		h.begin(handoff.StartOptions{})
		h.stopSidecar()
		time.Sleep(3 * time.Second)
		h.startSidecar()
		time.Sleep(20 * time.Second)
		h.settle()
		if h.count(chat.BackInAMoment) != 0 {
			t.Fatalf("a short stop was told:\n%s", h.chat(robin))
		}
		h.stopSidecar()
		time.Sleep(8 * time.Second)
		h.startSidecar()
		time.Sleep(20 * time.Second)
		h.settle()
		if h.count(chat.BackInAMoment) != 1 || h.count(chat.BackAgain) != 1 {
			t.Errorf("a long stop was told so:\n%s", h.chat(robin))
		}
	})
}

func TestPairing(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		code, _, err := h.owners.Invite(t.Context())
		h.must(err)
		h.say("hello?")
		if len(h.bot.Chat(robin)) != 1 {
			t.Fatalf("a stranger was spoken to:\n%s", h.chat(robin))
		}
		h.say("/start " + code.Reveal())
		h.reads("You are paired.")
		code, _, err = h.owners.Invite(t.Context())
		h.must(err)
		h.bot.Say(kim, "/start "+code.Reveal(), 0)
		h.settle()
		if _, ok := h.find(kim, "An owner has to let you in."); !ok || h.owners.Is(kim) {
			t.Fatalf("the second was let in by the code alone:\n%s", h.chat(kim))
		}
		asked := h.reads("Kim has a pairing code and wants to be an owner")
		h.bot.Press(kim, asked.ID, "in:42") // by oneself
		h.settle()
		if h.owners.Is(kim) {
			t.Fatal("the second let themselves in")
		}
		h.bot.Tap(robin, asked.ID, "Let them in")
		h.settle()
		if _, ok := h.find(kim, "You are paired."); !ok || !h.owners.Is(kim) {
			t.Fatalf("the second was not let in:\n%s", h.chat(kim))
		}
		h.begin(handoff.StartOptions{})
		if _, ok := h.find(kim, "I need you to log in"); !ok {
			t.Error("the second owner is not asked")
		}
	}, []int64{}...)
}

func TestOrdinaryWordsGoToTheAgentAndTheWordsOfTheGrammarDoNot(t *testing.T) {
	t.Parallel()
	live(t, func(h *house) {
		for _, text := range []string{"done", "Buy milk, please — 2 %", "yes", "retry", "help"} {
			h.say(text)
		}
		h.reads(chat.NoRetry)
		h.reads("While I wait for you")
		found, err := h.inbox.Wait(t.Context(), 0, 0, 0)
		h.must(err)
		var texts []string
		for _, m := range found {
			texts = append(texts, m.Text)
		}
		if got := strings.Join(texts, "|"); got != "done|Buy milk, please — 2 %|yes" {
			t.Errorf("the agent reads %q", got)
		}
	})
}

func TestWhatWasBegunAndIsSentAtMostOnceIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for kind, again := range map[string]bool{remind: false, ending: false, reasked: true} {
		c := &card{ID: "hof_1", Handoff: &chat.Handoff{Status: "RUNNING"}, Nudges: []prompt{{Kind: kind, Version: 2, Begun: map[int64]bool{robin: true}}}}
		c.Chats = map[int64]*shown{robin: {Messages: []sent{{ID: 7}}, Look: c.look()}}
		if _, ok := (&Room{}).taskFor(c, robin); ok != again {
			t.Errorf("%s: tried again: %v", kind, ok)
		}
	}
}
