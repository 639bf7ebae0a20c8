package sidecar_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tapin/internal/fault"
	"tapin/internal/mcpserver"
	"tapin/internal/testwait"
)

// gallery is a site for one-shots.
func gallery(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><link rel=icon href="data:,"><title>Gallery</title><h1>Pictures</h1><p class=price>9.50`)
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=a.bin")
		_, _ = w.Write(make([]byte, 1000))
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><title>endless</title><body style="height:40000px">`)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	})
	mux.HandleFunc("/part", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><link rel=icon href="data:,"><title>part</title><p>text<img src="http://10.0.0.1/a.png">`)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func TestOneShotsThroughHTTP(t *testing.T) {
	t.Parallel()
	site := gallery(t)
	r := start(t, site, "pool.warm=1")
	body := func(path, more string) string { return fmt.Sprintf(`{"url":"%s%s"%s}`, site.URL, path, more) }

	got := r.must("POST", "/browser/screenshot", body("/", `,"fullPage":true,"sandbox_id":"sb-1","owner_token":"x"`))
	picture, err := base64.StdEncoding.DecodeString(got["image_base64"].(string))
	if err != nil || http.DetectContentType(picture) != got["mime_type"] || got["mime_type"] != "image/png" {
		t.Errorf("%v is called %v", http.DetectContentType(picture), got["mime_type"])
	}
	if got["title"] != "Gallery" || got["final_url"] != site.URL+"/" || got["status_code"] != 200.0 || got["truncated"] != false || got["retries"] != 0.0 {
		t.Errorf("%v", got)
	}
	got = r.must("POST", "/browser/extract", body("/", `,"instruction":"json: {h: h1, p: .price}"`))
	if object, _ := got["content"].(map[string]any); object["h"] != "Pictures" || object["p"] != "9.50" || got["kind"] != "json" || got["retries"] != 0.0 {
		t.Errorf("%v", got)
	}
	got = r.must("POST", "/browser/extract", body("/part", ""))
	blocked, _ := got["blocked"].([]any)
	if len(blocked) != 1 || blocked[0].(map[string]any)["error"] != "BLOCKED_TARGET" || blocked[0].(map[string]any)["rule"] != "private" || got["content"] != "text" {
		t.Errorf("%v", got)
	}
	if got := r.must("POST", "/browser/intent", `{"prompt":"take a screenshot of `+site.URL+`"}`); got["browser"] != true || got["tool"] != "sandbox_browser_screenshot" || got["hint"] == "" {
		t.Errorf("%v", got)
	}
	if got := r.must("POST", "/browser/intent", `{"prompt":"what is the time"}`); got["browser"] != false || got["hint"] != nil {
		t.Errorf("%v", got)
	}

	for name, tt := range map[string]struct {
		path, body string
		code       fault.Code
		says       string
	}{
		"full_page as a text":         {"/browser/screenshot", body("/", `,"full_page":"false"`), fault.InvalidRequest, "full_page"},
		"a key of a provider":         {"/browser/screenshot", body("/", `,"browserbase_api_key":"bb_secret"`), fault.InvalidRequest, "browserbase_api_key"},
		"no address":                  {"/browser/extract", `{}`, fault.InvalidRequest, "url"},
		"an instruction with no end":  {"/browser/extract", body("/", `,"instruction":"json: {a"`), fault.InvalidRequest, ""},
		"another scheme":              {"/browser/extract", `{"url":"file:///etc/passwd"}`, fault.InvalidURL, ""},
		"no scheme":                   {"/browser/extract", `{"url":"example.com"}`, fault.InvalidURL, ""},
		"an address of this machine":  {"/browser/screenshot", `{"url":"http://127.0.0.1:1/"}`, fault.BlockedTarget, "loopback"},
		"our own listener":            {"/browser/screenshot", `{"url":"` + r.base + `/health"}`, fault.BlockedTarget, "own-port"},
		"a redirect to the metadata":  {"/browser/screenshot", body("/to?u=http://169.254.169.254/", ""), fault.BlockedTarget, "metadata"},
		"a redirect to a private one": {"/browser/extract", body("/to?u=https://192.168.0.1/", ""), fault.BlockedTarget, "private"},
		"a page that does not come":   {"/browser/extract", body("/slow", `,"timeout_ms":1500`), fault.NavigationTimeout, ""},
		"a file":                      {"/browser/screenshot", body("/file", ""), fault.NavigationFailed, "a file"},
		"a name that is none":         {"/browser/extract", `{"url":"http://no-such-name.invalid/"}`, fault.NavigationFailed, ""},
		"a picture without end":       {"/browser/screenshot", body("/endless", `,"full_page":true`), fault.ImageTooLarge, ""},
		"a selector that finds none":  {"/browser/extract", body("/", `,"instruction":"selector: #nowhere"`), fault.EmptyExtraction, "#nowhere"},
	} {
		answer := r.refused("POST", tt.path, tt.body, string(tt.code))
		if said := fmt.Sprint(answer["details"]); !strings.Contains(said, tt.says) {
			t.Errorf("%s: it says %q", name, said)
		}
		if strings.Contains(fmt.Sprint(answer), "bb_secret") {
			t.Errorf("%s: a key is repeated: %v", name, answer)
		}
		if tt.code == fault.BlockedTarget && answer["rule"] != tt.says {
			t.Errorf("%s: the rule is %v", name, answer["rule"])
		}
	}

	// The last of them can be looked at, by the owner alone.
	r.refused("GET", "/browser/cards", "", "FORBIDDEN")
	r = r.owner()
	cards, _ := r.must("GET", "/browser/cards", "")["cards"].([]any)
	if len(cards) != 8 {
		t.Fatalf("%d cards", len(cards))
	}
	seen := map[string]string{}
	for _, c := range cards {
		card := c.(map[string]any)
		if problem, ok := card["error"].(map[string]any); ok {
			seen[problem["code"].(string)] = card["card_id"].(string)
			if said := problem["message"].(string); said != fault.Code(problem["code"].(string)).Sentence() {
				t.Errorf("the card says %q", said)
			}
		}
	}
	if len(seen) < 3 {
		t.Errorf("the cards are %v", seen)
	}
	for code, id := range seen {
		r.refused("POST", "/browser/cards/"+id+"/retry", "", code)
		break
	}
	r.refused("POST", "/browser/cards/crd_none/retry", "", "NOT_FOUND")

	_, _, raw := r.do("GET", "/metrics", "")
	metrics := string(raw)
	for _, want := range []string{
		`tapin_oneshot_total{tool="screenshot"}`, `tapin_oneshot_errors_total{code="BLOCKED_TARGET",tool="screenshot"}`,
		`tapin_oneshot_blocked_total{rule="private"}`, `tapin_oneshot_contexts_total{from="warm"}`, `tapin_oneshot_seconds_bucket{tool="extract",le="5"}`,
		`tapin_oneshot_retries_total{tool="screenshot"} 0`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not counted", want)
		}
	}
	if log := r.log.String(); !strings.Contains(log, "screenshot ok ") || !strings.Contains(log, "retries=0") {
		t.Error("the log has no line of it")
	}
	journal := fmt.Sprint(r.must("GET", "/journal", ""))
	if !strings.Contains(journal, "oneshot.screenshot") || strings.Contains(journal, "/endless") || strings.Contains(journal, "nowhere") {
		t.Error("the journal lacks the calls, or has more than it should")
	}
}

func TestOneShotsThatAreSwitchedOff(t *testing.T) {
	t.Parallel()
	site := gallery(t)
	r := start(t, site, "browser_tools.enabled=false")
	r.refused("POST", "/browser/screenshot", `{"url":"`+site.URL+`"}`, "DISABLED")
	r.refused("POST", "/browser/extract", `{"url":"`+site.URL+`","instruction":"json: {"}`, "DISABLED")
	if got := r.must("POST", "/browser/intent", `{"prompt":"take a screenshot of `+site.URL+`"}`); got["browser"] != false || got["hint"] != nil {
		t.Errorf("%v", got)
	}
	on, err := mcpserver.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []bool{true, false} {
		s, err := mcpserver.New(&mcpserver.Options{NoOneShots: off})
		if err != nil {
			t.Fatal(err)
		}
		if hidden := !strings.Contains(strings.Join(s.Names(), " "), "sandbox_browser_"); hidden != off {
			t.Errorf("switched off %v: %v", off, s.Names())
		}
	}
	if offered := r.tools(); strings.Contains(offered, "sandbox_browser_") || !strings.Contains(offered, "browser_start") {
		t.Errorf("%d tools of %d are offered: %s", strings.Count(offered, " ")+1, len(on.Names()), offered)
	}
}

// tools are what the sidecar's own MCP door offers.
func (r *running) tools() string {
	r.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{
		Endpoint: r.base + "/mcp", HTTPClient: &http.Client{Transport: bearer(r.agent)},
	}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	list, err := session.ListTools(context.Background(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestAOneShotWithoutABrowserSaysSo(t *testing.T) {
	t.Parallel()
	site := gallery(t)
	none := filepath.Join(t.TempDir(), "chrome")
	if err := os.WriteFile(none, []byte("#!/bin/sh\necho Chromium 150.0.0.0\ncase $1 in --version) ;; *) exit 3;; esac\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	r := start(t, site, "browser.path="+none)
	r.refused("POST", "/browser/screenshot", `{"url":"`+site.URL+`","timeout_ms":5000}`, "SESSION_CREATE_FAILED")
}

func TestAOneShotSaysWhatIsWrongWithItsProvider(t *testing.T) {
	t.Parallel()
	site := gallery(t)
	body := `{"url":"` + site.URL + `","timeout_ms":3000}`
	start(t, site, "provider=cdp", "cdp.url=ws://127.0.0.1:1/").refused("POST", "/browser/screenshot", body, "SESSION_CREATE_FAILED")
	start(t, site, "provider=cdp").refused("POST", "/browser/screenshot", body, "PROVIDER_NOT_CONFIGURED")
}

// TestTwoHundredOneShotsAtOnceDoNotBringTapinDown has as many callers as an agent
// that lost its patience. Eight are served, 64 wait, and the others are told at
// once to come again; everything else answers meanwhile, and so does the next
// one-shot when the crowd is gone.
func TestTwoHundredOneShotsAtOnceDoNotBringTapinDown(t *testing.T) {
	t.Parallel()
	site := gallery(t)
	r := start(t, site)
	const callers, served = 200, 8 + 64
	crowd, disperse := context.WithCancel(t.Context())
	defer disperse()
	type reply struct {
		status     int
		retryAfter string
		code       any
	}
	replies := make(chan reply, callers)
	for range callers {
		go func() {
			req, err := http.NewRequestWithContext(crowd, http.MethodPost, r.base+"/browser/extract", strings.NewReader(`{"url":"`+site.URL+`/slow"}`))
			if err != nil {
				replies <- reply{}
				return
			}
			req.Header.Set("Authorization", "Bearer "+r.agent)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				replies <- reply{}
				return
			}
			defer func() { _ = resp.Body.Close() }()
			var answer map[string]any
			_ = json.NewDecoder(resp.Body).Decode(&answer)
			replies <- reply{resp.StatusCode, resp.Header.Get("Retry-After"), answer["error"]}
		}()
	}
	for range callers - served {
		if got := <-replies; got.status != http.StatusServiceUnavailable || got.code != "BUSY" || got.retryAfter == "" {
			t.Errorf("one of those sent away was told %+v", got)
		}
	}
	r.must("GET", "/health", "")
	r.must("GET", "/sessions", "")
	disperse()
	for range served {
		<-replies
	}
	// The callers know before tapin does that they are gone.
	testwait.For(t, "the next one-shot", func() bool {
		status, got, _ := r.do("POST", "/browser/extract", `{"url":"`+site.URL+`/"}`)
		if status != http.StatusOK && got["error"] != "BUSY" {
			t.Fatalf("after the crowd: %v", got)
		}
		return got["title"] == "Gallery"
	})
}
