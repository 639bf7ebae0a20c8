package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// What a person gives the demo's shop, each in another way.
const (
	canaryTyped   = "typed-Canary7Qx9ZkP2mV5nB8cR@example.com"
	canaryRelayed = `relayed"Canary/4Wj1LtH 6yD3fG0s`
)

// The whole product in one story: the demo with a chat and a phone, a password
// that is relayed, a sidecar that is killed meanwhile, a login that is saved and
// a payment that is approved. What was typed, relayed, set as a cookie or stored
// is in sealed files and in the browser; else nowhere.
func TestNothingOfTheDemoIsAnywhereButSealed(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	above := k.home
	k.home = filepath.Join(above, "demo")
	ctx, cancel := context.WithTimeout(context.Background(), 3*testwait.Limit())
	t.Cleanup(cancel)
	phone := browsertest.NewPhone(ctx, t, browsertest.Network{})
	demo := k.playDemo(ctx, above)
	words := []string{canaryTyped, canaryRelayed}
	looked := 0
	look := func(when string, places map[string]string) {
		t.Helper()
		places["what the demo prints"] = demo.said.String()
		if listed(above, places) < 4 {
			t.Errorf("%s: hardly any process is looked at", when)
		}
		for _, found := range sightings(places, words...) {
			t.Errorf("%s: %s", when, found)
		}
		looked += len(places)
	}

	asked := k.reads("I need you to log in")
	k.tapsIn(phone, asked)
	phone.Tap(`#fields [aria-label="Email"]`)
	phone.Until("the focus in the field", `document.activeElement?.matches('#fields [aria-label="Email"]')`)
	phone.Type(canaryTyped)
	phone.Tap(`#fields [aria-label="Password"]`)
	// The relay goes to the field that has the focus in the browser: keys and tap are on their way there.
	k.must("owner", "POST", "/session/wait", map[string]any{"selector": "input[type=password]:focus", "screenshot": false})
	k.bot.Say(theOwner, "type: "+canaryRelayed, 0)
	k.reads(fmt.Sprintf("Typed %d characters into a password field", len(canaryRelayed)))
	k.settled() // until then the server that has the message keeps it
	look("while it stands in the fields", k.places())

	k.killSidecar()
	phone.Until("the live page again", drivable)
	look("after the sidecar was killed", k.places())
	k.must("owner", "POST", "/session/click", map[string]any{"role": "button", "name": "Sign in", "screenshot": false})
	code := demo.awaits(regexp.MustCompile(`your code is (\d{3}) (\d{3})`))
	phone.Tap(`#fields [aria-label="Code"]`)
	phone.Until("the focus in the field", `document.activeElement?.matches('#fields [aria-label="Code"]')`)
	phone.Type(code[1] + code[2])
	k.solvesPuzzle()
	k.says("done")

	k.reads("okay to confirm?")
	words = append(words, k.loginValues()...)
	if len(words) < 5 {
		t.Fatalf("the login holds only %d values", len(words)-2)
	}
	look("while the agent waits for a yes", k.places())
	for _, m := range k.bot.Chat(theOwner) {
		if said := saidBeside(m.Photo); said != "" {
			t.Errorf("the picture of message %d says %s beside what it shows", m.ID, said)
		}
	}
	k.says("yes")
	demo.awaits(regexp.MustCompile(`Paid, once\. The shop says: order FS-\d{6}`))
	demo.ends()

	laidOut(t, above)
	at := map[string]string{"what the demo prints": demo.said.String()}
	kept(above, at)
	for _, found := range sightings(at, words...) {
		t.Errorf("at the end: %s", found)
	}
	if left := processes(above); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	// The look itself: what is there on purpose is found, in a file and in a picture.
	if err := os.WriteFile(filepath.Join(k.home, "journal", "planted.jsonl"), fmt.Appendf(nil, `{"q":%q}`, base64.StdEncoding.EncodeToString([]byte("x"+canaryRelayed))), 0o600); err != nil {
		t.Fatal(err)
	}
	kept(above, at)
	if found := sightings(at, words...); len(found) != 1 {
		t.Errorf("of one planted word %d were found: %v", len(found), found)
	}
	t.Logf("%d words looked for in %d places", len(words), looked+len(at))
}

// played is a demo that runs.
type played struct {
	t    testing.TB
	said *heard
	over <-chan error
}

// heard is what a process prints, while it does.
type heard struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.String()
}

// playDemo runs the demo with the world's chat and nobody at the terminal.
func (k *talk) playDemo(ctx context.Context, home string) *played {
	k.t.Helper()
	args := []string{"--home", home, "demo"}
	for _, s := range k.set {
		args = append(args, "--set", s)
	}
	cmd := exec.CommandContext(ctx, "tapin", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = testwait.Limit()
	cmd.Env = append(os.Environ(), k.env...)
	said := &heard{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	p := &played{k.t, said, over}
	k.within("a demo that waits for its owner", func() bool {
		select {
		case err := <-over:
			k.t.Fatalf("the demo ended: %v\n%s", err, said.String())
		default:
		}
		return strings.Contains(said.String(), "Your turn")
	})
	return p
}

// awaits waits for something that the demo prints.
func (p *played) awaits(pattern *regexp.Regexp) []string {
	p.t.Helper()
	var found []string
	if !testwait.Comes(func() bool { found = pattern.FindStringSubmatch(p.said.String()); return found != nil }) {
		p.t.Fatalf("the demo does not say %s:\n%s", pattern, p.said.String())
	}
	return found
}

// ends waits for the end of the demo.
func (p *played) ends() {
	p.t.Helper()
	select {
	case err := <-p.over:
		if err != nil {
			p.t.Fatalf("the demo ended with %v:\n%s", err, p.said.String())
		}
	case <-testwait.Over():
		p.t.Fatalf("the demo does not end:\n%s", p.said.String())
	}
}

// solvesPuzzle has the owner drag the leaf to where its shadow is.
func (k *talk) solvesPuzzle() {
	k.t.Helper()
	k.must("owner", "POST", "/session/wait", map[string]any{"selector": ".knob", "screenshot": false})
	read := k.must("owner", "POST", "/session/extract", map[string]any{"instruction": `json: {gap: .gap@transform}`})
	var gap float64
	if _, err := fmt.Sscanf(fmt.Sprint(read.body["content"]), "map[gap:translate(%f", &gap); err != nil {
		k.t.Fatalf("the puzzle says %v: %v", read.body["content"], err)
	}
	// The window is as large as a session's is without any wish; the knob is where shop.css puts it.
	const x, y = 1280/2 - 160 + 49, 720/2 - 200 + 325
	k.must("owner", "POST", "/session/drag", map[string]any{"x": x, "y": y, "to": map[string]any{"x": x + gap, "y": y}, "screenshot": false})
	k.must("owner", "POST", "/session/wait", map[string]any{"selector": "#account", "screenshot": false})
}

// loginValues are the cookies and what is stored, as the owner alone gets to see them.
func (k *talk) loginValues() (values []string) {
	k.t.Helper()
	opened := k.must("owner", "POST", "/context/export", map[string]any{"sealed": false})
	raw, err := json.Marshal(opened.body["envelope"])
	if err != nil {
		k.t.Fatal(err)
	}
	var envelope struct {
		Cookies []struct {
			Name, Value string
		}
		LocalStorage map[string]string
	}
	if err := json.Unmarshal(raw, &envelope); err != nil {
		k.t.Fatalf("the envelope: %v", err)
	}
	for _, c := range envelope.Cookies {
		values = append(values, c.Value)
	}
	for _, v := range envelope.LocalStorage {
		values = append(values, v)
	}
	return slices.DeleteFunc(values, func(v string) bool { return len(v) < 8 })
}

// saidBeside names what a picture carries beside its pixels: comments, and what
// cameras and programs write into it.
func saidBeside(picture []byte) string {
	switch {
	case len(picture) == 0:
		return ""
	case bytes.HasPrefix(picture, []byte("\xff\xd8")):
		return besideJPEG(picture[2:])
	case bytes.HasPrefix(picture, []byte("\x89PNG\r\n\x1a\n")):
		return besidePNG(picture[8:])
	}
	return "something that is no picture"
}

func besideJPEG(rest []byte) string {
	for len(rest) > 4 && rest[0] == 0xff && rest[1] != 0xda { // until the pixels begin
		kind, long := rest[1], int(binary.BigEndian.Uint16(rest[2:]))
		if kind == 0xfe || kind >= 0xe1 && kind <= 0xef && kind != 0xe2 { // e0 is JFIF, e2 the colours
			return fmt.Sprintf("a segment %#x", kind)
		}
		rest = rest[min(len(rest), long+2):]
	}
	return ""
}

func besidePNG(rest []byte) string {
	for len(rest) >= 12 {
		long, kind := int(binary.BigEndian.Uint32(rest)), string(rest[4:8])
		if slices.Contains([]string{"tEXt", "zTXt", "iTXt", "eXIf", "tIME"}, kind) {
			return "a chunk " + kind
		}
		rest = rest[min(len(rest), long+12):]
	}
	return ""
}

func TestAPictureThatSaysSomethingIsNoticed(t *testing.T) {
	t.Parallel()
	chunk := func(kind, data string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(data)))) + kind + data + "\x00\x00\x00\x00" //nolint:gosec // short
	}
	const png = "\x89PNG\r\n\x1a\n"
	for name, tt := range map[string]struct {
		picture string
		said    bool
	}{
		"a comment in a JPEG": {"\xff\xd8\xff\xe0\x00\x04xx\xff\xfe\x00\x06secr\xff\xda\x00", true},
		"a camera's words":    {"\xff\xd8\xff\xe1\x00\x06Exif\xff\xda\x00", true},
		"a plain JPEG":        {"\xff\xd8\xff\xe0\x00\x04xx\xff\xdb\x00\x03x\xff\xda\x00\x00", false},
		"a text in a PNG":     {png + chunk("IHDR", "x") + chunk("tEXt", "secret") + chunk("IEND", ""), true},
		"a plain PNG":         {png + chunk("IHDR", "x") + chunk("IDAT", "xyz") + chunk("IEND", ""), false},
	} {
		if got := saidBeside([]byte(tt.picture)); (got != "") != tt.said {
			t.Errorf("%s: %q", name, got)
		}
	}
}
