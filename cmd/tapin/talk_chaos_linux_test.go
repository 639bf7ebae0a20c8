package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"tapin/internal/browser/browsertest"
	"testing"
	"time"

	"tapin/internal/chat/telegram/bottest"
)

// TestTalkChaos kills the daemon, and now and then the sidecar, at random
// moments of a conversation, and in the middle of the sending of reminders.
// Whatever was under way: a text is typed once or said to be in doubt, never
// twice; a message reaches the agent once; every hand-off is announced; no
// reminder comes twice.
func TestTalkChaos(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	kills := 2
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS")); err == nil && n > 0 {
		kills = max(n, 100)
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("TAPIN_CHAOS_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d, %d kills of the daemon and %d of the sidecar", seed, kills, kills/5)
	k := newTalk(t, "notify.remind_at=[700ms]")
	k.up()
	k.must("agent", "POST", "/session/start", map[string]any{"url": k.site.URL + "/chaos", "screenshot": false})

	c := &talkChaos{talk: k, chance: rand.New(rand.NewPCG(seed, 1)), doubtful: map[string]int{}}
	c.begin(0)
	for round := range kills {
		mark := fmt.Sprintf("<%d>", round)
		text := k.bot.Say(theOwner, "type: "+mark, 0)
		k.bot.Say(theOwner, fmt.Sprintf("note %d.", round), 0)
		killed, early := "daemon", c.chance.Float64()
		if round%3 != 2 { // all over the conversation, and more often where it is lively
			time.Sleep(time.Duration(early * early * float64(time.Second)))
		}
		if round%5 == 4 {
			killed = "daemon and sidecar"
			k.killSidecar()
		}
		if round%3 == 2 {
			k.answerTo(text)
			if c.killInASend() {
				c.inSend++
			}
		} else {
			k.kill(k.pids("daemon")...)
		}
		k.up()
		k.settled()
		c.judge(round, killed, mark, k.answerTo(text))
		if round%10 == 9 {
			c.end()
			k.must("agent", "POST", "/session/navigate", map[string]any{"url": k.site.URL + "/chaos", "screenshot": false})
			k.site.forget()
			c.begin(round + 1)
		}
	}
	k.reads("Still waiting for your help on 127.0.0.1")
	c.end()
	k.checkNotes(kills)
	if err := k.whole(true); err != nil {
		t.Error(err)
	}
	t.Logf("%d texts typed once, in doubt %v; %d hand-offs, each announced; %d of %d reminders sent, none twice; %d kills while a message was sent",
		c.typed, c.doubtful, c.handoffs, c.reminded, c.due, c.inSend)
}

// talkChaos is what has happened so far.
type talkChaos struct {
	*talk
	chance   *rand.Rand
	id       string // of the hand-off that runs
	asked    int    // the message that announced it
	handoffs int
	typed    int
	doubtful map[string]int // by what was killed
	reminded int            // as the owner saw it
	due      int            // as the feed tells it
	inSend   int            // kills while a message was sent
}

// begin hands over, and waits for the announcement, which a kill may have come
// before: nobody answers what was not asked.
func (c *talkChaos) begin(round int) {
	c.t.Helper()
	c.id = c.handsOver(map[string]any{"reason": "login", "task": fmt.Sprintf("round %d", round), "timeout_ms": 3_600_000})
	c.handoffs++
	if round > 0 {
		time.Sleep(time.Duration(c.chance.IntN(150)) * time.Millisecond)
		c.kill(c.pids("daemon")...)
		c.up()
	}
	c.asked = c.reads(fmt.Sprintf("trying to round %d on", round)).ID
}

// judge looks at what became of a text.
func (c *talkChaos) judge(round int, killed, mark, reply string) {
	c.t.Helper()
	var value string
	c.within("what the page holds", func() bool {
		_, value = c.site.field()
		return strings.Contains(value, mark) || !strings.Contains(reply, "Typed")
	})
	switch n := strings.Count(value, mark); {
	case n > 1:
		c.t.Fatalf("round %d: %q was typed %d times: %q", round, mark, n, value)
	case strings.Contains(reply, "Typed"):
		c.typed++
	case strings.Contains(reply, "may have been typed"), strings.Contains(reply, "Not all of it"):
		c.doubtful[killed]++
	default:
		c.t.Fatalf("round %d: the owner was answered %q; the page holds %q", round, reply, value)
	}
}

// end has the owner end the hand-off, and compares the reminders that came with
// those that were due: each is an event of its own.
func (c *talkChaos) end() {
	c.t.Helper()
	c.says("done")
	if got := c.must("agent", "GET", "/handoff/"+c.id+"?wait_ms=10000", nil).text("status"); got != "FINISHED" {
		c.t.Fatalf("it is %s", got)
	}
	// A daemon that was killed before it had taken note of the announcement has sent another.
	c.sees("the end of it", func(m bottest.Message) bool {
		return m.ID >= c.asked && strings.HasPrefix(m.Text, "Login needed") && len(m.Buttons) == 0
	})
	came, due := c.counted("Still waiting")-c.reminded, 0
	for part := range strings.SplitSeq(c.events("owner"), "\n\n") {
		if strings.Contains(part, "event: handoff.reminder\n") && strings.Contains(part, c.id) {
			due++
		}
	}
	if came > due {
		c.t.Errorf("%d reminders came, of %d: %s", came, due, c.logs())
	}
	c.reminded += came
	c.due += due
}

// killInASend kills the daemon while the Bot API has the next message and has
// not answered yet; it reports whether there was one. After the answer to a text
// that is a reminder.
func (c *talkChaos) killInASend() (met bool) {
	c.t.Helper()
	var first sync.Once
	sending, killed := make(chan struct{}), make(chan struct{})
	defer close(killed)
	c.bot.FailWith(func(method string) *bottest.Failure {
		if method == "sendMessage" {
			first.Do(func() {
				close(sending)
				<-killed
			})
		}
		return nil
	})
	defer c.bot.FailWith(nil)
	select {
	case <-sending:
		met = true
	case <-time.After(3 * time.Second): // short: it had come already
	}
	c.kill(c.pids("daemon")...)
	return met
}

// killSidecar kills the sidecar and waits for the next one. The owner is told
// only if it took over five seconds.
func (k *talk) killSidecar() {
	k.t.Helper()
	before, told := k.pids("sidecar"), k.counted("is being started again")
	began := time.Now()
	k.kill(before...)
	k.serving(before...)
	if took := time.Since(began); took < 5*time.Second && k.counted("is being started again") > told { // short: what takes longer may be told
		k.t.Errorf("the owner was told of a stop of %v", took)
	}
}

func (k *talk) counted(words string) (n int) {
	for _, m := range k.bot.Chat(theOwner) {
		if m.FromBot && strings.Contains(m.Text, words) {
			n++
		}
	}
	return n
}

// answerTo waits for the answer to a text: the first message of ours after it
// that tells of typing. The text itself has to be gone by then.
func (k *talk) answerTo(text int) (words string) {
	k.t.Helper()
	k.sees(fmt.Sprintf("an answer to %d", text), func(m bottest.Message) bool {
		is := m.ID > text && (strings.Contains(m.Text, "yped")) && !strings.Contains(m.Text, "“type:")
		if is && words == "" {
			words = m.Text
		}
		return is
	})
	for _, m := range k.bot.Chat(theOwner) {
		if m.ID == text {
			k.t.Errorf("the text is still in the chat after %q", words)
		}
	}
	return words
}

// checkNotes checks that each ordinary message reached the agent once, in order.
func (k *talk) checkNotes(n int) {
	k.t.Helper()
	var got []string
	for after := 0.0; ; {
		all, _ := k.must("agent", "GET", fmt.Sprintf("/inbox?after=%d", int(after)), nil).body["messages"].([]any)
		if len(all) == 0 {
			break
		}
		for _, m := range all {
			one, _ := m.(map[string]any)
			got = append(got, fmt.Sprint(one["text"]))
			after, _ = one["seq"].(float64)
		}
	}
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("note %d.", i))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		k.t.Errorf("the agent read %q", got)
	}
}
