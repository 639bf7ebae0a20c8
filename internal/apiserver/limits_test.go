package apiserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/secret"
	"tapin/internal/session"
)

// none is a house without sessions.
type none struct{ Sessions }

func (none) List() []session.Info { return nil }

// pipes is a listener in memory, so that time can be had for nothing.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// inMemory runs a test against a server with two more routes: one for owners
// only, and one that outlasts every deadline of a connection.
func inMemory(t *testing.T, test func(t *testing.T, dial func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New(Deps{Sessions: none{}, Tokens: FixedTokens{
			{"agent", Agent, secret.New("agent")}, {"owner", Owner, secret.New("owner")}, {"broken", Owner, secret.Text{}},
		}}, &Options{Hosts: []string{"tapin"}})
		s.router = newRouter(append(routes(), post("/vault", Owner, "Opens the vault.",
			func(*Server, *call, *nothing) (*nothing, error) { return &nothing{}, nil }), post("/slow", Agent, "Takes its time.",
			func(_ *Server, c *call, _ *nothing) (*nothing, error) {
				select {
				case <-time.After(2 * time.Minute):
					return &nothing{}, nil
				case <-c.r.Context().Done():
					return nil, c.r.Context().Err()
				}
			})))
		ln := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		served := make(chan error)
		go func() { served <- s.Serve(ln) }()
		test(t, ln.dial)
		began := time.Now()
		if err := s.Shutdown(t.Context()); err != nil || time.Since(began) >= time.Second {
			t.Errorf("the end took %s: %v", time.Since(began), err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// ask sends a request, or the head of one, and reads its answer.
func ask(t *testing.T, conn net.Conn, head string) (status int, body map[string]any) {
	t.Helper()
	if !strings.Contains(head, "\r\n\r\n") {
		head += "\r\n\r\n"
	}
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

func TestWhatIsForTheOwnerIsRefusedToTheAgent(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		defer func() { _ = conn.Close() }()
		for _, tt := range []struct {
			token  string
			status int
			code   any
		}{{"agent", 403, "FORBIDDEN"}, {"owner", 200, nil}, {"", 401, "UNAUTHORIZED"}} {
			status, body := ask(t, conn, fmt.Sprintf("POST /vault HTTP/1.1\r\nHost: tapin\r\nAuthorization: Bearer %s", tt.token))
			if status != tt.status || body["error"] != tt.code || body["ok"] != (status == 200) {
				t.Errorf("%s: got %d %v", tt.token, status, body)
			}
		}
	})
}

func TestASlowCallIsNotCutOff(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		defer func() { _ = conn.Close() }()
		for range 2 { // the second on a connection with a past
			status, body := ask(t, conn, "POST /slow HTTP/1.1\r\nHost: tapin\r\nAuthorization: Bearer agent\r\nContent-Length: 2\r\n\r\n{}")
			if status != 200 || body["ok"] != true {
				t.Errorf("got %d %v", status, body)
			}
		}
	})
}

// Clients open connections in reserve.
func TestShutdownDoesNotWaitForThoseWhoHaveSaidNothing(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		t.Cleanup(func() { _ = conn.Close() })
		synctest.Wait() // it is accepted
	})
}

func TestCallersThatKeepUsWaitingAreSentAway(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says  string
		after time.Duration
	}{
		"one that says nothing":             {"", 5 * time.Second},
		"one that never ends its headers":   {"GET /health HTTP/1.1\r\nHost: tapin\r\nX-", 5 * time.Second},
		"one that never sends its body":     {"POST /vault HTTP/1.1\r\nHost: tapin\r\nAuthorization: Bearer owner\r\nContent-Length: 9\r\n\r\n{", 30 * time.Second},
		"a stranger that does not either":   {"POST /vault HTTP/1.1\r\nHost: tapin\r\nContent-Length: 9\r\n\r\n{", 30 * time.Second},
		"one that asks once and then rests": {"GET /health HTTP/1.1\r\nHost: tapin\r\n\r\n", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, dial func() net.Conn) {
				conn := dial()
				defer func() { _ = conn.Close() }()
				began := time.Now()
				if _, err := io.WriteString(conn, tt.says); err != nil {
					t.Fatal(err)
				}
				raw, err := io.ReadAll(conn)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < tt.after || took > tt.after+2*time.Second {
					t.Errorf("it was sent away after %s, not %s", took, tt.after)
				}
				if strings.Contains(tt.says, "Bearer") && !strings.Contains(string(raw), "did not arrive within 30s") {
					t.Errorf("it was told %q", raw)
				}
			})
		})
	}
}
