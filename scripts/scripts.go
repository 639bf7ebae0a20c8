// Package scripts holds the shell scripts that the program runs too, so that
// there is one way to do what they do.
// It owns their text. It must never know anything of the program.
package scripts

import _ "embed" // the text is part of the program

// Setup finds a browser on this machine, or installs one.
//
//go:embed setup.sh
var Setup string
