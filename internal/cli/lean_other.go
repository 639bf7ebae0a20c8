//go:build !linux

package cli

// forgetProgram is what only Linux can be asked for in this way.
func forgetProgram() {}
