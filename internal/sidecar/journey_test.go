package sidecar_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// branch is a site as people meet them: a login, a form with a list, a photo and a
// question, another site's consent in a popup, a code in six boxes.
type branch struct {
	*httptest.Server

	mu    sync.Mutex
	got   map[string]string
	typed []string // what stood in the field of the popup, after each change
}

// branchPage is one of its pages. What is no field lies at fixed places.
func branchPage(title, body string) string {
	return `<!doctype html><meta charset=utf-8><title>` + title + `</title><style>
body{margin:0;font:18px sans-serif} form,main{position:absolute;left:440px;top:120px;width:400px} label{display:block;margin-top:20px}
input,select{display:block;box-sizing:border-box;width:400px;height:48px;font:18px sans-serif} .boxes{display:flex;gap:8px} .boxes input{width:56px}
button{position:absolute;left:0;top:300px;width:400px;height:60px;font:20px sans-serif}</style>` + body
}

func newBranch(t *testing.T) *branch {
	t.Helper()
	b := &branch{got: map[string]string{}}
	mux := http.NewServeMux()
	show := func(path, title, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, strings.ReplaceAll(branchPage(title, body), "ACME", b.elsewhere()))
		})
	}
	show("/login", "Sign in", `<form method=post action=/login><label>E-mail<input name=email type=email autocomplete=username></label>
<label>Password<input name=password type=password autocomplete=current-password></label><button>Sign in</button></form>`)
	show("/details", "Your details", `<form method=post action=/details enctype=multipart/form-data onsubmit="return confirm('Send these details?')">
<label>Country<select name=country><option value="">Choose<option value=de>Germany<option value=ch>Switzerland<option value=fr>France</select></label>
<label>Photo<input name=photo type=file accept="image/*"></label><button>Send</button></form>`)
	show("/connect", "Connect", `<main><label>Voucher<input></label><button onclick="open('ACME/consent', 'acme', 'popup,width=500,height=600')">Continue with Acme</button></main>
<script>addEventListener("message", e => { if (e.origin === "ACME" && e.data === "allowed") location = "/code" })</script>`)
	show("/consent", "Acme", `<form method=post action=/consent style="left:50px"><label>Name<input name=name oninput="fetch('/typed', {method: 'POST', body: this.value, keepalive: true})"></label><button>Allow</button></form>`)
	show("/code", "Code", `<form method=post action=/code><label>Code</label><div class=boxes>`+
		strings.Repeat(`<input inputmode=numeric maxlength=1 aria-label=Digit>`, 6)+`</div><input type=hidden name=code></form><script>
const boxes = [...document.querySelectorAll(".boxes input")]
for (const [i, box] of boxes.entries()) box.addEventListener("input", () => {
  if (box.value) boxes[i + 1]?.focus()
  document.forms[0].code.value = boxes.map(b => b.value).join("")
  if (document.forms[0].code.value.length === 6) document.forms[0].submit()
})
</script>`)
	show("/home", "Welcome", `<main><h1>Welcome back</h1><label>Search<input></label></main>`)
	take := func(path string, fields []string, next string) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseMultipartForm(8 << 20)
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, f := range fields {
				b.got[f] += r.FormValue(f)
			}
			if f, head, err := r.FormFile("photo"); err == nil {
				raw, _ := io.ReadAll(f)
				b.got["photo"], b.got["photo name"] = string(raw), head.Filename
			}
			b.got["posts"] += path + " "
			http.SetCookie(w, &http.Cookie{Name: "step" + strings.ReplaceAll(path, "/", "-"), Value: "1"})
			http.Redirect(w, r, next, http.StatusSeeOther)
		})
	}
	take("/login", []string{"email", "password"}, "/details")
	take("/details", []string{"country"}, "/connect")
	take("/code", []string{"code"}, "/home")
	mux.HandleFunc("POST /typed", func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.typed = append(b.typed, string(raw))
	})
	mux.HandleFunc("POST /consent", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.got["name"] = r.FormValue("name")
		b.mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<script>opener.postMessage("allowed", "*"); close()</script>`)
	})
	b.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

// elsewhere is the same server under another origin.
func (b *branch) elsewhere() string { return strings.Replace(b.URL, "127.0.0.1", "localhost", 1) }

func (b *branch) heard(what string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got[what]
}

// stands reports whether that stood in the field of the popup at some time.
func (b *branch) stands(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.typed, text)
}

// await waits until the site has been sent something.
func (b *branch) await(t *testing.T, what string) string {
	t.Helper()
	testwait.For(t, "the site hearing of "+what, func() bool { return b.heard(what) != "" })
	return b.heard(what)
}

func (b *branch) allow() string {
	host := strings.TrimPrefix(b.URL, "http://")
	return "egress.allow=" + host + "," + strings.Replace(host, "127.0.0.1", "localhost", 1)
}

// The journey of a person in a shop, with one thumb: by touch and keys on the
// phone alone. The site says what it was sent, and the agent what it was told.
func TestAPersonFinishesABankLoginOnAPhone(t *testing.T) {
	t.Parallel()
	ctx := testwait.Context(t)
	site := newBranch(t)
	r := start(t, site.Server, site.allow())
	r.must("POST", "/session/start", `{"url":"`+site.URL+`/login","screenshot":false}`)
	handoff := r.must("POST", "/handoff/start", `{"reason":"login","instruction":"Please sign in.","verify":[{"url":"*/home"}]}`)
	id := handoff["handoff_id"].(string)
	finished := make(chan map[string]any, 1)
	go func() {
		for ctx.Err() == nil {
			_, now, _ := r.do("GET", "/handoff/"+id+"?after=1000&wait_ms=50000", "")
			if now["status"] != "RUNNING" {
				finished <- now
				return
			}
		}
	}()

	began := time.Now()
	phone, open := r.tapIn(ctx, browsertest.Cellular)
	phone.seen()
	t.Logf("first picture after %s", time.Since(began).Round(time.Millisecond))
	if at := phone.See(`location.href`); strings.Contains(at, "#") || !strings.HasPrefix(open, at) {
		t.Errorf("the token stays in the address: %s", at)
	}

	const email, password = "ada@example.com", `correct horse "bättery" 9`
	phone.into(field("E-mail"))
	phone.Type(email)
	phone.into(field("Password"))
	phone.Type(password)
	if phone.See(`document.activeElement.type`) != "password" || strings.Contains(phone.Words(), password) {
		t.Error("the password can be seen")
	}
	phone.press(640, 450) // Sign in
	if got := site.await(t, "email"); got != email || site.heard("password") != password {
		t.Errorf("the site was sent %q and %q", got, site.heard("password"))
	}

	phone.Until("the list", `document.querySelector('#fields select')`)
	phone.into(`#fields select`)
	for range 2 {
		phone.Key("ArrowDown")
	}
	phone.Key("Enter")
	photo := make([]byte, 180<<10)
	_, _ = rand.Read(photo)
	copy(photo, "\xff\xd8\xff\xe0")
	file := filepath.Join(t.TempDir(), "IMG 0042.jpg")
	if err := os.WriteFile(file, photo, 0o600); err != nil {
		t.Fatal(err)
	}
	phone.Give(file)
	phone.rests()
	phone.Tap(`#fields input[type=file]`)
	phone.Until("the upload", `document.querySelector("#toast").textContent.includes("Uploaded")`)
	phone.press(640, 450) // Send
	phone.Until("the page's question", `document.body.innerText.includes("Send these details?")`)
	phone.Tap(`dialog[open] .button.main, .sheet .button.main`)
	if country := site.await(t, "country"); country != "ch" {
		t.Errorf("the site was sent the country %q", country)
	}
	if got := site.await(t, "photo"); !bytes.Equal([]byte(got), photo) || site.heard("photo name") != "IMG 0042.jpg" {
		t.Errorf("the site was sent %d bytes of a photo called %q", len(got), site.heard("photo name"))
	}

	phone.sits("127.0.0.1", field("Voucher"))
	phone.press(640, 450) // Continue with Acme
	phone.sits("localhost", field("Name"))
	phone.wide, phone.high = phone.size()
	phone.into(field("Name"))
	phone.Type("Ada")
	phone.press(250, 450) // Allow
	if name := site.await(t, "name"); name != "Ada" {
		t.Errorf("the popup was sent %q", name)
	}

	phone.sits("127.0.0.1", field("Digit"))
	phone.wide, phone.high = 1280, 720
	phone.into(field("Digit"))
	phone.Type("428913")
	if code := site.await(t, "code"); code != "428913" {
		t.Errorf("the site was sent the code %q", code)
	}
	phone.sits("127.0.0.1", field("Search"))
	phone.Hold("#done", `!document.querySelector("#done").classList.contains("holding")`)

	select {
	case now := <-finished:
		verified, _ := now["verified"].(map[string]any)
		if now["status"] != "FINISHED" || now["finished_by"] != "owner" || verified["held"] != true || !strings.Contains(fmt.Sprint(now["delta"]), "/home") {
			t.Errorf("the agent was told %v", now)
		}
		if strings.Contains(fmt.Sprint(now), password) || strings.Contains(fmt.Sprint(now), "428913") {
			t.Error("the agent was told a secret")
		}
	case <-ctx.Done():
		t.Fatalf("the agent was told nothing; the phone shows %s", phone.Words())
	}
	phone.Until("thanks", `document.body.innerText.includes("All yours, agent")`)
	if posts := site.heard("posts"); posts != "/login /details /code " {
		t.Errorf("the site was sent forms to %s", posts)
	}
	if text := r.must("GET", "/session/text", "")["text"]; !strings.Contains(fmt.Sprint(text), "Welcome back") {
		t.Errorf("the agent goes on at %v", text)
	}
	for what, s := range map[string]string{"the password": password, "the token": open[strings.Index(open, "#t=")+3:]} {
		if strings.Contains(r.log.String(), s) {
			t.Errorf("%s is in the log", what)
		}
	}
}

// size is the window of the remote page, as the picture is large.
func (g *glass) size() (wide, high float64) {
	g.t.Helper()
	said := g.See(`(s => parseFloat(s.width) + " " + parseFloat(s.height))(document.querySelector("#plane").style)`)
	if _, err := fmt.Sscan(said, &wide, &high); err != nil {
		g.t.Fatalf("%q: %v", said, err)
	}
	return wide, high
}
