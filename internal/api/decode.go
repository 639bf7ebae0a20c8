package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// maxDepth bounds how far a body may nest; no request needs half of it.
const maxDepth = 32

// Decode reads a body strictly into a struct: one JSON object, every member
// known, none twice under any spelling, every type right. An empty body is an
// empty object and null is the same as absent. Errors name the field and never
// its value, which may be a secret.
func Decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if !utf8.Valid(body) {
		return invalid("the body is not valid UTF-8")
	}
	if err := json.Unmarshal(body, new(json.RawMessage)); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return invalid("the body is not one JSON object: it breaks at byte %d", syntax.Offset)
		}
		return invalid("the body is not one JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := examine(dec, "", maxDepth); err != nil {
		return err
	}
	v := reflect.ValueOf(into).Elem()
	if kindOf(body) != "an object" {
		return invalid("the body must be a JSON object, not %s", kindOf(body))
	}
	return decodeObject(body, v, "")
}

// examine refuses what the standard decoder lets pass: deep nesting and names
// given twice, also inside free-form members. The syntax is known to be right.
func examine(dec *json.Decoder, path string, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return invalid("the body is not one JSON object")
	}
	open, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if depth == 0 {
		return invalid("the body nests deeper than %d levels", maxDepth)
	}
	seen := map[string]bool{}
	for dec.More() {
		inner := path
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return invalid("the body is not one JSON object")
			}
			name, _ := key.(string)
			inner = join(path, name)
			if seen[name] {
				return invalid("field %s is given twice", quote(inner))
			}
			seen[name] = true
		}
		if err := examine(dec, inner, depth-1); err != nil {
			return err
		}
	}
	_, err = dec.Token() // the closing bracket
	return err
}

func decodeObject(raw []byte, v reflect.Value, path string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return mismatch(path, "an object", raw)
	}
	fields := Fields(v.Type())
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names) // so that the same body always gets the same answer
	given := map[string]string{}
	for _, name := range names {
		f, known := lookup(fields, name)
		if !known {
			return unknown(fields, "field", path, name)
		}
		if other, twice := given[f.Name]; twice {
			return invalid("fields %s and %s are the same; give one of them", quote(join(path, other)), quote(join(path, name)))
		}
		given[f.Name] = name
		if err := decodeValue(members[name], v.FieldByIndex(f.Index), join(path, f.Name), f); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if f.Required && v.FieldByIndex(f.Index).IsZero() {
			return invalid("field %s is required", quote(join(path, f.Name))).With("field", join(path, f.Name))
		}
	}
	return nil
}

func decodeValue(raw []byte, v reflect.Value, path string, f *Field) error {
	if kindOf(raw) == "null" {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return decodeValue(raw, v.Elem(), path, f)
	}
	switch v.Addr().Interface().(type) {
	case json.Unmarshaler, encoding.TextUnmarshaler:
		if json.Unmarshal(raw, v.Addr().Interface()) != nil {
			return invalid("field %s cannot be read", quote(path)).With("field", path)
		}
		return f.check(v, path)
	}
	switch v.Kind() {
	case reflect.Struct:
		return decodeObject(raw, v, path)
	case reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return mismatch(path, "a list", raw)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			at := path + "[" + strconv.Itoa(i) + "]"
			if kindOf(item) == "null" {
				return mismatch(at, expected(v.Type().Elem()), item)
			}
			if err := decodeValue(item, v.Index(i), at, f); err != nil {
				return err
			}
		}
		return nil
	}
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		return mismatch(path, expected(v.Type()), raw)
	}
	return f.check(v, path)
}

// DecodeQuery reads a query string as strictly as Decode reads a body.
func DecodeQuery(raw string, into any) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return invalid("the query cannot be read")
	}
	v := reflect.ValueOf(into).Elem()
	fields := Fields(v.Type())
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	given := map[string]bool{}
	for _, name := range names {
		f, known := lookup(fields, name)
		if !known {
			return unknown(fields, "parameter", "", name)
		}
		if given[f.Name] || len(values[name]) > 1 {
			return invalid("parameter %s is given twice", quote(f.Name))
		}
		given[f.Name] = true
		at := v.FieldByIndex(f.Index)
		if at.Kind() == reflect.Pointer {
			at.Set(reflect.New(at.Type().Elem()))
			at = at.Elem()
		}
		text := values[name][0]
		if at.Kind() == reflect.String {
			at.SetString(text)
		} else if kindOf([]byte(text)) == "null" || strings.TrimSpace(text) != text || json.Unmarshal([]byte(text), at.Addr().Interface()) != nil {
			return invalid("parameter %s must be %s", quote(f.Name), expected(at.Type())).With("field", f.Name)
		}
		if err := f.check(at, f.Name); err != nil {
			return err
		}
	}
	return nil
}

// check holds a value against the limits in its field's tags.
func (f *Field) check(v reflect.Value, path string) error {
	refuse := func(format string, args ...any) error {
		return invalid("field %s "+format, append([]any{quote(path)}, args...)...).With("field", path)
	}
	var n float64
	if hidden, ok := v.Interface().(secret.Text); ok {
		if f.Max != nil && float64(len(hidden.Reveal())) > *f.Max {
			return refuse("is longer than %v bytes", *f.Max)
		}
		return nil
	}
	switch {
	case v.Kind() == reflect.String:
		if f.Max != nil && float64(v.Len()) > *f.Max {
			return refuse("is longer than %v bytes", *f.Max)
		}
		if f.Enum != nil && !slices.Contains(f.Enum, v.String()) {
			return refuse("must be one of %s", strings.Join(f.Enum, ", "))
		}
		return nil
	case v.CanInt():
		n = float64(v.Int())
	case v.CanUint():
		n = float64(v.Uint())
	case v.CanFloat():
		n = v.Float()
	default:
		return nil
	}
	if f.Min != nil && n < *f.Min {
		return refuse("must be at least %v", *f.Min)
	}
	if f.Max != nil && n > *f.Max {
		return refuse("must be at most %v", *f.Max)
	}
	return nil
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidRequest, "", format, args...)
}

func mismatch(path, want string, raw []byte) error {
	return invalid("field %s must be %s, not %s", quote(path), want, kindOf(raw)).With("field", path)
}

func unknown(fields []Field, what, path, name string) error {
	full := clip(join(path, name))
	err := invalid("unknown %s %s", what, quote(full)).With("field", full)
	if strings.HasPrefix(name, "browserbase") {
		return err.WithHint("Keys never come from a client: set them where tapin runs.")
	}
	if near := nearest(fields, name); near != "" {
		return err.WithHint("Did you mean %q?", join(path, near))
	}
	if len(fields) == 0 {
		return err.WithHint("This route takes none.")
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.Name
	}
	return err.WithHint("Known here: %s.", strings.Join(known, ", "))
}

// expected describes a type to a caller who does not know Go.
func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of 0 or more"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number in range"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// kindOf names the kind of a JSON value by its first byte.
func kindOf(raw []byte) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// clip keeps a name from outside short enough for an answer.
func clip(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

func quote(name string) string { return strconv.QuoteToGraphic(clip(name)) }
