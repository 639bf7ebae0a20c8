package config

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tapin/internal/secret"
)

// Render writes the settings as a file, with secrets masked.
func Render(cfg *Config) []byte { return render(cfg, nil) }

// Explain writes the settings as Render does, each line with its origin.
func Explain(cfg *Config, origins *Origins) []byte { return render(cfg, origins.Of) }

func render(cfg *Config, origin func(path string) Origin) []byte {
	var out strings.Builder
	var open []string // the sections the last line stood in
	root := reflect.ValueOf(cfg).Elem()
	for _, s := range settings {
		parts := strings.Split(s.path, ".")
		last := len(parts) - 1
		for i, part := range parts[:last] {
			if i < len(open) && open[i] == part {
				continue
			}
			open = append(open[:min(i, len(open))], part)
			fmt.Fprintf(&out, "%s%s:\n", strings.Repeat("  ", i), part)
		}
		open = open[:last]
		fmt.Fprintf(&out, "%s%s: %s", strings.Repeat("  ", last), parts[last], inline(root.FieldByIndex(s.index)))
		if origin != nil {
			fmt.Fprintf(&out, " # %s", origin(s.path))
		}
		out.WriteByte('\n')
	}
	return []byte(out.String())
}

// inline writes a value as it would stand behind its key, on one line.
func inline(field reflect.Value) string {
	switch field.Kind() {
	case reflect.Slice:
		items := make([]string, field.Len())
		for i := range items {
			items[i] = inline(field.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case reflect.Map:
		var items []string
		values := map[string]string{}
		for name, item := range field.Seq2() {
			values[name.String()] = inline(item)
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			items = append(items, quote(name)+": "+values[name])
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	if s, ok := field.Interface().(secret.Text); ok && s.IsEmpty() {
		return `""` // that nothing is set is no secret
	}
	if m, ok := field.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			return `""`
		}
		return quote(string(text))
	}
	if field.Kind() == reflect.String {
		return quote(field.String())
	}
	return fmt.Sprint(field.Interface())
}

var (
	bare     = regexp.MustCompile(`^(?:[A-Za-z/][A-Za-z0-9_./-]*|[0-9]+(?:\.[0-9]+)?[a-zµ][a-z0-9.µ]*|0)$`)
	reserved = regexp.MustCompile(`^(?i:null|true|false|yes|no|y|n|on|nan|inf)$`)
)

// quote puts text into quotes unless it is a plain word. YAML reads every
// escape that Go writes for valid UTF-8, and values are never anything else.
func quote(s string) string {
	if bare.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
