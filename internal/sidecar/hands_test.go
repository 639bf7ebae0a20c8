package sidecar_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tapin/internal/testwait"
)

func TestWhatASnapshotNamesIsClickedByItsRef(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/frame":
			_, _ = fmt.Fprint(w, `<button onclick="parent.document.title = 'from the frame'">Inner</button>`)
		default:
			_, _ = fmt.Fprintf(w, `<!doctype html><title>%s</title><a href=/next>Onward</a><button onclick="document.title = 'pressed'">Press</button><iframe src=/frame></iframe>`, r.URL.Path)
		}
	}))
	t.Cleanup(site.Close)
	r := start(t, site)
	r.must("POST", "/session/start", `{"url":"`+site.URL+`/first","screenshot":false}`)
	r.must("POST", "/session/wait", `{"text":"Inner","screenshot":false}`)
	see := func() string {
		t.Helper()
		outline, _ := r.must("GET", "/session/snapshot", "")["snapshot"].(string)
		return outline
	}
	press := func(ref string) map[string]any {
		t.Helper()
		return r.must("POST", "/session/click", `{"ref":"`+ref+`","screenshot":false}`)
	}
	first := see()
	for name, title := range map[string]string{"Press": "pressed", "Inner": "from the frame"} {
		if got := press(refOf(t, first, name)); got["clicked"] != true || got["effect"] != "confirmed" || got["title"] != title {
			t.Errorf("%s: %v", name, got)
		}
	}
	press(refOf(t, first, "Onward"))
	r.must("POST", "/session/wait", `{"url":"/next","screenshot":false}`)
	r.must("POST", "/session/wait", `{"text":"Inner","screenshot":false}`)
	for _, name := range []string{"Press", "Inner", "Onward"} {
		r.refused("POST", "/session/click", `{"ref":"`+refOf(t, first, name)+`"}`, "STALE_REF")
	}
	if got := press(refOf(t, see(), "Press")); got["title"] != "pressed" {
		t.Errorf("on the next page: %v", got)
	}
}

func TestNothingIsBeforeTheFirstPage(t *testing.T) {
	t.Parallel()
	site := openShop(t)
	r := start(t, site.Server)
	r.must("POST", "/session/start", `{"url":"`+site.URL+`","screenshot":false}`)
	answer := r.refused("POST", "/session/back", `{}`, "NAVIGATION_FAILED")
	if details, _ := answer["details"].(string); !strings.Contains(details, "no page to go back to") {
		t.Errorf("it is not said why: %v", answer)
	}
	r.must("POST", "/session/navigate", `{"url":"`+site.URL+`/popup","screenshot":false}`)
	if got := r.must("POST", "/session/back", `{"screenshot":false}`); got["title"] != "Shop" {
		t.Errorf("back led to %v", got)
	}
}

func TestADialogThatAChoiceOpensIsInItsAnswer(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<!doctype html><title>t</title><input type=checkbox id=tick onchange="confirm('sure?')"><select id=list onchange="alert('chosen')"><option>Red<option>Blue</select>`)
	}))
	t.Cleanup(site.Close)
	r := start(t, site)
	r.must("POST", "/session/start", `{"url":"`+site.URL+`","screenshot":false}`)
	for path, body := range map[string]string{"fill": `{"fields":[{"selector":"#tick","value":"true"}]}`, "select": `{"selector":"#list","values":["Blue"]}`} {
		got := r.must("POST", "/session/"+path, body)
		if dialog, _ := got["dialog"].(map[string]any); dialog["kind"] == nil {
			t.Errorf("%s: %v", path, got)
		}
		r.refused("POST", "/session/"+path, body, "DIALOG_OPEN")
		r.must("POST", "/session/dialog", `{"accept":true,"screenshot":false}`)
	}
}

func TestWhoeverIsCutOffByAStopIsToldSo(t *testing.T) {
	t.Parallel()
	site := openShop(t)
	r := start(t, site.Server)
	id, _ := r.must("POST", "/session/start", `{"url":"`+site.URL+`","screenshot":false}`)["session_id"].(string)
	answers := make(chan error, 3)
	for _, body := range []string{`{"text":"Nothing says this"}`, `{"selector":"#nothing"}`, `{"url":"nowhere"}`} {
		go func() {
			// One is under way, the others wait for their turn.
			_, answer, raw := r.do("POST", "/sessions/"+id+"/wait", body)
			if details, _ := answer["details"].(string); answer["error"] != "NO_SESSION" || !strings.Contains(details, "it was stopped") {
				answers <- fmt.Errorf("%s gave %.300s", body, raw)
				return
			}
			answers <- nil
		}()
	}
	testwait.For(t, "the calls", func() bool {
		_, _, raw := r.do("GET", "/metrics", "")
		return strings.Contains(string(raw), "tapin_http_in_flight 4") // and the one who asks
	})
	r.must("POST", "/session/stop", `{}`)
	for range 3 {
		select {
		case err := <-answers:
			if err != nil {
				t.Error(err)
			}
		case <-testwait.Over():
			t.Fatal("somebody still waits")
		}
	}
}
