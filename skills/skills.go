// Package skills holds what agents are taught about tapin, as files to install.
// It owns their text. It must never know anything of the program.
package skills

import _ "embed" // the text is part of the program

// Tapin is the skill's SKILL.md.
//
//go:embed tapin/SKILL.md
var Tapin []byte
