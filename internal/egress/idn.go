package egress

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// toASCII lower-cases a host and writes what is not ASCII as a browser would:
// look-alikes of ASCII (full-width, circled, mathematical) become ASCII, other
// labels punycode. It is no full UTS 46: a spelling missed here is still
// judged, in the form that the browser makes of it, where it connects.
func toASCII(h string) (string, error) {
	if !utf8.ValidString(h) {
		return "", errHost
	}
	h = strings.Map(foldRune, h)
	if isASCII(h) {
		return h, nil
	}
	labels := strings.Split(h, ".")
	for i, label := range labels {
		if isASCII(label) {
			continue
		}
		encoded, ok := punycode([]rune(label))
		if !ok {
			return "", errHost
		}
		labels[i] = "xn--" + encoded
	}
	return strings.Join(labels, "."), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// lookalikes are runs of compatibility characters: the first is shown as
// ascii[0], the next as ascii[1], and so on.
var lookalikes = []struct {
	first rune
	ascii string
}{
	{'⁰', "0"}, {'¹', "1"}, {'²', "23"}, {'⁴', "456789"}, {'₀', "0123456789"},
	{'①', "123456789"}, {'⓪', "0"},
	{'Ⓐ', "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"},
}

// foldRune maps one character; -1 drops it.
func foldRune(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	case r == '。' || r == '．' || r == '｡':
		return '.'
	case 0xff01 <= r && r <= 0xff5e: // full-width forms
		return foldRune(r - 0xff01 + '!')
	case 0x1d7ce <= r && r <= 0x1d7ff: // mathematical digits, five alphabets
		return '0' + (r-0x1d7ce)%10
	case 0x1d400 <= r && r <= 0x1d6a3: // mathematical letters, upper then lower
		return 'a' + (r-0x1d400)%26
	case r == 0xad || 0x200b <= r && r <= 0x200d || r == 0x2060 || r == 0xfeff || 0xfe00 <= r && r <= 0xfe0f:
		return -1 // invisible
	}
	for _, run := range lookalikes {
		if i := r - run.first; i >= 0 && int(i) < len(run.ascii) {
			return rune(run.ascii[i])
		}
	}
	return unicode.ToLower(r)
}

// punycode encodes one label (RFC 3492).
func punycode(label []rune) (string, bool) {
	const base, tMin, tMax, damp, skew = 36, 1, 26, 700, 38
	var out strings.Builder
	for _, r := range label {
		if r < utf8.RuneSelf {
			out.WriteByte(byte(r))
		}
	}
	basic := out.Len()
	if basic > 0 {
		out.WriteByte('-')
	}
	n, delta, bias := rune(128), 0, 72
	for handled := basic; handled < len(label); {
		next := rune(unicode.MaxRune)
		for _, r := range label {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (handled + 1)
		n = next
		for _, r := range label {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := base; ; k += base {
				t := min(max(k-bias, tMin), tMax)
				if q < t {
					out.WriteByte(punycodeDigit(q))
					break
				}
				out.WriteByte(punycodeDigit(t + (q-t)%(base-t)))
				q = (q - t) / (base - t)
			}
			if handled == basic {
				delta /= damp
			} else {
				delta /= 2
			}
			delta += delta / (handled + 1)
			bias = 0
			for ; delta > (base-tMin)*tMax/2; bias += base {
				delta /= base - tMin
			}
			bias += (base - tMin + 1) * delta / (delta + skew)
			delta = 0
			handled++
			if out.Len() > 63 {
				return "", false // longer than a label can be
			}
		}
		delta++
		n++
	}
	return out.String(), true
}

func punycodeDigit(d int) byte {
	if d < 26 {
		return 'a' + byte(d)
	}
	return '0' + byte(d-26)
}
