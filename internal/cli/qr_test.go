package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"rsc.io/qr"

	"tapin/internal/secret"
)

// read takes the drawing apart again, as a camera sees it: true is light.
func read(t *testing.T, lines []string) [][]bool {
	t.Helper()
	var rows [][]bool
	for _, line := range lines {
		top, bottom := []bool{}, []bool{}
		for _, r := range line {
			top, bottom = append(top, r == '█' || r == '▀'), append(bottom, r == '█' || r == '▄')
		}
		rows = append(rows, top, bottom)
	}
	return rows
}

func TestACodeInTheTerminalIsTheCodeOfTheAddressWithItsMargin(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://tapin.example.com/console#t=AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCde",
		"http://127.0.0.1:3850/console",
		"https://a-rather-long-name-of-four-words.trycloudflare.com/live/lnk_06cz3qmhc04x2p5ae9gk8v71#t=AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCde",
	} {
		want, err := qr.Encode(address, qr.L)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := qrLines(secret.New(address), paint{})
		if err != nil {
			t.Fatal(err)
		}
		rows := read(t, lines)
		for y := range want.Size + 2*quietZone {
			for x := range want.Size + 2*quietZone {
				if dark := !rows[y][x]; dark != want.Black(x-quietZone, y-quietZone) {
					t.Fatalf("%d characters: module %d,%d is dark: %v", len(address), x, y, dark)
				}
			}
		}
		if width := utf8.RuneCountInString(lines[0]); width > 60 || len(lines) > 30 {
			t.Errorf("%d characters: %d × %d is too large for a small terminal", len(address), width, len(lines))
		}
	}
}

func TestACodeHasItsOwnColoursWhereThereAreColours(t *testing.T) {
	t.Parallel()
	lines, err := qrLines(secret.New("https://tapin.example.com/"), paint{on: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "\x1b[38;5;231;48;5;16m") || !strings.HasSuffix(line, "\x1b[0m") {
			t.Fatalf("a line leaves its colours to the terminal: %q", line)
		}
	}
}

func TestACodeThatDoesNotFitIsRefusedWithoutTheAddress(t *testing.T) {
	t.Parallel()
	if _, err := qrLines(secret.New(strings.Repeat("Secret", 1000)), paint{}); err == nil || strings.Contains(err.Error(), "Secret") {
		t.Fatalf("got %v", err)
	}
}
