// Package miniapp tells who opened a page from within Telegram.
// It owns the check of what Telegram hands to such a page: its signature and
// its age. It must never take a word of it for true before the signature is
// checked, nor quote it in an error.
package miniapp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	// MaxAge is how long ago the page may have been opened.
	MaxAge = 10 * time.Minute
	// skew is how far Telegram's clock may be ahead of ours.
	skew     = 2 * time.Minute
	maxBytes = 8 << 10
)

// Verify reads the data of a Mini App that this bot's chat opened, and returns
// the Telegram user who opened it.
func Verify(data, token secret.Text, now time.Time) (user int64, err error) {
	const op = "open the live view from Telegram"
	no := fault.New(fault.Unauthorized, op, "what Telegram is said to have sent does not hold").WithHint("Open it again from the message.")
	raw := data.Reveal()
	if token.IsEmpty() || raw == "" || len(raw) > maxBytes {
		return 0, no
	}
	fields, err := url.ParseQuery(raw)
	if err != nil {
		return 0, no
	}
	given, err := hex.DecodeString(fields.Get("hash"))
	if err != nil || len(given) != sha256.Size {
		return 0, no
	}
	var lines []string
	for name, values := range fields {
		if len(values) != 1 {
			return 0, no // what is signed and what is read must be the same
		}
		if name != "hash" {
			lines = append(lines, name+"="+values[0])
		}
	}
	slices.Sort(lines)
	key := sum([]byte("WebAppData"), token.Reveal())
	if !hmac.Equal(given, sum(key, strings.Join(lines, "\n"))) {
		return 0, no
	}
	at, err := strconv.ParseInt(fields.Get("auth_date"), 10, 64)
	if err != nil {
		return 0, no
	}
	if age := now.Sub(time.Unix(at, 0)); age > MaxAge || age < -skew {
		return 0, fault.New(fault.LinkExpired, op, "it was opened too long ago").WithHint("Open it again from the message.")
	}
	var who struct {
		ID int64 `json:"id"`
	}
	if json.Unmarshal([]byte(fields.Get("user")), &who) != nil || who.ID <= 0 {
		return 0, no
	}
	return who.ID, nil
}

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text)) // never fails
	return mac.Sum(nil)
}
