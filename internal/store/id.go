package store

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

const (
	// idAlphabet is in ASCII order, so that ids sort as their bytes do, and
	// leaves out the letters that people mix up.
	idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	idLength   = 24 // 48 bits of milliseconds, 72 random bits
)

// NewID makes an unguessable id: the prefix, an underscore and 24 characters.
// NewID("ses") is like ses_06cz3qmhc04x2p5ae9gk8v71. Ids with the same prefix
// sort by the millisecond they were made in.
func NewID(prefix string) string {
	var b [6 + 9]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails
	return prefix + "_" + idEncoding().EncodeToString(b[:])
}

// FirstID comes before every id with that prefix made at that time or later, and
// after those made before.
func FirstID(prefix string, at time.Time) string {
	var b [6 + 9]byte
	binary.BigEndian.PutUint64(b[:8], uint64(max(at.UnixMilli(), 0))<<16)
	return prefix + "_" + idEncoding().EncodeToString(b[:])
}

// ValidID reports whether s has exactly the form NewID(prefix) gives, and so is
// safe as the name of a file.
func ValidID(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix+"_")
	if !ok || len(rest) != idLength {
		return false
	}
	for i := range len(rest) {
		if strings.IndexByte(idAlphabet, rest[i]) < 0 {
			return false
		}
	}
	return true
}

// newToken is a random name for what needs no order.
func newToken() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return idEncoding().EncodeToString(b[:])
}

func idEncoding() *base32.Encoding {
	return base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)
}
