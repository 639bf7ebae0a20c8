package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// viewer is somebody at the socket of a live view.
type viewer struct {
	conn *websocket.Conn

	mu     sync.Mutex
	frames int
	lost   error
	news   chan struct{}
}

// link makes a link into the session; url is what a phone opens.
func (s *sidecar) link(ctx context.Context, mode string) (url string, err error) {
	made, err := s.postAs(ctx, s.owner, "/links", map[string]any{"mode": mode})
	if err != nil {
		return "", err
	}
	url, _ = made["open_url"].(string)
	return url, nil
}

// entrance is a device's right to come in, again and again.
type entrance struct {
	origin, path string
	cookie       string
}

// claim takes a link for a device.
func claim(ctx context.Context, url string) (entrance, error) {
	address, token, _ := strings.Cut(url, "#t=")
	e := entrance{origin: originOf(address)}
	e.path = strings.TrimPrefix(address, e.origin)
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		return e, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/claim", bytes.NewReader(body))
	if err != nil {
		return e, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", e.origin)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return e, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) == 0 {
		return e, fmt.Errorf("claim: %s", resp.Status)
	}
	e.cookie = resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
	return e, nil
}

// enter opens the socket.
func (e entrance) enter(ctx context.Context) (*viewer, error) {
	conn, _, err := websocket.Dial(ctx, strings.Replace(e.origin, "http", "ws", 1)+e.path+"/ws", &websocket.DialOptions{
		HTTPHeader: http.Header{"Origin": {e.origin}, "Cookie": {e.cookie}},
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(16 << 20)
	v := &viewer{conn: conn, news: make(chan struct{}, 1)}
	go v.read(ctx)
	return v, nil
}

// watch is a new viewer of the session. Its link could drive, as those that only watch
// get masked pictures, a few a second; it never does.
func (s *sidecar) watch(ctx context.Context) (*viewer, error) {
	url, err := s.link(ctx, "drive")
	if err != nil {
		return nil, err
	}
	e, err := claim(ctx, url)
	if err != nil {
		return nil, err
	}
	return e.enter(ctx)
}

func (v *viewer) read(ctx context.Context) {
	var parts []byte // of a picture that is not whole yet
	for {
		kind, raw, err := v.conn.Read(ctx)
		if err == nil && kind == websocket.MessageBinary && len(raw) >= 2 {
			if raw[0] == 2 {
				parts = append(parts, raw[2:]...)
			} else {
				parts = raw
			}
			if raw[0] == 1 && raw[1]&4 != 0 || raw[0] == 2 && raw[1] == 0 {
				continue
			}
			raw = parts
		}
		v.mu.Lock()
		if err != nil {
			v.lost = err
		} else if kind == websocket.MessageBinary {
			v.frames++
		}
		v.mu.Unlock()
		select {
		case v.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary && len(raw) >= 8 {
			ack := fmt.Sprintf(`{"t":"ack","number":%d,"w":640,"h":360,"dpr":1}`, binary.BigEndian.Uint32(raw[4:]))
			_ = v.conn.Write(ctx, websocket.MessageText, []byte(ack))
		}
	}
}

// seen is how many pictures came, and whether the line still holds.
func (v *viewer) seen() (frames int, lost error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.frames, v.lost
}

// more waits for a picture beyond so many.
func (v *viewer) more(than int, within time.Duration) error {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		frames, lost := v.seen()
		switch {
		case frames > than:
			return nil
		case lost != nil:
			return lost
		}
		select {
		case <-v.news:
		case <-late.C:
			return fmt.Errorf("no picture came within %s", within)
		}
	}
}

func (v *viewer) leave() { _ = v.conn.CloseNow() }
