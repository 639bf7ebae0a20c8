package apiserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/fault"
	"tapin/internal/testwait"
)

func TestOnlyCallersWithATokenGetIn(t *testing.T) {
	t.Parallel()
	f := serve(t, &apiserver.Options{MaxWrongTokens: 1000})
	for name, header := range map[string]string{
		"no token":            "",
		"a wrong token":       "Bearer nonsense",
		"an empty token":      "Bearer ",
		"another scheme":      "Basic " + agentToken,
		"a token and more":    "Bearer " + agentToken + "x",
		"a part of a token":   "Bearer " + agentToken[:8],
		"an endless token":    "Bearer " + strings.Repeat("x", 4000),
		"a token by itself":   agentToken,
		"two tokens in a row": "Bearer " + agentToken + " " + ownerToken,
	} {
		for _, path := range []string{"/openapi.json", "/metrics", "/events", "/sessions", "/session/status", "/nowhere"} {
			a := f.do(t, "GET", path, "", map[string]string{"Authorization": header})
			if a.status != 401 || a.body["error"] != "UNAUTHORIZED" || a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s, %s: %d %s", name, path, a.status, a.raw)
			}
		}
	}
	for _, header := range []string{"Bearer " + agentToken, "bearer " + ownerToken} {
		if a := f.do(t, "GET", "/sessions", "", map[string]string{"Authorization": header}); a.status != 200 {
			t.Errorf("a valid token: %d %s", a.status, a.raw)
		}
	}
}

func TestAWrongTokenIsAnsweredBeforeTheBodyIsSent(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	conn := dial(t, f.host)
	_, _ = fmt.Fprintf(conn, "POST /session/start HTTP/1.1\r\nHost: %s\r\nContent-Length: 100000000\r\nContent-Type: application/json\r\n\r\n", f.host)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != 401 || !resp.Close {
		t.Fatalf("got %d, close %v", resp.StatusCode, resp.Close)
	}
}

func TestWrongTokensAreSlowedDownAndRightOnesAreNot(t *testing.T) {
	t.Parallel()
	f := serve(t, &apiserver.Options{MaxWrongTokens: 3})
	limited := 0
	for range 40 {
		a := f.do(t, "GET", "/sessions", "", map[string]string{"Authorization": "Bearer wrong"})
		switch {
		case a.status == 429 && a.body["error"] == "RATE_LIMITED" && a.header.Get("Retry-After") != "":
			limited++
		case a.status != 401:
			t.Fatalf("got %d %s", a.status, a.raw)
		}
		if a := f.do(t, "GET", "/sessions", "", nil); a.status != 200 {
			t.Fatalf("a right token was refused: %d %s", a.status, a.raw)
		}
	}
	if limited == 0 {
		t.Fatal("forty wrong tokens were never told to wait")
	}
}

func TestTheServerAnswersOnlyToItsOwnNames(t *testing.T) {
	t.Parallel()
	f := serve(t, &apiserver.Options{Hosts: []string{"Given.example"}})
	_, port, _ := net.SplitHostPort(f.host)
	forget := f.AllowHost("tunnel.example")
	check := func(host string, want int) {
		t.Helper()
		for _, path := range []string{"/health", "/sessions", "/nowhere"} {
			a := f.do(t, "GET", path, "", map[string]string{"Host": host})
			want := want
			if path == "/nowhere" && want == 200 {
				want = 404
			}
			if a.status != want || want == 403 && a.body["error"] != "FORBIDDEN" {
				t.Errorf("Host %s, %s: got %d %s, want %d", host, path, a.status, a.raw, want)
			}
		}
	}
	for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port, "LocalHost:" + port, "[::1]:" + port, "tunnel.example", "TUNNEL.example:443", "given.example"} {
		check(host, 200)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "localhost:1", "evil.example", "evil.example:" + port, "localhost.evil.example:" + port,
		"127.0.0.1.evil.example:" + port, "tunnel.example:8080", "sub.tunnel.example", "0.0.0.0:" + port, "127.0.0.2:" + port} {
		check(host, 403)
	}
	forget()
	forget()
	check("tunnel.example", 403)
}

func TestForeignPagesAreRefused(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	_, port, _ := net.SplitHostPort(f.host)
	f.AllowHost("tunnel.example")
	for name, tt := range map[string]struct {
		header, value string
		status        int
	}{
		"our own origin":                {"Origin", "http://" + f.host, 200},
		"our own origin by name":        {"Origin", "http://localhost:" + port, 200},
		"the tunnel's origin":           {"Origin", "https://tunnel.example", 200},
		"the tunnel without encryption": {"Origin", "http://tunnel.example", 403},
		"another port of this machine":  {"Origin", "http://localhost:1", 403},
		"another scheme":                {"Origin", "https://" + f.host, 403},
		"another site":                  {"Origin", "https://evil.example", 403},
		"an opaque origin":              {"Origin", "null", 403},
		"a page of ours":                {"Sec-Fetch-Site", "same-origin", 200},
		"a person":                      {"Sec-Fetch-Site", "none", 200},
		"another page":                  {"Sec-Fetch-Site", "cross-site", 403},
		"a neighbour":                   {"Sec-Fetch-Site", "same-site", 403},
	} {
		for _, path := range []string{"/health", "/sessions"} {
			a := f.do(t, "GET", path, "", map[string]string{tt.header: tt.value})
			if a.status != tt.status || tt.status == 403 && a.body["error"] != "FORBIDDEN" {
				t.Errorf("%s, %s: got %d %s, want %d", name, path, a.status, a.raw, tt.status)
			}
		}
	}
	a := f.do(t, "OPTIONS", "/session/start", "", map[string]string{
		"Authorization": "", "Origin": "https://evil.example", "Access-Control-Request-Method": "POST"})
	if a.status != 403 {
		t.Errorf("a preflight got %d", a.status)
	}
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	for _, path := range []string{"/health", "/openapi.json", "/metrics", "/session/screenshot", "/session/status", "/nowhere"} {
		a := f.do(t, "GET", path, "", map[string]string{"Origin": f.base})
		if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, a.header)
		}
		for name := range a.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: has %s", path, name)
			}
		}
	}
}

func TestUnknownRoutesAndMethodsAreAnsweredInOurWords(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for _, tt := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/", 404, "NOT_FOUND", ""},
		{"GET", "/session/", 404, "NOT_FOUND", ""},
		{"GET", "//health", 404, "NOT_FOUND", ""},
		{"GET", "/sessions/../health", 404, "NOT_FOUND", ""},
		{"POST", "/sessions//stop", 404, "NOT_FOUND", ""},
		{"POST", "/sessions/a/b/stop", 404, "NOT_FOUND", ""},
		{"POST", "/sessions/a/start", 404, "NOT_FOUND", ""},
		{"GET", "/session/start", 405, "INVALID_REQUEST", "POST"},
		{"DELETE", "/sessions/a/navigate", 405, "INVALID_REQUEST", "POST"},
		{"POST", "/session/status", 405, "INVALID_REQUEST", "GET, HEAD"},
		{"HEAD", "/events", 405, "", "GET"},
		{"GARBAGE", "/health", 405, "INVALID_REQUEST", "GET, HEAD"},
		{"HEAD", "/health", 200, "", ""},
	} {
		a := f.do(t, tt.method, tt.path, "", nil)
		code, _ := a.body["error"].(string)
		if a.status != tt.status || code != tt.code || a.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: got %d %s, Allow %q", tt.method, tt.path, a.status, a.raw, a.header.Get("Allow"))
		}
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	t.Parallel()
	f := serve(t, &apiserver.Options{MaxBody: 4096})
	f.do(t, "POST", "/session/start", "", nil)
	for name, tt := range map[string]struct {
		body    string
		headers map[string]string
		status  int
		says    string
	}{
		"an unknown field is named, with the likely one": {`{"ulr":"http://a/"}`, nil, 400, `Did you mean \"url\"?`},
		"broken JSON":                      {`{"url":`, nil, 400, "byte 7"},
		"garbage after the object":         {`{"url":"http://a/"} x`, nil, 400, "byte"},
		"a field given twice":              {`{"url":"http://a/","url":"http://b/"}`, nil, 400, "twice"},
		"a list instead of an object":      {`[]`, nil, 400, "a list"},
		"a number instead of a text":       {`{"url":123456}`, nil, 400, `field \"url\" must be a text, not a number`},
		"a text instead of true or false":  {`{"url":"http://a/","screenshot":"false"}`, nil, 400, `field \"screenshot\"`},
		"a required field that is missing": {``, nil, 400, `field \"url\" is required`},
		"a form":                           {`url=x`, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 400, "JSON"},
		"another charset":                  {`{"url":"http://a/"}`, map[string]string{"Content-Type": "application/json; charset=latin1"}, 400, "JSON"},
		"compressed":                       {`{"url":"http://a/"}`, map[string]string{"Content-Encoding": "gzip"}, 400, "compressed"},
		"a body over the limit":            {`{"url":"` + strings.Repeat("a", 5000) + `"}`, nil, 413, "PAYLOAD_TOO_LARGE"},
		"JSON with a charset":              {`{"url":"http://a/"}`, map[string]string{"Content-Type": "application/json; charset=UTF-8"}, 200, "http://a/"},
		"JSON without a type":              {`{"url":"http://a/"}`, map[string]string{"Content-Type": ""}, 200, "http://a/"},
		"a body that ends at the limit":    {`{"url":"http://a/"}` + strings.Repeat(" ", 4096-19), nil, 200, "http://a/"},
		"a query where none belongs":       {`{"url":"http://a/"}`, map[string]string{"query": "?x=1"}, 400, `unknown parameter \"x\"`},
	} {
		headers := map[string]string{}
		path := "/session/navigate"
		for k, v := range tt.headers {
			if k == "query" {
				path += v
				continue
			}
			headers[k] = v
		}
		a := f.do(t, "POST", path, tt.body, headers)
		if a.status != tt.status || !strings.Contains(a.raw, tt.says) {
			t.Errorf("%s: got %d %s", name, a.status, a.raw)
		}
		if strings.Contains(a.raw, "123456") {
			t.Errorf("%s: the answer repeats the value", name)
		}
	}
}

func TestAHugeBodyIsNotRead(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for name, head := range map[string]string{
		"announced": "Content-Length: 104857600\r\n",
		"in chunks": "Transfer-Encoding: chunked\r\n",
	} {
		conn := dial(t, f.host)
		_, _ = fmt.Fprintf(conn, "POST /session/start HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n", f.host, agentToken, head)
		sent := make(chan int64, 1)
		go func() { // until the server hangs up
			piece := []byte("8000\r\n" + strings.Repeat(" ", 0x8000) + "\r\n")
			n := int64(0)
			for n < 100<<20 {
				m, err := conn.Write(piece)
				n += int64(m)
				if err != nil {
					break
				}
			}
			sent <- n
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 413 || !resp.Close {
			t.Errorf("%s: got %d, close %v", name, resp.StatusCode, resp.Close)
		}
		// What the kernel's buffers took was sent, but not read.
		if n := <-sent; n > 50<<20 {
			t.Errorf("%s: the server took %d bytes", name, n)
		}
	}
}

func TestAFullServerSaysSoAndStaysHealthy(t *testing.T) {
	t.Parallel()
	f := serve(t, &apiserver.Options{MaxConcurrent: 2})
	f.do(t, "POST", "/session/start", "", nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := f.agent.Navigate(ctx, "", api.NavigateRequest{URL: "block:"})
			ended <- err
		}()
	}
	<-f.room.active.blocked
	<-f.room.active.blocked
	if a := f.do(t, "GET", "/sessions", "", nil); a.status != 503 || a.body["error"] != "BUSY" || a.header.Get("Retry-After") == "" {
		t.Fatalf("got %d %s", a.status, a.raw)
	}
	if a := f.do(t, "GET", "/health", "", map[string]string{"Authorization": ""}); a.status != 200 {
		t.Errorf("health: %d", a.status)
	}
	if a := f.do(t, "GET", "/sessions", "", map[string]string{"Authorization": ""}); a.status != 401 {
		t.Errorf("a stranger: %d", a.status)
	}
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	testwait.For(t, "the slots come back", func() bool { return f.do(t, "GET", "/sessions", "", nil).status == 200 })
}

func TestANewcomerTakesThePlaceOfAnIdleStranger(t *testing.T) {
	t.Parallel()
	f := serve(t, &apiserver.Options{MaxConnections: 3})
	known, err := f.agent.Sessions(t.Context()) // its connection stays open
	if err != nil || known == nil {
		t.Fatal(err)
	}
	strangers := []net.Conn{dial(t, f.host), dial(t, f.host)}
	for range 5 {
		strangers = append(strangers, dial(t, f.host))
	}
	// The oldest strangers were sent away, though none of them said a word.
	for i, conn := range strangers[:5] {
		_ = conn.SetReadDeadline(testwait.End())
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Errorf("stranger %d is still here: %v", i, err)
		}
	}
	if _, err := f.agent.Sessions(t.Context()); err != nil {
		t.Errorf("a known caller: %v", err)
	}
}

func TestShutdownLetsCallsEndAndThenCutsThemOff(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.do(t, "POST", "/session/start", "", nil)
	ended := make(chan error, 1)
	go func() {
		_, err := f.agent.Navigate(context.Background(), "", api.NavigateRequest{URL: "block:"})
		ended <- err
	}()
	<-f.room.active.blocked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // short: it must run out
	defer cancel()
	if err := f.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("shutdown: %v", err)
	}
	if err := <-ended; !errors.Is(err, fault.Busy) {
		t.Fatalf("the call: %v", err)
	}
	if _, err := f.agent.Health(t.Context()); !errors.Is(err, api.ErrNotRunning) {
		t.Fatalf("after it: %v", err)
	}
}

func dial(t *testing.T, host string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func isTimeout(err error) bool {
	if errors.Is(err, io.EOF) {
		return false
	}
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
