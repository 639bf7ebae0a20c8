// Package wide gives a pipe between two processes room for a picture as a whole. As it
// comes it holds 64 KiB, and whoever writes and whoever reads wait for each other
// several times on its way.
package wide
