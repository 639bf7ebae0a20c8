package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"tapin/internal/handoff"
	"tapin/internal/testwait"
)

// canary is typed by the owner, and must be found nowhere.
const canary = "Tr0ub4dor-lives-"

// step is something that people and agents do. It returns an error when it was
// answered as it must not be; where something is interrupted nobody listens.
type step struct {
	name   string
	weight int
	play   func(l *lives) error
}

var steps = []step{
	{"hand-off", 12, (*lives).handoff},
	{"payment", 4, (*lives).payment},
	{"words in the chat", 4, (*lives).words},
	{"run", 3, (*lives).run},
	{"login", 3, (*lives).login},
	{"link", 3, (*lives).link},
	{"takeover", 2, (*lives).takeover},
	{"to-do", 1, (*lives).todo},
	{"console", 1, (*lives).console},
	{"one-shot", 1, (*lives).oneshot},
}

// handedBack is what becomes of a hand-off.
type handedBack struct {
	name   string
	weight int
	status string
	start  map[string]any
	play   func(l *lives, id string) error
}

var ends = []handedBack{
	{"finished by the owner", 5, "FINISHED", nil, func(l *lives, id string) error {
		return errors.Join(l.does("owner", "/handoff/"+id+"/present", nil), l.ends("owner", id, "finish", nil))
	}},
	{"finished in the chat", 2, "FINISHED", nil, (*lives).finishedInTheChat},
	{"finished by the agent", 2, "FINISHED", nil, func(l *lives, id string) error { return l.ends("agent", id, "finish", nil) }},
	{"cancelled by the agent", 4, "CANCELLED", nil, func(l *lives, id string) error { return l.ends("agent", id, "cancel", nil) }},
	{"declined by the owner", 2, "CANCELLED", nil, func(l *lives, id string) error { return l.ends("owner", id, "cancel", nil) }},
	{"expired, and the agent goes on", 1, "TIMED_OUT", map[string]any{"timeout_ms": 1000, "on_timeout": "return"}, (*lives).isOver},
	{"expired", 1, "TIMED_OUT", map[string]any{"timeout_ms": 1000, "on_timeout": "close"}, (*lives).isOver},
	{"verification failed, handed back anyway", 2, "FINISHED", map[string]any{"verify": []map[string]any{{"text": "nowhere on it"}}}, func(l *lives, id string) error {
		return errors.Join(l.does("owner", "/handoff/"+id+"/finish", map[string]any{}), l.ends("owner", id, "finish", map[string]any{"anyway": true}))
	}},
	{"the session stopped", 2, "CANCELLED", nil, func(l *lives, id string) error {
		return errors.Join(l.does("owner", "/sessions/"+l.session+"/stop", map[string]any{}), l.isOver(id))
	}},
	{"typed, and finished", 2, "FINISHED", nil, func(l *lives, id string) error {
		return errors.Join(l.types(id), l.ends("owner", id, "finish", nil))
	}},
	{"parked, resumed and finished", 2, "FINISHED", nil, func(l *lives, id string) error {
		return errors.Join(l.does("owner", "/handoff/"+id+"/park", nil), l.does("owner", "/handoff/"+id+"/resume", nil), l.ends("owner", id, "finish", nil))
	}},
	{"left to a later step", 4, "RUNNING", nil, func(*lives, string) error { return nil }},
	{"parked for a later step", 2, "RUNNING", nil, func(l *lives, id string) error { return l.does("owner", "/handoff/"+id+"/park", nil) }},
}

// does is a request that has to succeed.
func (l *lives) does(who, path string, body map[string]any) error {
	_, err := l.gets(who, "POST", path, body)
	return err
}

func (l *lives) gets(who, method, path string, body map[string]any) (answer, error) {
	var payload any
	if body != nil {
		payload = body
	}
	got, err := l.try(who, method, path, payload, "")
	if err == nil && !got.ok() {
		err = fmt.Errorf("%s %s: %d %v", method, path, got.code, got.body)
	}
	return got, err
}

// open makes sure that there is a session whose wheel the agent has, and shows
// it a page. What was handed over before is over then.
func (l *lives) open(address string) error {
	if err := l.settle(); err != nil {
		return err
	}
	status, err := l.sessionNow()
	if err != nil {
		return err
	}
	if status.body["active"] != true {
		began, err := l.gets("agent", "POST", "/session/start", map[string]any{"screenshot": false, "url": address})
		l.session = began.text("session_id")
		return err
	}
	l.session = status.text("session_id")
	got, err := l.try("agent", "POST", "/session/navigate", map[string]any{"url": address, "screenshot": false}, "")
	if err == nil && slices.Contains([]string{"BROWSER_LOST", "NO_SESSION"}, got.text("error")) { // killed before: the agent begins anew
		if !testwait.Comes(func() bool { now, err := l.sessionNow(); return err != nil || now.body["active"] == false }) {
			return errors.New("the session whose browser was killed does not end")
		}
		got, err = l.try("agent", "POST", "/session/start", map[string]any{"screenshot": false, "url": address}, "")
		l.session = got.text("session_id")
	}
	if err == nil && !got.ok() {
		err = fmt.Errorf("the page: %d %v", got.code, got.body)
	}
	return err
}

// sessionNow is the status of the session. Where its browser was killed a moment
// ago it is the one after that was noticed.
func (l *lives) sessionNow() (status answer, err error) {
	ended := testwait.Comes(func() bool {
		status, err = l.try("agent", "GET", "/session/status", nil, "")
		return err != nil || status.text("error") != "BROWSER_LOST"
	})
	if err == nil && (!ended || !status.ok()) {
		err = fmt.Errorf("the status of the session: %d %v", status.code, status.body)
	}
	return status, err
}

// settle ends what a step has left running, or a start whose answer was lost.
func (l *lives) settle() error {
	found, err := l.gets("agent", "GET", "/handoffs?status=RUNNING", nil)
	if err != nil {
		return err
	}
	for _, h := range list(found.body["handoffs"]) {
		if err := l.note(answer{200, h}); err != nil {
			return err
		}
	}
	for _, h := range l.running() {
		now, err := l.gets("agent", "GET", "/handoff/"+h.id, nil)
		if err != nil {
			return err
		}
		if now.text("status") == "RUNNING" && now.body["parked"] == true {
			if err := l.does("owner", "/handoff/"+h.id+"/resume", nil); err != nil {
				return err
			}
		}
		if now.text("status") == "RUNNING" {
			if err = l.ends("owner", h.id, "finish", map[string]any{"anyway": true}); err != nil {
				err = l.isOver(h.id) // its time was up a moment before
			}
		} else {
			err = l.note(now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lives) handoff() error {
	if err := l.open(l.site.URL + "/login?round=" + url.QueryEscape(l.name())); err != nil {
		return err
	}
	all := 0
	for _, e := range ends {
		all += e.weight
	}
	at, how := l.dice.IntN(all), ends[0]
	for _, e := range ends {
		if at -= e.weight; at < 0 {
			how = e
			break
		}
	}
	reasons := handoff.Reasons()
	body := map[string]any{"reason": reasons[l.dice.IntN(len(reasons))], "task": l.name(), "session_id": l.session, "timeout_ms": 3_600_000}
	for name, value := range how.start {
		body[name] = value
	}
	l.hits["end: "+how.name]++
	l.tries(body["task"].(string))
	began, err := l.gets("agent", "POST", "/handoff/start", body)
	if err == nil {
		err = l.note(began)
	}
	if err != nil {
		return err
	}
	id := began.text("handoff_id")
	if err := how.play(l, id); err != nil {
		return fmt.Errorf("%s: %w", how.name, err)
	}
	now, err := l.gets("agent", "GET", "/handoff/"+id, nil)
	if err == nil && now.text("status") != how.status {
		err = fmt.Errorf("%s: it is %v", how.name, now.body)
	}
	return err
}

func (l *lives) takeover() error {
	if err := l.open(l.site.URL + "/account?round=" + url.QueryEscape(l.name())); err != nil {
		return err
	}
	l.tries("")
	began, err := l.gets("owner", "POST", "/sessions/"+l.session+"/takeover", map[string]any{})
	if err == nil {
		err = l.note(began)
	}
	if err != nil {
		return err
	}
	return l.ends("owner", began.text("handoff_id"), "finish", nil)
}

// ends is somebody's word that ends a hand-off; what is answered has to last.
func (l *lives) ends(who, id, how string, body map[string]any) error {
	if body == nil {
		body = map[string]any{}
	}
	got, err := l.gets(who, "POST", "/handoff/"+id+"/"+how, body)
	if err != nil {
		return err
	}
	return l.note(got)
}

// isOver waits for the end of a hand-off that comes by itself.
func (l *lives) isOver(id string) error {
	for version, end := 0, testwait.End(); ; {
		if time.Now().After(end) {
			return fmt.Errorf("%s does not end", id)
		}
		got, err := l.gets("agent", "GET", fmt.Sprintf("/handoff/%s?after=%d&wait_ms=20000", id, version), nil)
		if err != nil {
			return err
		}
		if got.text("status") != "RUNNING" {
			return l.note(got)
		}
		n, _ := got.body["version"].(float64)
		version = int(n)
	}
}

// types has the owner type a secret, and send it twice under one key.
func (l *lives) types(id string) error {
	text, key := canary+fmt.Sprint(l.n), l.name()
	for range 2 {
		got, err := l.try("owner", "POST", "/handoff/"+id+"/type", map[string]any{"text": text}, key)
		if err != nil || !got.ok() {
			return fmt.Errorf("typing: %d %v, %w", got.code, got.body, err)
		}
	}
	return nil
}

func (l *lives) finishedInTheChat(id string) error {
	task := l.hand(id).task
	_, err := l.awaits("the question about "+task, func(text string) bool { return strings.Contains(text, task) })
	if err != nil {
		return err
	}
	l.bot.Say(theOwner, "done", 0)
	return l.isOver(id)
}

func (l *lives) words() error {
	note := "note " + strings.ReplaceAll(l.name(), ".", "-") + "!"
	l.notes = append(l.notes, note)
	l.bot.Say(theOwner, note, 0)
	return nil
}

func (l *lives) run() error {
	began, err := l.gets("agent", "POST", "/task-run/start", map[string]any{"goal": l.name()})
	if err != nil {
		return err
	}
	id := began.text("run_id")
	l.runs[id] = "RUNNING"
	if err := l.does("agent", "/task-run/"+id+"/update", map[string]any{"note": "half way"}); err != nil {
		return err
	}
	if l.dice.IntN(4) == 0 {
		return nil
	}
	end := []string{"COMPLETED", "FAILED", "CANCELLED"}[l.dice.IntN(3)]
	if err := l.does("agent", "/task-run/"+id+"/complete", map[string]any{"status": end}); err != nil {
		return err
	}
	l.runs[id] = end
	return nil
}

// login ends the session and begins one with a saved login, which has to have
// its cookie from the second time on.
func (l *lives) login() error {
	if err := l.settle(); err != nil {
		return err
	}
	status, err := l.sessionNow()
	if err != nil {
		return err
	}
	if status.body["active"] == true {
		stopped, err := l.gets("agent", "POST", "/session/stop", map[string]any{})
		if err != nil {
			return err
		}
		if name := status.text("context"); name != "" && stopped.body["context_saved"] == true {
			l.logins[name] = true
		}
	}
	name, round := []string{"bank", "shop"}[l.dice.IntN(2)], l.name()
	began, err := l.gets("agent", "POST", "/session/start", map[string]any{"context": name, "screenshot": false, "url": l.site.URL + "/login?round=" + url.QueryEscape(round)})
	if err != nil {
		return err
	}
	l.session = began.text("session_id")
	has, saved := l.logins[name]
	if _, cookie := l.site.loaded(round); saved && began.body["context_restored"] != true || has && !cookie {
		return fmt.Errorf("the saved login %s is lost: restored %v, its cookie there: %v", name, began.body["context_restored"], cookie)
	}
	return nil
}

// link is one that a phone takes, another wants, and the owner ends.
func (l *lives) link() error {
	if err := l.open(l.site.URL + "/account?round=" + url.QueryEscape(l.name())); err != nil {
		return err
	}
	made, err := l.gets("owner", "POST", "/links", map[string]any{"minutes": 60})
	if err != nil {
		return err
	}
	id, at := made.text("link_id"), made.text("open_url")
	l.links[id] = at
	if code, _, err := l.claims(at); err != nil || code != http.StatusOK {
		return fmt.Errorf("the first claim of a link: %d, %w", code, err)
	}
	code, number, err := l.claims(at)
	if err != nil || code != http.StatusConflict {
		return fmt.Errorf("the second claim of a link: %d, %w", code, err)
	}
	if l.dice.IntN(2) == 0 {
		if err := l.does("owner", "/links/"+id+"/move", map[string]any{"number": number}); err != nil {
			return err
		}
	}
	if l.dice.IntN(3) > 0 {
		if _, err := l.gets("owner", "DELETE", "/links/"+id, nil); err != nil {
			return err
		}
		l.revoked[id] = at
	}
	return nil
}

// claims is a phone of its own that opens a link.
func (l *lives) claims(open string) (code int, number any, err error) {
	at, err := url.Parse(open)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := testwait.Within(context.Background())
	defer cancel()
	_, token, _ := strings.Cut(at.Fragment, "=")
	if token == "" {
		token = at.Fragment
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.Scheme+"://"+at.Host+at.Path+"/claim", strings.NewReader(fmt.Sprintf(`{"token":%q}`, token)))
	if err != nil {
		return 0, nil, err
	}
	req.Close = true
	req.Header.Set("Origin", at.Scheme+"://"+at.Host)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, decoded(raw)["number"], err
}

// payment is a bill, the owner's answer, and a click that tries twice.
func (l *lives) payment() error {
	round := l.name()
	if err := l.open(l.shop.URL + "/?round=" + url.QueryEscape(round)); err != nil {
		return err
	}
	asked, err := l.gets("agent", "POST", "/approval/request", map[string]any{"site": "127.0.0.1", "payee": "Verizon", "amount": "142.50", "currency": "USD"})
	if err != nil {
		return err
	}
	id := asked.text("approval_id")
	l.payments[id] = round
	said := []string{"approve", "approve", "approve", "deny", ""}[l.dice.IntN(5)]
	if said != "" {
		if err := l.does("owner", "/approval/"+id+"/decide", map[string]any{"decision": said}); err != nil {
			return err
		}
	}
	click := map[string]any{"selector": "#pay", "approval_id": id, "screenshot": false, "timeout_ms": 5000}
	for try := range 2 {
		got, err := l.try("agent", "POST", "/session/click", click, "")
		if err != nil {
			return err
		}
		if may := said == "approve" && try == 0; got.ok() != may {
			return fmt.Errorf("click %d of a payment with the answer %q: %d %v", try, said, got.code, got.body)
		}
	}
	return nil
}

func (l *lives) todo() error {
	got, err := l.gets("owner", "GET", "/todos", nil)
	if err != nil {
		return err
	}
	for _, t := range list(got.body["todos"]) {
		id, _ := t["todo_id"].(string)
		if err := l.does("owner", "/todos/"+id+"/done", map[string]any{}); err != nil {
			return err
		}
		l.done[id] = true
		break
	}
	return nil
}

func (l *lives) console() error {
	got, err := l.gets("owner", "POST", "/console/sign-in", map[string]any{})
	if err == nil && got.text("open_url") == "" {
		err = fmt.Errorf("a sign-in without an address: %v", got.body)
	}
	if err == nil {
		_, err = l.gets("owner", "GET", "/analytics", nil)
	}
	return err
}

func (l *lives) oneshot() error {
	_, err := l.gets("agent", "POST", "/browser/screenshot", map[string]any{"url": l.site.URL + "/shot?round=" + url.QueryEscape(l.name())})
	return err
}

// awaits waits for a message to the owner.
func (l *lives) awaits(what string, is func(text string) bool) (id int, err error) {
	if l.mute {
		return 0, errors.New("nobody is told anything now")
	}
	ok := testwait.Comes(func() bool {
		for _, m := range l.bot.Chat(theOwner) {
			if m.FromBot && is(m.Text) {
				id = m.ID
			}
		}
		return id != 0 || len(l.pids("daemon")) == 0
	})
	if !ok || id == 0 {
		return 0, fmt.Errorf("the owner does not see %s", what)
	}
	return id, nil
}
