package sidecar_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
	"testing"
	"time"
)

// Pages that never let go of their thread, each of a site of its own: nothing
// that they have stored can be read where they are.
func TestASessionWithStuckPagesEndsAndKeepsItsLogin(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hello" {
			http.SetCookie(w, &http.Cookie{Name: "sid", Value: accountCookie, Path: "/"})
			_, _ = fmt.Fprint(w, `<!doctype html><title>hello</title><script>localStorage.setItem('k', 'v')</script>`)
			return
		}
		_, port, _ := strings.Cut(r.Host, ":")
		next := map[string]string{"/1": "2", "/2": "3", "/3": "4"}[r.URL.Path]
		link := "<p>the last"
		if next != "" {
			link = fmt.Sprintf(`<a target=_blank rel=opener href="http://s%s.localhost:%s/%s" onclick="setTimeout(() => { for (;;) {} }, 500)">Next</a>`, next, port, next)
		}
		_, _ = fmt.Fprintf(w, `<!doctype html><title>%s</title><script>localStorage.setItem('k', 'v')</script>%s`, r.URL.Path, link)
	}))
	t.Cleanup(func() {
		site.CloseClientConnections()
		site.Close()
	})
	port := site.URL[strings.LastIndexByte(site.URL, ':')+1:]
	r := start(t, site, "egress.allow=127.0.0.1:"+port+",*.localhost:"+port)
	r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/hello","screenshot":false}`)
	r.must("POST", "/session/navigate", `{"url":"http://s1.localhost:`+port+`/1","screenshot":false}`)
	for i := 2; i <= 4; i++ {
		r.must("POST", "/session/click", `{"text":"Next","screenshot":false}`)
		r.must("POST", "/session/wait", fmt.Sprintf(`{"url":"/%d","screenshot":false}`, i))
	}
	if n := len(r.tabs()); n != 4 {
		t.Fatalf("there are %d tabs", n)
	}
	began := time.Now()
	stopped := r.must("POST", "/session/stop", `{}`)
	if stopped["context_saved"] != true || time.Since(began) > testwait.Limit() {
		t.Errorf("after %s the stop says %v", time.Since(began), stopped)
	}
	t.Logf("it took %s", time.Since(began))
	if login := r.must("GET", "/contexts/bank", ""); login["cookies"] != 1.0 {
		t.Errorf("the login has %v", login)
	}
}

func TestSoakASessionThatHasBeenEverywhereEndsAndKeepsItsLogin(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: accountCookie, Path: "/"})
		_, _ = fmt.Fprint(w, `<!doctype html><title>hello</title><script>localStorage.setItem('k', 'v')</script>`)
	}))
	t.Cleanup(func() {
		site.CloseClientConnections()
		site.Close()
	})
	port := site.URL[strings.LastIndexByte(site.URL, ':')+1:]
	r := start(t, site, "egress.allow=127.0.0.1:"+port+",*.localhost:"+port)
	r.must("POST", "/session/start", `{"context":"bank","url":"`+site.URL+`/hello","screenshot":false}`)
	far := 10
	if os.Getenv("TAPIN_TEST_SOAK") != "" {
		far = 150 // takes longer to read than an end may take otherwise
	}
	for i := range far {
		r.must("POST", "/session/navigate", fmt.Sprintf(`{"url":"http://s%d.localhost:%s/","screenshot":false}`, i, port))
	}
	began := time.Now()
	stopped := r.must("POST", "/session/stop", `{}`)
	t.Logf("it took %s", time.Since(began))
	if stopped["context_saved"] != true {
		t.Errorf("the stop says %v", stopped)
	}
	if login := r.must("GET", "/contexts/bank", ""); login["cookies"] != float64(far+1) {
		t.Errorf("the login has %v cookies", login["cookies"])
	}
}
