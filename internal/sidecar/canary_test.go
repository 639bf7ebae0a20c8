package sidecar_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	basicPassword = "canary-basic-51f0"
	passphrase    = "canary-passphrase-e6d2"
)

// Every secret of a login on its whole way: given by the site, typed for the
// owner, saved, restored, exported, imported. It is in sealed files, in the
// page and in what the owner asks for in the clear; else nowhere.
func TestTheSecretsOfALoginAreNowhereButSealed(t *testing.T) {
	t.Parallel()
	site := openAccount(t)
	bank := openBank(t)
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, ok := r.BasicAuth(); !ok || password != basicPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="staff"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, `<!doctype html><title>staff</title>in`)
	}))
	t.Cleanup(guarded.Close)
	port := bank.URL[strings.LastIndexByte(bank.URL, ':')+1:]
	r := startWith(t, site.Server, ring{"credential-localhost-login": keptPassword}, "max_sessions=2",
		"egress.allow="+strings.Join([]string{strings.TrimPrefix(site.URL, "http://"), strings.TrimPrefix(guarded.URL, "http://"), "localhost:" + port}, ","))
	owner := r.owner()
	secrets := []string{accountCookie, accountLocal, accountRow, keptPassword, basicPassword, passphrase}
	var said bytes.Buffer
	call := func(method, path, body string) map[string]any {
		t.Helper()
		_, answer, raw := r.do(method, path, body)
		said.Write(raw)
		return answer
	}
	look := func(when string) {
		t.Helper()
		for _, path := range []string{"/metrics", "/journal?recent=500", "/contexts", "/contexts/bank", "/sessions", "/session/status", "/session/tabs", "/handoffs", "/health"} {
			call("GET", path, "")
		}
		found := func(where string, raw []byte) {
			for _, s := range secrets {
				if i := bytes.Index(raw, []byte(s)); i >= 0 {
					t.Errorf("%s: %s is in %s: …%.120q…", when, s, where, raw[max(0, i-60):])
				}
			}
		}
		found("an answer", said.Bytes())
		found("the log", []byte(r.log.String()))
		files, profile := 0, 0
		err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // what is gone holds nothing
			}
			raw, err := os.ReadFile(path) //nolint:gosec // a file of the test's own home
			if err != nil {
				return nil //nolint:nilerr // what is gone holds nothing
			}
			files++
			if strings.Contains(path, "/run/") {
				profile++
			}
			found(path, raw)
			return nil
		})
		processes := 0
		for _, name := range []string{"cmdline", "environ"} {
			all, _ := filepath.Glob("/proc/[0-9]*/" + name)
			for _, file := range all {
				if raw, err := os.ReadFile(file); err == nil && bytes.Contains(raw, []byte(r.dir)) { //nolint:gosec // the process list
					processes++
					found(file, raw)
				}
			}
		}
		if err != nil || files < 5 || (profile > 0) != (processes > 0) {
			t.Errorf("%s: looked at %d files and %d processes, %v", when, files, processes, err)
		}
		t.Logf("%s: %d files, %d of them the browser's, %d processes, %d bytes of answers", when, files, profile, processes, said.Len())
	}

	r.login(site, "bank")
	look("while the browser has the login")
	call("POST", "/session/stop", `{}`)
	look("saved")

	call("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/","screenshot":false}`)
	r.settled("judged")
	look("restored")
	sealed, err := json.Marshal(call("POST", "/context/export", `{}`)["envelope"])
	if err != nil {
		t.Fatal(err)
	}
	call("POST", "/session/navigate", `{"url":"`+guarded.URL+`/","screenshot":false}`)
	if answer := call("POST", "/session/auth", `{"username":"ada","password":"`+basicPassword+`","screenshot":false}`); answer["ok"] != true {
		t.Errorf("the site's own question: %v", answer)
	}
	call("POST", "/session/navigate", `{"url":"http://localhost:`+port+`/","screenshot":false}`)
	if answer := call("POST", "/session/fill", `{"fields":[{"label":"Password","credential":"localhost"}]}`); answer["ok"] != true {
		t.Errorf("the credential: %v", answer)
	}
	look("filled in")
	call("POST", "/context/import", `{"envelope":`+string(sealed)+`}`)
	locked := owner.must("POST", "/context/export", `{"origin":"`+guarded.URL+`","includeHttpAuth":true,"passphrase":"`+passphrase+`"}`)
	raw, err := json.Marshal(locked)
	if err != nil {
		t.Fatal(err)
	}
	said.Write(raw)
	envelope, err := json.Marshal(locked["envelope"])
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []string{passphrase + "-wrong", passphrase} {
		call("POST", "/context/import", `{"envelope":`+string(envelope)+`,"passphrase":"`+try+`"}`)
	}
	call("POST", "/contexts/carried/import", `{"envelope":`+string(envelope)+`,"passphrase":"`+passphrase+`"}`)
	call("POST", "/context/import", `{"envelope":{"sealed":"`+passphrase+`"},"passphrase":"`+passphrase+`"}`)
	look("carried")
	call("POST", "/session/stop", `{}`)
	look("at the end")
}
