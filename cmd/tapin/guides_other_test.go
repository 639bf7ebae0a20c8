//go:build !linux

package main

// programs are what the scripts of pages call; they are played on Linux alone.
func programs() map[string]func() { return nil }
