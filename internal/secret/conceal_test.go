package secret_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tapin/internal/secret"
)

func TestConceal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text  string
		known []string
		want  string
	}{
		"ordinary words stay":            {"Log in to your account", nil, "Log in to your account"},
		"a long word of one class stays": {"Donaudampfschifffahrtsgesellschaft", nil, "Donaudampfschifffahrtsgesellschaft"},
		"parts joined by marks stay":     {"Checkout/Shipping-And-Returns/Overview", nil, "Checkout/Shipping-And-Returns/Overview"},
		"letters and digits, 19 of them": {"abcdefghi0123456789", nil, "abcdefghi0123456789"},
		"letters and digits, 20 of them": {"abcdefghij0123456789", nil, "‹hidden:20›"},
		"capitals amid small letters":    {"see aBcDeFgHiJkLmNoPqRsT now", nil, "see ‹hidden:20› now"},
		"over 64 of anything":            {strings.Repeat("é", 65), nil, "‹hidden:65›"},
		"exactly 64 of one class":        {strings.Repeat("é", 64), nil, strings.Repeat("é", 64)},
		"a known value":                  {"Welcome hunter2!", []string{"hunter2"}, "Welcome ‹hidden:7›!"},
		"a known value of several words": {"I am open sesame, really", []string{"open sesame"}, "I am ‹hidden:11›, really"},
		"a known value twice":            {"a b a", []string{"a"}, "‹hidden:1› b ‹hidden:1›"},
		"a known value inside a word":    {"banana", []string{"a"}, "banana"},
		"an empty known value":           {"banana", []string{"", "  "}, "banana"},
		"spaces stay as they are":        {" a\n\tb ", nil, " a\n\tb "},
		"a text that is not UTF-8":       {"a\xffb", []string{"q"}, "a\xffb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var known []secret.Text
			for _, k := range tt.known {
				known = append(known, secret.New(k))
			}
			if got := secret.Conceal(tt.text, known...); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestConcealingTwiceIsConcealingOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-cA-C0-2 .\-]{0,80}`).Draw(t, "text")
		known := secret.New(rapid.StringMatching(`[a-c0-2]{1,4}`).Draw(t, "known"))
		once := secret.Conceal(text, known)
		if twice := secret.Conceal(once, known); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}
