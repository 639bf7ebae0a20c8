package miniapp_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"tapin/internal/chat/miniapp"
	"tapin/internal/chat/telegram/bottest"
	"tapin/internal/secret"
)

var noon = time.Unix(1780000000, 0)

func TestOnlyWhatTelegramSignedIsBelieved(t *testing.T) {
	t.Parallel()
	good := bottest.WebAppData(4711, noon)
	change := func(fn func(url.Values)) string {
		v, err := url.ParseQuery(good)
		if err != nil {
			t.Fatal(err)
		}
		fn(v)
		return v.Encode()
	}
	for name, tt := range map[string]struct {
		data  string
		token string
		now   time.Time
		user  int64
	}{
		"as it was sent":                 {good, bottest.Token, noon, 4711},
		"nine minutes later":             {good, bottest.Token, noon.Add(9 * time.Minute), 4711},
		"eleven minutes later":           {good, bottest.Token, noon.Add(11 * time.Minute), 0},
		"from the future":                {good, bottest.Token, noon.Add(-time.Hour), 0},
		"for another bot":                {good, "8000000002:AAother", noon, 0},
		"without a bot":                  {good, "", noon, 0},
		"another user":                   {strings.Replace(good, "4711", "4712", 1), bottest.Token, noon, 0},
		"a fresh date on an old one":     {change(func(v url.Values) { v.Set("auth_date", strconv.FormatInt(noon.Add(time.Hour).Unix(), 10)) }), bottest.Token, noon.Add(time.Hour), 0},
		"a field more":                   {good + "&is_owner=1", bottest.Token, noon, 0},
		"a second user":                  {good + "&user=%7B%22id%22%3A1%7D", bottest.Token, noon, 0},
		"a field less":                   {change(func(v url.Values) { v.Del("query_id") }), bottest.Token, noon, 0},
		"no hash":                        {change(func(v url.Values) { v.Del("hash") }), bottest.Token, noon, 0},
		"an empty hash":                  {change(func(v url.Values) { v.Set("hash", "") }), bottest.Token, noon, 0},
		"nothing":                        {"", bottest.Token, noon, 0},
		"garbage":                        {"%zz", bottest.Token, noon, 0},
		"signed by somebody who guessed": {change(func(v url.Values) { v.Set("hash", strings.Repeat("0", 64)) }), bottest.Token, noon, 0},
	} {
		user, err := miniapp.Verify(secret.New(tt.data), secret.New(tt.token), tt.now)
		if user != tt.user || (err == nil) != (tt.user != 0) {
			t.Errorf("%s: %d %v", name, user, err)
		}
		if err != nil && tt.data != "" && strings.Contains(err.Error(), tt.data) {
			t.Errorf("%s: the error quotes it", name)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(bottest.WebAppData(4711, noon))
	f.Add("hash=00&user=%7B%7D")
	good := bottest.WebAppData(4711, noon)
	f.Fuzz(func(t *testing.T, data string) {
		user, err := miniapp.Verify(secret.New(data), secret.New(bottest.Token), noon)
		if err != nil {
			return
		}
		// Only another spelling of what was signed gets through.
		a, _ := url.ParseQuery(data)
		b, _ := url.ParseQuery(good)
		if user != 4711 || a.Encode() != b.Encode() && !strings.EqualFold(a.Encode(), b.Encode()) {
			t.Fatalf("%q is believed", data)
		}
	})
}
