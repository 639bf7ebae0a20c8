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
	cmd := exec.CommandContext(ctx, binary, "sidecar", "--home", home, //nolint:gosec // the program to measure
		"--set", "listen.control=127.0.0.1:0", "--set", "egress.allow="+strings.TrimPrefix(url, "http://"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			return 0, errors.New("the sidecar ended before it was ready")
		}
		if lines.Text() == "READY" {
			break
		}
	}
	if err := startSession(ctx, home, url); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

func startSession(ctx context.Context, home, url string) error {
	address, err := os.ReadFile(filepath.Join(home, "control.addr")) //nolint:gosec // a folder of our own
	if err != nil {
		return err
	}
	token, err := os.ReadFile(filepath.Join(home, "agent.token")) //nolint:gosec // a folder of our own
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"url": url})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+strings.TrimSpace(string(address))+"/session/start", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		OK         bool
		Error      string
		Details    string
		Screenshot string
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if !answer.OK || !strings.HasPrefix(answer.Screenshot, "iVBOR") {
		return fmt.Errorf("no picture came: %s %s", answer.Error, answer.Details)
	}
	return nil
}
