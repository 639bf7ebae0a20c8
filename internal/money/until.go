package money

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	isoDay     = lazily(`^(\d{4})-(\d{2})-(\d{2})$`)
	dayMonth   = lazily(`^(?:the )?(\d{1,2})(?:st|nd|rd|th|\.)?(?: of)? ([a-z]+)\.?(?:,? (\d{4}))?$`)
	monthDay   = lazily(`^([a-z]+)\.? (?:the )?(\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?$`)
	monthOnly  = lazily(`^(?:(the end of|end of|the start of|start of|the beginning of|beginning of) )?([a-z]+)(?: (\d{4}))?$`)
	endOf      = lazily(`^(?:the )?end of (?:the|this) (week|month|year)$`)
	aWhile     = lazily(`^(?:(a|an|one|two|three|four|six|twelve|\d{1,3}) )?(day|week|month|year)s?$`)
	numberword = map[string]int{"": 1, "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "six": 6, "twelve": 12}
)

// untilWhen reads the end of a time in words. A day that is named is the last
// one that counts, but for a bare month: "until March" ends as March begins,
// since the owner may have meant either and the shorter one costs a question.
func untilWhen(text string, now time.Time) (time.Time, bool) {
	text = strings.TrimSpace(text)
	year, month, day := now.Date()
	midnight := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, now.Location()) }
	switch text {
	case "today", "tonight", "the end of the day":
		return midnight(year, month, day+1), true
	case "tomorrow":
		return midnight(year, month, day+2), true
	case "next week":
		return midnight(year, month, day+daysTo(now, time.Monday)), true
	case "next month":
		return midnight(year, month+1, 1), true
	case "next year", "new year", "the new year":
		return midnight(year+1, 1, 1), true
	}
	if m := endOf().FindStringSubmatch(text); m != nil {
		switch m[1] {
		case "week":
			return midnight(year, month, day+daysTo(now, time.Monday)), true
		case "month":
			return midnight(year, month+1, 1), true
		}
		return midnight(year+1, 1, 1), true
	}
	if m := isoDay().FindStringSubmatch(text); m != nil {
		return exactly(number(m[1]), time.Month(number(m[2])), number(m[3]), now)
	}
	if m := aWhile().FindStringSubmatch(text); m != nil {
		n, ok := numberword[m[1]]
		if !ok {
			n = number(m[1])
		}
		switch m[2] {
		case "day":
			return now.AddDate(0, 0, n), n > 0
		case "week":
			return now.AddDate(0, 0, 7*n), n > 0
		case "month":
			return now.AddDate(0, n, 0), n > 0
		}
		return now.AddDate(n, 0, 0), n > 0
	}
	if m := dayMonth().FindStringSubmatch(text); m != nil {
		return named(m[2], m[1], m[3], now)
	}
	if m := monthDay().FindStringSubmatch(text); m != nil {
		return named(m[1], m[2], m[3], now)
	}
	if m := monthOnly().FindStringSubmatch(text); m != nil {
		return untilMonth(m[1], m[2], m[3], now)
	}
	return time.Time{}, false
}

// untilMonth is the beginning of a month, or with "end of" that of the next. A
// bare day of the week counts itself.
func untilMonth(edge, name, year string, now time.Time) (time.Time, bool) {
	m, ok := months[name]
	if !ok {
		d, isDay := weekdays[name]
		if !isDay || edge != "" || year != "" {
			return time.Time{}, false
		}
		y, mo, da := now.Date()
		return time.Date(y, mo, da+daysTo(now, d)+1, 0, 0, 0, 0, now.Location()), true
	}
	if strings.Contains(edge, "end") {
		m++
	}
	y := now.Year()
	if year != "" {
		return time.Date(number(year), m, 1, 0, 0, 0, 0, now.Location()), true
	}
	at := time.Date(y, m, 1, 0, 0, 0, 0, now.Location())
	if !at.After(now) {
		at = time.Date(y+1, m, 1, 0, 0, 0, 0, now.Location())
	}
	return at, true
}

func named(month, day, year string, now time.Time) (time.Time, bool) {
	m, ok := months[month]
	if !ok {
		return time.Time{}, false
	}
	if year != "" {
		return exactly(number(year), m, number(day), now)
	}
	at, ok := exactly(now.Year(), m, number(day), now)
	if ok && at.After(now) {
		return at, true
	}
	return exactly(now.Year()+1, m, number(day), now)
}

// exactly is the end of a day that exists.
func exactly(y int, m time.Month, d int, now time.Time) (time.Time, bool) {
	at := time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	if at.Month() != m || at.Day() != d {
		return time.Time{}, false
	}
	return time.Date(y, m, d+1, 0, 0, 0, 0, now.Location()), true
}

// daysTo is how many days are left to the next such day, never today.
func daysTo(now time.Time, d time.Weekday) int { return (int(d-now.Weekday())+6)%7 + 1 }

var months, weekdays = calendar()

func calendar() (map[string]time.Month, map[string]time.Weekday) {
	m, d := map[string]time.Month{"sept": time.September}, map[string]time.Weekday{}
	for i := time.January; i <= time.December; i++ {
		name := strings.ToLower(i.String())
		m[name], m[name[:3]] = i, i
	}
	for i := time.Sunday; i <= time.Saturday; i++ {
		d[strings.ToLower(i.String())] = i
	}
	return m, d
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// lazily is a pattern for who needs it: most processes ask for none.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
