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

func (r handsResult) took() []time.Duration {
	all := make([]time.Duration, len(r.MS))
	for i, v := range r.MS {
		all[i] = time.Duration(v * float64(time.Millisecond))
	}
	return all
}

// measureHands clicks through pages that are hard to click on, beside playwright-core.
func (b *bench) measureHands(ctx context.Context) error {
	site := serveHard()
	defer site.Close()
	tasks, err := handsTasks(site.URL)
	if err != nil {
		return err
	}
	rounds := min(b.rounds, 3)
	theirs, err := playwrightHands(ctx, b.chromium, rounds, tasks)
	if err != nil {
		return fmt.Errorf("playwright-core (npm install in bench/peers first): %w", err)
	}
	ours, err := tapinHands(ctx, b.binary, site.URL, rounds, tasks)
	if err != nil {
		return err
	}
	passes, both, faster := map[string]int{}, 0, 0
	for i, task := range tasks {
		r := row{Group: "hands", Name: "click through " + task.Name + ", by " + task.Way, Unit: "ms", Floor: "playwright-core"}
		r.Figures = figuresOf(map[string][]time.Duration{"playwright-core": theirs[i].took(), "tapin": ours[i].took()}, "playwright-core")
		for who, one := range map[string]handsResult{"playwright-core": theirs[i], "tapin": ours[i]} {
			if one.Failed == 0 {
				passes[who]++
			} else {
				r.Note = strings.TrimSpace(fmt.Sprintf("%s %s failed %d of %d times.", r.Note, who, one.Failed, rounds))
			}
		}
		if theirs[i].Failed == 0 && ours[i].Failed == 0 {
			both++
			if r.Figures["tapin"].Median <= r.Figures["playwright-core"].Median {
				faster++
			}
		}
		b.report.Rows = append(b.report.Rows, r)
	}
	b.add(row{
		Group: "hands", Name: "hard pages clicked through", Unit: "of " + fmt.Sprint(len(tasks)),
		Figures:  map[string]figure{"playwright-core": {Median: float64(passes["playwright-core"])}, "tapin": {Median: float64(passes["tapin"])}},
		Verdicts: []verdict{atLeast("passed", float64(passes["tapin"]), float64(len(tasks))), atLeast("as fast or faster, of those both pass", float64(faster)/float64(max(1, both)), 0.9)},
	})
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
	cmd := exec.CommandContext(ctx, "node", "hands.mjs")
	cmd.Dir, cmd.Stdin, cmd.Stderr = peersFolder, bytes.NewReader(job), os.Stderr
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
	if len(results) != len(tasks) {
		return nil, fmt.Errorf("%d of %d tasks were answered", len(results), len(tasks))
	}
	return results, nil
}

func tapinHands(ctx context.Context, binary, site string, rounds int, tasks []handsTask) ([]handsResult, error) {
	host := strings.TrimPrefix(site, "http://")
	s, err := startSidecar(ctx, binary, host+","+strings.Replace(host, "127.0.0.1", "localhost", 1))
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if _, err := s.post(ctx, "/session/start", map[string]any{"screenshot": false}); err != nil {
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
			if _, err := s.post(ctx, "/session/navigate", map[string]any{"url": task.URL, "wait": "load", "screenshot": false}); err != nil {
				return nil, err
			}
			began := time.Now()
			_, err := s.post(ctx, "/session/click", click)
			took := ms(time.Since(began))
			if err != nil || !becomesOK(ctx, s) {
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
func becomesOK(ctx context.Context, s *sidecar) bool {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if answer, err := s.post(ctx, "/session/scroll", map[string]any{"direction": "top", "screenshot": false}); err == nil && answer["title"] == "ok" {
			return true
		}
	}
	return false
}
