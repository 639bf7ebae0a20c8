package sidecar_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// shop is a site with everything that an agent meets on its way.
type shop struct {
	*httptest.Server
	mu   sync.Mutex
	sent []map[string]string // forms that arrived
}

const shopPage = `<!doctype html><title>Shop</title>
<style>#chart{position:absolute;left:600px;top:20px;width:120px;height:80px;background:#c33}</style>
<h1>Order</h1>
<form action=/order method=post>
  <label>Full name <input name=name></label>
  <label>Secret <input name=secret type=password></label>
  <label>Country <select name=country><option value=at>Austria<option value=ch>Switzerland</select></label>
  <label><input type=checkbox name=terms value=yes> I agree</label>
  <button>Send request</button>
</form>
<div id=chart></div>
<input id=photo type=file aria-label=Photo onchange="document.querySelector('#got').textContent = this.files[0].name">
<p id=got></p>
<input id=quiet aria-label=Quiet onkeydown="if (event.key == 'Enter') alert('You pressed Enter')">
<a href=/report.csv download>Report</a>
<button onclick="document.querySelector('#got').textContent = confirm('Delete it?') ? 'deleted' : 'kept'">Delete</button>
<button onclick="window.open('/popup')">Help</button>
<button onclick="setTimeout(() => document.querySelector('#got').textContent = 'Saved at last', 300)">Save</button>
<button disabled>Never</button>
<div style="position:relative"><button id=covered>Covered</button><div id=overlay style="position:absolute;inset:0"></div></div>
<div id=tall style="height:3000px"></div><p id=end>The end</p>`

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	mux := http.NewServeMux()
	page := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(w, body)
		}
	}
	mux.HandleFunc("/", page(shopPage))
	mux.HandleFunc("/popup", page(`<!doctype html><title>Help</title><p>Ask us`))
	mux.HandleFunc("/order", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		form := map[string]string{}
		for name := range r.PostForm {
			form[name] = r.PostForm.Get(name)
		}
		s.mu.Lock()
		s.sent = append(s.sent, form)
		s.mu.Unlock()
		page(`<!doctype html><title>Thanks</title><p>Thank you`)(w, r)
	})
	mux.HandleFunc("/report.csv", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
		_, _ = fmt.Fprint(w, "a,b\n1,2\n")
	})
	mux.HandleFunc("/vault", func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ada" || password != authSecret {
			w.Header().Set("WWW-Authenticate", `Basic realm="vault"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		page(`<!doctype html><title>Vault</title><p>Inside`)(w, r)
	})
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// What is typed, filled and answered; none of it may be anywhere but on the page.
const (
	typedSecret  = "canary-typed-71a0"
	filledSecret = "canary-filled-82b1"
	promptSecret = "canary-prompt-93c2"
	authSecret   = "canary-auth-a4d3"
)

// must is a call that succeeds.
func (r *running) must(method, path, body string) map[string]any {
	r.t.Helper()
	code, answer, raw := r.do(method, path, body)
	if code != 200 || answer["ok"] != true {
		r.t.Fatalf("%s %s %s gave %d %.600s", method, path, body, code, raw)
	}
	return answer
}

// refused is a call that fails with a code.
func (r *running) refused(method, path, body, want string) map[string]any {
	r.t.Helper()
	_, answer, raw := r.do(method, path, body)
	if answer["ok"] != false || answer["error"] != want || answer["details"] == "" || answer["hint"] == "" {
		r.t.Errorf("%s %s %.200s gave %.600s, want %s", method, path, body, raw, want)
	}
	return answer
}

func TestAWholeErrandThroughHTTP(t *testing.T) {
	t.Parallel()
	site := openShop(t)
	r := start(t, site.Server)
	uploads := filepath.Join(r.dir, "uploads")
	if err := os.MkdirAll(uploads, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(uploads, "me.jpg"), []byte("me"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.must("POST", "/session/start", `{"url":"`+site.URL+`","screenshot":false}`)

	// Read.
	outline := r.must("GET", "/session/snapshot", "")
	text, _ := outline["snapshot"].(string)
	if !strings.Contains(text, "Send request") || !strings.Contains(text, "Full name") || outline["title"] != "Shop" {
		t.Fatalf("the snapshot is\n%s", text)
	}
	if said := r.must("GET", "/session/text", ""); !strings.Contains(said["text"].(string), "The end") {
		t.Fatalf("the text is %v", said["text"])
	}
	_, _, shot := r.do("GET", "/session/screenshot?selector=%23chart", "")
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatalf("the picture of the element is none: %v, %.300q", err, shot)
	}
	if size := img.Bounds().Size(); size != image.Pt(120, 80) {
		t.Fatalf("the picture of the element is %v", size)
	}

	// A ref of the snapshot is the button it names.
	ref := refOf(t, text, "Save")
	saved := r.must("POST", "/session/click", `{"ref":"`+ref+`"}`)
	if saved["clicked"] != true || saved["strategy"] != "S1_AX" || saved["effect"] != "confirmed" {
		t.Fatalf("the click gave %v", saved)
	}
	picture(t, saved)
	r.must("POST", "/session/wait", `{"text":"Saved at last","screenshot":false}`)

	// A dialog.
	asked := r.must("POST", "/session/click", `{"text":"Delete"}`)
	if open, _ := asked["dialog"].(map[string]any); open["kind"] != "confirm" || open["message"] != "Delete it?" || asked["screenshot"] != nil || asked["clicked"] != true {
		t.Fatalf("the click gave %v", asked)
	}
	r.refused("POST", "/session/click", `{"text":"Save"}`, "DIALOG_OPEN")
	r.refused("GET", "/session/screenshot", "", "DIALOG_OPEN")
	r.must("POST", "/session/dialog", `{"accept":true,"screenshot":false}`)
	r.must("POST", "/session/wait", `{"text":"deleted","screenshot":false}`)

	// A key that the page answers with a dialog was pressed, and typed before.
	typed := r.must("POST", "/session/type", `{"label":"Quiet","text":"`+typedSecret+`","submit":true}`)
	if open, _ := typed["dialog"].(map[string]any); open["kind"] != "alert" || typed["characters"] != float64(len(typedSecret)) {
		t.Fatalf("typing gave %v", typed)
	}
	r.must("POST", "/session/dialog", `{"accept":true,"screenshot":false}`)
	pressed := r.must("POST", "/session/press", `{"key":"Enter"}`)
	if open, _ := pressed["dialog"].(map[string]any); open["kind"] != "alert" {
		t.Fatalf("pressing gave %v", pressed)
	}
	r.must("POST", "/session/dialog", `{"accept":false,"screenshot":false}`)

	// A download.
	r.must("POST", "/session/click", `{"text":"Report","screenshot":false}`)
	var file map[string]any
	testwait.For(t, "the download", func() bool {
		list, _ := r.must("GET", "/session/downloads", "")["downloads"].([]any)
		if len(list) == 1 {
			file, _ = list[0].(map[string]any)
		}
		return file["state"] == "completed"
	})
	path, _ := file["path"].(string)
	if content, err := os.ReadFile(path); err != nil || string(content) != "a,b\n1,2\n" || file["name"] != "report.csv" || !strings.HasPrefix(path, r.dir) {
		t.Fatalf("the download is %v (%v)", file, err)
	}

	// A popup, followed; back by switching, and closed.
	popped := r.must("POST", "/session/click", `{"role":"button","name":"Help"}`)
	if popped["url"] != site.URL+"/popup" || popped["title"] != "Help" {
		t.Fatalf("the click led to %v", popped["url"])
	}
	picture(t, popped)
	r.must("POST", "/session/wait", `{"url":"**/popup","screenshot":false}`)
	if said := r.must("GET", "/session/text", ""); !strings.Contains(said["text"].(string), "Ask us") {
		t.Fatalf("the popup says %v", said["text"])
	}
	tabs := r.tabs()
	if len(tabs) != 2 || tabs[1]["active"] != true || tabs[1]["title"] != "Help" {
		t.Fatalf("the tabs are %v", tabs)
	}
	front := r.must("POST", "/session/tab", fmt.Sprintf(`{"tab_id":%q,"action":"switch"}`, tabs[0]["tab_id"]))
	if front["title"] != "Shop" {
		t.Fatalf("switching led to %v", front["title"])
	}
	r.must("POST", "/session/tab", fmt.Sprintf(`{"tabId":%q,"action":"close","screenshot":false}`, tabs[1]["tab_id"]))
	if now := r.tabs(); len(now) != 1 || now[0]["tab_id"] != tabs[0]["tab_id"] {
		t.Fatalf("the tabs are %v", now)
	}

	// Uploads: from the folder, and from nowhere else.
	r.must("POST", "/session/upload", `{"selector":"#photo","files":["me.jpg"],"screenshot":false}`)
	r.must("POST", "/session/wait", `{"text":"me.jpg","screenshot":false}`)
	outside := r.refused("POST", "/session/upload", fmt.Sprintf(`{"selector":"#photo","files":[%q]}`, filepath.Join(r.dir, "agent.token")), "FORBIDDEN")
	if hint, _ := outside["hint"].(string); !strings.Contains(hint, uploads) {
		t.Errorf("the hint does not name the folder: %v", outside)
	}
	r.refused("POST", "/session/upload", `{"selector":"#photo","files":["nothing.jpg"]}`, "NOT_FOUND")

	// Pointer and wheel.
	r.must("POST", "/session/hover", `{"selector":"#chart","screenshot":false}`)
	r.must("POST", "/session/drag", `{"selector":"#chart","to":{"x":300,"y":300},"screenshot":false}`)
	r.must("POST", "/session/scroll", `{"direction":"bottom","screenshot":false}`)
	r.must("POST", "/session/scroll", `{"selector":"h1","screenshot":false}`)

	// The form itself.
	chosen := r.must("POST", "/session/select", `{"label":"Country","values":["ch"],"screenshot":false}`)
	if got, _ := chosen["selected"].([]any); len(got) != 1 {
		t.Fatalf("select gave %v", chosen)
	}
	filled := r.must("POST", "/session/fill", `{"screenshot":false,"fields":[{"label":"Full name","value":"Ada"},{"label":"Secret","value":"`+filledSecret+`"},{"label":"I agree","value":"true"}]}`)
	if filled["filled"] != 3.0 {
		t.Fatalf("fill gave %v", filled)
	}
	thanks := r.must("POST", "/session/click", `{"text":"Send request","screenshot":false}`)
	r.must("POST", "/session/wait", `{"text":"Thank you","url":"/order","screenshot":false}`)
	site.mu.Lock()
	defer site.mu.Unlock()
	want := map[string]string{"name": "Ada", "secret": filledSecret, "country": "ch", "terms": "yes"}
	if len(site.sent) != 1 || fmt.Sprint(site.sent[0]) != fmt.Sprint(want) {
		t.Fatalf("the site got %d forms: %v (%v)", len(site.sent), site.sent, thanks)
	}
}

func (r *running) tabs() []map[string]any {
	r.t.Helper()
	list, _ := r.must("GET", "/session/tabs", "")["tabs"].([]any)
	var out []map[string]any
	for _, each := range list {
		tab, _ := each.(map[string]any)
		out = append(out, tab)
	}
	return out
}

// refOf finds the ref on the line of the outline that names something.
func refOf(t *testing.T, outline, name string) string {
	t.Helper()
	for line := range strings.Lines(outline) {
		if strings.Contains(line, name) {
			if ref := regexp.MustCompile(`\b(?:f\d+)?e\d+\b`).FindString(line); ref != "" {
				return ref
			}
		}
	}
	t.Fatalf("the outline has no ref for %s:\n%s", name, outline)
	return ""
}

func TestEveryFailureOfAnActionHasItsCode(t *testing.T) {
	t.Parallel()
	site := openShop(t)
	r := start(t, site.Server)
	r.refused("POST", "/session/click", `{"text":"x"}`, "NO_SESSION")
	r.must("POST", "/session/start", `{"url":"`+site.URL+`","screenshot":false}`)
	missing := r.refused("POST", "/session/click", `{"text":"No such thing","timeout_ms":300}`, "ELEMENT_NOT_FOUND")
	covered := r.refused("POST", "/session/click", `{"selector":"#covered","timeout_ms":300}`, "ELEMENT_NOT_ACTIONABLE")
	if details, _ := covered["details"].(string); !strings.Contains(details, "overlay") {
		t.Errorf("it is not said what covers the button: %v", covered)
	}
	for name, answer := range map[string]map[string]any{"missing": missing, "covered": covered} {
		tried, _ := answer["strategies_tried"].([]any)
		next, _ := answer["suggested_next"].([]any)
		if answer["success"] != false || answer["hitl_required"] != true || answer["outcome"] == nil || len(tried) == 0 || len(next) != 1 {
			t.Errorf("%s: %v", name, answer)
			continue
		}
		advice, _ := next[0].(map[string]any)
		arguments, _ := advice["arguments"].(map[string]any)
		if advice["tool"] != "oc_handoff_start" || arguments["reason"] != "manual_recovery" || arguments["instruction"] == "" || advice["why"] == "" || len(advice) != 3 || len(arguments) != 2 {
			t.Errorf("%s: %v", name, advice)
		}
	}
	r.refused("POST", "/session/click", `{"role":"button","name":"Never","timeout_ms":300}`, "ELEMENT_NOT_ACTIONABLE")
	r.refused("POST", "/session/click", `{"selector":"((("}`, "INVALID_REQUEST")
	r.refused("POST", "/session/type", `{"text":"x"}`, "NO_FOCUSED_FIELD")
	r.refused("POST", "/session/press", `{"key":"Nonsense"}`, "INVALID_REQUEST")
	r.refused("POST", "/session/wait", `{"text":"Nothing says this","timeout_ms":200}`, "WAIT_TIMEOUT")
	r.refused("POST", "/session/wait", `{"selector":"h1","state":"hidden","timeout_ms":200}`, "WAIT_TIMEOUT")
	r.refused("POST", "/session/wait", `{"state":"visible"}`, "INVALID_REQUEST")
	r.refused("POST", "/session/dialog", `{"accept":true}`, "NOT_FOUND")
	r.refused("POST", "/session/auth", `{"username":"a","password":"b"}`, "NOT_FOUND")
	r.refused("POST", "/session/tab", `{"tab_id":"nonsense","action":"switch"}`, "NOT_FOUND")
	r.refused("POST", "/session/permission", `{"name":"nonsense","grant":true}`, "INVALID_REQUEST")
	r.refused("POST", "/session/select", `{"label":"Country","values":["Atlantis"],"timeout_ms":200}`, "ELEMENT_NOT_FOUND")
	r.refused("POST", "/session/upload", `{"files":[]}`, "NOT_FOUND")
	some := r.refused("POST", "/session/fill", `{"timeout_ms":300,"fields":[{"label":"Full name","value":"x"},{"label":"No such","value":"y"}]}`, "ELEMENT_NOT_FOUND")
	if some["filled"] != 1.0 {
		t.Errorf("it is not said how much was filled: %v", some)
	}
	r.refused("GET", "/session/screenshot?selector=%23nothing", "", "ELEMENT_NOT_FOUND")
	r.must("POST", "/session/permission", `{"name":"geolocation","grant":true,"screenshot":false}`)

	// Refs die with their page.
	outline, _ := r.must("GET", "/session/snapshot?interactive=true", "")["snapshot"].(string)
	ref := refOf(t, outline, "Save")
	r.must("POST", "/session/reload", `{"screenshot":false}`)
	r.refused("POST", "/session/click", `{"ref":"`+ref+`"}`, "STALE_REF")

	// Addresses.
	r.refused("POST", "/session/navigate", `{"url":"nonsense"}`, "INVALID_URL")
	r.refused("POST", "/session/navigate", `{"url":"http://10.0.0.1/"}`, "BLOCKED_TARGET")
	r.refused("POST", "/session/navigate", `{"url":"http://nobody.invalid/"}`, "NAVIGATION_FAILED")
	r.refused("POST", "/session/navigate", `{"url":"`+site.URL+`/never","timeout_ms":500}`, "NAVIGATION_TIMEOUT")
}

func TestASiteBehindAPasswordIsEntered(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := openShop(t)
	r := start(t, site.Server)
	code, begun, _ := r.do("POST", "/session/start", `{"screenshot":false}`)
	if code != 200 {
		t.Fatal(begun)
	}
	r.do("POST", "/session/navigate", `{"url":"`+site.URL+`/vault","screenshot":false}`)
	status := r.must("GET", "/session/status", "")
	asked, _ := status["questions"].([]any)
	if len(asked) != 1 || asked[0].(map[string]any)["kind"] != "http_auth" || asked[0].(map[string]any)["origin"] != site.URL {
		t.Fatalf("the status is %v", status)
	}
	r.refused("POST", "/session/auth", `{"username":"ada","password":"wrong"}`, "NAVIGATION_FAILED")
	in := r.must("POST", "/session/auth", `{"username":"ada","password":"`+authSecret+`"}`)
	if in["title"] != "Vault" {
		t.Fatalf("it led to %v", in["title"])
	}
}

// Whatever is typed, filled and answered is on the page alone.
func TestNothingThatIsTypedIsWrittenAnywhere(t *testing.T) {
	t.Parallel()
	site := openShop(t)
	r := start(t, site.Server)
	r.must("POST", "/session/start", `{"url":"`+site.URL+`","screenshot":false}`)
	var answers strings.Builder
	for _, call := range []string{
		`type {"label":"Secret","text":"` + typedSecret + `"}`,
		`type {"label":"Secret","text":"` + typedSecret + `","clear":true}`,
		`type {"label":"No such field","text":"` + typedSecret + `","timeout_ms":100}`,
		`type {"label":"Secret","text":"` + typedSecret + `","oops":1}`,
		`type {"label":"Secret","text":["` + typedSecret + `"]}`,
		`type {"label":"Secret","text":"` + typedSecret + `"`,
		`fill {"fields":[{"label":"Secret","value":"` + filledSecret + `"}]}`,
		`fill {"fields":[{"label":"Country","value":"` + filledSecret + `"}],"timeout_ms":100}`,
		`fill {"fields":[{"label":"I agree","value":"` + filledSecret + `"}],"timeout_ms":100}`,
		`fill {"fields":[{"label":"No such field","value":"` + filledSecret + `"}],"timeout_ms":100}`,
		`fill {"fields":[{"value":"` + filledSecret + `"}]}`,
		`dialog {"accept":true,"text":"` + promptSecret + `"}`,
		`auth {"username":"ada","password":"` + authSecret + `"}`,
		`auth {"password":"` + authSecret + `"}`,
	} {
		route, body, _ := strings.Cut(call, " ")
		_, answer, raw := r.do("POST", "/session/"+route, body)
		delete(answer, "screenshot")
		answers.Write(raw)
	}
	for _, path := range []string{"/session/snapshot", "/session/text", "/session/status", "/metrics"} {
		_, _, raw := r.do("GET", path, "")
		answers.Write(raw)
	}
	clean := func(where, text string) {
		for _, s := range []string{typedSecret, filledSecret, promptSecret, authSecret} {
			if strings.Contains(text, s) {
				t.Errorf("%s is in %s", s, where)
			}
		}
	}
	clean("an answer", answers.String())
	journal := r.journal()
	if !slices.ContainsFunc(journal, func(e entry) bool {
		return e.What == "session.type" && e.Outcome == "ok" && e.Counts["characters"] == len(typedSecret) && e.Origin == site.URL
	}) {
		t.Errorf("the journal does not tell how much was typed and where: %+v", journal)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	clean("the log", r.log.String())
	_ = filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			raw, _ := os.ReadFile(path)
			clean(path, string(raw))
		}
		return nil
	})
}

// entry is a line of the journal.
type entry struct {
	What    string         `json:"what"`
	Origin  string         `json:"origin"`
	Counts  map[string]int `json:"counts"`
	Outcome string         `json:"outcome"`
}

func (r *running) journal() []entry {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, "journal", "*.jsonl"))
	if err != nil || len(files) == 0 {
		r.t.Fatalf("there is no journal: %v", err)
	}
	var out []entry
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		for line := range bytes.Lines(raw) {
			var e entry
			if err := json.Unmarshal(line, &e); err != nil {
				r.t.Fatalf("%s: %v", line, err)
			}
			out = append(out, e)
		}
	}
	return out
}
