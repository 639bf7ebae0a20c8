//go:build !race

package vault

// sealFactor is how hard a passphrase of ours is to guess.
const sealFactor = workFactor
