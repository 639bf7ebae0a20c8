package money

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sign is how a currency shows beside a number.
type sign struct {
	text  string
	means []Currency // the likeliest first
}

var (
	dollars = []Currency{"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN", "COP", "CLP", "ARS", "TWD"}
	crowns  = []Currency{"SEK", "NOK", "DKK", "ISK"}
	rupees  = []Currency{"INR", "PKR", "LKR", "NPR", "MUR"}
)

// symbols are tried in this order: longer ones before those they contain.
var symbols = []sign{
	{"US$", []Currency{"USD"}}, {"CA$", []Currency{"CAD"}}, {"CAD$", []Currency{"CAD"}}, {"AU$", []Currency{"AUD"}}, {"NZ$", []Currency{"NZD"}},
	{"HK$", []Currency{"HKD"}}, {"SG$", []Currency{"SGD"}}, {"NT$", []Currency{"TWD"}}, {"MX$", []Currency{"MXN"}}, {"R$", []Currency{"BRL"}},
	{"C$", []Currency{"CAD"}}, {"A$", []Currency{"AUD"}}, {"S$", []Currency{"SGD"}}, {"$", dollars}, {"＄", dollars},
	{"€", []Currency{"EUR"}}, {"£", []Currency{"GBP"}}, {"￡", []Currency{"GBP"}}, {"CN¥", []Currency{"CNY"}}, {"JP¥", []Currency{"JPY"}},
	{"¥", []Currency{"JPY", "CNY"}}, {"￥", []Currency{"JPY", "CNY"}}, {"日本円", []Currency{"JPY"}}, {"円", []Currency{"JPY"}}, {"人民币", []Currency{"CNY"}}, {"元", []Currency{"CNY", "TWD"}},
	{"₹", []Currency{"INR"}}, {"₩", []Currency{"KRW"}}, {"원", []Currency{"KRW"}}, {"₺", []Currency{"TRY"}}, {"₽", []Currency{"RUB"}}, {"₪", []Currency{"ILS"}},
	{"₫", []Currency{"VND"}}, {"฿", []Currency{"THB"}}, {"₴", []Currency{"UAH"}}, {"₱", []Currency{"PHP"}}, {"₦", []Currency{"NGN"}}, {"zł", []Currency{"PLN"}},
	{"Kč", []Currency{"CZK"}}, {"Ft", []Currency{"HUF"}}, {"SFr.", []Currency{"CHF"}}, {"Fr.", []Currency{"CHF"}}, {"RM", []Currency{"MYR"}}, {"Rp", []Currency{"IDR"}},
	{"Rs.", rupees}, {"Rs", rupees}, {"kr.", crowns}, {"kr", crowns}, {"lei", []Currency{"RON"}},
}

// rand stands before its number alone: behind one, an R is anything.
var rand = sign{"R", []Currency{"ZAR"}}

// names are what people call them; in lower case.
var names = []sign{
	{"dollars", []Currency{"USD", "CAD", "AUD", "NZD"}}, {"dollar", []Currency{"USD", "CAD", "AUD", "NZD"}}, {"bucks", []Currency{"USD"}},
	{"euros", []Currency{"EUR"}}, {"euro", []Currency{"EUR"}}, {"pounds", []Currency{"GBP"}}, {"quid", []Currency{"GBP"}}, {"yen", []Currency{"JPY"}},
	{"rupees", rupees}, {"francs", []Currency{"CHF"}}, {"franken", []Currency{"CHF"}}, {"yuan", []Currency{"CNY"}}, {"reais", []Currency{"BRL"}},
}

// signBefore is the sign that ends where a number starts, not counting what
// belongs to the number before.
func signBefore(text string, start, taken int) (sign, int, bool) {
	head := strings.TrimRight(text[:start], " \u00a0\u202f\u2009:"+string(Joint))
	if strings.HasSuffix(strings.TrimRight(text[:start], " \u00a0\u202f\u2009"), ":") {
		head = text[:start] // a colon ends what it belongs to
	}
	for _, s := range symbols {
		if rest, ok := strings.CutSuffix(head, s.text); ok && len(rest) >= taken && !cutsWord(rest, s.text) {
			return s, len(rest), true
		}
	}
	if rest, ok := strings.CutSuffix(head, rand.text); ok && len(rest) >= taken && !cutsWord(rest, rand.text) {
		return rand, len(rest), true
	}
	if s, from, ok := codeBefore(head); ok && from >= taken {
		return s, from, true
	}
	return sign{}, 0, false
}

func codeBefore(head string) (sign, int, bool) {
	if len(head) < 3 {
		return sign{}, 0, false
	}
	code := head[len(head)-3:]
	last, _ := utf8.DecodeLastRuneInString(head[:len(head)-3])
	if !capitals(code) || isLetter(last) || isDigit(last) {
		return sign{}, 0, false
	}
	c, err := ParseCurrency(code)
	return sign{code, []Currency{c}}, len(head) - 3, err == nil
}

// signAfter is the sign that begins where a number ends, unless it belongs to
// the number behind it.
func signAfter(text string, end int, hasOne bool) (sign, int, bool) {
	rest := strings.TrimLeft(text[end:], " \u00a0\u202f\u2009"+string(Joint))
	gap := len(text[end:]) - len(rest)
	at := end + gap
	for _, s := range symbols {
		if !strings.HasPrefix(rest, s.text) {
			continue
		}
		behind := rest[len(s.text):]
		next, _ := utf8.DecodeRuneInString(behind)
		if isLetter(next) && startsLetter(lastRune(s.text)) && !unicode.Is(unicode.Han, lastRune(s.text)) {
			continue // krona, Rsomething
		}
		if isDigit(next) && (gap > 0 || hasOne) {
			return sign{}, 0, false // 2 $10: the sign is that of the ten
		}
		return s, at + len(s.text), true
	}
	if len(rest) >= 3 && capitals(rest[:3]) {
		next, _ := utf8.DecodeRuneInString(rest[3:])
		if c, err := ParseCurrency(rest[:3]); err == nil && !isLetter(next) && !followedByNumber(rest[3:], hasOne) {
			return sign{rest[:3], []Currency{c}}, at + 3, true
		}
	}
	lower := asciiLower(rest[:min(len(rest), 12)])
	for _, s := range names {
		next, _ := utf8.DecodeRuneInString(rest[min(len(rest), len(s.text)):])
		if strings.HasPrefix(lower, s.text) && !isLetter(next) {
			return s, at + len(s.text), true
		}
	}
	if len(lower) >= 3 { // 200 usd, as people type it
		next, _ := utf8.DecodeRuneInString(rest[3:])
		if slices.Contains([]string{"usd", "eur", "gbp", "chf", "jpy", "cad", "aud", "inr"}, lower[:3]) && !isLetter(next) {
			c, _ := ParseCurrency(lower[:3])
			return sign{string(c), []Currency{c}}, at + 3, true
		}
	}
	return sign{}, 0, false
}

// followedByNumber reports whether a code after a number is rather the one
// before the next number, as in USD 12 EUR 15.
func followedByNumber(rest string, hasOne bool) bool {
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " \u00a0"))
	return hasOne && isDigit(next)
}

func common(a, b []Currency) []Currency {
	var out []Currency
	for _, c := range a {
		if slices.Contains(b, c) {
			out = append(out, c)
		}
	}
	return out
}

// negative looks for a minus or a bracket around the sign and the number.
func negative(text string, start, end int) (int, bool) {
	for _, minus := range []string{"-", "−", "–", "﹣", "－"} {
		head, ok := strings.CutSuffix(text[:start], minus)
		if !ok {
			head, ok = strings.CutSuffix(strings.TrimRight(text[:start], " \u00a0"), minus)
		}
		if ok {
			before, _ := utf8.DecodeLastRuneInString(strings.TrimRight(head, " \u00a0"))
			if !isDigit(before) && !isLetter(before) && !strings.ContainsRune("€$£¥₹", before) {
				return len(head), true
			}
		}
	}
	if strings.HasSuffix(text[:start], "(") && strings.HasPrefix(text[end:], ")") {
		return start, true
	}
	inner := text[start:end] // $-5.00
	return start, strings.ContainsAny(inner, "−") || strings.Contains(strings.TrimRight(inner, "-–—"), "-")
}

// multiplied reports whether what follows a number makes it thousands or millions.
func multiplied(glued, after string) bool {
	first, _ := utf8.DecodeRuneInString(glued)
	second := ""
	if size := utf8.RuneLen(first); size > 0 && size <= len(glued) {
		second = glued[size:]
	}
	next, _ := utf8.DecodeRuneInString(second)
	if strings.ContainsRune("kKmMbB", first) && !isLetter(next) {
		return true
	}
	for _, word := range []string{"万", "萬", "億", "亿", "million", "mio", "thousand", "tsd", "billion", "mrd", "lakh", "crore"} {
		if strings.HasPrefix(strings.ToLower(after), word) {
			return true
		}
	}
	return false
}

func endsWithSign(head string) bool {
	for _, s := range symbols {
		if rest, ok := strings.CutSuffix(head, s.text); ok && !cutsWord(rest, s.text) {
			return true
		}
	}
	if rest, ok := strings.CutSuffix(head, rand.text); ok && !cutsWord(rest, rand.text) {
		return true
	}
	_, _, ok := codeBefore(head)
	return ok
}

// cutsWord reports whether a sign of letters is the tail of a longer word.
func cutsWord(rest, text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(rest)
	return startsLetter(first) && isLetter(last) && !unicode.Is(unicode.Han, first)
}

func startsLetter(r rune) bool { return unicode.IsLetter(r) }

// isLetter takes the scripts that write without spaces for no part of a word.
func isLetter(r rune) bool {
	return unicode.IsLetter(r) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == '_'
}

func lastRune(s string) rune { r, _ := utf8.DecodeLastRuneInString(s); return r }

func isDigit(r rune) bool { return r >= '0' && r <= '9' || r >= '０' && r <= '９' }

func plain(r rune) rune {
	if r >= '０' && r <= '９' {
		return r - '０' + '0'
	}
	return r
}

func separator(r rune) rune {
	switch r {
	case '’':
		return '\''
	case '٫', '，':
		return ','
	case '．', '·':
		return '.'
	case '٬':
		return ','
	}
	return r
}

func startsCents(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	rest := text[i+1:]
	return strings.ContainsRune("$£€", before) && len(rest) >= 2 && digits(rest[:2]) && (len(rest) == 2 || !isDigit(rune(rest[2])))
}

func threeDigits(s string) bool {
	return len(s) >= 3 && digits(s[:3]) && (len(s) == 3 || s[3] < '0' || s[3] > '9')
}

// trailing is the length of the last group so far.
func trailing(s string) int {
	return len(s) - 1 - strings.LastIndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

func dashes(s string) int {
	n := 0
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if !strings.ContainsRune("-–—", r) {
			break
		}
		n += size
	}
	if next, _ := utf8.DecodeRuneInString(s[n:]); isDigit(next) {
		return 0
	}
	return n
}

// asciiLower keeps every byte where it is.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func capitals(s string) bool {
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}
