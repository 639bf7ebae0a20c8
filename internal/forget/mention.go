package forget

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"tapin/internal/site"
)

// mention finds a site in what a home keeps: its domain or one below it, whole,
// in each form and each spelling that text comes in.
type mention struct {
	site  site.Site
	forms []*regexp.Regexp
	names *regexp.Regexp // of variables that stand for its credentials
	below bool           // what is below its domain is its own
	ids   []string       // records of it
	age   age
}

func mentionOf(w Wish) mention {
	m := mention{site: w.Site, ids: w.Records, age: age{w.since}}
	for _, form := range site.Forms(w.Site) {
		m.forms = append(m.forms, regexp.MustCompile(`(?i)`+strings.ReplaceAll(regexp.QuoteMeta(form), `\.`, `[.。．｡]`)))
	}
	variable := strings.NewReplacer("-", "_", ".", "_", ":", "_").Replace(strings.ToUpper(string(w.Site)))
	m.names = regexp.MustCompile(`(^|[^A-Za-z0-9])` + regexp.QuoteMeta(variable) + `_(LOGIN|TOTP)($|[^A-Za-z0-9_])`)
	// An address, or a suffix such as co.uk: what is below it is of others.
	of, err := site.Of("below." + string(w.Site))
	m.below = err == nil && of == w.Site
	return m
}

// raw looks through a file: the texts in it if it is JSON, else all of it.
func (m mention) raw(data []byte) bool {
	if v, err := decode(data); err == nil {
		return m.in(v)
	}
	return m.text(string(data))
}

// in looks through everything that a value has, its keys too.
func (m mention) in(v any) bool {
	switch v := v.(type) {
	case string:
		return m.text(v)
	case []any:
		return slices.ContainsFunc(v, m.in)
	case map[string]any:
		for key, each := range v {
			if m.text(key) || m.in(each) {
				return true
			}
		}
	}
	return false
}

func (m mention) text(text string) bool {
	return m.hasID(text) || slices.ContainsFunc(readings(text), m.named)
}

func (m mention) hasID(text string) bool {
	return slices.ContainsFunc(m.ids, func(id string) bool { return strings.Contains(text, id) })
}

func (m mention) named(text string) bool {
	for _, form := range m.forms {
		for _, at := range form.FindAllStringIndex(text, -1) {
			if m.begins(text[:at[0]]) && m.ends(text[at[1]:]) {
				return true
			}
		}
	}
	return m.names.MatchString(text)
}

// begins reports whether a domain can begin behind before. What stands in front
// of a hyphen makes it another's, but for the name that credentials have.
func (m mention) begins(before string) bool {
	last, size := utf8.DecodeLastRuneInString(before)
	switch {
	case size == 0:
		return true
	case strings.ContainsRune(dots, last):
		front, _ := utf8.DecodeLastRuneInString(before[:len(before)-size])
		return m.below || !m.label(front)
	case last == '-':
		front := strings.TrimRight(before, "-")
		if end, _ := utf8.DecodeLastRuneInString(front); !m.label(end) {
			return true
		}
		front, ok := strings.CutSuffix(strings.ToLower(front), "credential")
		end, _ := utf8.DecodeLastRuneInString(front)
		return ok && !m.label(end) && end != '-'
	}
	return !m.label(last)
}

// ends reports whether a domain can end in front of after: what follows must not
// make a longer one of it.
func (m mention) ends(after string) bool {
	rest := strings.TrimLeft(after, dots)
	next, _ := utf8.DecodeRuneInString(rest)
	points := utf8.RuneCountInString(after[:len(after)-len(rest)])
	switch {
	case points > 1, rest == "":
		return true
	case points == 0 && next == '-':
		word := strings.TrimLeft(rest, "-")
		end := strings.IndexFunc(word, func(r rune) bool { return r != '-' && !m.label(r) })
		if end < 0 || word[:end] == "login" || word[:end] == "totp" {
			return true
		}
		further, _ := utf8.DecodeRuneInString(strings.TrimLeft(word[end:], dots))
		return !strings.ContainsRune(dots, rune(word[end])) || !m.label(further)
	}
	return !m.label(next)
}

const dots = ".。．｡"

// label reports whether a letter beside a domain belongs to it. Writing without
// spaces does not.
func (m mention) label(r rune) bool {
	return r != utf8.RuneError && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Nd, unicode.M) ||
		r == ':' && strings.Contains(string(m.site), ":")
}

// is reports whether a field that says a site, an origin or an address says this one.
func (m mention) is(v any) bool {
	text, ok := v.(string)
	if !ok || text == "" {
		return false
	}
	at, err := site.Of(text)
	if err != nil {
		return slices.ContainsFunc(readings(text), m.named)
	}
	return at == m.site
}

// about reports whether a record is of the site, by the fields that say of which
// one it is, and not by what its texts mention.
func (m mention) about(record map[string]any) bool {
	for key, v := range record {
		of := false
		switch key {
		case "site", "origin", "url", "domain", "policy_site", "context":
			of = m.is(v)
		case "payee":
			text, _ := v.(string)
			of = slices.ContainsFunc(readings(text), m.named)
		case "origins", "urls":
			all, _ := v.([]any)
			of = slices.ContainsFunc(all, m.is)
		case "before", "after", "page_reading", "data":
			inner, _ := v.(map[string]any)
			of = m.about(inner)
		}
		if of {
			return true
		}
	}
	return false
}

// readings are a text as it stands, and what it says once its escapes are taken
// for what they stand for, those within others too.
func readings(text string) []string {
	all := []string{text}
	add := func(next string) {
		if next != all[len(all)-1] {
			all = append(all, next)
		}
	}
	for range 3 {
		before := len(all)
		if now := all[len(all)-1]; strings.ContainsAny(now, `\%&`) {
			add(unescape(now))
			add(unpercent(all[len(all)-1]))
			add(html.UnescapeString(all[len(all)-1]))
		}
		if len(all) == before {
			break
		}
	}
	for _, each := range all {
		if strings.ContainsFunc(each, func(r rune) bool { return r > unicode.MaxASCII }) {
			all = append(all, norm.NFKC.String(each))
		}
	}
	return all
}

// unescape reads the escapes of JSON and of Go, and leaves what is none.
func unescape(text string) string {
	var out strings.Builder
	for {
		at := strings.IndexByte(text, '\\')
		if at < 0 || at+1 == len(text) {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:at])
		kind, rest := text[at+1], text[at+2:]
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[kind]
		switch {
		case strings.IndexByte("abfnrtv", kind) >= 0:
			out.WriteByte('\n')
		case digits > 0 && len(rest) >= digits:
			if n, err := strconv.ParseUint(rest[:digits], 16, 32); err == nil {
				if kind == 'x' {
					out.WriteByte(byte(n))
				} else {
					out.WriteRune(rune(n)) //nolint:gosec // what is no letter is written as such
				}
				rest = rest[digits:]
			}
		default:
			out.WriteByte(kind)
		}
		text = rest
	}
}

var percent = regexp.MustCompile(`(%[0-9A-Fa-f]{2})+`)

func unpercent(text string) string {
	return percent.ReplaceAllStringFunc(text, func(run string) string {
		plain, err := url.PathUnescape(run)
		if err != nil {
			return run
		}
		return plain
	})
}

// decode reads JSON, which must be one value and nothing behind it.
func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return v, nil
}
