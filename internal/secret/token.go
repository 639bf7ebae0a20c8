package secret

// leastToken is the length of the shortest token.
const leastToken = 32

// IsToken reports whether s can be a token: long enough, of characters that can
// be printed, and without a space. What a disk has damaged mostly is not.
func IsToken(s string) bool {
	if len(s) < leastToken {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
