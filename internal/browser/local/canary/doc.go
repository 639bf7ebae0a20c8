// Package canary proves with a real browser that a page reaches no address of
// this machine through the network guard. It owns the table of every way a page
// is known to open a connection. It must never hold anything but tests.
package canary
