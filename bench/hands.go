package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"
)

//go:embed pages/*.html
var hardPages embed.FS

// handsTask is one hard page and one way to name its button.
type handsTask struct {
	Name string `json:"name"`
	Way  string `json:"way"`
	URL  string `json:"url"`
	CSS  string `json:"css"`
	Text string `json:"text"`
}

type handsResult struct {
	Name   string    `json:"name"`
	Way    string    `json:"way"`
	MS     []float64 `json:"ms"`
	Failed int       `json:"failed"`
}

// hands runs tapin and playwright-core over the same hard pages and prints who
// got through, and how fast.
func hands(ctx context.Context, binary, chromium string, rounds int) error {
	site := serveHard()
	defer site.Close()
	tasks, err := handsTasks(site.URL)
	if err != nil {
		return err
	}
	theirs, err := playwrightHands(ctx, chromium, rounds, tasks)
	if err != nil {
		return fmt.Errorf("playwright-core (npm install in bench/peers first): %w", err)
	}
	ours, err := tapinHands(ctx, binary, site.URL, rounds, tasks)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-20s %-5s %18s %18s\n", "page", "by", "playwright-core ms", "tapin ms")
	passes, both, faster := [2]int{}, 0, 0
	for i, task := range tasks {
		a, b := theirs[i], ours[i]
		cell := func(r handsResult) string {
			if r.Failed > 0 {
				return fmt.Sprintf("failed %d/%d", r.Failed, rounds)
			}
			return fmt.Sprintf("%.0f", median(r.MS))
		}
		fmt.Printf("%-20s %-5s %18s %18s\n", task.Name, task.Way, cell(a), cell(b))
		for k, r := range []handsResult{a, b} {
			if r.Failed == 0 {
				passes[k]++
			}
		}
		if a.Failed == 0 && b.Failed == 0 {
			both++
			if median(b.MS) <= median(a.MS) {
				faster++
			}
		}
	}
	fmt.Printf("\npassed: playwright-core %d, tapin %d of %d; tapin as fast or faster on %d of %d that both pass\n", passes[0], passes[1], len(tasks), faster, both)
	return nil
}

func serveHard() *httptest.Server {
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := hardPages.ReadFile(path.Join("pages", path.Base(r.URL.Path)))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		other := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
		_, _ = w.Write(bytes.ReplaceAll(raw, []byte("OTHER"), []byte(other))) //nolint:gosec // embedded pages and our own address
	}))
	return srv
}

func handsTasks(base string) ([]handsTask, error) {
	names, err := fs.Glob(hardPages, "pages/*.html")
	if err != nil {
		return nil, err
	}
	var tasks []handsTask
	for _, name := range names {
		raw, err := hardPages.ReadFile(name)
		if err != nil {
			return nil, err
		}
		first, _, _ := bytes.Cut(raw, []byte("\n"))
		task := handsTask{Name: strings.TrimSuffix(path.Base(name), ".html"), URL: base + "/" + path.Base(name)}
		if json.Unmarshal(bytes.TrimSuffix(bytes.TrimPrefix(first, []byte("<!-- ")), []byte(" -->")), &task) != nil {
			continue // part of another page
		}
		for _, way := range []string{"css", "text"} {
			task.Way = way
			tasks = append(tasks, task)
		}
	}
	return tasks, nil
}

func playwrightHands(ctx context.Context, chromium string, rounds int, tasks []handsTask) ([]handsResult, error) {
	job, err := json.Marshal(map[string]any{"chromium": chromium, "rounds": rounds, "tasks": tasks})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", "playwright.mjs")
	cmd.Dir, cmd.Stdin, cmd.Stderr = "bench/peers", bytes.NewReader(job), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var results []handsResult
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var r handsResult
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

func tapinHands(ctx context.Context, binary, site string, rounds int, tasks []handsTask) ([]handsResult, error) {
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	host := strings.TrimPrefix(site, "http://")
	stop, err := startSidecar(ctx, binary, home, host+","+strings.Replace(host, "127.0.0.1", "localhost", 1))
	if err != nil {
		return nil, err
	}
	defer stop()
	if _, err := post(ctx, home, "/session/start", map[string]any{"screenshot": false}); err != nil {
		return nil, err
	}
	var results []handsResult
	for _, task := range tasks {
		r := handsResult{Name: task.Name, Way: task.Way}
		click := map[string]any{"screenshot": false, "timeout_ms": 3000, "selector": task.CSS}
		if task.Way == "text" {
			delete(click, "selector")
			click["text"] = task.Text
		}
		for range rounds {
			if _, err := post(ctx, home, "/session/navigate", map[string]any{"url": task.URL, "wait": "load", "screenshot": false}); err != nil {
				return nil, err
			}
			began := time.Now()
			_, err := post(ctx, home, "/session/click", click)
			took := ms(time.Since(began))
			if err != nil || !becomesOK(ctx, home) {
				r.Failed++
				continue
			}
			r.MS = append(r.MS, took)
		}
		results = append(results, r)
	}
	return results, nil
}

// becomesOK waits up to a second for the page to say that it was clicked.
func becomesOK(ctx context.Context, home string) bool {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if answer, err := post(ctx, home, "/session/scroll", map[string]any{"direction": "top", "screenshot": false}); err == nil && answer["title"] == "ok" {
			return true
		}
	}
	return false
}

func median(all []float64) float64 {
	ds := make([]time.Duration, len(all))
	for i, v := range all {
		ds[i] = time.Duration(v * float64(time.Millisecond))
	}
	return ms(quantile(ds, 0.5))
}
