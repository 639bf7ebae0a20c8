package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/chat/telegram/bottest"
	"tapin/internal/testwait"
)

// theOwner is who the bot may talk to.
const theOwner int64 = 4711

// talk is a world whose owner has a chat.
type talk struct {
	*world
	bot  *bottest.Server
	bank *bank
	// forgiven is a problem that what is under test may cause.
	forgiven string
}

func newTalk(t testing.TB, set ...string) *talk {
	t.Helper()
	bot, err := bottest.New()
	if err != nil {
		t.Fatal(err)
	}
	k := &talk{world: newWorld(t, append([]string{"telegram.api_url=" + bot.URL, fmt.Sprintf("telegram.owners=[%d]", theOwner)}, set...)...), bot: bot, bank: openBank(t)}
	k.env = append(k.env, "TELEGRAM_BOT_TOKEN="+bottest.Token, holdFile+"="+k.hold())
	bot.Enter(theOwner, "Robin", true)
	t.Cleanup(func() {
		bot.Close()
		for _, p := range bot.Problems() {
			if k.forgiven != "" && strings.Contains(p, k.forgiven) {
				continue
			}
			t.Errorf("the Bot API was misused: %s", p)
		}
	})
	return k
}

// sees waits until the owner's chat has a message that a function likes, and
// returns the newest such one.
func (k *talk) sees(what string, like func(bottest.Message) bool) bottest.Message {
	k.t.Helper()
	ctx, cancel := testwait.Within(context.Background())
	defer cancel()
	var found bottest.Message
	all, err := k.bot.Await(ctx, theOwner, func(all []bottest.Message) bool {
		for _, m := range all {
			if m.FromBot && like(m) {
				found = m
			}
		}
		return found.ID != 0
	})
	if err != nil {
		var b strings.Builder
		for _, m := range all {
			fmt.Fprintf(&b, "  %d %v %q %d buttons\n", m.ID, m.FromBot, m.Text, len(m.Buttons))
		}
		k.t.Fatalf("the owner does not see %s:\n%s%s", what, b.String(), k.logs())
	}
	return found
}

// reads waits for a message with these words in it.
func (k *talk) reads(words string) bottest.Message {
	k.t.Helper()
	return k.sees(words, func(m bottest.Message) bool { return strings.Contains(m.Text, words) })
}

// says has the owner write, and waits until it is handled.
func (k *talk) says(text string) {
	k.t.Helper()
	k.bot.Say(theOwner, text, 0)
	k.settled()
}

func (k *talk) settled() {
	k.t.Helper()
	ctx, cancel := testwait.Within(context.Background())
	defer cancel()
	if err := k.bot.Settled(ctx); err != nil {
		k.t.Fatalf("%v\n%s", err, k.logs())
	}
}

// in is the same world, for one scene.
func (k *talk) in(t testing.TB) *talk {
	world := *k.world
	world.t = t
	return &talk{world: &world, bot: k.bot, bank: k.bank}
}

// drivable is what a phone shows whose owner can act.
const drivable = `document.documentElement.dataset.bar === "you" && document.querySelector("#picture").width > 1 && document.querySelector("#curtain").checkVisibility() === false`

// tapsIn has the owner open the link of a message on the phone.
func (k *talk) tapsIn(phone *browsertest.Phone, asked bottest.Message) {
	k.t.Helper()
	_, link, ok := strings.Cut(asked.Text, "Here's the browser: ")
	if !ok {
		k.t.Fatalf("there is no link in %q", asked.Text)
	}
	link, _, _ = strings.Cut(link, "\n")
	phone.Open("about:blank")
	phone.Open(link)
	phone.Until("the live page", drivable)
}

// tapsBelow has the owner tap the lower half of the page, where its button is.
func (k *talk) tapsBelow(phone *browsertest.Phone) {
	k.t.Helper()
	phone.See(`(async () => { // until the view rests
		const place = () => JSON.stringify(document.querySelector("#picture").getBoundingClientRect())
		for (let last = "", same = 0; same < 5;) {
			await new Promise(requestAnimationFrame)
			same = place() === last ? same + 1 : 0
			last = place()
		}
		return "rests"
	})()`)
	var at [2]float64
	seen := phone.See(`(() => {
		const p = document.querySelector("#picture").getBoundingClientRect(), s = document.querySelector("#stage").getBoundingClientRect()
		const left = Math.max(p.left, s.left), right = Math.min(p.right, s.right), bottom = Math.min(p.bottom, s.bottom)
		return JSON.stringify([(left + right) / 2, Math.min(bottom - 12, p.top + p.height * 0.9)])
	})()`)
	if err := json.Unmarshal([]byte(seen), &at); err != nil {
		k.t.Fatalf("%v: %s", err, seen)
	}
	phone.TapAt(browsertest.Point{X: at[0], Y: at[1]})
}

// serve is a server that ends with the test.
func (k *talk) serve(h http.Handler) string {
	s := httptest.NewServer(h)
	k.t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// fetch is a request of a browser's own page.
func (k *talk) fetch(method, address, body string) *http.Response {
	k.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Origin", "https://tapin.example")
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

// opens has the agent open a page in a session of its own.
func (k *talk) opens(path string, more map[string]any) {
	k.t.Helper()
	body := map[string]any{"url": k.bank.URL + path, "screenshot": false}
	for name, value := range more {
		body[name] = value
	}
	k.must("agent", "POST", "/session/start", body)
}

// handsOver has the agent ask for help.
func (k *talk) handsOver(body map[string]any) string {
	k.t.Helper()
	return k.must("agent", "POST", "/handoff/start", body).text("handoff_id")
}

// bank is a site with a login, a challenge, and a memory of what it was sent.
type bank struct {
	*httptest.Server

	mu     sync.Mutex
	logins []string // user and password of each try
}

func openBank(t testing.TB) *bank {
	t.Helper()
	b := &bank{}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

func (b *bank) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	in, _ := r.Cookie("in")
	switch {
	case r.URL.Path == "/login" && r.Method == http.MethodPost:
		_ = r.ParseForm()
		b.mu.Lock()
		b.logins = append(b.logins, r.Form.Get("user")+" "+r.Form.Get("password"))
		b.mu.Unlock()
		http.SetCookie(w, &http.Cookie{Name: "in", Value: "yes", Path: "/", MaxAge: 86400})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case r.URL.Path == "/challenge":
		_, _ = fmt.Fprint(w, `<!doctype html><title>Are you human?</title><style>button{position:fixed;left:0;right:0;top:50%;bottom:0}</style><button id=human onclick="document.title='Human';document.body.textContent='Welcome, human'">I am human</button>`)
	case in == nil:
		_, _ = fmt.Fprint(w, `<!doctype html><title>Sign in</title><meta name=viewport content="width=device-width">
<style>button{position:fixed;left:0;right:0;top:50%;bottom:0}</style>
<form method=post action=/login><input id=user name=user value=robin aria-label=Name><input id=password name=password type=password autofocus aria-label=Password><button id=in>Sign in</button></form>`)
	default:
		_, _ = fmt.Fprint(w, `<!doctype html><title>Dashboard</title><h1>Balance: 12.00</h1>`)
	}
}

func (b *bank) tries() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.logins...)
}
