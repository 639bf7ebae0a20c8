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
)

// account is a site that wants a cookie, a key of localStorage and a row of
// IndexedDB, all three from the first script on.
type account struct {
	*httptest.Server

	mu       sync.Mutex
	strange  []string // requests without the cookie, the login aside
	verdicts []string // what the page found when it opened
}

const (
	accountCookie = "canary-cookie-7d1f"
	accountLocal  = "canary-local-b02c"
	accountRow    = "canary-row-93ae"
)

func openAccount(t *testing.T) *account {
	t.Helper()
	b := &account{}
	mux := http.NewServeMux()
	mux.HandleFunc("/login", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: accountCookie, Path: "/", HttpOnly: true})
		_, _ = fmt.Fprintf(w, `<!doctype html><title>wait</title><script>
localStorage.setItem('token', %q);
const open = indexedDB.open('auth', 1);
open.onupgradeneeded = () => open.result.createObjectStore('rows');
open.onsuccess = () => { const tx = open.result.transaction('rows', 'readwrite'); tx.objectStore('rows').put({token: %q, at: new Date(0)}, 'me'); tx.oncomplete = () => document.documentElement.append('logged in') };
</script>`, accountLocal, accountRow)
	})
	mux.HandleFunc("/logout", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: "", Path: "/", MaxAge: -1})
	})
	mux.HandleFunc("/verdict", func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.verdicts = append(b.verdicts, string(raw))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c, err := r.Cookie("sid")
		if err != nil || c.Value != accountCookie {
			b.mu.Lock()
			b.strange = append(b.strange, r.Method+" "+r.URL.Path)
			b.mu.Unlock()
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprintf(w, `<!doctype html><title>account</title><h1>Welcome back</h1><script>
const local = localStorage.getItem('token') === %q;
const open = indexedDB.open('auth');
open.onsuccess = () => {
  const get = open.result.transaction('rows').objectStore('rows').get('me');
  get.onsuccess = () => fetch('/verdict', {method: 'POST', body: [local, get.result.token === %q, get.result.at instanceof Date].join()}).then(() => document.documentElement.append('judged'));
};
open.onupgradeneeded = () => fetch('/verdict', {method: 'POST', body: 'no database'});
</script>`, accountLocal, accountRow)
	})
	b.Server = httptest.NewServer(mux)
	t.Cleanup(b.Close)
	return b
}

func TestALoginIsSavedAndTheNextSessionBeginsWithIt(t *testing.T) {
	t.Parallel()
	site := openAccount(t)
	r := start(t, site.Server)
	begun := r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/login","screenshot":false}`)
	if begun["context"] != "bank" || begun["context_restored"] == true {
		t.Errorf("a first start says %v", begun)
	}
	r.must("POST", "/session/wait", `{"state":"networkidle","screenshot":false}`)
	if stopped := r.must("POST", "/session/stop", `{}`); stopped["context_saved"] != true {
		t.Fatalf("the stop says %v", stopped)
	}

	// Another process, so that nothing is in memory.
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.begin([]string{"listen.control=127.0.0.1:0", "max_sessions=2", "egress.allow=" + strings.TrimPrefix(site.URL, "http://")})
	begun = r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/","screenshot":false}`)
	if begun["context_restored"] != true {
		t.Errorf("a second start says %v", begun)
	}
	r.must("POST", "/session/wait", `{"state":"networkidle","screenshot":false}`)
	site.mu.Lock()
	if len(site.strange) > 0 {
		t.Errorf("the site saw requests without the login: %v", site.strange)
	}
	if len(site.verdicts) != 1 || site.verdicts[0] != "true,true,true" {
		t.Errorf("the page found %v", site.verdicts)
	}
	site.mu.Unlock()

	noCanary(t, r.dir, accountCookie, accountLocal, accountRow) // nor in the browser's own folder, while it runs
	r.refused("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/"}`, "CONTEXT_LOCKED")
	if stopped := r.must("POST", "/sessions/"+begun["session_id"].(string)+"/stop", `{"verified":true}`); stopped["context_saved"] != true {
		t.Errorf("the second stop says %v", stopped)
	}
	manifest, err := os.ReadFile(filepath.Join(r.dir, "browser-contexts.yaml"))
	if err != nil || !strings.Contains(string(manifest), "last_verified") {
		t.Errorf("the manifest says %q (%v)", manifest, err)
	}
	noCanary(t, r.dir, accountCookie, accountLocal, accountRow)
}

func TestSaveContextFalseWritesNothing(t *testing.T) {
	t.Parallel()
	site := openAccount(t)
	r := start(t, site.Server)
	r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/login","save_context":false,"screenshot":false}`)
	if stopped := r.must("POST", "/session/stop", `{}`); stopped["context_saved"] != false {
		t.Errorf("the stop says %v", stopped)
	}
	r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/login","screenshot":false}`)
	if stopped := r.must("POST", "/session/stop", `{"save_context":false}`); stopped["context_saved"] != false {
		t.Errorf("the stop says %v", stopped)
	}
	if files, _ := filepath.Glob(filepath.Join(r.dir, "contexts", "*.age*")); len(files) > 0 {
		t.Errorf("there is %v", files)
	}
}

// noCanary looks for values in every file of a home.
func noCanary(t *testing.T, dir string, values ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what is gone holds nothing
		}
		raw, err := os.ReadFile(path) //nolint:gosec // a file of the test's own home
		if err != nil {
			return nil //nolint:nilerr // what is gone holds nothing
		}
		for _, v := range values {
			if strings.Contains(string(raw), v) {
				t.Errorf("%s holds %q", path, v)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
