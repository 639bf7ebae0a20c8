package sidecar_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// birds are secrets that must be nowhere but where they belong, and the forms
// in which they would be recognised.
type birds struct{ forms map[string][]byte }

func cage(secrets ...string) *birds {
	b := &birds{forms: map[string][]byte{}}
	for _, s := range secrets {
		add := func(form string, raw []byte) { b.forms[s+" "+form] = raw }
		add("as it is", []byte(s))
		add("in capitals", []byte(strings.ToUpper(s)))
		add("percent-encoded", []byte(percent(s)))
		add("in hex", []byte(hex.EncodeToString([]byte(s))))
		escaped, _ := json.Marshal(s) // a text always encodes
		add("in JSON", escaped[1:len(escaped)-1])
		unicode := ""
		var little, big []byte
		for _, u := range utf16.Encode([]rune(s)) {
			unicode += fmt.Sprintf(`\u%04x`, u)
			little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u)) //nolint:gosec // its bytes
		}
		add("in JSON's numbers", []byte(unicode))
		add("in UTF-16LE", little)
		add("in UTF-16BE", big)
		// Base64 of it in the middle of something: whatever stands before moves it
		// by none, one or two, and spoils the groups at both ends.
		for shift := range 3 {
			whole := base64.StdEncoding.EncodeToString(append(make([]byte, shift), s...))
			from, to := (shift*8+5)/6, (shift+len(s))*8/6
			add(fmt.Sprintf("in base64, moved by %d", shift), []byte(whole[from:to]))
			add(fmt.Sprintf("in base64 of addresses, moved by %d", shift), []byte(strings.NewReplacer("+", "-", "/", "_").Replace(whole[from:to])))
		}
	}
	return b
}

func percent(s string) string {
	var out strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&out, "%%%02X", s[i])
	}
	return out.String()
}

// in tells which of them are in something.
func (b *birds) in(raw []byte) []string {
	var found []string
	lower := bytes.ToLower(raw) // once: there are hundreds of forms, and files of megabytes
	for name, form := range b.forms {
		if bytes.Contains(raw, form) || !strings.Contains(name, "base64") && bytes.Contains(lower, bytes.ToLower(form)) {
			found = append(found, name)
		}
	}
	return found
}

// under looks at every file of a folder, and at its name. The number of files
// says that there was something to look at.
func (b *birds) under(t *testing.T, dir string) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what went away meanwhile holds nothing
		}
		if found := b.in([]byte(strings.TrimPrefix(path, dir))); found != nil {
			t.Errorf("%v in the name %s", found, path)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		raw, _ := os.ReadFile(path) //nolint:gosec // our own home
		files++
		if found := b.in(raw); found != nil {
			t.Errorf("%v in %s", found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestAnEscapedSecretIsRecognisedInEveryForm(t *testing.T) {
	t.Parallel()
	const s = `Tr0ub4dor&3 "canary" über/7Qx`
	b := cage(s)
	wide := []byte{}
	for _, u := range utf16.Encode([]rune(s)) {
		wide = append(wide, byte(u), byte(u>>8)) //nolint:gosec // its bytes
	}
	inJSON, _ := json.Marshal(map[string]string{"k": s})
	for name, planted := range map[string]string{
		"plain": "a " + s + " b", "JSON": string(inJSON), "UTF-16": string(wide), "percent": percent(s), "hex": hex.EncodeToString([]byte(s)),
		"base64":             base64.StdEncoding.EncodeToString([]byte(s)),
		"base64 after one":   base64.StdEncoding.EncodeToString([]byte("x" + s + "yy")),
		"base64 after two":   base64.StdEncoding.EncodeToString([]byte("xx" + s + "y")),
		"base64 of an URL":   base64.RawURLEncoding.EncodeToString([]byte("xxxx" + s)),
		"another case":       strings.ToUpper(s),
		"inside other bytes": "\x00\xff" + s + "\x00",
	} {
		if b.in([]byte(planted)) == nil {
			t.Errorf("%s: the leak is not noticed in %q", name, planted)
		}
	}
	if found := b.in([]byte("Tr0ub4dor&4 and other harmless things")); found != nil {
		t.Errorf("noticed without reason: %v", found)
	}
}

// The secrets of one login, each where pages have them.
const (
	secretTyped    = "typed-Canary7Qx9ZkP2mV5nB8cR"
	secretRelayed  = "relayed-Canary4Wj1LtH6yD3fG0s"
	secretForm     = "form-Canary8Ub5EoA2iK9qX7vN"
	secretCookie   = "cookie-Canary3Mz6PrC1wJ4hT8d"
	secretLocal    = "local-Canary0Fy7SgL5kB2xV9n"
	secretSession  = "session-Canary6Qe1TuR8aZ3oW5c"
	secretKey      = "keyCanary9Dp4NjM7bY2lH6gX1sK"
	secretQuery    = "query-Canary2Vx8JfU5eA0tC7rI"
	secretFragment = "fragment-Canary5Ln3WqO9yG6kP"
	secretTitle    = "titleCanary1Bs7ZhE4mD8vR2uF5"
	secretUser     = "user-Canary7Ti0XcN3gL6jQ9wA"
	secretPassword = "password-Canary4Ko8RyS1fV5zM"
	secretText     = "text-Canary6Hd2PbU9xJ7eG3nW"
	secretShort    = "hunter2y" // looks like nothing, and is in a field
)

// vaultSite asks for everything there is.
func vaultSite(t *testing.T) *httptest.Server {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/login":
			_, _ = fmt.Fprint(w, `<!doctype html><title>Login</title><form method=post action="/in?code=`+secretQuery+`#`+secretFragment+`">
<input id=name name=name autocomplete=username><input id=pass name=pass type=password><input id=hidden name=hidden value="`+secretForm+`"><button id=go>Go</button></form>`)
		case "/in":
			http.SetCookie(w, &http.Cookie{Name: "sid", Value: secretCookie, HttpOnly: true, Path: "/"})
			_, _ = fmt.Fprintf(w, `<!doctype html><title>Welcome %s %s</title><input value="%s"><p>%s</p><script>
localStorage.setItem("token", %q); localStorage.setItem(%q, "1"); sessionStorage.setItem("step", %q);
</script>`, secretTitle, secretShort, secretShort, secretText, secretLocal, secretKey, secretSession)
		case "/guarded":
			if user, pass, ok := r.BasicAuth(); !ok || user != secretUser || pass != secretPassword {
				w.Header().Set("WWW-Authenticate", `Basic realm="vault"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = fmt.Fprint(w, `<!doctype html><title>Guarded</title>`)
		}
	}))
	t.Cleanup(site.Close)
	return site
}

func TestNothingOfWhatAPersonDoesIsAnywhere(t *testing.T) {
	t.Parallel()
	site := vaultSite(t)
	r := start(t, site)
	owner := r.as("owner")
	b := cage(secretTyped, secretRelayed, secretForm, secretCookie, secretLocal, secretSession, secretKey, secretQuery, secretFragment,
		secretTitle, secretUser, secretPassword, secretText, secretShort)
	clean := func(where string, raw []byte) {
		t.Helper()
		if found := b.in(raw); found != nil {
			t.Errorf("%v in %s: %.400s", found, where, raw)
		}
	}
	agent := func(method, path, body string) map[string]any {
		t.Helper()
		code, answer, raw := r.do(method, path, body)
		if code != http.StatusOK {
			t.Fatalf("%s %s gave %d %s", method, path, code, raw)
		}
		clean("the answer to "+path, raw)
		return answer
	}
	streams := map[string]*safeBuffer{"the agent": r.follow(), "the owner": owner.follow()}
	run := agent("POST", "/task-run/start", `{"goal":"log in"}`)["run_id"].(string)
	agent("POST", "/session/start", `{"url":"`+site.URL+`/login","context":"vault","screenshot":false}`)
	id := agent("POST", "/handoff/start", `{"reason":"login","instruction":"Log in with `+secretForm+`","task":"see the vault","capture_screenshot":true,"run_id":"`+run+`"}`)["handoff_id"].(string)

	owner.must("POST", "/session/type", `{"text":"`+secretTyped+`","selector":"#name","screenshot":false}`)
	owner.must("POST", "/session/click", `{"selector":"#pass","screenshot":false}`)
	relayed := owner.must("POST", "/handoff/"+id+"/type", `{"text":"`+secretRelayed+`"}`)
	if fmt.Sprint(relayed["characters"]) != fmt.Sprint(len(secretRelayed)) || relayed["field"] != "password" {
		t.Errorf("the relay says %v", relayed)
	}
	clean("the answer to the relay", fmt.Append(nil, relayed))
	files := b.under(t, r.dir) // while the secrets stand in the fields
	owner.must("POST", "/session/click", `{"selector":"#go","screenshot":false}`)
	owner.must("POST", "/session/wait", `{"text":"`+secretText+`","screenshot":false}`)
	owner.must("POST", "/session/navigate", `{"url":"`+site.URL+`/guarded","screenshot":false}`)
	owner.must("POST", "/session/auth", `{"username":"`+secretUser+`","password":"`+secretPassword+`","screenshot":false}`)
	owner.must("POST", "/session/navigate", `{"url":"`+site.URL+`/in?code=`+secretQuery+`#`+secretFragment+`","screenshot":false}`)
	agent("GET", "/session/status", "")
	b.processes(t)

	done := owner.must("POST", "/handoff/"+id+"/finish", `{}`)
	clean("the owner's answer to finish", fmt.Append(nil, done))
	if after, _ := done["after"].(map[string]any); after == nil || after["url"] != site.URL+"/in" || !strings.Contains(fmt.Sprint(after["title"]), "‹hidden:") {
		t.Errorf("the page afterwards is %v", done["after"])
	}
	for who, stream := range streams {
		clean("the events that "+who+" is told of", hears(t, stream, "handoff.finished"))
	}
	for _, path := range []string{"/task-run/" + run, "/contexts/vault"} {
		agent("GET", path, "")
	}
	for _, each := range []*running{r, owner} {
		for path, raw := range each.answers(id) {
			clean("the answer to "+path, raw)
		}
	}
	clean("the log", []byte(r.log.String()))
	files += b.under(t, r.dir)
	// The login is saved, and sealed; the person's session exports nothing else.
	if code, _, raw := r.do("POST", "/context/export", `{}`); code == http.StatusOK {
		clean("the agent's export", raw)
	}
	r.must("POST", "/session/stop", `{}`)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	clean("the log at the end", []byte(r.log.String()))
	files += b.under(t, r.dir)
	if files < 60 {
		t.Errorf("only %d files were looked at", files)
	}
	// The test itself: something that is there on purpose has to be noticed.
	planted := filepath.Join(r.dir, "journal", "planted.jsonl")
	if err := os.WriteFile(planted, []byte(`{"q":"`+base64.StdEncoding.EncodeToString([]byte("?"+url.QueryEscape(secretTyped)))+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(planted); err != nil || b.in(raw) == nil { //nolint:gosec // written above
		t.Errorf("a planted leak was not noticed: %v", err)
	}
	t.Logf("%d forms of 14 secrets looked for in %d files", len(b.forms), files)
}

// processes looks at the command line and the environment of every process
// under this one.
func (b *birds) processes(t *testing.T) {
	t.Helper()
	seen := 0
	for _, name := range []string{"cmdline", "environ"} {
		files, _ := filepath.Glob("/proc/[0-9]*/" + name)
		for _, file := range files {
			raw, err := os.ReadFile(file) //nolint:gosec // the process list
			if err != nil {
				continue
			}
			seen++
			if found := b.in(raw); found != nil {
				t.Errorf("%v in %s", found, file)
			}
		}
	}
	if seen < 4 {
		t.Errorf("only %d processes were looked at", seen)
	}
}
