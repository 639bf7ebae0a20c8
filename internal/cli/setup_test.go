package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapin/internal/chat/telegram/bottest"
	"tapin/internal/fault"
)

// person sits at the terminal: says the lines one after the other, and then
// leaves with Ctrl-C.
type person struct {
	io.Writer
	lines []string
	leave context.CancelFunc
	said  int
}

func (p *person) Read(b []byte) (int, error) {
	if p.said == len(p.lines) {
		p.leave()
		return 0, io.EOF
	}
	p.said++
	return copy(b, p.lines[p.said-1]+"\n"), nil
}

// beginner is somebody who sets tapin up.
type beginner struct {
	t    *testing.T
	user string // the home folder
	keys *memory
	bot  *bottest.Server
}

func newBeginner(t *testing.T) *beginner {
	t.Helper()
	bot, err := bottest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bot.Close)
	b := &beginner{t: t, user: t.TempDir(), keys: &memory{entries: map[string]string{}}, bot: bot}
	if err := os.MkdirAll(filepath.Join(b.user, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(b.user, "h"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write("h/config.yaml", "# mine\nmax_sessions: 2 # two\n")
	return b
}

func (b *beginner) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.user, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *beginner) read(name string) string {
	raw, _ := os.ReadFile(filepath.Join(b.user, name))
	return string(raw)
}

// run is one command with a person who gives these answers; nil is nobody.
func (b *beginner) run(answers []string, args ...string) (code int, said string, asked int) {
	b.t.Helper()
	w := newWorld(b.t, append([]string{"--home", filepath.Join(b.user, "h")}, args...)...)
	ctx, leave := context.WithCancel(b.t.Context())
	defer leave()
	w.Keyring = b.keys
	w.Environ = []string{"HOME=" + b.user, "TERM=xterm", "NO_COLOR=1", "PATH=" + os.Getenv("PATH"), "TAPIN_TELEGRAM_API_URL=" + b.bot.URL}
	var p *person
	if answers != nil {
		p = &person{Writer: io.Discard, lines: answers, leave: leave}
		w.Stdin, w.terminal = p, true
	}
	code = Main(ctx, w.Env)
	if p != nil {
		asked = p.said
	}
	said = w.stdout.String() + w.stderr.String()
	if strings.Contains(said, bottest.Token) {
		b.t.Errorf("%v says the token: %s", args, said)
	}
	return code, said, asked
}

// The answers of one who does everything but the pairing, which needs a phone.
var everything = []string{"123:wrong", bottest.Token, "n", "9", "5", "y"}

func TestSetupGoesThroughEverything(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	code, said, asked := b.run(everything, "setup")
	if code != 0 || asked != len(everything) {
		t.Fatalf("exit code %d after %d answers: %s", code, asked, said)
	}
	for _, want := range []string{"not valid", "It is @", "a number from 1 to 5", "same network may watch", "Claude Code has tapin", "3 steps done, 1 left"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
	if got := b.read("h/config.yaml"); got != "# mine\nmax_sessions: 2 # two\nlan: watch\n" {
		t.Errorf("the settings are %s", got)
	}
	if b.keys.entries[botToken] != bottest.Token {
		t.Error("the bot's token is not in the keychain")
	}
	var host struct {
		Servers map[string]entry `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(b.read(".claude.json")), &host); err != nil || host.Servers["tapin"].Command == "" {
		t.Errorf("%v: %s", err, b.read(".claude.json"))
	}

	// Again: only what is left is asked for.
	code, said, asked = b.run([]string{"n"}, "setup")
	if code != 0 || asked != 1 || !strings.Contains(said, "Pair it now?") {
		t.Errorf("the second time: %d after %d answers: %s", code, asked, said)
	}
}

func TestLeavingSetupAnywhereLeavesItWhole(t *testing.T) {
	t.Parallel()
	for leaves := range everything {
		b := newBeginner(t)
		code, said, _ := b.run(everything[:leaves], "setup")
		if code != interrupted || !strings.Contains(said, "go on at any time with: tapin --home ~/h setup") {
			t.Errorf("after %d answers: exit code %d, %s", leaves, code, said)
		}
		if code, said, _ := b.run(nil, "config", "check"); code != 0 {
			t.Errorf("after %d answers the settings are broken: %s", leaves, said)
		}
		if host := b.read(".claude.json"); host != "" {
			t.Errorf("after %d answers the host has %s", leaves, host)
		}
	}
}

func TestSetupWithNobodyToAsk(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	for _, args := range [][]string{{"setup", "--json"}, {"setup", "--yes", "--json"}} {
		code, said, _ := b.run(nil, args...)
		var answer struct {
			OK        bool    `json:"ok"`
			Steps     []stage `json:"steps"`
			Left      int     `json:"left"`
			Questions int     `json:"questions"`
		}
		if err := json.Unmarshal([]byte(said), &answer); err != nil || code != 0 || !answer.OK {
			t.Fatalf("%v: exit code %d, %v: %s", args, code, err, said)
		}
		wrote := b.read(".claude.json") != ""
		left := map[bool]int{false: 3, true: 2}[wrote]
		if answer.Questions != 0 || len(answer.Steps) != 4 || answer.Left != left || wrote != (len(args) == 3) {
			t.Errorf("%v: %s", args, said)
		}
		for _, st := range answer.Steps {
			if st.State == stepLeft && st.Next == "" {
				t.Errorf("%s is left, and nothing says how to go on", st.Name)
			}
		}
	}
}

func TestSetupWithoutAKeychain(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	b.keys.err = errors.New("no keychain")
	code, said, _ := b.run([]string{bottest.Token, "1", "n"}, "setup")
	if code != fault.ExitFailure || !strings.Contains(said, "[FORBIDDEN]") || !strings.Contains(said, "TELEGRAM_BOT_TOKEN") || !strings.Contains(said, "4 of 4") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

func TestSetupSaysWhatIsWrongFirst(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	b.write("h/config.yaml", "tunel: none\n")
	if code, said, asked := b.run(everything, "setup"); code != fault.ExitUsage || asked != 0 || !strings.Contains(said, "config edit") || !strings.Contains(said, "config.yaml:1:1") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
