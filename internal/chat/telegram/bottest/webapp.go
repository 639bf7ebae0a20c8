package bottest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WebAppData is what a person's Telegram hands to a Mini App that they open.
func WebAppData(user int64, at time.Time) string {
	fields := map[string]string{
		"query_id":      "AAF1",
		"auth_date":     strconv.FormatInt(at.Unix(), 10),
		"signature":     "c2ln",
		"chat_instance": "-3788475317572404878",
		"user":          fmt.Sprintf(`{"id":%d,"first_name":"Robin & Co","last_name":"","language_code":"en","allows_write_to_pm":true}`, user),
	}
	var lines []string
	values := url.Values{}
	for name, value := range fields {
		lines = append(lines, name+"="+value)
		values.Set(name, value)
	}
	slices.Sort(lines)
	key := hmac.New(sha256.New, []byte("WebAppData"))
	_, _ = key.Write([]byte(Token))
	mac := hmac.New(sha256.New, key.Sum(nil))
	_, _ = mac.Write([]byte(strings.Join(lines, "\n")))
	values.Set("hash", hex.EncodeToString(mac.Sum(nil)))
	return values.Encode()
}

// OpenWebApp is the address that a person's Telegram opens for a button.
func OpenWebApp(address string, user int64) string {
	return address + "#tgWebAppData=" + url.QueryEscape(WebAppData(user, time.Now())) + "&tgWebAppVersion=8.0&tgWebAppPlatform=android"
}
