package apiserver

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// object is one JSON object of the description.
type object = map[string]any

// describe writes the OpenAPI 3.1 description of the table. Types and limits
// come from the same fields the decoder reads.
func describe(table []*route, version string) []byte {
	d := &description{schemas: object{}}
	paths := object{}
	for _, row := range table {
		for _, path := range row.paths() {
			item, _ := paths[path].(object)
			if item == nil {
				item = object{}
				paths[path] = item
			}
			item[strings.ToLower(row.method)] = d.operation(row, path)
		}
	}
	codes := make([]string, 0, len(fault.Codes()))
	for _, code := range fault.Codes() {
		codes = append(codes, string(code))
	}
	failure := d.structure(reflect.TypeFor[api.Problem](), true)
	members := failure["properties"].(object)
	members["ok"] = object{"const": false}
	members["error"] = object{"type": "string", "enum": codes, "description": "A code from the table of the contract."}
	failure["required"] = append(failure["required"].([]string), "ok")
	d.schemas["Failure"] = failure
	out, err := json.Marshal(object{
		"openapi":           "3.1.0",
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": object{
			"title":       "tapin",
			"version":     version,
			"description": "A browser that an agent drives and its owner can tap into.",
		},
		"servers":  []object{{"url": "http://127.0.0.1:3849"}},
		"security": []object{{"bearer": []string{}}},
		"paths":    paths,
		"components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}},
		},
	})
	if err != nil {
		panic(err) // maps, texts and numbers always encode
	}
	return out
}

type description struct{ schemas object }

func (d *description) operation(row *route, path string) object {
	op := object{
		"operationId": operationID(row.method, path),
		"summary":     row.doc,
		"responses":   d.responses(row),
	}
	if row.who == Anyone {
		op["security"] = []object{}
	} else {
		op["description"] = "For the " + row.who.String() + "."
	}
	var params []object
	if _, rest, has := strings.Cut(path, "{"); has {
		name, _, _ := strings.Cut(rest, "}")
		params = append(params, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, f := range api.Fields(row.query) {
		params = append(params, object{"name": f.Name, "in": "query", "required": f.Required, "description": f.Doc, "schema": d.limited(f)})
	}
	if row.keyed {
		params = append(params, object{
			"name": "Idempotency-Key", "in": "header", "required": false,
			"description": "A repetition with the same key and body within a day gets what the first one made.",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": maxKey},
		})
	}
	if params != nil {
		op["parameters"] = params
	}
	if row.body != nil {
		op["requestBody"] = object{
			"required": slices.ContainsFunc(api.Fields(row.body), func(f api.Field) bool { return f.Required }),
			"content":  object{"application/json": object{"schema": d.named(row.body, false)}},
		}
	}
	return op
}

func (d *description) responses(row *route) object {
	content := object{}
	for _, media := range row.media {
		content[media] = object{}
	}
	if row.answer != nil {
		content["application/json"] = object{"schema": object{
			"allOf": []object{
				{"type": "object", "properties": object{"ok": object{"const": true}}, "required": []string{"ok"}},
				d.named(row.answer, true),
			},
		}}
	}
	failure := object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Failure"}}}
	all := object{
		"200":     object{"description": "Done.", "content": content},
		"default": object{"description": "Refused or failed; error tells why.", "content": failure},
	}
	expected := []fault.Code{fault.InvalidRequest, fault.Forbidden, fault.Internal}
	if row.who != Anyone {
		expected = append(expected, fault.Unauthorized, fault.RateLimited, fault.Busy)
	}
	if row.body != nil {
		expected = append(expected, fault.PayloadTooLarge)
	}
	if strings.HasPrefix(row.path, canonical) {
		expected = append(expected, fault.NoSession)
	}
	for _, code := range expected {
		all[strconv.Itoa(code.Status())] = object{"description": code.Sentence(), "content": failure}
	}
	return all
}

// named puts a struct among the components and refers to it.
func (d *description) named(t reflect.Type, answer bool) object {
	name := t.Name()
	if _, there := d.schemas[name]; !there {
		d.schemas[name] = object{} // a type may hold itself
		d.schemas[name] = d.structure(t, answer)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (d *description) structure(t reflect.Type, answer bool) object {
	members, required := object{}, []string{}
	for _, f := range api.Fields(t) {
		schema := d.limited(f)
		if f.Doc != "" {
			schema["description"] = f.Doc
		}
		members[f.Name] = schema
		if f.Required || answer && !f.Optional {
			required = append(required, f.Name)
		}
	}
	s := object{"type": "object", "properties": members, "required": required}
	if !answer {
		s["additionalProperties"] = false
	}
	return s
}

// limited is the schema of a field with the limits of its tags.
func (d *description) limited(f api.Field) object {
	s := d.schema(f.Type)
	if f.Type.Kind() == reflect.Pointer && !f.Optional && !f.Required {
		s = object{"oneOf": []object{s, {"type": "null"}}}
	}
	if f.Enum != nil {
		s["enum"] = f.Enum
	}
	if f.Type.Kind() == reflect.String || s["type"] == "string" {
		if f.Max != nil {
			s["maxLength"] = *f.Max
		}
		return s
	}
	if f.Min != nil {
		s["minimum"] = *f.Min
	}
	if f.Max != nil {
		s["maximum"] = *f.Max
	}
	return s
}

func (d *description) schema(t reflect.Type) object {
	if t == reflect.TypeFor[time.Time]() {
		return object{"type": "string", "format": "date-time"}
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return object{"type": "object"}
	}
	if t == reflect.TypeFor[secret.Text]() {
		return object{"type": "string", "format": "password", "writeOnly": true}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Struct:
		// A nested type is shared by requests and answers; the decoder, not the
		// description, refuses what it does not know.
		return d.named(t, true)
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Interface:
		return object{}
	}
	return object{"type": "integer"}
}

// operationID is unique to method and path: postSessionsIdNavigate.
func operationID(method, path string) string {
	id := strings.ToLower(method)
	for word := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune("/{}.-_", r) }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}
