package sidecar_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"tapin/internal/browser/browsertest"
	"testing"
)

// Which sessions are the agent's own to read, and which are not: whatever it
// tries, and also after the sidecar was killed.
func TestOnlyASessionOfTheAgentsOwnDoingLeavesInTheClear(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	bank := openBank(t)
	port := bank.URL[strings.LastIndexByte(bank.URL, ':')+1:]
	r := startWith(t, site.Server, ring{"credential-localhost-login": keptPassword}, "egress.allow="+strings.TrimPrefix(site.URL, "http://")+",localhost:"+port)
	r.login(site, "bank")
	r.must("POST", "/session/stop", `{}`)
	sealed := func() string {
		raw, err := json.Marshal(r.must("POST", "/contexts/bank/export", `{}`)["envelope"])
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}()
	if strings.Contains(sealed, accountCookie) || !strings.Contains(sealed, "age-encryption.org") && !strings.Contains(sealed, "BEGIN AGE") {
		t.Fatalf("a saved login left as %s", sealed)
	}
	r.must("POST", "/contexts/copied/import", `{"envelope":`+sealed+`}`)

	for name, use := range map[string]func(){
		"a saved login": func() {
			r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/","screenshot":false}`)
		},
		"a saved login that is not saved": func() {
			r.must("POST", "/session/start", `{"context":"bank","save_context":false,"url":"`+site.URL+`/","screenshot":false}`)
		},
		"a sealed one under another name": func() {
			r.must("POST", "/session/start", `{"context":"copied","url":"`+site.URL+`/","screenshot":false}`)
		},
		"a sealed import": func() {
			r.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
			r.must("POST", "/context/import", `{"envelope":`+sealed+`}`)
		},
		"a sealed import, and a plain one over it": func() {
			r.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
			r.settled("logged in")
			plain := r.envelope(`{}`)
			r.must("POST", "/context/import", `{"envelope":`+sealed+`}`)
			r.must("POST", "/context/import", `{"envelope":`+plain+`}`)
		},
		"a credential": func() {
			r.must("POST", "/session/start", `{"url":"http://localhost:`+port+`/","screenshot":false}`)
			r.must("POST", "/session/fill", `{"fields":[{"label":"Password","credential":"localhost"}],"screenshot":false}`)
		},
		"a person": func() {
			r.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
			handed := r.must("POST", "/handoff/start", `{"reason":"login"}`)
			id, _ := handed["handoff_id"].(string)
			r.refused("POST", "/context/export", `{}`, "HUMAN_IN_CONTROL")
			r.refused("POST", "/context/import", `{"envelope":`+sealed+`}`, "HUMAN_IN_CONTROL")
			r.owner().must("POST", "/handoff/"+id+"/finish", `{}`)
		},
		"a person who was sent away again": func() {
			r.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
			id, _ := r.must("POST", "/handoff/start", `{"reason":"login"}`)["handoff_id"].(string)
			r.must("POST", "/handoff/"+id+"/cancel", `{}`)
		},
	} {
		use()
		for _, body := range []string{
			`{"sealed":false}`, `{"sealed":false,"includeStorage":false}`, `{"passphrase":"mine"}`, `{"includeHttpAuth":true}`,
			`{"recipients":["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]}`,
		} {
			if answer := r.refused("POST", "/context/export", body, "FORBIDDEN"); answer["envelope"] != nil {
				t.Errorf("%s, with %s: it came along", name, body)
			}
		}
		_, answer, raw := r.do("POST", "/context/export", `{}`)
		if answer["sealed"] != true || strings.Contains(string(raw), "canary") || strings.Contains(string(raw), `"cookies":[`) {
			t.Errorf("%s leaves as %.300s", name, raw)
		}
		if plain := r.owner().must("POST", "/context/export", `{"sealed":false}`); plain["sealed"] != false {
			t.Errorf("%s: the owner gets %v", name, plain)
		}
		r.must("POST", "/session/stop", `{}`)
	}
	for _, body := range []string{`{"sealed":false}`, `{"passphrase":"mine"}`, `{"origin":"` + site.URL + `","sealed":false}`} {
		r.refused("POST", "/contexts/bank/export", body, "FORBIDDEN")
		r.refused("POST", "/contexts/copied/export", body, "FORBIDDEN")
	}
	r.refused("POST", "/contexts/bank/rename", `{"to":"mine"}`, "FORBIDDEN")
	r.refused("DELETE", "/contexts/bank", "", "FORBIDDEN")
	r.refused("POST", "/contexts/bank/import", `{"envelope":`+sealed+`}`, "FORBIDDEN")

	r.must("POST", "/session/start", `{"context":"fresh","url":"`+site.URL+`/login","screenshot":false}`)
	r.settled("logged in")
	own := r.must("POST", "/context/export", `{}`)
	if raw, _ := json.Marshal(own["envelope"]); own["sealed"] != false || !strings.Contains(string(raw), accountCookie) {
		t.Errorf("a session of the agent's own leaves as %s", raw)
	}
}

// What is not pristine stays so in the next process.
func TestAKillDoesNotMakeASessionPristine(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openAccount(t)
	p := startProcess(t, site.URL)
	p.login(site, "bank")
	p.must("POST", "/session/stop", `{}`)
	p.restored(site, "bank")
	p.kill()
	p.begin()
	p.refused("POST", "/context/export", `{"sealed":false}`, "FORBIDDEN")
	if answer := p.must("POST", "/context/export", `{}`); answer["sealed"] != true {
		t.Errorf("it leaves as %v", answer)
	}
}

// The ways by which an agent might have a page, or a name, tell what is sealed.
func TestAnAgentFindsNoWayAroundTheSeal(t *testing.T) {
	t.Parallel()
	site := openAccount(t)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `<!doctype html><title>evil</title><a href="javascript:document.title=document.cookie+localStorage.token">run</a>
			<a href="view-source:%[1]s/">source</a><iframe src="%[1]s/"></iframe><p id=p></p><script>fetch('%[1]s/', {credentials: 'include'}).then(r => r.text()).then(t => p.textContent = t, () => p.textContent = 'refused')</script>`, site.URL)
	}))
	t.Cleanup(evil.Close)
	r := start(t, site.Server, "max_sessions=2", "egress.allow="+strings.TrimPrefix(site.URL, "http://")+","+strings.TrimPrefix(evil.URL, "http://"))
	r.login(site, "bank")
	r.must("POST", "/session/stop", `{}`)
	r.restored(site, "bank")
	var said strings.Builder
	try := func(method, path, body string) map[string]any {
		_, answer, raw := r.do(method, path, body)
		said.Write(raw)
		return answer
	}
	for _, url := range []string{
		"javascript:document.body.textContent=document.cookie", "view-source:" + site.URL, "data:text/html,<script>document.write(document.cookie)</script>",
		"file:///etc/passwd", "file://" + r.dir + "/contexts/bank.age", "chrome://settings/cookies", "chrome://version", "devtools://devtools/bundled/inspector.html",
		"about:blank", "blob:" + site.URL + "/x", "filesystem:" + site.URL + "/x", " javascript:alert(1)", "JaVaScRiPt:alert(1)", r.base + "/contexts/bank/export",
	} {
		body, _ := json.Marshal(map[string]any{"url": url, "screenshot": false})
		if answer := try("POST", "/session/navigate", string(body)); answer["ok"] == true {
			t.Errorf("%s opens", url)
		}
	}
	for _, instruction := range []string{
		"selector: html", "css: script", "xpath: //script", "json: {\"c\": \"script\"}", "markdown", "article", "text", "xpath: string(document.cookie)", "json: {\"c\": \"document.cookie\"}",
	} {
		body, _ := json.Marshal(map[string]any{"instruction": instruction, "screenshot": false})
		try("POST", "/session/extract", string(body))
	}
	try("GET", "/session/snapshot", "")
	try("GET", "/session/text", "")
	try("GET", "/session/status", "")
	r.must("POST", "/session/navigate", `{"url":"`+evil.URL+`/","screenshot":false}`)
	for _, link := range []string{"run", "source"} {
		try("POST", "/session/click", `{"text":"`+link+`","screenshot":false,"timeout_ms":1500}`)
		try("GET", "/session/text", "")
		try("GET", "/session/tabs", "")
	}
	for _, name := range []string{
		"../bank", "..%2fbank", "%2e%2e/bank", "bank%00", "bank.age", "bank.age.1", "BANK", "bank%2f..%2fbank", "%20bank", "bank%0a", ".bank", "contexts%2fbank", strings.Repeat("a", 65),
	} {
		for _, method := range []string{"GET", "DELETE"} {
			if answer := try(method, "/contexts/"+name, ""); answer["ok"] == true {
				t.Errorf("%s %s is %v", method, name, answer)
			}
		}
		if answer := try("POST", "/contexts/"+name+"/export", `{"sealed":false}`); answer["ok"] == true {
			t.Errorf("export of %s is %v", name, answer)
		}
	}
	for _, name := range []string{"../bank", "bank/../bank", "BANK", "Bank", "bank\u0000", "bank ", "bank\n", ".", "..", "", "bánk"} {
		body, _ := json.Marshal(map[string]any{"context": name, "screenshot": false, "url": site.URL + "/"})
		if answer := try("POST", "/session/start", string(body)); answer["ok"] == true && name != "" {
			t.Errorf("a session starts with %q: %v", name, answer)
		} else if id, ok := answer["session_id"].(string); ok && answer["ok"] == true {
			try("POST", "/sessions/"+id+"/stop", `{}`)
		}
	}
	for _, canary := range []string{accountCookie, accountLocal, accountRow} {
		// The page's own script names what it looks for; as a value it is nowhere.
		if i := strings.Index(strings.ReplaceAll(said.String(), `=== \"`+canary, ""), canary); i >= 0 {
			t.Errorf("%s was said: …%s…", canary, said.String()[max(0, i-300):min(said.Len(), i+100)])
		}
	}
}
