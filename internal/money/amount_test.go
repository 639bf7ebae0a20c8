package money

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"tapin/internal/fault"
)

func TestAmountsAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Amount{
		"$1,234.50": {123450, "USD"}, "1.234,50 €": {123450, "EUR"}, "CHF 1'234.50": {123450, "CHF"}, "CHF 1’234.50": {123450, "CHF"},
		"¥5000": {5000, "JPY"}, "¥5,000": {5000, "JPY"}, "₹1,00,000": {10000000, "INR"}, "USD 12": {1200, "USD"}, "12 USD": {1200, "USD"},
		"$142.50": {14250, "USD"}, "142,50 €": {14250, "EUR"}, "€142.50": {14250, "EUR"}, "€ 1.234": {123400, "EUR"}, "1 234,50 €": {123450, "EUR"},
		"1\u202f234,50\u00a0€": {123450, "EUR"}, "£5": {500, "GBP"}, "$.99": {99, "USD"}, "142,50 $": {14250, "USD"}, "CHF 20.–": {2000, "CHF"}, "€ 5,-": {500, "EUR"},
		"$12 USD": {1200, "USD"}, "$12.00 CAD": {1200, "CAD"}, "CA$12.00": {1200, "CAD"}, "R$ 1.234,56": {123456, "BRL"}, "5.000円": {5000, "JPY"},
		"￥１，２３４": {1234, "JPY"}, "1234元": {123400, "CNY"}, "1.234.567,89 €": {123456789, "EUR"}, "KWD 1.234": {1234, "KWD"}, "KWD 12.5": {12500, "KWD"},
		"1 299 kr": {129900, "SEK"}, "₩15,000": {15000, "KRW"}, "Rs. 1,23,456.78": {12345678, "INR"}, "JPY 5000.00": {5000, "JPY"}, "R 1 301.20": {130120, "ZAR"}, "R301.20": {30120, "ZAR"}, "200 dollars": {20000, "USD"},
		"12.5 EUR": {1250, "EUR"}, "$142\u206350": {14250, "USD"}, "$1,142\u206350": {114250, "USD"}, "$0.00": {0, "USD"}, "RSD 1.234,50": {123450, "RSD"}, "COP 150.000": {15000000, "COP"},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
}

func TestWhatIsNotExactlyOneAmountIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "142.50", "$", "USD", "$10–$20", "$10-20", "10–20 €", "$10 to $20", "from $10", "about $10", "-$5.00", "($5.00)", "$-5", "−5,00 €",
		"$142.500", "$1,2345", "$12,34,567.00", "$1.234,567", "KWD 1,234", "$1.2.3", "$00.50", "$007", "$1,000,00", "€12 USD",
		"$5k", "$5 million", "1.5万元", "JPY 5.5", "$12.345.678,9.0", "$1 $2", "pay $5", "$5 now", "ABC 12", "XXX 12", "XAU 1", "$99999999999999999999",
		"$142\u2063500", "$14\u20632\u206350", "1e5 USD", "0x10 USD", "$١٢", "A$", "$1,,000", "$5,", "$1 000 00",
	} {
		if got, err := Parse(text); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%q was read as %v, %v", text, got, err)
		}
	}
}

func TestProgramsAreNotVague(t *testing.T) {
	t.Parallel()
	for _, ok := range []struct {
		major, code string
		want        Amount
	}{{"142.50", "USD", Amount{14250, "USD"}}, {"142.5", "usd", Amount{14250, "USD"}}, {"5000", "JPY", Amount{5000, "JPY"}}, {"0.001", "KWD", Amount{1, "KWD"}}, {"0", "EUR", Amount{0, "EUR"}}} {
		if got, err := Of(ok.major, ok.code); err != nil || got != ok.want {
			t.Errorf("%v: %v %v", ok, got, err)
		}
	}
	for _, wrong := range [][2]string{{"1,50", "USD"}, {"$1", "USD"}, {"1.505", "USD"}, {"5000.0", "JPY"}, {"-1", "USD"}, {"+1", "USD"}, {"", "USD"}, {".5", "USD"}, {"1.", "USD"},
		{"01", "USD"}, {"1e3", "USD"}, {"1", "dollars"}, {"1", ""}, {"1", "XXX"}, {"9999999999999999", "USD"}, {" 1", "USD"}} {
		if got, err := Of(wrong[0], wrong[1]); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%q was read as %v, %v", wrong, got, err)
		}
	}
}

func TestASignThatIsSharedMeansWhatItMeansThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, region string
		want         Amount
		certain      bool
	}{
		{"$10.00", "", Amount{1000, "USD"}, true}, {"$10.00", "CA", Amount{1000, "CAD"}, true}, {"$10.00", "DE", Amount{1000, "USD"}, true},
		{"¥500", "", Amount{500, "JPY"}, false}, {"¥500", "CN", Amount{50000, "CNY"}, true}, {"¥500", "JP", Amount{500, "JPY"}, true},
		{"500 kr", "", Amount{50000, "SEK"}, false}, {"500 kr", "NO", Amount{50000, "NOK"}, true}, {"€5", "US", Amount{500, "EUR"}, true},
	} {
		found := Find(c.text)
		if len(found) != 1 {
			t.Fatalf("%q: %v", c.text, found)
		}
		if got, certain := found[0].In(c.region); got != c.want || certain != c.certain {
			t.Errorf("%q in %q: %v %v", c.text, c.region, got, certain)
		}
	}
}

func TestAmountsInsideText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Total: $142.50":                 {"$142.50"},
		"Order total (2 items) $1,299":   {"$1,299.00"},
		"Qty 2 $10.00 = $20.00":          {"$10.00", "$20.00"},
		"USD 12 EUR 15":                  {"$12.00", "€15.00"},
		"12 € 15 €":                      {"€12.00", "€15.00"},
		"Zu zahlen: 1.299,00 EUR inkl.":  {"€1,299.00"},
		"合計 5,980円（税込）":                  {"¥5,980"},
		"应付：￥128.00":                     {"CN¥128.00"},
		"Invoice A4 v2.10 no. 4711":      nil,
		"Total a pagar59,90 €":           nil,
		"Save 20% on orders over 3 kg":   nil,
		"Kreditkarte 4111 1111 1111":     nil,
		"Total du compte : 59,99\u00a0€": {"€59.99"},
	} {
		var got []string
		for _, s := range Find(text) {
			a, _ := s.In("CN")
			got = append(got, a.String())
		}
		if len(got) != len(want) {
			t.Errorf("%q: %q, want %q", text, got, want)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
		}
	}
}

func TestWhatIsPrintedIsReadBack(t *testing.T) {
	t.Parallel()
	codes := []string{"USD", "EUR", "GBP", "JPY", "INR", "CHF", "KWD", "CAD", "CNY", "BRL", "SEK", "HUF", "CLP", "IQD", "MXN", "PKR", "KRW", "TND", "RSD", "AUD", "VND", "ISK", "ZAR"}
	rapid.Check(t, func(t *rapid.T) {
		a := Amount{rapid.Int64Range(0, maxMinor).Draw(t, "minor"), Currency(rapid.SampledFrom(codes).Draw(t, "code"))}
		if got, err := Parse(a.String()); err != nil || got != a {
			t.Fatalf("%s: %v %v, want %v", a, got, err, a)
		}
		if got, err := Of(a.Major(), string(a.Currency)); err != nil || got != a {
			t.Fatalf("%s: %v %v, want %v", a.Major(), got, err, a)
		}
	})
}

func FuzzAmounts(f *testing.F) {
	for _, seed := range []string{"$1,234.50", "1.234,50 €", "CHF 1'234.50", "¥5000", "₹1,00,000", "USD 12", "$10–$20", "$142\u206350", "１２円", "kr 5,-", "R$", "$.99", "-$5", "A4$3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, s := range Find(text) {
			if s.Start < 0 || s.Start >= s.End || s.End > len(text) {
				t.Fatalf("%q: %+v", text, s)
			}
			if s.End <= end {
				t.Fatalf("%q: %+v ends before the one before", text, s)
			}
			end = s.End
			for _, a := range s.Amounts {
				if a.Minor < 0 || a.Minor > maxMinor {
					t.Fatalf("%q: %+v", text, a)
				}
				if back, err := Parse(a.String()); err != nil || back != a {
					t.Fatalf("%q: %v is printed as %s and read as %v, %v", text, a, a, back, err)
				}
			}
		}
		if a, err := Parse(text); err == nil {
			if back, err := Parse(a.String()); err != nil || back != a {
				t.Fatalf("%q: %v, then %v %v", text, a, back, err)
			}
		}
	})
}
