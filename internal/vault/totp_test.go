package vault_test

import (
	"encoding/base32"
	"errors"
	"strings"
	"testing"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// The vectors of RFC 6238, appendix B: the seeds are the digits repeated to the
// length of each hash.
func TestOneTimeCodesAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	seed := func(n int) string {
		return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(strings.Repeat("1234567890", 7)[:n]))
	}
	entry := map[string]string{
		"SHA1":   "otpauth://totp/Bank:ada?secret=" + seed(20) + "&digits=8&algorithm=SHA1&issuer=Bank",
		"SHA256": "otpauth://totp/Bank:ada?secret=" + seed(32) + "&digits=8&algorithm=SHA256&period=30",
		"SHA512": "otpauth://totp/Bank:ada?secret=" + seed(64) + "&digits=8&algorithm=sha512",
	}
	for _, tt := range []struct {
		unix      int64
		algorithm string
		want      string
	}{
		{59, "SHA1", "94287082"}, {59, "SHA256", "46119246"}, {59, "SHA512", "90693936"},
		{1111111109, "SHA1", "07081804"}, {1111111109, "SHA256", "68084774"}, {1111111109, "SHA512", "25091201"},
		{1111111111, "SHA1", "14050471"}, {1111111111, "SHA256", "67062674"}, {1111111111, "SHA512", "99943326"},
		{1234567890, "SHA1", "89005924"}, {1234567890, "SHA256", "91819424"}, {1234567890, "SHA512", "93441116"},
		{2000000000, "SHA1", "69279037"}, {2000000000, "SHA256", "90698825"}, {2000000000, "SHA512", "38618901"},
		{20000000000, "SHA1", "65353130"}, {20000000000, "SHA256", "77737706"}, {20000000000, "SHA512", "47863826"},
	} {
		c := keptIn(t, map[string]string{"bank-totp": entry[tt.algorithm]}, nil)
		got, err := c.TOTP(t.Context(), "bank", time.Unix(tt.unix, 0))
		if err != nil || got.Reveal() != tt.want {
			t.Errorf("%s at %d: %s, not %s, %v", tt.algorithm, tt.unix, got.Reveal(), tt.want, err)
		}
	}
}

func TestASecretIsReadAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ":                                   "287082",
		"gezd gnbv gy3t qojq gezd gnbv gy3t qojq\n":                          "287082",
		"GEZD-GNBV-GY3T-QOJQ-GEZD-GNBV-GY3T-QOJQ":                            "287082",
		"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOI=":                                   "", // another secret, but a good one
		"otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ":           "287082",
		"otpauth://totp/x?secret=gezdgnbvgy3tqojqgezdgnbvgy3tqojq&digits=7":  "4287082",
		"otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&period=59": "287082",
	} {
		got, err := keptIn(t, map[string]string{"bank-totp": entry}, nil).TOTP(t.Context(), "bank", time.Unix(59, 0))
		if err != nil || want != "" && got.Reveal() != want {
			t.Errorf("%q: %s, %v", entry, got.Reveal(), err)
		}
	}
	for _, entry := range []string{
		canary, "1234567", "====", "otpauth://totp/x", "otpauth://totp/x?secret=", "otpauth://hotp/x?secret=GEZDGNBV&counter=1", "https://totp/x?secret=GEZDGNBV",
		"otpauth://totp/x?secret=GEZDGNBV&digits=5", "otpauth://totp/x?secret=GEZDGNBV&digits=9", "otpauth://totp/x?secret=GEZDGNBV&period=0",
		"otpauth://totp/x?secret=GEZDGNBV&period=-30", "otpauth://totp/x?secret=GEZDGNBV&algorithm=MD5", "otpauth://totp/x?secret=GEZDGNBV&period=99999999999999999999",
		"otpauth://totp/x?secret=GEZDGNBV;digits=6", strings.Repeat("GEZDGNBV", 2000), "otpauth://%zz/" + canary,
	} {
		got, err := keptIn(t, map[string]string{"bank-totp": entry}, nil).TOTP(t.Context(), "bank", time.Unix(59, 0))
		if !errors.Is(err, fault.InvalidRequest) || !got.IsEmpty() || strings.Contains(err.Error(), canary) {
			t.Errorf("%.60q: %v", entry, err)
		}
	}
}

// holding are credentials with one entry, on a home that many can share.
func holding(home *store.Home, name, entry string) *vault.Credentials {
	r := &ring{entries: map[string]string{"credential-" + name + "/tapin": entry}}
	return vault.NewCredentials(home, &vault.Options{Keyring: r, Getenv: env()})
}

func FuzzTOTP(f *testing.F) {
	for _, entry := range []string{"GEZDGNBVGY3TQOJQ", "otpauth://totp/Bank:ada?secret=GEZDGNBV&digits=8&algorithm=SHA512&period=60", "gezd gnbv=", "otpauth://hotp/x"} {
		f.Add(entry, int64(59))
	}
	home := openHome(f)
	f.Fuzz(func(t *testing.T, entry string, at int64) {
		if entry == "" {
			return // not there at all
		}
		got, err := holding(home, "x-totp", entry).TOTP(t.Context(), "x", time.Unix(at, 0))
		if err != nil {
			if !errors.Is(err, fault.InvalidRequest) {
				t.Fatal(err)
			}
			return
		}
		if n := len(got.Reveal()); n < 6 || n > 8 || strings.Trim(got.Reveal(), "0123456789") != "" {
			t.Fatalf("a code of %d characters", n)
		}
	})
}

func FuzzLogin(f *testing.F) {
	for _, entry := range []string{"password", `{"username":"a","password":"b","domain":"c.com"}`, `{"password":"`, "{", "\n"} {
		f.Add(entry)
	}
	home := openHome(f)
	f.Fuzz(func(t *testing.T, entry string) {
		if entry == "" {
			return
		}
		login, err := holding(home, "x-login", entry).Login(t.Context(), "x")
		if err != nil {
			if !errors.Is(err, fault.InvalidRequest) {
				t.Fatal(err)
			}
			return
		}
		if login.Password.IsEmpty() || strings.ContainsAny(login.Password.Reveal(), "\n\r\x00") {
			t.Fatal("a password that no field takes")
		}
	})
}
