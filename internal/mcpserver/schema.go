package mcpserver

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// object is one JSON object of a schema.
type object = map[string]any

// inputSchema describes the arguments of a tool. It is written from the same
// fields that the decoder reads. What is marked hidden is accepted and not
// offered: spellings of other tools, rarely used ways to name an element.
func inputSchema(t reflect.Type) object {
	members, required := object{}, []string{}
	for _, f := range api.Fields(t) {
		tag := t.FieldByIndex(f.Index).Tag
		if tag.Get("hidden") == "true" {
			continue
		}
		s := limited(f, inputSchema)
		if f.Doc != "" {
			s["description"] = f.Doc
		}
		if given := tag.Get("default"); given != "" {
			s["default"] = json.RawMessage(given)
		}
		members[f.Name] = s
		if f.Required {
			required = append(required, f.Name)
		}
	}
	s := object{"type": "object", "properties": members}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// outputSchema describes the structured answer of a tool. A failure has the
// same shape through every tool, so only ok is always there.
func outputSchema(t reflect.Type) object {
	s := structure(t)
	members := s["properties"].(object)
	members["ok"] = object{"type": "boolean", "description": "Whether it was done. If not: error, details and hint tell why and what to do."}
	members["error"] = object{"type": "string", "description": "A code from tapin's table."}
	members["details"] = object{"type": "string"}
	members["hint"] = object{"type": "string"}
	s["required"] = []string{"ok"}
	return s
}

func structure(t reflect.Type) object {
	members := object{}
	for _, f := range api.Fields(t) {
		s := limited(f, structure)
		if f.Doc != "" {
			s["description"] = f.Doc
		}
		members[f.Name] = s
	}
	return object{"type": "object", "properties": members}
}

// limited is the schema of a field with the limits of its tags.
func limited(f api.Field, inner func(reflect.Type) object) object {
	s := schemaOf(f.Type, inner)
	at := s
	if items, ok := s["items"].(object); ok {
		at = items // limits of a list are those of what is in it
	}
	if f.Enum != nil {
		at["enum"] = f.Enum
	}
	switch at["type"] {
	case "string":
		if f.Max != nil {
			at["maxLength"] = *f.Max
		}
	case "integer", "number":
		if f.Min != nil {
			at["minimum"] = *f.Min
		}
		if f.Max != nil {
			at["maximum"] = *f.Max
		}
	}
	return s
}

func schemaOf(t reflect.Type, inner func(reflect.Type) object) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[secret.Text]():
		return object{"type": "string"}
	case reflect.TypeFor[anyJSON]():
		return object{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), inner)
	case reflect.Struct:
		return inner(t)
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem(), inner)}
	case reflect.Map:
		return object{"type": "object"}
	case reflect.Interface: // rows or fields
		return object{"anyOf": []object{{"type": "object"}, {"type": "array"}}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	}
	return object{"type": "integer"}
}

// spellings are names of arguments that agents know from other tools, and what
// they are here. They count only where the tool has no such argument itself.
var spellings = map[string]string{
	"ref": "target", "selector": "target", "css": "target",
	"start_target": "startTarget", "startRef": "startTarget", "startSelector": "startTarget",
	"end_target": "endTarget", "endRef": "endTarget", "endSelector": "endTarget",
	"double_click": "doubleClick", "full_page": "fullPage", "prompt_text": "promptText", "text_gone": "textGone",
	"paths": "files", "timeout": "timeout_ms", "timeout_ms": "wait_ms", "maxLength": "max_chars", "value": "values", "cursor": "offset",
	"testid": "test_id", "saveContext": "save_context", "contextName": "context",
}

// decode reads the arguments of a call. Errors name a field and never its value.
func decode(raw json.RawMessage, into any) error {
	if string(raw) == "null" {
		raw = nil // hosts write no arguments in either way
	}
	return named(api.Decode(renamed(raw, reflect.TypeOf(into).Elem()), into))
}

// named says what is wrong in the words of a tool: its arguments are no body.
func named(err error) error {
	if err == nil {
		return nil
	}
	f := fault.Of(err)
	details := strings.NewReplacer("the body", "what was given", "field ", "argument ", "fields ", "arguments ").Replace(f.Details())
	told := fault.New(f.Code, "", "%s", details)
	told.Data = f.Data
	if told.Hint = f.Hint; told.Hint == "" {
		told.Hint = "Compare the arguments with the tool's schema."
	}
	return told
}

// renamed gives arguments the names that the type has. What is not an object
// stays as it is, for the decoder to refuse.
func renamed(raw json.RawMessage, t reflect.Type) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return raw
	}
	fields := map[string]api.Field{}
	for _, f := range api.Fields(t) {
		fields[f.Name] = f
	}
	changed := false
	for name, value := range members {
		to := name
		if _, own := fields[name]; !own && spellings[name] != "" {
			to = spellings[name]
		}
		f, ok := fields[to]
		if !ok {
			continue
		}
		if _, twice := members[to]; twice && to != name {
			continue // the decoder says that there is one too many
		}
		value = fitted(value, f.Type)
		if to != name || string(value) != string(members[name]) {
			delete(members, name)
			members[to] = value
			changed = true
		}
	}
	if !changed {
		return raw
	}
	out, err := json.Marshal(members)
	if err != nil {
		return raw
	}
	return out
}

// fitted mends what agents often send: one text where a list is wanted, and
// lists whose members have other spellings too.
func fitted(value json.RawMessage, t reflect.Type) json.RawMessage {
	if t.Kind() != reflect.Slice {
		return value
	}
	var one string
	if t.Elem().Kind() == reflect.String && json.Unmarshal(value, &one) == nil {
		out, err := json.Marshal([]string{one})
		if err != nil {
			return value
		}
		return out
	}
	var items []json.RawMessage
	if t.Elem().Kind() != reflect.Struct || json.Unmarshal(value, &items) != nil {
		return value
	}
	for i := range items {
		items[i] = renamed(items[i], t.Elem())
	}
	out, err := json.Marshal(items)
	if err != nil {
		return value
	}
	return out
}
