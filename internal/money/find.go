package money

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"

	"tapin/internal/fault"
)

// Joint stands in a text where two pieces of a page meet without a space
// between digits: what is drawn as small raised cents would read as thousands.
const Joint = '\u2063'

// Sighting is a sum of money seen in a text.
type Sighting struct {
	Start, End int      // bytes of the text
	Amounts    []Amount // what it can mean: several where currencies share a sign; none if the number cannot be read
	Negative   bool     // a discount, a refund
	Vague      bool     // part of a range, "from", "about", or counted in millions
	sign       string
	likeliest  Currency // of the sign, unless a place says otherwise
}

// In is the amount as it is meant in a region such as US or JP, "" if unknown.
// certain is false where another currency of the same sign is as likely.
func (s Sighting) In(region string) (a Amount, certain bool) {
	if len(s.Amounts) == 0 {
		return Amount{}, false
	}
	if len(s.Amounts) == 1 {
		return s.Amounts[0], s.Amounts[0].Currency == s.likeliest
	}
	if r, err := language.ParseRegion(region); err == nil {
		if unit, ok := currency.FromRegion(r); ok {
			for _, a := range s.Amounts {
				if string(a.Currency) == unit.String() {
					return a, true
				}
			}
		}
	}
	// A dollar that nobody says otherwise of is one of the United States.
	return s.Amounts[0], s.sign == "$" && s.Amounts[0].Currency == s.likeliest
}

// Parse reads one amount as people write it: $1,234.50, 1.234,50 €,
// CHF 1'234.50, ¥5000, ₹1,00,000, USD 12. Ranges and what can be read in two
// ways are refused.
func Parse(text string) (Amount, error) {
	trimmed := strings.TrimSpace(text)
	refuse := func(why string) (Amount, error) {
		return Amount{}, fault.New(fault.InvalidRequest, "read an amount", "%q %s", clip(trimmed), why).
			WithHint("Write one amount with its currency, such as $142.50 or 142.50 EUR.")
	}
	found := Find(trimmed)
	switch {
	case len(found) == 0:
		return refuse("is no amount of money")
	case len(found) > 1:
		return refuse("is more than one amount")
	case found[0].Start != 0 || found[0].End != len(trimmed) || found[0].Vague:
		return refuse("is not exactly one amount")
	case found[0].Negative:
		return refuse("is less than nothing")
	case len(found[0].Amounts) == 0 || found[0].Amounts[0].Currency != found[0].likeliest:
		return refuse("can be read in more than one way, or in none")
	}
	a, _ := found[0].In("")
	return a, nil
}

// Find lists the sums of money in a text: numbers that stand beside the sign,
// code or name of a currency.
func Find(text string) []Sighting {
	var out []Sighting
	taken := 0 // up to where signs belong to the number before
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isDigit(r) && !(r == '.' && startsCents(text, i)) {
			i += size
			continue
		}
		if before, _ := utf8.DecodeLastRuneInString(text[:i]); isLetter(before) && !endsWithSign(text[:i]) {
			_, i = scanNumber(text, i) // a part of a name: A4, v2.10
			if next, size := utf8.DecodeRuneInString(text[i:]); isLetter(next) {
				i += size
			}
			continue
		}
		number, end := scanNumber(text, i)
		s, signed := sight(text, i, end, number, taken)
		if signed {
			out = append(out, s)
			taken = s.End
			end = max(end, s.End)
		}
		i = end
	}
	return markRanges(text, out)
}

// sight looks for a currency on both sides of a number.
func sight(text string, start, end int, number string, taken int) (Sighting, bool) {
	s := Sighting{Start: start, End: end}
	var currencies []Currency
	if pre, from, ok := signBefore(text, start, taken); ok {
		currencies, s.sign, s.Start = pre.means, pre.text, from
	}
	if post, to, ok := signAfter(text, end, s.sign != ""); ok {
		if s.sign == "" {
			currencies, s.sign, s.End = post.means, post.text, to
		} else if both := common(currencies, post.means); len(both) > 0 {
			currencies, s.End = both, to // $12 USD
		}
	}
	if s.sign == "" {
		return s, false
	}
	s.likeliest = currencies[0]
	for _, c := range currencies {
		if minor, ok := minorOf(number, c); ok {
			s.Amounts = append(s.Amounts, Amount{minor, c})
		}
	}
	s.Start, s.Negative = negative(text, s.Start, s.End)
	if after := strings.TrimLeft(text[s.End:], " \u00a0"); multiplied(text[s.End:], after) {
		s.Vague = true
	}
	return s, true
}

// scanNumber reads digits and what may stand between them. A space groups
// only where exactly three digits follow.
func scanNumber(text string, i int) (string, int) {
	var b strings.Builder
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		next, _ := utf8.DecodeRuneInString(text[i+size:])
		switch {
		case isDigit(r):
			b.WriteRune(plain(r))
		case strings.ContainsRune(".,'’٫٬·．，", r) && isDigit(next):
			b.WriteRune(separator(r))
		case strings.ContainsRune(" \u00a0\u202f\u2009", r) && threeDigits(text[i+size:]) && trailing(b.String()) <= 3 && !strings.Contains(b.String(), "."):
			b.WriteByte(' ')
		case r == Joint && isDigit(next):
			b.WriteRune(Joint)
		case (r == '.' || r == ',') && b.Len() > 0 && dashes(text[i+size:]) > 0:
			return b.String(), i + size + dashes(text[i+size:]) // 20.– and 5,-
		default:
			return b.String(), i
		}
		i += size
	}
	return b.String(), i
}

// minorOf reads a number in a currency; false when it has no reading or two.
func minorOf(number string, c Currency) (int64, bool) {
	n := c.Digits()
	if strings.HasPrefix(number, ".") { // $.99
		number = "0" + number
	}
	seps, parts := split(number)
	last := parts[len(parts)-1]
	if slices.Contains(seps, Joint) {
		if seps[len(seps)-1] != Joint || slices.Contains(seps[:len(seps)-1], Joint) || len(last) != n || n == 0 {
			return 0, false
		}
		seps[len(seps)-1] = decimalOther(seps[:len(seps)-1])
	}
	if len(seps) == 0 {
		return plainWhole(parts[0], n)
	}
	sep := seps[len(seps)-1]
	decimal := (sep == '.' || sep == ',') && !slices.Contains(seps[:len(seps)-1], sep)
	if len(seps) == 1 && len(last) == 3 {
		switch {
		case n == 3 && sep == '.':
		case n == 3 && sep == ',', sep == '.' && pointed[c]:
			return 0, false // thousands or decimals
		default:
			decimal = false
		}
	}
	if !decimal {
		whole, ok := ungroup(parts, seps, c)
		if !ok {
			return 0, false
		}
		return compose(whole, "", n)
	}
	whole, ok := ungroup(parts[:len(parts)-1], seps[:len(seps)-1], c)
	if !ok {
		return 0, false
	}
	if n == 0 && (last == "00" || last == "0") {
		last = ""
	}
	if len(last) > n {
		return 0, false
	}
	return compose(whole, last, n)
}

// pointed are the currencies of places where a point never groups thousands.
var pointed = map[Currency]bool{
	"USD": true, "GBP": true, "CAD": true, "AUD": true, "NZD": true, "HKD": true, "SGD": true, "INR": true, "MXN": true, "CNY": true, "CHF": true, "ILS": true, "THB": true,
}

func plainWhole(s string, n int) (int64, bool) {
	if len(s) > 1 && s[0] == '0' || len(s) > 16 {
		return 0, false
	}
	return compose(s, "", n)
}

// ungroup joins groups of thousands, if they are.
func ungroup(parts []string, seps []rune, c Currency) (string, bool) {
	for _, s := range seps {
		if s != seps[0] {
			return "", false
		}
	}
	if len(parts[0]) == 0 || len(parts[0]) > 1 && parts[0][0] == '0' {
		return "", false
	}
	if len(parts) == 1 {
		return parts[0], len(parts[0]) <= 16
	}
	threes, twos := len(parts[0]) <= 3 && parts[0] != "0", lakhs[c] && len(parts[0]) <= 2 && parts[0] != "0"
	for i, p := range parts[1:] {
		threes = threes && len(p) == 3
		twos = twos && (len(p) == 2 && i < len(parts)-2 || len(p) == 3 && i == len(parts)-2)
	}
	whole := strings.Join(parts, "")
	return whole, (threes || twos) && len(whole) <= 16
}

func split(number string) (seps []rune, parts []string) {
	part := ""
	for _, r := range number {
		if r >= '0' && r <= '9' {
			part += string(r)
			continue
		}
		seps, parts, part = append(seps, r), append(parts, part), ""
	}
	return seps, append(parts, part)
}

func decimalOther(before []rune) rune {
	if len(before) > 0 && before[0] == '.' {
		return ','
	}
	return '.'
}

// markRanges says of amounts that belong to a range that they are vague.
func markRanges(text string, all []Sighting) []Sighting {
	for i := range all {
		s := &all[i]
		before := strings.ToLower(strings.TrimRightFunc(text[:s.Start], unicode.IsSpace))
		for _, word := range vagueBefore {
			rest, ok := strings.CutSuffix(before, word)
			if last, _ := utf8.DecodeLastRuneInString(rest); ok && !isLetter(last) {
				s.Vague = true
			}
		}
		// A number straight before, as in 10–20 €, or behind, as in $10-20.
		if head, ok := cutDash(text[:s.Start]); ok {
			if last, _ := utf8.DecodeLastRuneInString(head); isDigit(last) {
				s.Vague = true
			}
		}
		if rest, ok := dashThen(text[s.End:]); ok {
			if first, _ := utf8.DecodeRuneInString(rest); isDigit(first) {
				s.Vague = true
			}
		}
		if i+1 < len(all) {
			between := strings.ToLower(strings.TrimSpace(text[s.End:all[i+1].Start]))
			if slices.Contains(rangeWords, between) {
				s.Vague, all[i+1].Vague = true, true
			}
		}
	}
	return all
}

var (
	rangeWords  = []string{"-", "–", "—", "~", "〜", "～", "to", "or", "bis", "à", "a", "até", "hasta", "tot", "から", "至", "到"}
	vagueBefore = []string{"from", "about", "approx.", "approximately", "ca.", "circa", "~", "≈", "ab", "etwa", "dès", "à partir de", "desde", "a partir de", "vanaf", "over", "約", "约"}
)

func cutDash(s string) (string, bool) {
	s = strings.TrimRight(s, " \u00a0")
	for _, d := range []string{"-", "–", "—"} {
		if head, ok := strings.CutSuffix(s, d); ok {
			return strings.TrimRight(head, " \u00a0"), true
		}
	}
	return s, false
}

func dashThen(s string) (string, bool) {
	s = strings.TrimLeft(s, " \u00a0")
	for _, d := range []string{"-", "–", "—"} {
		if rest, ok := strings.CutPrefix(s, d); ok {
			return strings.TrimLeft(rest, " \u00a0"), true
		}
	}
	return s, false
}
