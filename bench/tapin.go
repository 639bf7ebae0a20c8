package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// sidecar is a running tapin, spoken to over HTTP as any agent does.
type sidecar struct {
	home    string
	address string
	token   string // the agent's
	owner   string
	cmd     *exec.Cmd
}

// startSidecar starts the part that has the browsers, and waits until it serves.
func startSidecar(ctx context.Context, binary, site string, set ...string) (*sidecar, error) {
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		return nil, err
	}
	return startSidecarIn(ctx, home, binary, site, set...)
}

// startSidecarIn starts one in a home that may have been used before.
func startSidecarIn(ctx context.Context, home, binary, site string, set ...string) (*sidecar, error) {
	s, out, err := launchTapin(ctx, home, binary, []string{"sidecar"}, site, set)
	if err != nil {
		return nil, err
	}
	ready := false
	for lines := bufio.NewScanner(out); !ready && lines.Scan(); {
		ready = lines.Text() == "READY"
	}
	if !ready {
		s.stop()
		return nil, errors.New("the sidecar ended before it was ready")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return s, s.learn()
}

// startWhole starts all of tapin, as a person does.
func startWhole(ctx context.Context, binary, site string, set ...string) (*sidecar, error) {
	home, err := os.MkdirTemp("", "tapin")
	if err != nil {
		return nil, err
	}
	s, out, err := launchTapin(ctx, home, binary, []string{"up", "--no-check"}, site, set)
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if s.learn() != nil {
			continue
		}
		if _, err = s.get(ctx, "/health"); err == nil {
			return s, nil
		}
	}
	s.stop()
	return nil, fmt.Errorf("tapin does not serve: %w", err)
}

// launchTapin starts the program.
func launchTapin(ctx context.Context, home, binary string, command []string, site string, set []string) (*sidecar, io.Reader, error) {
	args := append(command, "--home", home)
	for _, each := range append([]string{"listen.control=127.0.0.1:0", "listen.public=127.0.0.1:0", "egress.allow=" + strings.TrimPrefix(site, "http://")}, set...) {
		args = append(args, "--set", each)
	}
	s := &sidecar{home: home, cmd: exec.CommandContext(ctx, binary, args...)}    //nolint:gosec // the program to measure
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) } // a killed one would leave its browsers for the next
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return s, out, s.cmd.Start()
}

// learn reads where it serves and the keys to it.
func (s *sidecar) learn() error {
	for name, into := range map[string]*string{"control.addr": &s.address, "agent.token": &s.token, "owner.token": &s.owner} {
		raw, err := os.ReadFile(filepath.Join(s.home, name)) //nolint:gosec // a folder of our own
		if err != nil {
			return err
		}
		*into = strings.TrimSpace(string(raw))
	}
	return nil
}

func (s *sidecar) stop() {
	s.end()
	_ = os.RemoveAll(s.home)
}

// end ends it and leaves its home.
func (s *sidecar) end() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// refusal is an answer that is no success, with its status.
type refusal struct {
	Status int
	Retry  string
	Code   string `json:"error"`
	Words  string `json:"details"`
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Words) }

// ask is one call; the answer's bytes as they came.
func (s *sidecar) ask(ctx context.Context, token, method, route string, body any) ([]byte, error) {
	var in io.Reader = http.NoBody
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+route, in)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		r := &refusal{Status: resp.StatusCode, Retry: resp.Header.Get("Retry-After")}
		_ = json.Unmarshal(raw, r) // its status says enough
		return nil, fmt.Errorf("%s: %w", route, r)
	}
	return raw, nil
}

// post is a call with JSON both ways.
func (s *sidecar) post(ctx context.Context, route string, body map[string]any) (map[string]any, error) {
	return s.postAs(ctx, s.token, route, body)
}

func (s *sidecar) postAs(ctx context.Context, token, route string, body map[string]any) (map[string]any, error) {
	raw, err := s.ask(ctx, token, http.MethodPost, route, body)
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	return answer, json.Unmarshal(raw, &answer)
}

func (s *sidecar) get(ctx context.Context, route string) ([]byte, error) {
	return s.ask(ctx, s.token, http.MethodGet, route, nil)
}

// tapinHTTP takes part through HTTP.
type tapinHTTP struct{ *sidecar }

func newTapinHTTP(ctx context.Context, binary, site string) (*tapinHTTP, error) {
	s, err := startSidecar(ctx, binary, site)
	if err != nil {
		return nil, err
	}
	_, err = s.post(ctx, "/session/start", map[string]any{"screenshot": false})
	return &tapinHTTP{s}, err
}

func (t *tapinHTTP) name() string { return "tapin" }
func (t *tapinHTTP) close()       { t.stop() }

func (t *tapinHTTP) open(ctx context.Context, _ action, url string) error {
	_, err := t.post(ctx, "/session/navigate", map[string]any{"url": url, "wait": "load", "screenshot": false})
	return err
}

func (t *tapinHTTP) says(ctx context.Context) (string, error) {
	raw, err := t.get(ctx, "/session/text")
	return string(raw), err
}

func (t *tapinHTTP) do(ctx context.Context, a action, url, value string) (time.Duration, error) {
	began := time.Now()
	var err error
	var raw []byte
	switch a.Kind {
	case navigate:
		err = t.open(ctx, a, url)
	case screenshot:
		if raw, err = t.get(ctx, "/session/screenshot"); err == nil {
			err = rightPNG(bytes.NewReader(raw))
		}
	case click:
		_, err = t.post(ctx, "/session/click", map[string]any{"selector": a.Selector, "screenshot": false})
	case fill:
		_, err = t.post(ctx, "/session/fill", map[string]any{"fields": []any{map[string]any{"selector": a.Selector, "value": value}}, "screenshot": false})
	case text:
		_, err = t.get(ctx, "/session/text?max_chars=1000000")
	case snapshot:
		_, err = t.get(ctx, "/session/snapshot?max_chars=1000000")
	}
	return time.Since(began), err
}

// tapinColdStart starts the sidecar and asks for a session on the page; the
// answer carries the first picture.
func tapinColdStart(ctx context.Context, home, binary, url string) (time.Duration, error) {
	began := time.Now()
	s, err := startSidecarIn(ctx, home, binary, originOf(url))
	if err != nil {
		return 0, err
	}
	defer s.end()
	err = firstPicture(ctx, s, url)
	return time.Since(began), err
}

// firstPicture starts a session whose answer carries a picture.
func firstPicture(ctx context.Context, s *sidecar, url string) error {
	answer, err := s.post(ctx, "/session/start", map[string]any{"url": url})
	if err != nil {
		return err
	}
	shot, _ := answer["screenshot"].(string)
	return rightPicture(shot)
}

// originOf cuts an address of the site before its path.
func originOf(url string) string {
	rest := strings.TrimPrefix(url, "http://")
	host, _, _ := strings.Cut(rest, "/")
	return "http://" + host
}
