package page

import (
	"strings"
	"testing"

	"tapin/internal/money"
)

func FuzzTotals(f *testing.F) {
	for _, seed := range [][2]string{{"Amount due: $142.50", ""}, {"$142.50", "Total"}, {"Zu zahlen: 1.299,00 €", "Summe"}, {"合計 5,980円", ""}, {"Subtotal $5 Total $6", ""}, {"Total $1–$2", "x"}, {"$1,2\u206350", "Total"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, label string) {
		got := totalOf([]sums{{Origin: "https://a.example", Host: "a.example", Language: "en-US", Sums: []sumLine{{Text: text, Label: label}, {Text: "Amount due: $980.00"}}}})
		switch got.Decision {
		case TotalRead:
			// A page's own clear total is never made smaller in silence.
			if got.Total.Minor < 98000 && !got.Larger {
				t.Fatalf("%q with %q: %+v", text, label, got)
			}
		case TotalAmbiguous, TotalNone:
			if got.Total != (money.Amount{}) {
				t.Fatalf("%q with %q: undecided, and %v", text, label, got.Total)
			}
		default:
			t.Fatalf("%q", got.Decision)
		}
	})
}

func TestLabelsThatSpeakOfTheTotal(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]int{
		"Total due today": 0, "Due today:": 0, "Heute fällig": 0, "Amount due": 1, "Order total (2 items)": 1, "You pay": 1, "Gesamtbetrag inkl. MwSt.": 1, "Net à payer": 1,
		"Total a pagar": 1, "Valor total": 1, "Totale da pagare": 1, "Te betalen": 1, "ご請求額": 1, "应付金额": 1, "Total": 2, "Totaal": 2, "合計": 2, "Transfer amount": 3, "振込金額": 3, "Betrag": 4, "Bruttobetrag": 1, "A tuo carico": 1, "Total of 3 items": 2, "Total of 360 payments": -1, "Totale trattenute": -1, "Terug te ontvangen bedrag": -1,
		"Subtotal": -1, "Sub-total": -1, "Zwischensumme": -1, "Sous-total": -1, "Shipping total": -1, "Total savings": -1, "Total interest": -1, "Refund amount": -1, "退款金额": -1, "Tax": -1, "Available balance": -1, "小計": -1, "Price": -1, "": -1, "Totally new": -1,
	} {
		if got := rankOf(label); got != want {
			t.Errorf("%q has rank %d, want %d", label, got, want)
		}
	}
	if strings.Contains(regionOf("en", "shop.example.ca"), "US") || regionOf("en", "shop.example.ca") != "CA" || regionOf("ja", "x.com") != "JP" || regionOf("de-CH", "x.de") != "CH" || regionOf("en", "x.io") != "" {
		t.Error("a page is from elsewhere")
	}
}
