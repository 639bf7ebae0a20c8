package main

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tapin/internal/testwait"
)

// pictured is what the README shows of the terminal: the agent's side of a
// hand-off. The lines without a prompt are the person, on the phone.
var pictured = []struct{ line, shown string }{
	{`tapin open https://example.com/login`, `tapin open https://example.com/login`},
	{`tapin handoff start login "Please log in" --until-url "*/dashboard"`, `tapin handoff start login "Please log in" --until-url "*/dashboard"`},
	{`tapin click "Sign in" >/dev/null`, ``},
	{`tapin handoff wait`, `tapin handoff wait`},
	{`tapin snapshot`, `tapin snapshot`},
}

// TestTheTerminalInTheREADMEIsReal plays a hand-off at a terminal and draws what
// it showed; make screenshots keeps the drawing.
func TestTheTerminalInTheREADMEIsReal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(repository, "docs", "img", "terminal.svg")
	if os.Getenv(updateVar) == "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pictured {
			if p.shown != "" && !strings.Contains(string(raw), html.EscapeString(p.shown)) {
				t.Errorf("the picture does not show %q; run make screenshots", p.shown)
			}
		}
		return
	}
	s := newStage(t)
	if out, err := s.tapin("up", "--background", "--no-check"); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	var all strings.Builder
	for _, p := range pictured {
		ctx, cancel := testwait.Within(t.Context())
		cmd := exec.CommandContext(ctx, "bash", "-c", p.line)
		cmd.Env, cmd.Dir = s.env, s.home
		out, err := atTerminal(cmd, "")
		cancel()
		if err != nil {
			t.Fatalf("%s: %v\n%s", p.line, err, out)
		}
		if p.shown != "" {
			fmt.Fprintf(&all, "\x1b[2m$\x1b[0m \x1b[1m%s\x1b[0m\n%s\n", p.shown, strings.TrimRight(out, "\r\n")+"\n")
		} else {
			all.WriteString("\x1b[2m# meanwhile, on the phone: the owner logs in\x1b[0m\n\n")
		}
	}
	if err := os.WriteFile(file, []byte(drawTerminal(all.String())), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestATerminalIsDrawnAsItLooked(t *testing.T) {
	t.Parallel()
	got := drawTerminal("a <b>\r\n\x1b[2mwaiting … 1 s\x1b[0m\r\x1b[Kdone \x1b[32m✓\x1b[0m\n")
	for _, want := range []string{`>a &lt;b&gt;</tspan>`, `>done </tspan>`, `class="green"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if long := drawTerminal(strings.Repeat("x", columns+1)); strings.Count(long, "<text") != 2 {
		t.Errorf("a long line does not go on in the next row: %s", long)
	}
	if strings.Contains(got, "waiting") || strings.Contains(got, "\x1b") {
		t.Errorf("what was written over is still there: %s", got)
	}
}

var (
	steering = regexp.MustCompile("\x1b\\[([0-9;?]*)([A-Za-z])")
	styles   = map[string]string{"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}
)

// columns is how wide the drawn terminal is; longer lines go on in the next row.
const columns = 100

// drawTerminal draws what a terminal shows after a text, line under line.
func drawTerminal(text string) string {
	const em, line, margin = 8.43, 20, 18 // of 14 pixels of a fixed-width face
	var body strings.Builder
	rows := 0
	begin := func() {
		fmt.Fprintf(&body, `<text x="%d" y="%d">`, margin, 40+margin+rows*line)
		rows++
	}
	for row := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		// A carriage return begins the line anew, unless it ends it.
		row = strings.TrimSuffix(row, "\r")
		row = row[strings.LastIndex(row, "\r")+1:]
		begin()
		class, width := "", 0
		for row != "" {
			part, code := row, steering.FindStringSubmatchIndex(row)
			if code != nil {
				part = row[:code[0]]
			}
			for letters := []rune(part); len(letters) > 0; {
				n := min(len(letters), columns-width)
				fmt.Fprintf(&body, `<tspan class="%s">%s</tspan>`, class, html.EscapeString(string(letters[:n])))
				letters, width = letters[n:], width+n
				if width == columns && len(letters) > 0 {
					body.WriteString("</text>\n")
					begin()
					width = 0
				}
			}
			if code == nil {
				break
			}
			if row[code[4]:code[5]] == "m" {
				class = styles[row[code[2]:code[3]]]
			}
			row = row[code[1]:]
		}
		body.WriteString("</text>\n")
	}
	w, h := int(columns*em)+2*margin, 40+margin+rows*line+margin/2
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-label="A hand-off in the terminal">
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;fill:#d7dde5;white-space:pre}.bold{font-weight:600;fill:#fff}.dim{fill:#8b95a5}.red{fill:#ff7b72}.green{fill:#56d364}.yellow{fill:#e3b341}.cyan{fill:#76e3ea}</style>
<rect width="%[1]d" height="%[2]d" rx="10" fill="#14181f"/>
<circle cx="22" cy="20" r="6" fill="#ff5f57"/><circle cx="42" cy="20" r="6" fill="#febc2e"/><circle cx="62" cy="20" r="6" fill="#28c840"/>
%[3]s</svg>
`, w, h, body.String())
}
