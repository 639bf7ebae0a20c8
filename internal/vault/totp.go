package vault

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what RFC 6238 and nearly every site use
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tapin/internal/secret"
)

// generator makes one-time codes as RFC 6238 has it.
type generator struct {
	seed   []byte
	hash   func() hash.Hash
	digits int
	period int64 // seconds
}

// maxPeriod is more than any site's code lives.
const maxPeriod = 3600

// parseTOTP reads what a site shows when a second factor is set up: the secret
// in base32, in whatever groups people write it, or an otpauth address. Errors
// do not quote it.
func parseTOTP(entry secret.Text) (generator, error) {
	text := strings.TrimSpace(entry.Reveal())
	if len(text) > maxEntry {
		return generator{}, errors.New("the entry is too long")
	}
	g := generator{hash: sha1.New, digits: 6, period: 30}
	seed := text
	if strings.Contains(text, "://") {
		query, err := otpauth(text)
		if err != nil {
			return generator{}, err
		}
		if err := g.read(query); err != nil {
			return generator{}, err
		}
		seed = query.Get("secret")
	}
	seed = strings.TrimRight(strings.ToUpper(strings.NewReplacer(" ", "", "-", "", "\t", "", "\n", "", "\r", "").Replace(seed)), "=")
	var err error
	g.seed, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(seed)
	if err != nil || len(g.seed) == 0 {
		return generator{}, errors.New("the secret is not base32")
	}
	return g, nil
}

func otpauth(text string) (url.Values, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "otpauth" {
		return nil, errors.New("it is no otpauth address")
	}
	if u.Host != "totp" {
		return nil, errors.New("its codes do not go by time")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("it is no otpauth address")
	}
	return query, nil
}

// read takes what differs from the usual.
func (g *generator) read(query url.Values) error {
	switch strings.ToUpper(query.Get("algorithm")) {
	case "", "SHA1":
	case "SHA256":
		g.hash = sha256.New
	case "SHA512":
		g.hash = sha512.New
	default:
		return errors.New("its algorithm is none of SHA1, SHA256, SHA512")
	}
	for _, number := range []struct {
		name        string
		least, most int64
		set         func(int64)
	}{
		{"digits", 6, 8, func(n int64) { g.digits = int(n) }},
		{"period", 1, maxPeriod, func(n int64) { g.period = n }},
	} {
		text := query.Get(number.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < number.least || n > number.most {
			return fmt.Errorf("its %s are not %d to %d", number.name, number.least, number.most)
		}
		number.set(n)
	}
	return nil
}

// at is the code of a time.
func (g generator) at(t time.Time) secret.Text {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(max(t.Unix(), 0)/g.period)) //nolint:gosec // never negative
	mac := hmac.New(g.hash, g.seed)
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	from := sum[len(sum)-1] & 0x0f
	code := binary.BigEndian.Uint32(sum[from:]) & 0x7fffffff
	modulus := map[int]uint32{6: 1e6, 7: 1e7, 8: 1e8}[g.digits]
	return secret.New(fmt.Sprintf("%0*d", g.digits, code%modulus))
}
