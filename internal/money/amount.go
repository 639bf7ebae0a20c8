// Package money reads and writes exact amounts, and the sentences in which an
// owner says what may be paid without asking.
// It owns how a sum of money looks in text, its minor units, and the wishes
// that people express about payments. It must never round, guess between two
// readings, or mix currencies.
package money

import (
	"cmp"
	"strconv"
	"strings"

	"golang.org/x/text/currency"

	"tapin/internal/fault"
)

// Currency is an ISO 4217 code in capitals, such as USD.
type Currency string

// ParseCurrency reads a code. Codes that nobody pays with are refused.
func ParseCurrency(code string) (Currency, error) {
	upper := strings.ToUpper(code)
	unit, err := currency.ParseISO(upper)
	if err != nil || unit.String() != upper || upper[0] == 'X' && !strings.Contains("XAF XOF XPF XCD", upper) {
		return "", fault.New(fault.InvalidRequest, "read a currency", "there is no currency %q", clip(code)).
			WithHint("A currency is a code such as USD, EUR or JPY.")
	}
	return Currency(upper), nil
}

// exponents are those of ISO 4217 where the tables of the locale project, made
// for prices on tags, drop the minor unit that bills still show.
var exponents = map[Currency]int{
	"AFN": 2, "ALL": 2, "AMD": 2, "COP": 2, "GYD": 2, "IDR": 2, "IQD": 3, "IRR": 2, "KPW": 2, "LAK": 2, "LBP": 2, "MMK": 2,
	"MNT": 2, "MUR": 2, "PKR": 2, "RSD": 2, "SOS": 2, "SYP": 2, "TZS": 2, "UZS": 2, "YER": 2,
}

// Digits is how many decimals the currency has.
func (c Currency) Digits() int {
	if n, ok := exponents[c]; ok {
		return n
	}
	unit, err := currency.ParseISO(string(c))
	if err != nil {
		return 2
	}
	scale, _ := currency.Standard.Rounding(unit)
	return scale
}

// maxMinor keeps sums of many amounts far from overflow.
const maxMinor = 1_000_000_000_000_000

// Amount is a sum of money, never negative. The zero value is no money at all.
type Amount struct {
	Minor    int64 // in the smallest unit: 14250 is 142.50 USD
	Currency Currency
}

// Of reads the form that programs exchange: digits with at most one point, and
// a code. Nothing else is accepted: programs have no reason to be vague.
func Of(major, code string) (Amount, error) {
	c, err := ParseCurrency(code)
	if err != nil {
		return Amount{}, err
	}
	whole, frac, pointed := strings.Cut(major, ".")
	if !digits(whole) || pointed && (!digits(frac) || len(frac) > c.Digits()) || len(whole) > 1 && whole[0] == '0' {
		return Amount{}, fault.New(fault.InvalidRequest, "read an amount", "%q is no amount of %s", clip(major), c).
			WithHint("Write it in major units with a point, such as 142.50; %s has %d decimals.", c, c.Digits())
	}
	minor, ok := compose(whole, frac, c.Digits())
	if !ok {
		return Amount{}, fault.New(fault.InvalidRequest, "read an amount", "%q is more than can be handled", clip(major))
	}
	return Amount{minor, c}, nil
}

// Major is the amount in major units, as Of reads it: 142.50.
func (a Amount) Major() string {
	n := a.Currency.Digits()
	s := strconv.FormatInt(a.Minor, 10)
	if n == 0 {
		return s
	}
	if len(s) <= n {
		s = strings.Repeat("0", n-len(s)+1) + s
	}
	return s[:len(s)-n] + "." + s[len(s)-n:]
}

// IsZero reports whether there is nothing, in whichever currency.
func (a Amount) IsZero() bool { return a.Minor == 0 }

// AtMost reports whether a is no more than b. Other currencies are never less.
func (a Amount) AtMost(b Amount) bool { return a.Currency == b.Currency && a.Minor <= b.Minor }

// Plus adds; false when the currencies differ or it is more than can be handled.
func (a Amount) Plus(b Amount) (Amount, bool) {
	sum := a.Minor + b.Minor
	return Amount{sum, a.Currency}, a.Currency == b.Currency && sum <= maxMinor
}

// Less is how much of b is left of a; nothing when b is more.
func (a Amount) Less(b Amount) Amount { return Amount{max(a.Minor-b.Minor, 0), a.Currency} }

// signs is how String begins an amount; others begin with their code.
var signs = map[Currency]string{
	"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "CAD": "CA$", "AUD": "A$", "NZD": "NZ$",
	"HKD": "HK$", "BRL": "R$", "MXN": "MX$", "CNY": "CN¥", "KRW": "₩",
}

// String is the amount for people: $1,234.50, CHF 1,234.50, ₹1,00,000.00.
// Parse reads it back.
func (a Amount) String() string {
	whole, frac, pointed := strings.Cut(a.Major(), ".")
	whole = grouped(whole, a.Currency)
	if pointed {
		whole += "." + frac
	}
	return cmp.Or(signs[a.Currency], string(a.Currency)+" ") + whole
}

func grouped(whole string, c Currency) string {
	size, out := 3, ""
	for len(whole) > size {
		out = "," + whole[len(whole)-size:] + out
		whole = whole[:len(whole)-size]
		if lakhs[c] {
			size = 2
		}
	}
	return whole + out
}

// lakhs are the currencies of places that count 1,00,000.
var lakhs = map[Currency]bool{"INR": true, "PKR": true, "BDT": true, "NPR": true, "LKR": true}

func compose(whole, frac string, n int) (int64, bool) {
	s := whole + frac + strings.Repeat("0", n-len(frac))
	minor, err := strconv.ParseInt(s, 10, 64)
	return minor, err == nil && minor <= maxMinor
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func clip(s string) string {
	if r := []rune(s); len(r) > 32 {
		return string(r[:32]) + "…"
	}
	return s
}
