package apiserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tapin/internal/api"
	"tapin/internal/testwait"
)

// bad are requests that nobody should send, as bytes on the wire.
func bad(host string) []string {
	post := func(headers, body string) string {
		return fmt.Sprintf("POST /session/navigate HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", host, headers, len(body), body)
	}
	token := "Authorization: Bearer " + agentToken + "\r\n"
	return []string{
		post("", `{"url":"http://a/"}`),
		post("Authorization: Bearer wrong-canary-0001\r\n", `{"url":"http://a/"}`),
		post(token+"Origin: https://evil.example\r\n", `{"url":"http://a/"}`),
		post(token, `{"urll":"http://a/"}`),
		post(token, `{"url":`),
		post(token, strings.Repeat("[", 10000)),
		"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"GET /nowhere/raw-path-canary?q=query-canary HTTP/1.1\r\nHost: " + host + "\r\n" + token + "\r\n",
		"POST /session/navigate HTTP/1.1\r\nHost: " + host + "\r\n" + token + "Content-Length: 104857600\r\n\r\n",
		"GARBAGE\r\n\r\n",
	}
}

// send makes one bad request; answers of 200 are errors.
func sendBad(host, request string) error {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return nil // refused at the door
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, request); err != nil {
		return nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if resp.StatusCode < 400 || strings.Contains(string(raw), "canary") {
		return fmt.Errorf("got %d %s", resp.StatusCode, raw)
	}
	return nil
}

func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// It does not run beside other tests: it measures the memory of the process.
func TestAFloodOfBadRequestsIsNotFelt(t *testing.T) {
	f := serve(t, nil)
	if _, err := f.agent.Start(t.Context(), api.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	// crowd opens connections that never say a word, and returns once the server
	// has taken them in.
	crowd := func() (leave func()) {
		idle := make([]net.Conn, 1000)
		for i := range idle {
			idle[i] = dial(t, f.host)
		}
		// On a slow machine the first were sent away before the last came.
		began := time.Now()
		testwait.For(t, "the crowd is in", func() bool {
			return f.gauge(t, "tapin_http_connections") >= 1000 || time.Since(began) > 3*time.Second // short: what has not come by then was sent away
		})
		return func() {
			for _, conn := range idle {
				_ = conn.Close()
			}
			testwait.For(t, "the crowd is gone", func() bool { return f.gauge(t, "tapin_http_connections") < 50 })
		}
	}

	flood := func(n int) {
		requests := bad(f.host)
		var next atomic.Int64
		var senders sync.WaitGroup
		for range 16 {
			senders.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					if err := sendBad(f.host, requests[i%int64(len(requests))]); err != nil {
						t.Errorf("bad request %d: %v", i%int64(len(requests)), err)
					}
				}
			})
		}
		over := make(chan struct{})
		go func() { senders.Wait(); close(over) }()
		calls := 0
		for {
			if _, err := f.agent.Navigate(t.Context(), "", api.NavigateRequest{URL: "http://a/"}); err != nil {
				t.Fatalf("call %d during the flood: %v", calls, err)
			}
			calls++
			select {
			case <-over:
				t.Logf("%d good calls beside %d bad requests", calls, n)
				return
			default:
			}
		}
	}
	flood(1000) // warms pools and metrics
	quiet := heapMiB()
	leave := crowd()
	before := heapMiB()
	leave()
	leave = crowd()
	logged := f.log.size()
	flood(testwait.Rounds(2_000, 10_000))
	leave() // silent ones were sent away meanwhile
	leave = crowd()
	kept := float64(f.log.size()-logged) / (1 << 20)
	after := heapMiB()
	leave()
	t.Logf("heap %.1f MiB alone, %.1f with 1,000 connections, %.1f after the flood, of it %.1f MiB log", quiet, before, after, kept)
	if before-quiet > 20 { // both ends of the connections are in this process
		t.Errorf("1,000 idle connections cost %.1f MiB", before-quiet)
	}
	if after-before-kept > 6 { // the log is what the test itself keeps
		t.Errorf("the flood left %.1f MiB behind", after-before)
	}

	figures, err := f.agent.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"log": f.log.String(), "metrics": string(figures)} {
		if strings.Contains(text, "canary") || strings.Contains(text, "http://a/") {
			t.Errorf("the %s tells what was sent", name)
		}
	}
	if !strings.Contains(f.log.String(), `"route":"POST /sessions/{id}/navigate","status":401`) {
		t.Error("requests are not logged by their route")
	}
	for _, line := range []string{
		`tapin_http_requests_total{class="4xx",route="unmatched"}`,
		`tapin_http_requests_total{class="2xx",route="POST /sessions/{id}/navigate"}`,
		`tapin_http_request_seconds_bucket{route="POST /sessions/{id}/navigate",le="0.1"}`,
		"tapin_http_in_flight 1", "tapin_http_connections", "go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(string(figures), line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}
