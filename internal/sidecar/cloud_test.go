package sidecar_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/browser/browserbase/standin"
	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
	"tapin/internal/vault"
)

// clouded is a sidecar whose browsers are at Browserbase, through a line that
// can be cut, and a site that they visit.
type clouded struct {
	*running
	owner *running
	cloud *standin.Server
	line  *browsertest.Line
	site  *visited
	set   []string
}

// visited is a site with a login and a form for files.
type visited struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]string
}

func newVisited(t *testing.T) *visited {
	t.Helper()
	v := &visited{files: map[string]string{}}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/login":
			http.SetCookie(w, &http.Cookie{Name: "sid", Value: "in", Path: "/", MaxAge: 86400})
			_, _ = fmt.Fprintf(w, `<!doctype html><title>in</title><p>welcome</p><script>localStorage.setItem("who", %q)</script>`, "owner"+r.URL.RawQuery)
		case "/who":
			c, err := r.Cookie("sid")
			_, _ = fmt.Fprintf(w, `<!doctype html><title>%v</title><p id=w></p><script>w.textContent = localStorage.getItem("who")</script>`, err == nil && c.Value == "in")
		case "/moving":
			_, _ = fmt.Fprint(w, `<!doctype html><title>moving</title><h1 id=n>0</h1><script>setInterval(() => { n.textContent++ }, 50)</script>`)
		case "/send":
			f, h, err := r.FormFile("f")
			if err == nil {
				raw, _ := io.ReadAll(f)
				v.mu.Lock()
				v.files[h.Filename] = string(raw)
				v.mu.Unlock()
			}
			_, _ = fmt.Fprint(w, `<!doctype html><title>sent</title>`)
		default:
			_, _ = fmt.Fprint(w, `<!doctype html><title>home</title><input id=a><button id=see onclick="document.title = [innerWidth, innerHeight, Intl.DateTimeFormat().resolvedOptions().timeZone, a.value].join(' ')">See</button><form method=post enctype=multipart/form-data action=/send><input type=file name=f id=f><button>Send</button></form>
				<button id=pop onclick="window.open('/who')">Pop</button><button id=ask onclick="document.title = confirm('sure?')">Ask</button>`)
		}
	}))
	t.Cleanup(func() {
		v.CloseClientConnections()
		v.Close()
	})
	return v
}

// newCloud is a stand-in at the end of a line. Nobody may have misused it when
// the test is over.
func newCloud(t *testing.T, o *standin.Options) (*standin.Server, *browsertest.Line) {
	t.Helper()
	if o == nil {
		o = &standin.Options{}
	}
	var line *browsertest.Line
	o.Through = func() string { return line.Addr() }
	cloud, err := standin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, wrong := range cloud.Wrong() {
			t.Errorf("the API was misused: %s", wrong)
		}
		_ = cloud.Close()
	})
	line = browsertest.NewLine(t, cloud.Addr())
	return cloud, line
}

// inTheCloud starts a stand-in, a line and a sidecar.
func inTheCloud(t *testing.T, o *standin.Options, set ...string) *clouded {
	t.Helper()
	c := &clouded{site: newVisited(t)}
	c.cloud, c.line = newCloud(t, o)
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	environment := map[string]string{"BROWSERBASE_API_KEY": c.cloud.Key(), "BROWSERBASE_PROJECT_ID": c.cloud.Project(), "BROWSERBASE_BASE_URL": c.cloud.URL()}
	c.running = &running{t: t, dir: dir, log: &safeBuffer{}, vault: &vault.Options{Keyring: ring{}, Getenv: func(name string) string { return environment[name] }}}
	c.set = append([]string{"listen.control=127.0.0.1:0", "listen.public=127.0.0.1:0", "egress.allow=" + strings.TrimPrefix(c.site.URL, "http://"), "provider=browserbase"}, set...)
	c.begin(c.set)
	c.owner = c.as("owner")
	t.Cleanup(func() {
		if strings.Contains(c.log.String()+c.told(), c.cloud.Key()) {
			t.Error("the API key is in the log or the feed")
		}
		if strings.Contains(c.log.String()+c.told(), "signingKey") {
			t.Error("a way in is in the log or the feed")
		}
	})
	return c
}

// open starts a session at a page of the site.
func (c *clouded) open(path string, more string) map[string]any {
	c.t.Helper()
	return c.must("POST", "/session/start", `{"url":"`+c.site.URL+path+`","screenshot":false`+more+`}`)
}

// running are the sessions at Browserbase that cost.
func (c *clouded) billed() []standin.Session { return c.cloud.Sessions("RUNNING") }

func TestABrowserElsewhereDoesWhatALocalOneDoes(t *testing.T) {
	t.Parallel()
	c := inTheCloud(t, nil)
	theirs := c.cloud.Foreign(map[string]any{"tapin": "another"})
	started := c.must("POST", "/session/start", `{"url":"`+c.site.URL+`/"}`)
	if started["provider"] != "browserbase" || started["screenshot"] == nil || started["notes"] != nil {
		t.Fatalf("it started as %v", started)
	}
	uploads := filepath.Join(c.dir, "uploads")
	if err := os.MkdirAll(uploads, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(uploads, "bill.txt"), []byte("142.50"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.must("POST", "/session/upload", `{"selector":"#f","files":["bill.txt"],"screenshot":false}`)
	c.must("POST", "/session/click", `{"text":"Send","screenshot":false}`)
	c.must("POST", "/session/wait", `{"url":"**/send"}`)
	c.site.mu.Lock()
	if c.site.files["bill.txt"] != "142.50" {
		t.Errorf("the site was sent %v", c.site.files)
	}
	c.site.mu.Unlock()
	if u := c.must("GET", "/usage", ""); u["minutes"] != float64(1) || len(u["running"].([]any)) != 1 {
		t.Errorf("the account is %v", u)
	}
	c.must("POST", "/session/stop", `{}`)
	if left := c.billed(); len(left) != 1 || left[0].ID != theirs {
		t.Errorf("there run %+v", left)
	}
	if u := c.must("GET", "/usage", ""); u["minutes"] != float64(1) || len(u["running"].([]any)) != 0 {
		t.Errorf("the account is %v", u)
	}
	_, _, figures := c.do("GET", "/metrics", "")
	if !strings.Contains(string(figures), "tapin_billed_minutes 1\n") {
		t.Error("the figures do not tell the minutes")
	}
}

func TestALoginIsKeptAtBothPlacesAndDeletedAtBoth(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	c := inTheCloud(t, nil)
	c.open("/login", `,"context":"shop"`)
	c.must("POST", "/session/stop", `{}`)
	info := c.must("GET", "/contexts/shop", "")
	id, _ := info["browserbase_context_id"].(string)
	if kept := c.cloud.Contexts(); len(kept) != 1 || kept[0] != id {
		t.Fatalf("there are %v, and the manifest says %v", kept, info)
	}
	c.open("/who", `,"context":"shop","save_context":false`)
	last := c.cloud.Sessions("")
	if s := last[len(last)-1]; s.Context != id {
		t.Errorf("the second session began with %+v", s)
	}
	if now := c.must("GET", "/session/status", ""); now["title"] != "true" {
		t.Errorf("the login did not come back: %v", now)
	}
	c.must("POST", "/session/stop", `{}`)
	// Deleted there by somebody: what we keep is as good, and a new place is made.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, c.cloud.URL()+"/v1/contexts/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-BB-API-Key", c.cloud.Key())
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatal(resp, err)
	} else {
		_ = resp.Body.Close()
	}
	c.open("/who", `,"context":"shop"`)
	if now := c.must("GET", "/session/status", ""); now["title"] != "true" {
		t.Errorf("the login did not come back from here: %v", now)
	}
	c.must("POST", "/session/stop", `{}`)
	if kept := c.cloud.Contexts(); len(kept) != 1 || kept[0] == id || c.must("GET", "/contexts/shop", "")["browserbase_context_id"] != kept[0] {
		t.Fatalf("there are %v", kept)
	}
	gone := c.owner.must("DELETE", "/contexts/shop", "")
	if gone["remains"] != nil || len(c.cloud.Contexts()) != 0 {
		t.Errorf("after deleting there are %v, and it said %v", c.cloud.Contexts(), gone)
	}
}

func TestTheFreePlanSaysWhatItDoesNotAllowAndWorksAllTheSame(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	c := inTheCloud(t, &standin.Options{Plan: standin.Free()})
	started := c.open("/", `,"context":"shop"`)
	notes := fmt.Sprint(started["notes"])
	if !strings.Contains(notes, "does not keep browsers alive") || !strings.Contains(notes, "15m") {
		t.Errorf("it started with %v", notes)
	}
	within := func(what string, at any, most time.Duration) {
		t.Helper()
		end, err := time.Parse(time.RFC3339, at.(string))
		if err != nil || time.Until(end) > most || time.Until(end) < most-time.Minute {
			t.Errorf("%s is at %v, %v", what, at, err)
		}
	}
	within("the deadline", started["deadline"], 15*time.Minute-30*time.Second)
	h := c.must("POST", "/handoff/start", `{"reason":"login"}`)
	within("the hand-off's deadline", h["deadline"], 15*time.Minute-time.Minute)
	if told := c.told(); !strings.Contains(told, "does not keep browsers alive") {
		t.Error("the feed does not tell the owner")
	}
	// The line is lost, the page with it; the person goes on in another browser.
	c.line.Cut()
	testwait.For(t, "another browser", func() bool {
		code, now, _ := c.owner.do("GET", "/session/status", "")
		return code == http.StatusOK && now["page_lost"] == true
	})
	c.owner.must("POST", "/session/navigate", `{"url":"`+c.site.URL+`/login","screenshot":false}`)
	c.owner.must("POST", "/handoff/"+h["handoff_id"].(string)+"/finish", `{}`)
	if running := c.billed(); len(running) != 1 {
		t.Errorf("there run %+v", running)
	}
	c.must("POST", "/session/stop", `{}`)
	if running := c.billed(); len(running) != 0 {
		t.Errorf("there run %+v", running)
	}
}

func TestAKeyThatIsNotThereIsSaidWithWhatToDo(t *testing.T) {
	t.Parallel()
	c := startWith(t, newVisited(t).Server, ring{}, "provider=browserbase", "listen.public=127.0.0.1:0")
	code, answer, _ := c.do("POST", "/session/start", `{}`)
	if code != http.StatusServiceUnavailable || answer["error"] != "PROVIDER_NOT_CONFIGURED" || !strings.Contains(fmt.Sprint(answer["hint"]), "BROWSERBASE_API_KEY") {
		t.Errorf("it gave %d %v", code, answer)
	}
}
