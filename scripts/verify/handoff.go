//go:build ignore

// Command handoff shows the hand-off of a browser with the real program, on a
// login page of its own. It owns the home and the site it uses, and leaves
// neither. It must never go on after something that is not as it should be.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// What the person types and what the site gives for it: all of it secret.
const (
	typedName   = "tomsmith-canary-7f3a"
	typedPass   = "SuperSecretPassword!canary-91c2"
	cookieValue = "cookie-canary-5d0e"
	storedValue = "stored-canary-28bb"
	queryValue  = "query-canary-c417"
	fragment    = "fragment-canary-e6a9"
)

var secrets = []string{typedName, typedPass, cookieValue, storedValue, queryValue, fragment}

// show is the program under test, its home, and the site.
type show struct {
	program, home string
	site          *httptest.Server
	agent, owner  string
	base          string
	answers       []byte // all there was, to be searched for secrets
	step          int
}

// object is an answer.
type object = map[string]any

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: handoff PROGRAM")
		os.Exit(2)
	}
	home, err := os.MkdirTemp("", "tapin-verify")
	if err != nil {
		fmt.Fprintln(os.Stderr, "handoff:", err)
		os.Exit(1)
	}
	s := &show{program: os.Args[1], home: home, site: httptest.NewServer(http.HandlerFunc(site))}
	err = s.run()
	down, _ := s.tapin("down")
	s.site.Close()
	if err != nil {
		fmt.Fprintf(os.Stderr, "handoff: %v\n", err)
		if logs, _ := os.ReadFile(filepath.Join(home, "logs", "sidecar.log")); len(logs) > 0 {
			fmt.Fprintf(os.Stderr, "%s", logs[max(0, len(logs)-2000):])
		}
		_ = os.RemoveAll(home)
		os.Exit(1)
	}
	_ = os.RemoveAll(home)
	s.say("%s", strings.TrimSpace(down))
	fmt.Println("handoff: everything was as it should be")
}

// site is a page that asks for a login, and the one behind it.
func site(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	switch {
	case r.URL.Path == "/login" && r.Method == http.MethodPost:
		if r.FormValue("username") != typedName || r.FormValue("password") != typedPass {
			http.Error(w, "Your password is invalid!", http.StatusUnauthorized)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: cookieValue, Path: "/", HttpOnly: true, MaxAge: 86400})
		http.Redirect(w, r, "/secure?token="+queryValue+"#"+fragment, http.StatusSeeOther)
	case r.URL.Path == "/login":
		fmt.Fprint(w, `<!doctype html><title>The Internet: Login</title><h1>Login Page</h1><form method=post action=/login>
<label>Username <input id=username name=username></label><label>Password <input id=password name=password type=password></label>
<button id=submit>Login</button></form>`)
	case r.URL.Path == "/secure":
		if c, err := r.Cookie("sid"); err != nil || c.Value != cookieValue {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		fmt.Fprintf(w, `<!doctype html><title>The Internet: Secure Area</title><h1>Secure Area</h1>
<p>You logged into a secure area!</p><a id=next href=/next>Next</a><script>localStorage.setItem("remembered", %q)</script>`, storedValue)
	default:
		fmt.Fprint(w, `<!doctype html><title>Elsewhere</title><p>elsewhere`)
	}
}

// lie is the end of the show.
type lie struct{ text string }

func (s *show) run() (err error) {
	defer func() {
		if caught, ok := recover().(lie); ok {
			err = errors.New(caught.text)
		}
	}()
	s.up()
	run := s.ask("agent", "POST", "/task-run/start", object{"goal": "see the secure area"})["run_id"].(string)
	finished := s.login(run)
	s.restart(run, finished)
	s.cancel()
	s.abort()
	s.timeOut("return")
	s.timeOut("close")
	s.silence()
	return nil
}

// login is the main way: handed over, logged in by a person, handed back.
func (s *show) login(run string) object {
	s.ask("agent", "POST", "/session/start", object{"url": s.site.URL + "/login", "context": "demo", "screenshot": false})
	before := time.Now()
	h := s.ask("agent", "POST", "/handoff/start", object{
		"reason": "login", "instruction": "Manually complete the demo login", "capture_screenshot": true, "run_id": run,
	})
	id, notice := text(h, "handoff_id"), text(h, "notice")
	deadline, err := time.Parse(time.RFC3339, text(h, "deadline"))
	s.must(strings.HasPrefix(id, "hof_") && h["status"] == "RUNNING", "the hand-off is %v", h)
	s.must(err == nil && deadline.Sub(before) > 29*time.Minute && deadline.Sub(before) < 31*time.Minute, "the deadline is %v", h["deadline"])
	s.must(!strings.Contains(notice, "\n") && strings.Contains(notice, "login") && strings.Contains(notice, "Manually complete the demo login") &&
		strings.Contains(notice, deadline.UTC().Format(time.RFC3339)), "the line for the host is %q", notice)
	s.say("started %s: %s", id, notice)

	refused := s.refused("agent", "POST", "/session/navigate", object{"url": s.site.URL}, "HUMAN_IN_CONTROL")
	s.must(refused["handoff_id"] == id, "the refusal names %v", refused["handoff_id"])
	status := s.ask("agent", "GET", "/session/status", nil)
	for _, field := range []string{"url", "title", "tabs"} {
		s.must(status[field] == nil, "the agent is told the %s", field)
	}
	s.must(status["driver"] == "human", "the driver is %v", status["driver"])
	s.say("the agent is refused (HUMAN_IN_CONTROL) and told neither address, title nor tabs")

	for field, value := range map[string]string{"#username": typedName, "#password": typedPass} {
		s.ask("owner", "POST", "/session/type", object{"selector": field, "text": value, "screenshot": false})
	}
	s.ask("owner", "POST", "/session/click", object{"selector": "#submit", "screenshot": false})
	s.ask("owner", "POST", "/session/wait", object{"text": "You logged into a secure area!", "screenshot": false})
	s.say("the owner typed a name and a password and pressed Login, through the same routes")
	s.refused("agent", "POST", "/handoff/"+id+"/finish", object{}, "HUMAN_IN_CONTROL")
	s.say("the agent cannot say done while a person is at the page")

	done := s.ask("owner", "POST", "/handoff/"+id+"/finish", object{})
	s.must(done["status"] == "FINISHED" && done["finished_by"] == "owner", "the hand-off is %v by %v", done["status"], done["finished_by"])
	var fields, changed []string
	for _, c := range done["delta"].([]any) {
		field := text(c.(object), "field")
		fields = append(fields, field)
		if c.(object)["change"] == "changed" {
			changed = append(changed, field)
		}
		if field == "storage_keys" {
			s.must(reflect.DeepEqual(c.(object)["added"], []any{"local:remembered"}), "the keys of the storage are %v", c)
		}
	}
	s.must(slices.Equal(fields, []string{"url", "title", "origin", "cookie_count", "storage_keys", "dom_fingerprint"}), "the delta is of %v", fields)
	s.must(slices.Equal(changed, []string{"url", "title", "cookie_count", "storage_keys", "dom_fingerprint"}), "what changed is %v", changed)
	s.must(done["after"].(object)["url"] == s.site.URL+"/secure", "the address after is %v", done["after"])
	s.say("finished: %s", done["delta_summary"])
	s.say("hint: %s", done["resume_hint"])

	page := s.ask("agent", "GET", "/session/text", nil)
	s.must(strings.Contains(text(page, "text"), "You logged into a secure area!"), "the agent reads %v", page)
	s.say("the agent reads the page behind the login: %q", text(page, "text"))
	s.onePointer(run, id, done)
	s.silence()
	return done
}

func (s *show) onePointer(run, id string, done object) {
	evidence := s.ask("agent", "GET", "/task-run/"+run, nil)["evidence"].([]any)
	s.must(len(evidence) == 1, "the run has %d pieces of evidence", len(evidence))
	e := evidence[0].(object)
	s.must(e["kind"] == "handoff" && e["ref"] == id && e["summary"] == done["delta_summary"], "the evidence is %v", e)
	s.say("the run has exactly one pointer: %s %s", e["kind"], e["ref"])
}

// restart ends tapin and starts it again: nothing of what is over may differ.
func (s *show) restart(run string, done object) {
	out, err := s.tapin("down")
	s.must(err == nil, "down: %v %s", err, out)
	s.up()
	id := text(done, "handoff_id")
	s.must(reflect.DeepEqual(s.ask("agent", "GET", "/handoff/"+id, nil), done), "after a restart it is another one")
	s.must(reflect.DeepEqual(s.ask("owner", "POST", "/handoff/"+id+"/finish", object{}), done), "finished again it is another one")
	shown, err := s.tapin("--json", "handoff", "status", id)
	s.must(err == nil && strings.Contains(shown, text(done, "delta_summary")), "the terminal says %s", shown)
	s.say("after a restart %s is as it was, also from the terminal; finished again it gives the first result", id)
	s.onePointer(run, id, done)
}

// cancel is the agent's change of mind.
func (s *show) cancel() {
	s.ask("agent", "POST", "/session/start", object{"url": s.site.URL + "/secure", "context": "demo", "screenshot": false})
	now := s.ask("agent", "GET", "/session/status", nil)
	s.must(now["url"] == s.site.URL+"/secure", "the saved login leads to %v", now["url"])
	s.ask("agent", "POST", "/session/stop", object{"verified": true})
	s.say("the saved login makes the next session begin behind it")
	verified := s.ask("agent", "GET", "/contexts/demo", nil)["last_verified"]
	s.must(verified != nil, "the login is not noted as verified")
	s.ask("agent", "POST", "/session/start", object{"url": s.site.URL + "/secure", "context": "demo", "screenshot": false})
	run := s.ask("agent", "POST", "/task-run/start", object{"goal": "nothing"})["run_id"].(string)
	id := text(s.ask("agent", "POST", "/handoff/start", object{"reason": "other", "run_id": run}), "handoff_id")
	over := s.ask("agent", "POST", "/handoff/"+id+"/cancel", object{})
	s.must(over["status"] == "CANCELLED" && over["finished_by"] == "agent" && over["after"] == nil && over["delta"] == nil && over["verified"] == nil, "cancelled it is %v", over)
	s.must(len(s.ask("agent", "GET", "/task-run/"+run, nil)["evidence"].([]any)) == 0, "a cancelled hand-off is evidence")
	s.must(reflect.DeepEqual(s.ask("agent", "GET", "/contexts/demo", nil)["last_verified"], verified), "last_verified has changed")
	s.refused("owner", "POST", "/handoff/"+id+"/finish", object{}, "HANDOFF_NOT_RUNNING")
	s.ask("agent", "POST", "/session/navigate", object{"url": s.site.URL + "/next", "screenshot": false})
	s.say("the agent's cancel: no after, no delta, no evidence, last_verified as before (%v), and the agent drives on", verified)
}

// abort is the owner's.
func (s *show) abort() {
	id := text(s.ask("agent", "POST", "/handoff/start", object{"reason": "captcha"}), "handoff_id")
	over := s.ask("owner", "POST", "/handoff/"+id+"/cancel", object{})
	s.must(over["status"] == "CANCELLED" && over["finished_by"] == "owner" && over["context_saved"] == true && over["after"] == nil, "aborted it is %v", over)
	s.must(s.ask("agent", "GET", "/session/status", nil)["active"] == false, "the session is still there")
	s.say("the owner's abort: the login is saved and the session closed; the agent is told: %s", over["resume_hint"])
}

// timeOut lets a hand-off run out of time.
func (s *show) timeOut(way string) {
	if s.ask("agent", "GET", "/session/status", nil)["active"] == false {
		s.ask("agent", "POST", "/session/start", object{"url": s.site.URL + "/secure", "context": "demo", "screenshot": false})
	}
	id := text(s.ask("agent", "POST", "/handoff/start", object{"reason": "2fa", "task": "pay the bill", "timeout_ms": 1000, "on_timeout": way}), "handoff_id")
	over := s.ask("agent", "GET", "/handoff/"+id+"?after=1&wait_ms=20000", nil)
	for over["status"] == "RUNNING" {
		over = s.ask("agent", "GET", fmt.Sprintf("/handoff/%s?after=%v&wait_ms=20000", id, over["version"]), nil)
	}
	s.must(over["status"] == "TIMED_OUT" && over["finished_by"] == "time" && over["after"] == nil, "out of time it is %v", over)
	for _, who := range []string{"owner", "agent"} {
		s.refused(who, "POST", "/handoff/"+id+"/finish", object{}, "HANDOFF_NOT_RUNNING")
	}
	active := s.ask("agent", "GET", "/session/status", nil)["active"] == true
	todos := fmt.Sprint(s.ask("agent", "GET", "/todos", nil)["todos"])
	s.must(active == (way == "return"), "with on_timeout %s the session is there: %v", way, active)
	s.must(strings.Contains(todos, id) == (way == "close"), "with on_timeout %s the to-dos are %s", way, todos)
	if active {
		s.ask("agent", "POST", "/session/reload", object{"screenshot": false})
	} else {
		s.must(over["context_saved"] == true, "the login was not saved")
	}
	s.say("out of time (%s): it cannot be finished any more; %s", way, over["resume_hint"])
}

// silence looks for everything secret in all answers and under the whole home.
func (s *show) silence() {
	files := 0
	s.search("the answers", s.answers)
	err := filepath.WalkDir(s.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		s.search("a file name", []byte(path))
		if !d.Type().IsRegular() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files++
		s.search(path, raw)
		return err
	})
	s.must(err == nil, "%v", err)
	s.say("nothing that was typed, no cookie, no stored value, no query and no fragment is in %d bytes of answers and %d files of the home", len(s.answers), files)
}

func (s *show) search(where string, raw []byte) {
	for _, secret := range secrets {
		wide := []byte{}
		for _, u := range utf16.Encode([]rune(secret)) {
			wide = append(wide, byte(u), byte(u>>8))
		}
		for name, form := range map[string][]byte{
			"": []byte(secret), " in percent": []byte(url.QueryEscape(secret)), " in UTF-16": wide,
			// In the middle of base64 the first and the last group depend on what stands beside.
			" in base64": []byte(base64.StdEncoding.EncodeToString([]byte(secret))[:len(secret)/3*4]),
		} {
			s.must(!bytes.Contains(raw, form), "%s is%s in %s", secret, name, where)
		}
	}
}

func (s *show) up() {
	out, err := s.tapin("up", "--background", "--no-check", "--allow-private")
	s.must(err == nil, "up: %v %s", err, out)
	address, err := os.ReadFile(filepath.Join(s.home, "control.addr"))
	s.must(err == nil, "%v", err)
	s.base = "http://" + strings.TrimSpace(string(address))
	for name, token := range map[string]*string{"agent.token": &s.agent, "owner.token": &s.owner} {
		raw, err := os.ReadFile(filepath.Join(s.home, name))
		s.must(err == nil, "%v", err)
		*token = strings.TrimSpace(string(raw))
	}
	s.say("tapin is up at %s", s.base)
}

// tapin runs a command of the program.
func (s *show) tapin(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Env = append(os.Environ(), "TAPIN_HOME="+s.home, "TAPIN_LISTEN_CONTROL=127.0.0.1:0", "TAPIN_LISTEN_PUBLIC=127.0.0.1:0")
	out, err := cmd.CombinedOutput()
	s.answers = append(s.answers, out...)
	return string(out), err
}

// ask is a request that has to succeed.
func (s *show) ask(who, method, path string, body any) object {
	code, answer := s.do(who, method, path, body)
	s.must(code == http.StatusOK && answer["ok"] == true, "%s %s gave %d %v", method, path, code, answer)
	return answer
}

// refused is a request that has to fail in a certain way.
func (s *show) refused(who, method, path string, body any, want string) object {
	code, answer := s.do(who, method, path, body)
	s.must(code >= 400 && answer["error"] == want && text(answer, "hint") != "", "%s %s gave %d %v and not %s", method, path, code, answer, want)
	return answer
}

func (s *show) do(who, method, path string, body any) (int, object) {
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		s.must(err == nil, "%v", err)
		payload = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, s.base+path, payload)
	s.must(err == nil, "%v", err)
	req.Header.Set("Authorization", "Bearer "+map[string]string{"agent": s.agent, "owner": s.owner}[who])
	resp, err := http.DefaultClient.Do(req)
	s.must(err == nil, "%s %s: %v", method, path, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	s.must(err == nil, "%v", err)
	if who == "agent" { // the owner may be shown the page
		s.answers = append(s.answers, raw...)
	}
	var answer object
	_ = json.Unmarshal(raw, &answer)
	return resp.StatusCode, answer
}

func (s *show) must(so bool, format string, args ...any) {
	if !so {
		panic(lie{fmt.Sprintf(format, args...)})
	}
}

func (s *show) say(format string, args ...any) {
	s.step++
	fmt.Printf("%2d  %s\n", s.step, fmt.Sprintf(format, args...))
}

func text(o object, name string) string {
	t, _ := o[name].(string)
	return t
}
