package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tapin/internal/api"
	"tapin/internal/chat/telegram/bottest"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// watched is a terminal that somebody reads while it is written.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *watched) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *watched) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// owner is the chat's own way to the sidecar.
func (d *desk) owner() *api.Client {
	d.t.Helper()
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(d.home, name))
		if err != nil {
			d.t.Fatal(err)
		}
		return strings.TrimSpace(string(raw))
	}
	c, err := api.NewClient("http://"+read("control.addr"), secret.New(read("owner.token")), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(c.Close)
	return c
}

func TestAPersonIsPairedAndTakenOffTheListAgain(t *testing.T) {
	t.Parallel()
	bot, err := bottest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bot.Close)
	d := newDesk(t)
	d.says("Nobody yet", "owners")
	if code, out := d.run("", "pair"); code != fault.Forbidden.Exit() || strings.Contains(out, "/start") {
		t.Errorf("a code into a pipe: %d, %s", code, out)
	}
	terminal := func() (*world, *watched) {
		w, s := newWorld(t, "--home", d.home, "pair"), &watched{}
		w.terminal, w.Stdout = true, s
		return w, s
	}
	w, shown := terminal()
	if code := Main(t.Context(), w.Env); code != fault.ProviderNotConfigured.Exit() || !strings.Contains(w.stderr.String(), "BotFather") {
		t.Errorf("without a bot: %d, %s%s", code, w.stderr.String(), shown)
	}

	w, shown = terminal()
	w.Environ = append(w.Environ, "TELEGRAM_BOT_TOKEN="+bottest.Token, "TAPIN_TELEGRAM_API_URL="+bot.URL)
	ended := make(chan int, 1)
	go func() { ended <- Main(t.Context(), w.Env) }()
	at := regexp.MustCompile(`https://t\.me/` + bottest.Username + `\?start=(\S+)`)
	var code string
	if !testwait.Comes(func() bool {
		found := at.FindStringSubmatch(shown.String())
		if found == nil || !strings.Contains(shown.String(), "counts once") {
			return false
		}
		code = found[1]
		return true
	}) {
		t.Fatalf("it shows %q", shown)
	}
	if !strings.Contains(shown.String(), "/start "+code) || !strings.Contains(shown.String(), "10m") || !strings.ContainsAny(shown.String(), "▀▄█") {
		t.Errorf("it shows %s", shown)
	}
	owner := d.owner()
	claim := func(code string, id int64) error {
		_, err := owner.ClaimOwner(t.Context(), api.ClaimOwnerRequest{Code: secret.New(code), ID: id, Name: "Robin\x1b[2J"})
		return err
	}
	if err := claim("wrong-"+code, 4711); err == nil {
		t.Error("another code was taken")
	}
	if err := claim(code, 4711); err != nil {
		t.Fatal(err)
	}
	if err := claim(code, 42); err == nil {
		t.Error("the code counted twice")
	}
	if status := <-ended; status != 0 || !strings.Contains(shown.String(), "is an owner now.") || strings.Contains(shown.String(), "\x1b[2J") {
		t.Errorf("paired: %d, %s%s", status, shown, w.stderr.String())
	}

	d.says("4711  Robin", "owners")
	if all, _ := d.json("owners")["owners"].([]any); len(all) != 1 {
		t.Errorf("in JSON: %v", all)
	}
	if _, out := d.run("", "owners"); strings.Contains(out, code) || strings.Contains(out, "\x1b[2J") {
		t.Errorf("the list: %q", out)
	}
	for id, want := range map[string]int{"robin": fault.InvalidRequest.Exit(), "-1": fault.InvalidRequest.Exit(), "42": fault.ExitNotFound} {
		if code, out := d.run("", "owners", "remove", "--", id); code != want {
			t.Errorf("remove %s: %d, %s", id, code, out)
		}
	}
	d.says("4711 is no longer an owner.", "owners", "remove", "4711")
	d.says("Nobody yet", "owners")
	for _, p := range bot.Problems() {
		t.Errorf("the Bot API was misused: %s", p)
	}
}
