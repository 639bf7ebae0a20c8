package sidecar_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// as lets the next requests come from the owner or from the agent.
func (r *running) as(who string) *running {
	r.t.Helper()
	token, err := os.ReadFile(filepath.Join(r.dir, who+".token"))
	if err != nil {
		r.t.Fatal(err)
	}
	other := *r
	other.agent = strings.TrimSpace(string(token))
	return &other
}

// touchy is a page that tells of everything that happens to it.
type touchy struct {
	*httptest.Server

	mu   sync.Mutex
	felt []string
}

func newTouchy(t *testing.T) *touchy {
	t.Helper()
	p := &touchy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/favicon.ico" {
			p.mu.Lock()
			p.felt = append(p.felt, r.URL.Path+" "+string(raw))
			p.mu.Unlock()
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<!doctype html><title>touchy-title</title><body style="height:5000px"><input id=a><select id=s><option>x<option>y</select><input type=file id=f>
<p id=p>touchy-text</p><script>
for (const kind of "keydown input change click mousemove mouseover focusin scroll dragstart visibilitychange popstate".split(" "))
  addEventListener(kind, () => fetch("/felt", {method: "POST", body: kind, keepalive: true}), {capture: true});
</script>`)
	}))
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *touchy) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.felt, "; ")
}

// While a person drives, these stay open for the agent: nothing of the page
// goes through them. A route that is neither here nor below fails the test.
var openRoutes = map[string]bool{
	"GET /health": true, "GET /openapi.json": true, "GET /metrics": true, "GET /events": true, "GET /journal": true,
	"POST /cleanup": true, "GET /sessions": true, "POST /session/start": true, "GET /sessions/{id}/status": true,
	"POST /handoff/start": true, "GET /handoffs": true, "GET /handoff/{id}": true, "POST /handoff/{id}/finish": true,
	"POST /handoff/{id}/cancel": true, "POST /handoff/{id}/extend": true, "POST /handoff/{id}/park": true,
	"GET /todos": true, "POST /todos/{id}/done": true,
	"POST /task-run/start": true, "GET /task-runs": true, "GET /task-run/{id}": true, "POST /task-run/{id}/update": true,
	"POST /task-run/{id}/needs-help": true, "POST /task-run/{id}/complete": true,
	// Its tools call these routes with the caller's own token, one by one.
	"GET /mcp": true, "POST /mcp": true, "DELETE /mcp": true,
	"GET /contexts": true, "GET /contexts/{name}": true, "DELETE /contexts/{name}": true, "POST /contexts/{name}/check": true,
	"POST /contexts/{name}/export": true, "POST /contexts/{name}/import": true, "POST /contexts/{name}/rename": true,
	"GET /inbox": true, "GET /usage": true,
	// What a request would read of the page goes through the gate by itself.
	"POST /approval/request": true, "GET /approvals": true, "GET /approval/{id}": true, "GET /policies": true,
	// One-shots have a browser of their own.
	"POST /browser/screenshot": true, "POST /browser/extract": true, "POST /browser/intent": true,
}

// What is the owner's alone is refused to the agent for that reason.
var ownerRoutes = map[string]bool{
	"POST /sessions/{id}/takeover": true, "POST /handoff/{id}/resume": true, "POST /handoff/{id}/present": true,
	"POST /handoff/{id}/type": true, "POST /handoff/{id}/screenshot": true, "GET /handoff/{id}/photo": true,
	"GET /links": true, "POST /links": true, "POST /links/{id}/move": true, "DELETE /links/{id}": true, "GET /public": true, "PUT /public": true, "POST /public/check": true,
	"POST /console/sign-in": true, "GET /console/devices": true, "DELETE /console/devices/{id}": true,
	"GET /owners": true, "POST /owners/pair": true, "POST /owners/claim": true, "POST /owners/{id}/decide": true, "DELETE /owners/{id}": true, "POST /inbox": true,
	"POST /approval/{id}/decide": true, "GET /approval/{id}/photo": true, "PUT /contexts/{name}/policy": true,
	"POST /policies/say": true, "POST /policies/clear": true, "POST /policies/{id}/confirm": true, "POST /policies/{id}/deny": true,
	"GET /analytics": true, "GET /browser/cards": true, "POST /browser/cards/{id}/retry": true,
}

// What touches the page, with a body that would work.
var closedRoutes = map[string]string{
	"POST /sessions/{id}/stop": `{}`, "POST /sessions/{id}/navigate": `{"url":"SITE/elsewhere"}`, "POST /sessions/{id}/back": `{}`,
	"POST /sessions/{id}/forward": `{}`, "POST /sessions/{id}/reload": `{}`, "POST /sessions/{id}/click": `{"selector":"#a"}`,
	"POST /sessions/{id}/hover": `{"selector":"#a"}`, "POST /sessions/{id}/drag": `{"selector":"#a","to":{"selector":"#p"}}`,
	"POST /sessions/{id}/type": `{"text":"x","selector":"#a"}`, "POST /sessions/{id}/fill": `{"fields":[{"selector":"#a","value":"x"}]}`,
	"POST /sessions/{id}/press": `{"key":"Enter"}`, "POST /sessions/{id}/select": `{"selector":"#s","values":["y"]}`,
	"POST /sessions/{id}/upload": `{"selector":"#f","files":["x"]}`, "POST /sessions/{id}/scroll": `{"direction":"down"}`,
	"POST /sessions/{id}/wait": `{"text":"touchy-text"}`, "POST /sessions/{id}/dialog": `{"accept":true}`,
	"POST /sessions/{id}/permission": `{"origin":"SITE","name":"geolocation","grant":true}`, "POST /sessions/{id}/auth": `{"username":"u","password":"p"}`,
	"GET /sessions/{id}/downloads": "", "GET /sessions/{id}/tabs": "", "POST /sessions/{id}/tab": `{"tab_id":"x","action":"close"}`, "GET /sessions/{id}/snapshot": "",
	"GET /sessions/{id}/text": "", "POST /sessions/{id}/extract": `{}`, "GET /sessions/{id}/screenshot": "",
	"POST /context/export": `{}`, "POST /context/import": `{"envelope":ENVELOPE}`,
}

func TestWhileAPersonDrivesEveryRouteToThePageIsClosed(t *testing.T) {
	t.Parallel()
	site := newTouchy(t)
	r := start(t, site.Server)
	session := r.must("POST", "/session/start", `{"url":"`+site.URL+`/home","screenshot":false}`)["session_id"].(string)
	envelope, err := json.Marshal(r.must("POST", "/context/export", `{}`)["envelope"])
	if err != nil {
		t.Fatal(err)
	}
	handoff := r.must("POST", "/handoff/start", `{"reason":"login"}`)["handoff_id"].(string)
	before := site.all()
	walked := 0
	_, described, _ := r.do("GET", "/openapi.json", "")
	for path, methods := range described["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			route := strings.ToUpper(method) + " " + path
			if rest, short := strings.CutPrefix(path, "/session/"); short && rest != "start" {
				route = strings.ToUpper(method) + " /sessions/{id}/" + rest
			}
			body, closed := closedRoutes[route]
			if !closed {
				if !openRoutes[route] && !ownerRoutes[route] {
					t.Errorf("%s: is it open while a person drives? The tables of this test must say", route)
				}
				continue
			}
			paths := []string{strings.ReplaceAll(path, "{id}", session)}
			if rest, ok := strings.CutPrefix(path, "/sessions/{id}/"); ok {
				paths = append(paths, "/session/"+rest)
			}
			for _, p := range paths {
				walked++
				code, answer, raw := r.do(strings.ToUpper(method), p, strings.NewReplacer("SITE", site.URL, "ENVELOPE", string(envelope)).Replace(body))
				if code != http.StatusConflict || answer["error"] != "HUMAN_IN_CONTROL" || answer["handoff_id"] != handoff || answer["hint"] == nil {
					t.Errorf("%s %s gave %d %.300s", method, p, code, raw)
				}
			}
		}
	}
	if walked < 2*len(closedRoutes)-2 {
		t.Errorf("only %d ways were tried", walked)
	}
	for route := range ownerRoutes {
		method, path, _ := strings.Cut(route, " ")
		path = strings.ReplaceAll(strings.ReplaceAll(path, "/handoff/{id}", "/handoff/"+handoff), "{id}", session)
		if code, answer, _ := r.do(method, path, `{"text":"x"}`); code != http.StatusForbidden {
			t.Errorf("%s is the owner's, and gave the agent %d %v", route, code, answer)
		}
	}
	for _, path := range []string{"/session/status", "/sessions/" + session + "/status", "/sessions", "/handoff/" + handoff, "/handoffs", "/journal", "/metrics", "/health"} {
		code, answer, raw := r.do("GET", path, "")
		if code != http.StatusOK || strings.Contains(path, "status") && (answer["url"] != nil || answer["title"] != nil || answer["tabs"] != nil || answer["dialogs"] != nil) {
			t.Errorf("%s gave %d %s", path, code, raw)
		}
		if !strings.HasPrefix(path, "/handoff") && strings.Contains(string(raw), "touchy-") {
			t.Errorf("%s tells of the page: %s", path, raw)
		}
	}
	if after := site.all(); after != before {
		t.Errorf("the page felt %s", strings.TrimPrefix(after, before))
	}
	// The same routes are the owner's meanwhile, and the agent's again afterwards.
	r.as("owner").must("POST", "/session/type", `{"text":"x","selector":"#a","screenshot":false}`)
	if after := site.all(); after == before {
		t.Error("the page does not tell when something happens to it: the test proves nothing")
	}
	r.as("owner").must("POST", "/handoff/"+handoff+"/finish", `{}`)
	r.must("POST", "/session/reload", `{"screenshot":false}`)
}
