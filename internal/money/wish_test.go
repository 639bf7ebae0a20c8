package money

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	l, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("this machine has no time zones")
	}
	return l
}

func TestWishesInPlainWords(t *testing.T) {
	t.Parallel()
	zone := berlin(t)
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, zone)
	day := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, zone) }
	usd := func(n int64) Amount { return Amount{n * 100, "USD"} }
	for text, want := range map[string]Wish{
		"auto-approve verizon under $200":                                           {Allow, "verizon", usd(200), Amount{}, time.Time{}},
		"Auto-approve Verizon payments under $200.":                                 {Allow, "verizon", usd(200), Amount{}, time.Time{}},
		"auto approve verizon up to $300 a month":                                   {Allow, "verizon", usd(300), usd(300), time.Time{}},
		"auto-approve verizon under $200, up to $300 a month":                       {Allow, "verizon", usd(200), usd(300), time.Time{}},
		"auto-approve verizon under $200 and up to $300 per month until March":      {Allow, "verizon", usd(200), usd(300), day(2027, 3, 1)},
		"please auto-approve my verizon bills up to 200 dollars until end of March": {Allow, "verizon", usd(200), Amount{}, day(2027, 4, 1)},
		"autoapprove verizon.com up to 150 EUR until 2027-01-31":                    {Allow, "verizon.com", Amount{15000, "EUR"}, Amount{}, day(2027, 2, 1)},
		"auto-approve verizon under $200 until March 3":                             {Allow, "verizon", usd(200), Amount{}, day(2027, 3, 4)},
		"auto-approve verizon under $200 until 20 December":                         {Allow, "verizon", usd(200), Amount{}, day(2026, 12, 21)},
		"auto-approve verizon under $200 until friday":                              {Allow, "verizon", usd(200), Amount{}, day(2026, 11, 21)},
		"auto-approve verizon under $200 for 2 weeks":                               {Allow, "verizon", usd(200), Amount{}, now.AddDate(0, 0, 14)},
		"auto-approve verizon under £50 with a monthly budget of £120":              {Allow, "verizon", Amount{5000, "GBP"}, Amount{12000, "GBP"}, time.Time{}},
		"auto-approve verizon until March under $200":                               {Allow, "verizon", usd(200), Amount{}, day(2027, 3, 1)},
		"auto-approve city power & light under $80":                                 {Allow, "city power & light", usd(80), Amount{}, time.Time{}},
		"stop auto-approving verizon":                                               {Kind: Stop, Site: "verizon"},
		"Don’t auto-approve Verizon any more!":                                      {Kind: Stop, Site: "verizon"},
		"stop auto-approving verizon payments":                                      {Kind: Stop, Site: "verizon"},
		"stop auto-approving everything":                                            {Kind: Stop},
		"what do you approve by yourself?":                                          {Kind: Tell},
		"What do you auto-approve":                                                  {Kind: Tell},
		"show my policies":                                                          {Kind: Tell},
	} {
		got, ok, err := ParseWish(text, now)
		if err != nil || !ok || got.Kind != want.Kind || got.Site != want.Site || got.Max != want.Max || got.Monthly != want.Monthly || !got.Until.Equal(want.Until) {
			t.Errorf("%q: %+v %v %v\nwant %+v", text, got, ok, err, want)
		}
	}
}

func TestAWishThatIsNotUnderstoodAsksBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	for _, text := range []string{
		"auto-approve verizon", "auto-approve verizon under 200", "auto-approve verizon under $10–$20", "auto-approve under $200",
		"auto-approve verizon under $200 until 2020-01-01", "auto-approve verizon under $200 and up to €300 a month",
		"auto-approve everything under $200", "auto-approve verizon unless it is over $200", "auto-approve verizon under $200 except on sundays",
		"auto-approve verizon under $200 under $300", "auto-approve verizon or comcast under $200", "auto-approve verizon under $200 a week", "auto-approve verizon under $0",
		"auto-approve verizon under $200 until pigs fly",
	} {
		got, ok, err := ParseWish(text, now)
		if _, unclear := errors.AsType[*Unclear](err); !ok || !unclear {
			t.Errorf("%q: %+v %v %v", text, got, ok, err)
		}
	}
}

func TestOrdinaryChatIsNoWish(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "hello", "yes", "go ahead", "did you approve the invoice?", "stop", "how much was verizon last month?", "pay verizon", "type: auto", "I approve of this",
		"what do you think?", strings.Repeat("auto-approve x ", 50)} {
		if got, ok, err := ParseWish(text, time.Now()); ok || err != nil {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
}

func TestAWishReadBackIsTheSameWish(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		code := Currency(rapid.SampledFrom([]string{"USD", "EUR", "JPY", "CHF", "INR"}).Draw(t, "code"))
		w := Wish{Kind: Allow, Site: rapid.SampledFrom([]string{"verizon", "chase.com", "city power"}).Draw(t, "site")}
		w.Max = Amount{rapid.Int64Range(1, 1e7).Draw(t, "max"), code}
		if rapid.Bool().Draw(t, "monthly") {
			w.Monthly = Amount{rapid.Int64Range(w.Max.Minor, 1e8).Draw(t, "budget"), code}
		}
		got, ok, err := ParseWish(w.Sentence(), now)
		if !ok || err != nil || got != w {
			t.Fatalf("%s: %+v %v, want %+v", w.Sentence(), got, err, w)
		}
	})
}

func FuzzWishes(f *testing.F) {
	for _, seed := range []string{"auto-approve verizon under $200", "auto-approve verizon up to $300 a month until March", "stop auto-approving verizon", "what do you approve by yourself?"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		w, ok, err := ParseWish(text, now)
		if ok && err == nil && w.Kind == Allow {
			if w.Max.IsZero() || w.Site == "" || !w.Until.IsZero() && !w.Until.After(now) || !w.Monthly.IsZero() && !w.Max.AtMost(w.Monthly) {
				t.Fatalf("%q: %+v", text, w)
			}
		}
	})
}
