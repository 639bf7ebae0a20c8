package holder

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tapin/internal/testwait"
)

// sockets are both ends of a connection as a holder has them.
func sockets(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	if theirs, err = net.Dial("unix", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// Frames come as they were sent, whether they were written at once, in part, or
// had to stand in line, and although whoever sent them uses the bytes again.
func TestFramesComeInOrderWhateverTheSocketTakes(t *testing.T) {
	t.Parallel()
	ours, theirs := sockets(t)
	out := newOutbox(ours)
	go out.run()
	const frames = 500 // all of which may stand in line
	size := func(i int) int { return []int{10, 70_000, 1, 300_000, 4096}[i%5] }
	reused := make([]byte, 300_000)
	go func() {
		for i := range frames {
			payload := reused[:size(i)]
			copy(payload, bytes.Repeat([]byte{byte(i)}, size(i)))
			if !out.push(frameMessage, payload) {
				break
			}
		}
		out.close()
	}()
	_ = theirs.SetReadDeadline(testwait.End())
	r := bufio.NewReader(theirs)
	var payload []byte
	for i := range frames {
		var err error
		if i%50 == 0 {
			time.Sleep(2 * time.Millisecond) // one who reads now and then
		}
		if _, payload, err = readFrame(r, payload); err != nil {
			t.Fatalf("after %d frames: %v", i, err)
		}
		if len(payload) != size(i) || bytes.Count(payload, []byte{byte(i)}) != size(i) {
			t.Fatalf("frame %d has %d bytes, or others' in it", i, len(payload))
		}
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("after the last frame: %v", err)
	}
}

// Commands reach a browser that reads slowly whole and in order, long ones too.
func TestCommandsReachASlowBrowserInOrder(t *testing.T) {
	t.Parallel()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(from, to)
	p := &process{in: to, inline: inlineTo(to), writes: make(chan command, 64), exited: make(chan struct{})}
	go p.feed()
	const commands = 400
	command := func(i int) string {
		return fmt.Sprintf("%d%s", i, strings.Repeat("x", []int{3, 100, 5000, 200_000}[i%4]/(1+i%3)))
	}
	go func() {
		for i := range commands {
			if p.write([]byte(command(i)), nil, nil) != nil {
				break
			}
		}
	}()
	_ = from.SetReadDeadline(testwait.End())
	in := messages{r: bufio.NewReaderSize(from, 64<<10)}
	for i := range commands {
		raw, err := in.next()
		if err != nil || string(raw) != command(i) {
			t.Fatalf("command %d came as %.20q with %d bytes: %v", i, raw, len(raw), err)
		}
	}
}
