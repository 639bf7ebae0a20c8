package cli

import (
	"strings"

	"rsc.io/qr"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// quietZone is the light margin that a camera needs to find the code.
const quietZone = 2

// qrLines draws an address as a code for a phone's camera, two rows of it in
// each line of text. Painted, it is black on white whatever the terminal's own
// colours are: not every camera reads one that is the other way round. Unpainted
// it is right on a dark terminal.
func qrLines(address secret.Text, p paint) ([]string, error) {
	code, err := qr.Encode(address.Reveal(), qr.L)
	if err != nil {
		return nil, fault.New(fault.Internal, "draw a code", "the address is too long for one") // without its words: they may quote it
	}
	light := func(x, y int) bool { return !code.Black(x, y) } // also around it
	var lines []string
	for y := -quietZone; y < code.Size+quietZone; y += 2 {
		var line strings.Builder
		for x := -quietZone; x < code.Size+quietZone; x++ {
			switch top, bottom := light(x, y), light(x, y+1) && y+1 < code.Size+quietZone; {
			case top && bottom:
				line.WriteRune('█')
			case top:
				line.WriteRune('▀')
			case bottom:
				line.WriteRune('▄')
			default:
				line.WriteRune(' ')
			}
		}
		lines = append(lines, p.code("38;5;231;48;5;16", line.String()))
	}
	return lines, nil
}
