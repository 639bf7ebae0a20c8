package handoff

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tapin/internal/page"
	"tapin/internal/secret"
)

const (
	maxTitle = 256 // runes
	maxKeys  = 500 // names of one storage
)

// snapshot takes from an observation what a record may keep. The page has
// concealed its texts already; doing so once more costs nothing and trusts
// nobody.
func snapshot(o page.Observation, at time.Time) Snapshot {
	return Snapshot{
		URL: bareURL(o.URL), Origin: o.Origin, Title: clip(secret.Conceal(o.Title), maxTitle), Timestamp: at.UnixMilli(),
		CookieCount: o.Cookies, LocalKeys: names(o.LocalKeys), SessionKeys: names(o.SessionKeys), DOMFingerprint: o.Fingerprint,
	}
}

// bareURL drops what may carry a secret: userinfo, query and fragment, and all
// of an address that is its own content. It goes by the marks alone, so that an
// address that nobody can parse is bare too.
func bareURL(s string) string {
	s, _, _ = strings.Cut(s, "?")
	s, _, _ = strings.Cut(s, "#")
	scheme, _, ok := strings.Cut(s, ":")
	if scheme = strings.ToLower(strings.TrimSpace(scheme)); ok && (scheme == "data" || scheme == "javascript") {
		return scheme + ":"
	}
	if before, rest, ok := strings.Cut(s, "//"); ok {
		host, path, slash := strings.Cut(rest, "/")
		host = host[strings.LastIndex(host, "@")+1:]
		if s = before + "//" + host; slash {
			s += "/" + path
		}
	}
	return clip(s, 2048)
}

// names is a set of names: concealed, sorted, each once.
func names(in []string) []string {
	out := make([]string, 0, len(in))
	for _, n := range in {
		out = append(out, clip(secret.Conceal(n), 128))
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxKeys)]
}

func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// The fields of a delta, in its order.
const (
	fieldURL     = "url"
	fieldTitle   = "title"
	fieldOrigin  = "origin"
	fieldCookies = "cookie_count"
	fieldStorage = "storage_keys"
	fieldDOM     = "dom_fingerprint"

	changed   = "changed"
	unchanged = "unchanged"
)

// delta says of each field whether it changed. The same two snapshots always
// give the same delta.
func delta(before, after Snapshot) []Change {
	compare := func(field, a, b string) Change {
		if a == b {
			return Change{Field: field, Change: unchanged}
		}
		return Change{Field: field, Change: changed, Before: a, After: b}
	}
	storage := Change{Field: fieldStorage, Change: unchanged}
	was, is := before.keys(), after.keys()
	storage.Added, storage.Removed = without(is, was), without(was, is)
	if len(storage.Added)+len(storage.Removed) > 0 {
		storage.Change = changed
	}
	dom := Change{Field: fieldDOM, Change: unchanged}
	if before.DOMFingerprint != after.DOMFingerprint {
		dom.Change = changed
	}
	return []Change{
		compare(fieldURL, before.URL, after.URL),
		compare(fieldTitle, before.Title, after.Title),
		compare(fieldOrigin, before.Origin, after.Origin),
		compare(fieldCookies, strconv.Itoa(before.CookieCount), strconv.Itoa(after.CookieCount)),
		storage,
		dom,
	}
}

// keys is the set of storage keys, told apart by where they are.
func (s Snapshot) keys() []string {
	var out []string
	for _, k := range s.LocalKeys {
		out = append(out, "local:"+k)
	}
	for _, k := range s.SessionKeys {
		out = append(out, "session:"+k)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func without(all, those []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(k string) bool { return slices.Contains(those, k) })
}

var spoken = map[string]string{
	fieldURL: "URL", fieldTitle: "title", fieldOrigin: "origin", fieldCookies: "cookie count",
	fieldStorage: "storage key set", fieldDOM: "DOM fingerprint",
}

// summarize says a delta in one sentence.
func summarize(d []Change) string {
	var moved, same []string
	for _, c := range d {
		name := spoken[c.Field]
		switch {
		case c.Change == unchanged:
			same = append(same, name)
		case c.Before != "" && c.After != "":
			moved = append(moved, name+" changed from "+quote(c.Field, c.Before)+" to "+quote(c.Field, c.After))
		default:
			moved = append(moved, name+" changed")
		}
	}
	if len(moved) == 0 {
		return "Nothing changed: " + list(same) + " are as before."
	}
	text := strings.Join(moved, "; ")
	if len(same) > 0 {
		text += "; unchanged: " + list(same)
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// quote sets off what a page says of itself.
func quote(field, value string) string {
	if field == fieldTitle {
		return "“" + clip(value, 80) + "”"
	}
	return clip(value, 200)
}

func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
