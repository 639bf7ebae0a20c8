//go:build linux

package main

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// grid is a terminal's screen, as far as tapin uses one. Rows that scroll out at
// the top are kept: a picture shows all that a command has said.
type grid struct {
	columns, rows int
	lines         [][]cell
	row, column   int
	style         string
	whole         string // all that came
	rest          []byte // the beginning of something
}

type cell struct {
	r     rune
	style string
}

func newGrid(columns, rows int) *grid {
	return &grid{columns: columns, rows: rows, lines: make([][]cell, rows)}
}

// settled is how long nothing more has to come before it is a picture.
const settled = 700 * time.Millisecond

// follow takes in what a program says until it shows a text and stays as it is,
// or ends; it reports whether it has ended.
func (g *grid) follow(seat *os.File, until string, ended chan error) bool {
	chunks := make(chan []byte)
	go func() {
		for {
			buffer := make([]byte, 4096)
			n, err := seat.Read(buffer)
			if err != nil {
				return
			}
			chunks <- buffer[:n]
		}
	}()
	over := false
	quiet := time.NewTimer(settled)
	limit := time.After(90 * time.Second)
	for {
		select {
		case chunk := <-chunks:
			g.write(chunk)
			quiet.Reset(settled)
		case <-ended:
			over = true
			quiet.Reset(settled)
		case <-quiet.C:
			if over || until != "" && strings.Contains(g.whole, until) {
				return over
			}
			quiet.Reset(settled)
		case <-limit:
			return over
		}
	}
}

var sequence = regexp.MustCompile(`^\x1b\[([?0-9;]*)([A-Za-z])`)

func (g *grid) write(data []byte) {
	g.whole += string(data)
	data = append(g.rest, data...)
	g.rest = nil
	for len(data) > 0 {
		if data[0] == 0x1b {
			m := sequence.FindSubmatch(data)
			if m == nil {
				if len(data) < 16 {
					g.rest = data
					return
				}
				data = data[1:]
				continue
			}
			g.obey(string(m[1]), m[2][0])
			data = data[len(m[0]):]
			continue
		}
		if !utf8.FullRune(data) {
			g.rest = data
			return
		}
		r, size := utf8.DecodeRune(data)
		g.put(r)
		data = data[size:]
	}
}

func (g *grid) put(r rune) {
	switch r {
	case '\n':
		g.row++
		return
	case '\r':
		g.column = 0
		return
	}
	if g.column >= g.columns {
		g.column = 0
		g.row++
	}
	for len(g.lines) <= g.row {
		g.lines = append(g.lines, nil)
	}
	for len(g.lines[g.row]) <= g.column {
		g.lines[g.row] = append(g.lines[g.row], cell{r: ' '})
	}
	g.lines[g.row][g.column] = cell{r, g.style}
	g.column++
}

func (g *grid) obey(arguments string, what byte) {
	switch what {
	case 'm':
		g.style = map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "7": "i"}[arguments]
	case 'H':
		row, column, _ := strings.Cut(arguments, ";")
		g.row, g.column = max(1, number(row))-1, max(1, number(column))-1
	case 'K':
		if g.row < len(g.lines) {
			g.lines[g.row] = g.lines[g.row][:min(g.column, len(g.lines[g.row]))]
		}
	case 'J':
		g.lines, g.row, g.column = make([][]cell, g.rows), 0, 0
	}
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// html is the screen as a page, with the command above it unless the command
// has the screen for itself.
func (g *grid) html(command string) picture {
	typed := !strings.Contains(g.whole, "\x1b[?1049h")
	lines := g.lines
	for len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	for _, l := range lines {
		mask(l)
	}
	var out strings.Builder
	out.WriteString(style)
	if typed {
		fmt.Fprintf(&out, "<div class=d>%s</div>", html.EscapeString(command))
	}
	for _, l := range lines {
		out.WriteString("<div>")
		for _, c := range l {
			text := html.EscapeString(string(c.r))
			if c.style != "" {
				text = "<span class=" + c.style + ">" + text + "</span>"
			}
			out.WriteString(text)
		}
		out.WriteString("&#8203;</div>")
	}
	rows := len(lines)
	if typed {
		rows++
	}
	return picture{out.String(), g.columns, rows}
}

// mask hides what signs a device in. It is worth nothing any more, but a picture
// should not teach to show one.
func mask(l []cell) {
	text := make([]rune, len(l))
	for i, c := range l {
		text[i] = c.r
	}
	begins := strings.Index(string(text), "#t=")
	if begins < 0 {
		return
	}
	for i := utf8.RuneCountInString(string(text)[:begins]) + len("#t="); i < len(l) && l[i].r != ' '; i++ {
		l[i].r = '•'
	}
}

// picture is a page and the size of what is on it.
type picture struct {
	text          string
	columns, rows int
}

const style = `<!doctype html><meta charset=utf-8><style>
html{background:#14161a}
body{margin:20px 24px;font:15px/20px "DejaVu Sans Mono","Liberation Mono",monospace;color:#d7dae0;white-space:pre;font-variant-ligatures:none}
div{height:20px}.b{font-weight:700;color:#fff}.d{color:#8b93a1}.r{color:#ff7b72}.g{color:#6fd08c}.y{color:#f2c14e}.i{background:#d7dae0;color:#14161a}
</style><body>`

// render takes the picture with the browser of this machine.
func render(p picture, file string) error {
	browser := os.Getenv("TAPIN_CHROME")
	for _, name := range []string{"chromium", "google-chrome-stable", "google-chrome", "chromium-browser"} {
		if found, err := exec.LookPath(name); err == nil && browser == "" {
			browser = found
		}
	}
	folder, err := os.MkdirTemp("", "tapin-picture")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	source := filepath.Join(folder, "page.html")
	if err := os.WriteFile(source, []byte(p.text), 0o600); err != nil {
		return err
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return err
	}
	const advance = 9.03 // of a letter, at 15 px
	args := []string{
		"--headless", "--hide-scrollbars", "--force-device-scale-factor=2", "--user-data-dir=" + filepath.Join(folder, "profile"),
		fmt.Sprintf("--window-size=%d,%d", int(float64(p.columns)*advance)+49, p.rows*20+40), "--screenshot=" + file, "file://" + source,
	}
	if os.Getuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...) // of a page of our own
	}
	if out, err := exec.Command(browser, args...).CombinedOutput(); err != nil { //nolint:gosec // the browser of this machine
		return fmt.Errorf("%s: %w: %s", file, err, out)
	}
	return nil
}
