//go:build race

package vault

// sealFactor is small under the race detector, which nobody ships: the true one
// takes it half a minute and gigabytes for each seal.
const sealFactor = 12
