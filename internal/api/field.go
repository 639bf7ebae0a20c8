package api

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Field is one member of a request or answer as its JSON shows it. The decoder
// and the description of the API both read it, so that they cannot disagree.
type Field struct {
	Name     string
	Type     reflect.Type
	Index    []int
	Doc      string
	Required bool     // a request without it is refused
	Optional bool     // an answer may leave it out
	Enum     []string // the only values allowed
	Min, Max *float64 // of a number, or Max of a text's length in bytes
}

// Fields lists the JSON members of a struct, embedded ones in their place.
func Fields(t reflect.Type) []Field {
	var fields []Field
	for _, f := range reflect.VisibleFields(t) {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "" || name == "-" {
			continue
		}
		field := Field{
			Name:     name,
			Type:     f.Type,
			Index:    f.Index,
			Doc:      f.Tag.Get("doc"),
			Required: f.Tag.Get("required") == "true",
			Optional: strings.Contains(rest, "omit"),
			Min:      number(f.Tag.Get("min")),
			Max:      number(f.Tag.Get("max")),
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			field.Enum = strings.Split(enum, ",")
		}
		fields = append(fields, field)
	}
	return fields
}

func number(tag string) *float64 {
	n, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		return nil
	}
	return &n
}

// aliases are further spellings of fields, accepted on input only and only
// where the type does not use the spelling itself, as the context envelope does.
var aliases = map[string]string{
	"approvalId":        "approval_id",
	"captureScreenshot": "capture_screenshot",
	"contextName":       "context",
	"context_name":      "context",
	"fullPage":          "full_page",
	"handoffId":         "handoff_id",
	"maxChars":          "max_chars",
	"onTimeout":         "on_timeout",
	"ownerToken":        "owner_token",
	"runId":             "run_id",
	"sandboxId":         "sandbox_id",
	"saveContext":       "save_context",
	"sessionId":         "session_id",
	"tabId":             "tab_id",
	"testId":            "test_id",
	"timeoutMs":         "timeout_ms",
	"timeoutS":          "timeout_s",
	"waitMs":            "wait_ms",
}

// lookup finds the field a caller means by name.
func lookup(fields []Field, name string) (*Field, bool) {
	for _, spelling := range []string{name, aliases[name]} {
		if i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == spelling }); i >= 0 {
			return &fields[i], true
		}
	}
	return nil, false
}

// nearest is the field whose name is most like the given one, or "".
func nearest(fields []Field, name string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	best, least := "", 3
	for _, f := range fields {
		if d := distance(plain(name), plain(f.Name)); d < least && d < len(f.Name) {
			best, least = f.Name, d
		}
	}
	return best
}

// distance counts the letters to change, add or drop between two words. Long
// words are simply far apart: no field has such a name.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 40
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
