package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/browser/browsertest"
	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

func TestMain(m *testing.M) { browsertest.Main(m, nil) }

func TestAWordNamesAnElement(t *testing.T) {
	t.Parallel()
	x, y := 12.5, 40.0
	for word, want := range map[string]api.Target{
		"Sign in":       {Text: "Sign in"},
		"Note: read":    {Text: "Note: read"},
		"text:css:x":    {Text: "css:x"},
		"css:a:hover":   {Element: api.Element{Selector: "a:hover"}},
		"ref:e12":       {Element: api.Element{Ref: "e12"}},
		"label:Name":    {Element: api.Element{Label: "Name"}},
		"test-id:go":    {Element: api.Element{TestID: "go"}},
		"xpath://a":     {Element: api.Element{XPath: "//a"}},
		"at:12.5, 40":   {X: &x, Y: &y},
		"at:12.5,40":    {X: &x, Y: &y},
		"http://a/path": {Text: "http://a/path"},
	} {
		got, err := target(word, false)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", word, err, diff)
		}
	}
	if got, err := field("Name"); err != nil || got.Label != "Name" {
		t.Errorf("a field is %+v, %v", got, err)
	}
	for _, word := range []string{"at:1,2", "text:Name"} {
		if _, err := field(word); err == nil {
			t.Errorf("%s names a field", word)
		}
	}
	for _, word := range []string{"at:", "at:1", "at:a,b", "at:1,2,3"} {
		if _, err := target(word, false); err == nil {
			t.Errorf("%s is a point", word)
		}
	}
}

func TestAFieldAndItsValueAreToldApart(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string][2]string{
		"Name=Ada":                           {"Name", "Ada"},
		"First name=Ada=Lovelace":            {"First name", "Ada=Lovelace"},
		"Name=":                              {"Name", ""},
		"ref:e1==":                           {"ref:e1", "="},
		"css:#a=b":                           {"css:#a", "b"},
		"css:input[name=q]=weather":          {"css:input[name=q]", "weather"},
		"css:input[name='a]=b']=c=d":         {"css:input[name='a]=b']", "c=d"},
		`xpath://input[@name="q"]=x`:         {`xpath://input[@name="q"]`, "x"},
		"css:form:has(input[type=date]) b=1": {"css:form:has(input[type=date]) b", "1"},
	} {
		name, value, ok := splitField(arg)
		if !ok || name != want[0] || value != want[1] {
			t.Errorf("%s: %q, %q, %v", arg, name, value, ok)
		}
	}
	for _, arg := range []string{"Name", "=x", "", "css:input[name=q]"} {
		if _, _, ok := splitField(arg); ok {
			t.Errorf("%q is a field and its value", arg)
		}
	}
}

func TestCommandsRefuseWhatTheyDoNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"click"}, {"click", "a", "b"}, {"click", "a", "--css", "b"}, {"click", "--css", "a", "--ref", "b"}, {"click", "--name", "x"},
		{"click", "--at", "1"}, {"click", "a", "--timeout", "soon"},
		{"hover"}, {"drag", "a"}, {"drag", "a", "at:x"}, {"type"}, {"type", "x", "--css", "a", "--label", "b"},
		{"fill"}, {"fill", "Name"}, {"fill", "at:1,2=x"}, {"fill", "Password=-"}, {"press"}, {"select"}, {"select", "Country"},
		{"upload", "Photo"}, {"scroll"}, {"scroll", "down", "far"}, {"wait"}, {"wait", "x", "--css", "y"}, {"tab", "open", "x"}, {"tab", "close"},
		{"dialog", "maybe"}, {"dialog", "dismiss", "x"}, {"permission", "grant"}, {"permission", "maybe", "camera"}, {"auth", "ada"},
		{"screenshot", "--css", "a", "--ref", "b"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, args...)
			if code := Main(t.Context(), w.Env); code != fault.ExitUsage || !strings.Contains(w.stderr.String(), "hint:") {
				t.Fatalf("exit code %d\n%s%s", code, &w.stdout, &w.stderr)
			}
		})
	}
}

// shop is a page with what the commands act on. It says what became of it.
const shop = `<!doctype html><title>Shop</title><h1>Hello &#27;[31mred</h1>
<form onsubmit="event.preventDefault(); said.textContent = [...new FormData(this)].map(([k, v]) => k + ':' + v.length).join(' ')">
  <label>Name <input name=name></label><label>Password <input name=password type=password></label>
  <label>Country <select name=country><option>Austria<option>Switzerland</select></label>
  <button>Send</button>
</form>
<button onclick="said.textContent = prompt('Who?')">Ask</button>
<button onclick="window.open('/popup')">Popup</button>
<a href=/file.txt download>File</a>
<input type=file aria-label=Photo onchange="said.textContent = this.files[0].name">
<p id=said></p><div style="height:3000px"></div><p id=end>End`

// desk is a sidecar with an open page, and the command line in front of it.
type desk struct {
	t    *testing.T
	home string
	site *httptest.Server
	log  strings.Builder
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/popup":
			_, _ = fmt.Fprint(w, "<!doctype html><title>Popup</title>Hi")
		case "/file.txt":
			w.Header().Set("Content-Disposition", "attachment")
			_, _ = fmt.Fprint(w, "file")
		default:
			_, _ = fmt.Fprint(w, shop)
		}
	}))
	t.Cleanup(site.Close)
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	home, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Inputs{Set: []string{"pool.follow=" + testwait.Spare(), "listen.control=127.0.0.1:0", "egress.allow=" + strings.TrimPrefix(site.URL, "http://")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	var ran sync.WaitGroup
	ran.Go(func() {
		if err := sidecar.Run(ctx, sidecar.Options{Home: home, Config: cfg, OnReady: func(string) { close(ready) }}); err != nil {
			t.Errorf("the sidecar ended with %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		ran.Wait()
		_ = home.Close()
	})
	<-ready
	return &desk{t: t, home: dir, site: site}
}

// run is one command; stdin is what a pipe would bring.
func (d *desk) run(stdin string, args ...string) (int, string) {
	d.t.Helper()
	w := newWorld(d.t, append([]string{"--home", d.home}, args...)...)
	w.Stdin = strings.NewReader(stdin)
	code := Main(d.t.Context(), w.Env)
	out := w.stdout.String() + w.stderr.String()
	d.log.WriteString(out)
	return code, out
}

// says runs a command that succeeds and says something.
func (d *desk) says(want string, args ...string) {
	d.t.Helper()
	if code, out := d.run("", args...); code != 0 || !strings.Contains(out, want) {
		d.t.Errorf("%q: exit code %d, %s", args, code, out)
	}
}

func TestTheCommandsDriveThePage(t *testing.T) {
	t.Parallel()
	const typed, filled, prompted = "canary-cli-typed", "canary-cli-filled-1", "canary-cli-prompt-12"
	d := newDesk(t)
	if err := os.MkdirAll(filepath.Join(d.home, "uploads"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.home, "uploads", "me.jpg"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := d.run("", "click", "Send"); code != fault.ExitNotFound {
		t.Errorf("without a session: %d, %s", code, out)
	}
	d.says("Shop", "open", d.site.URL)
	d.says("Send", "snapshot")
	d.says("Hello", "text")
	if _, out := d.run("", "text"); strings.Contains(out, "\x1b") {
		t.Errorf("a page steers the terminal: %q", out)
	}

	// A form, with the secrets through a pipe.
	if code, out := d.run(filled+"\n", "fill", "Name=Ada", "Password=-"); code != 0 || !strings.Contains(out, "2 of 2 fields") {
		t.Errorf("fill: %d, %s", code, out)
	}
	d.says("Switzerland", "select", "Country", "Switzerland")
	d.says("the page took notice", "click", "Send")
	d.says("ms", "wait", fmt.Sprintf("name:3 password:%d country:11", len(filled)))
	if code, out := d.run(typed+"\n", "type", "-", "--label", "Password", "--clear"); code != 0 || !strings.Contains(out, "16 characters") || !strings.Contains(out, "password") {
		t.Errorf("type: %d, %s", code, out)
	}
	d.says("Enter", "press", "Enter")
	d.says("ms", "wait", fmt.Sprintf("password:%d", len(typed)))

	// A prompt.
	d.says("prompt: Who?", "click", "--role", "button", "--name", "Ask")
	if code, out := d.run("", "click", "Send"); code != fault.ExitBrowser || !strings.Contains(out, "DIALOG_OPEN") {
		t.Errorf("under a dialog: %d, %s", code, out)
	}
	if code, out := d.run(prompted, "dialog", "accept", "-"); code != 0 {
		t.Errorf("dialog: %d, %s", code, out)
	}

	// Tabs.
	d.says("/popup", "click", "Popup")
	d.says("/popup", "wait", "--url", "/popup")
	tabs := d.json("tabs")["tabs"].([]any)
	if len(tabs) != 2 {
		t.Fatalf("the tabs are %v", tabs)
	}
	d.says("* ", "tabs")
	popup := tabs[1].(map[string]any)["tab_id"].(string)
	d.says("Shop", "tab", "switch", tabs[0].(map[string]any)["tab_id"].(string))
	d.says("Shop", "tab", "close", popup)
	if code, _ := d.run("", "tab", "close", popup); code != fault.ExitNotFound {
		t.Error("a tab was closed twice")
	}

	// Files.
	d.says("No page has sent a file", "downloads")
	d.says("url", "click", "File")
	testwait.For(t, "the download", func() bool {
		_, out := d.run("", "downloads")
		return strings.Contains(out, "file.txt") && strings.Contains(out, "completed")
	})
	d.says("1 file", "upload", "Photo", "me.jpg")
	d.says("ms", "wait", "me.jpg")
	if code, out := d.run("", "upload", "Photo", "/etc/hostname"); code != fault.ExitRefused || !strings.Contains(out, "uploads") {
		t.Errorf("a file from elsewhere: %d, %s", code, out)
	}

	// The rest of what hands do.
	d.says("url", "scroll", "bottom")
	d.says("url", "scroll", "--css", "h1")
	d.says("hovered", "hover", "css:h1")
	d.says("dragged", "drag", "css:h1", "at:200,200")
	d.says("url", "permission", "grant", "geolocation")
	shot := filepath.Join(t.TempDir(), "h1.png")
	d.says("h1.png", "screenshot", "--css", "h1", "-o", shot)
	if info, err := os.Stat(shot); err != nil || info.Size() == 0 {
		t.Errorf("the picture: %v", err)
	}

	// In JSON, also what fails.
	if got := d.json("click", "Send"); got["ok"] != true || got["clicked"] != true || got["screenshot"] != nil {
		t.Errorf("click: %v", got)
	}
	if got := d.json("click", "Nothing", "--timeout", "200ms"); got["ok"] != false || got["error"] != "ELEMENT_NOT_FOUND" || got["suggested_next"] == nil {
		t.Errorf("a click at nothing: %v", got)
	}
	for _, s := range []string{typed, filled} {
		if strings.Contains(d.log.String(), s) {
			t.Errorf("%s was printed", s)
		}
	}
}

// json is the answer of a command in JSON.
func (d *desk) json(args ...string) map[string]any {
	d.t.Helper()
	_, out := d.run("", append([]string{"--json"}, args...)...)
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		d.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return got
}
