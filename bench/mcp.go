package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// mcpClient is a host's end of a server that speaks MCP over its streams.
type mcpClient struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte
	id    int
}

func startMCP(ctx context.Context, env []string, command string, args ...string) (*mcpClient, error) {
	c := &mcpClient{cmd: exec.CommandContext(ctx, command, args...), lines: make(chan []byte, 16)} //nolint:gosec // a program to measure
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.read(bufio.NewReaderSize(out, 1<<20))
	hello := map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"}}
	if _, err := c.ask("initialize", hello); err != nil {
		c.close()
		return nil, err
	}
	return c, c.say(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

func (c *mcpClient) read(out *bufio.Reader) {
	defer close(c.lines)
	for {
		line, err := out.ReadBytes('\n')
		if err != nil {
			return
		}
		c.lines <- line
	}
}

func (c *mcpClient) say(message map[string]any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = c.in.Write(append(line, '\n'))
	return err
}

// ask sends a request and waits for its answer; whatever else is said is not for us.
func (c *mcpClient) ask(method string, params any) (json.RawMessage, error) {
	c.id++
	if err := c.say(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return nil, errors.New("the server has ended")
			}
			var m struct {
				ID     any             `json:"id"`
				Result json.RawMessage `json:"result"`
				Error  *struct {
					Message string `json:"message"`
				} `json:"error"`
			}
			if json.Unmarshal(line, &m) != nil || m.ID != float64(c.id) {
				continue
			}
			if m.Error != nil {
				return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
			}
			return m.Result, nil
		case <-late.C:
			return nil, fmt.Errorf("%s: no answer", method)
		}
	}
}

// tool calls a tool and gives the texts of its answer.
func (c *mcpClient) tool(name string, arguments map[string]any) (string, error) {
	raw, err := c.ask("tools/call", map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		return "", err
	}
	var got struct {
		IsError bool `json:"isError"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return "", err
	}
	var texts []string
	for _, part := range got.Content {
		texts = append(texts, part.Text)
	}
	said := strings.Join(texts, "\n")
	if got.IsError {
		return "", fmt.Errorf("%s: %.300s", name, said)
	}
	return said, nil
}

func (c *mcpClient) close() {
	_ = c.in.Close()
	ended := make(chan struct{})
	go func() {
		for range c.lines { // so that it can end
		}
		_ = c.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	}
}

// dialect is how a server's tools are called.
type dialect struct {
	label string
	call  func(a action, url, value, ref string) (tool string, arguments map[string]any)
	ref   func(c *mcpClient, a action) (string, error)
	after func() // ends what the server leaves running
	looks bool   // asks for the page after each deed
}

// mcpPeer takes part through MCP.
type mcpPeer struct {
	dialect
	*mcpClient
	refs map[string]string // the handles of elements, by their selectors
}

func (p *mcpPeer) name() string { return p.label }

func (p *mcpPeer) close() {
	p.mcpClient.close()
	if p.after != nil {
		p.after()
	}
}

func (p *mcpPeer) open(_ context.Context, a action, url string) error {
	tool, arguments := p.call(action{Kind: navigate}, url, "", "")
	if _, err := p.tool(tool, arguments); err != nil {
		return err
	}
	if p.ref == nil || a.Selector == "" {
		return nil
	}
	p.refs = map[string]string{}
	for n := range 2 {
		turn := a.turn(n)
		ref, err := p.ref(p.mcpClient, turn)
		if err != nil {
			return err
		}
		p.refs[turn.Selector] = ref
	}
	return nil
}

func (p *mcpPeer) says(context.Context) (string, error) {
	tool, arguments := p.call(action{Kind: text}, "", "", "")
	return p.tool(tool, arguments)
}

func (p *mcpPeer) do(_ context.Context, a action, url, value string) (time.Duration, error) {
	tool, arguments := p.call(a, url, value, p.refs[a.Selector])
	began := time.Now()
	raw, err := p.ask("tools/call", map[string]any{"name": tool, "arguments": arguments})
	if err == nil && p.looks && (a.Kind == navigate || a.Kind == click || a.Kind == fill) {
		look, none := p.call(action{Kind: snapshot}, "", "", "")
		_, err = p.ask("tools/call", map[string]any{"name": look, "arguments": none})
	}
	took := time.Since(began)
	if err == nil && bytes.Contains(raw, []byte(`"isError":true`)) {
		err = fmt.Errorf("%s: %.400s", tool, raw)
	}
	return took, err
}
