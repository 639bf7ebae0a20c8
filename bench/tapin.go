package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tapinColdStart starts the sidecar and asks for a session on the page; the
// answer carries the first picture.
func tapinColdStart(ctx context.Context, binary, home, url string) (time.Duration, error) {
	began := time.Now()
	stop, err := startSidecar(ctx, binary, home, strings.TrimPrefix(url, "http://"))
	if err != nil {
		return 0, err
	}
	defer stop()
	answer, err := post(ctx, home, "/session/start", map[string]any{"url": url})
	if err != nil {
		return 0, err
	}
	if shot, _ := answer["screenshot"].(string); !strings.HasPrefix(shot, "iVBOR") {
		return 0, errors.New("no picture came")
	}
	return time.Since(began), nil
}

// startSidecar starts the program and waits until it serves.
func startSidecar(ctx context.Context, binary, home, allow string, set ...string) (stop func(), err error) {
	args := []string{"sidecar", "--home", home, "--set", "listen.control=127.0.0.1:0", "--set", "egress.allow=" + allow}
	for _, each := range set {
		args = append(args, "--set", each)
	}
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // the program to measure
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "READY" {
			return stop, nil
		}
	}
	stop()
	return nil, errors.New("the sidecar ended before it was ready")
}

// post is one call of the API, as an agent makes it.
func post(ctx context.Context, home, route string, body map[string]any) (map[string]any, error) {
	address, err := os.ReadFile(filepath.Join(home, "control.addr")) //nolint:gosec // a folder of our own
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(home, "agent.token")) //nolint:gosec // a folder of our own
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+strings.TrimSpace(string(address))+route, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer["ok"] != true {
		return nil, fmt.Errorf("%s: %v %v", route, answer["error"], answer["details"])
	}
	return answer, nil
}
