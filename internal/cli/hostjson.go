package cli

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"tapin/internal/fault"
)

// setMember puts a value into a JSON document, at a path of members that are
// made where they are missing. Every other byte stays as it is.
func setMember(doc []byte, path []string, value any) ([]byte, error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		doc = []byte("{}\n")
	}
	if !json.Valid(doc) {
		return nil, fault.New(fault.InvalidRequest, "", "it is not plain JSON")
	}
	out, err := setIn(doc, path, value, "")
	if err != nil {
		return nil, err
	}
	return out, sameBut(doc, out, path, value)
}

// member is one member of an object, by its bytes.
type member struct {
	name            string
	key, value, end int
}

// membersOf finds the members of the object that a text is, and where it ends.
func membersOf(text []byte) (list []member, closing int, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	open, err := dec.Token()
	if err != nil || open != json.Delim('{') {
		return nil, 0, fault.New(fault.InvalidRequest, "", "there is something else than an object where the servers belong")
	}
	at := int(dec.InputOffset())
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, 0, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, 0, err
		}
		end := int(dec.InputOffset())
		key := at + len(text[at:]) - len(bytes.TrimLeft(text[at:], ", \t\r\n"))
		list = append(list, member{name: name.(string), key: key, value: end - len(raw), end: end})
		at = end
	}
	if _, err := dec.Token(); err != nil {
		return nil, 0, err
	}
	return list, int(dec.InputOffset()) - 1, nil
}

func setIn(text []byte, path []string, value any, outer string) ([]byte, error) {
	list, closing, err := membersOf(text)
	if err != nil {
		return nil, err
	}
	indent := outer + "  "
	for _, m := range list {
		// A member on a line of its own shows how deep this object is written.
		line := text[bytes.LastIndexByte(text[:m.key], '\n')+1 : m.key]
		if len(bytes.TrimLeft(line, " \t")) == 0 && len(line) > 0 {
			indent = string(line)
			break
		}
	}
	i := slices.IndexFunc(list, func(m member) bool { return m.name == path[0] })
	if i >= 0 && slices.ContainsFunc(list[i+1:], func(m member) bool { return m.name == path[0] }) {
		return nil, fault.New(fault.InvalidRequest, "", "it has %q twice", path[0])
	}
	if i >= 0 {
		m := list[i]
		var inner []byte
		if len(path) > 1 {
			inner, err = setIn(text[m.value:m.end], path[1:], value, indent)
		} else {
			inner, err = indented(value, indent)
		}
		if err != nil {
			return nil, err
		}
		return slices.Concat(text[:m.value], inner, text[m.end:]), nil
	}
	for j := len(path) - 1; j > 0; j-- {
		value = map[string]any{path[j]: value}
	}
	raw, err := indented(value, indent)
	if err != nil {
		return nil, err
	}
	name, err := json.Marshal(path[0])
	if err != nil {
		return nil, err
	}
	added := slices.Concat([]byte("\n"+indent), name, []byte(": "), raw)
	if len(list) == 0 {
		return slices.Concat(text[:1], added, []byte("\n"+outer), text[closing:]), nil
	}
	last := list[len(list)-1].end
	rest := text[last:closing]
	if !bytes.ContainsRune(rest, '\n') {
		rest = append([]byte("\n"+outer), bytes.TrimLeft(rest, " \t")...)
	}
	return slices.Concat(text[:last], []byte(","), added, rest, text[closing:]), nil
}

func indented(value any, indent string) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	step := "  "
	if strings.Contains(indent, "\t") {
		step = "\t"
	}
	enc.SetIndent(indent, step)
	err := enc.Encode(value)
	return bytes.TrimRight(out.Bytes(), "\n"), err
}

// sameBut refuses a result that is not the document with this one value in it:
// nobody's settings are lost to a mistake of ours.
func sameBut(before, after []byte, path []string, value any) error {
	var was, is, want any
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil || json.Unmarshal(raw, &want) != nil {
		return fault.New(fault.Internal, "", "the file would not be JSON any more")
	}
	top, ok := was.(map[string]any)
	if !ok {
		return fault.New(fault.InvalidRequest, "", "there is something else than an object where the servers belong")
	}
	at := top
	for _, name := range path[:len(path)-1] {
		inner, ok := at[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[name] = inner
		}
		at = inner
	}
	at[path[len(path)-1]] = want
	if !reflect.DeepEqual(was, is) {
		return fault.New(fault.Internal, "", "other settings of the file would change")
	}
	return nil
}
