package config

import (
	"reflect"
	"strings"

	"tapin/internal/secret"
)

// Key describes one setting, for documentation and completion.
type Key struct {
	Path    string   // as in "listen.control"
	Type    string   // as in "duration", "list of text", "local|browserbase|cdp"
	Default string   // as it would be written in the file
	Doc     string   // what it is for
	Env     string   // its variable
	Values  []string // all it may be, where these are few
}

// Keys lists every setting, in the order of the file.
func Keys() []Key {
	docs := readDocs(settingsSource)
	defaults := reflect.ValueOf(Default()).Elem()
	var keys []Key
	for _, k := range settings {
		field := defaults.FieldByIndex(k.index)
		keys = append(keys, Key{
			Path:    k.path,
			Type:    typeName(k.typ),
			Default: inline(field),
			Doc:     docs[k.doc],
			Env:     k.env,
			Values:  values(k.typ),
		})
	}
	return keys
}

// chromeVar is the second name of browser.path, known from other tools' habits.
const chromeVar = "TAPIN_CHROME"

// setting is one key and where its value stands in a Config.
type setting struct {
	path  string
	env   string
	doc   string // the name of its struct and field
	index []int
	typ   reflect.Type
}

// settings is derived from the struct once and never changed.
var settings = walk(reflect.TypeFor[Config](), nil, "")

var settingByPath = func() map[string]*setting {
	m := make(map[string]*setting, len(settings))
	for i := range settings {
		m[settings[i].path] = &settings[i]
	}
	return m
}()

var settingByEnv = func() map[string]*setting {
	m := make(map[string]*setting, len(settings)+1)
	for i := range settings {
		m[settings[i].env] = &settings[i]
	}
	m[chromeVar] = settingByPath["browser.path"]
	return m
}()

// sections are the paths that hold keys, and "" for the top.
var sections = func() map[string]bool {
	m := map[string]bool{"": true}
	for _, s := range settings {
		for path := s.path; strings.Contains(path, "."); {
			path = path[:strings.LastIndexByte(path, '.')]
			m[path] = true
		}
	}
	return m
}()

func walk(t reflect.Type, index []int, prefix string) []setting {
	var found []setting
	for f := range t.Fields() {
		path := f.Tag.Get("yaml")
		if prefix != "" {
			path = prefix + "." + path
		}
		at := append(index[:len(index):len(index)], f.Index...)
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[secret.Text]() {
			found = append(found, walk(f.Type, at, path)...)
			continue
		}
		found = append(found, setting{
			path:  path,
			env:   "TAPIN_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_")),
			doc:   t.Name() + "." + f.Name,
			index: at,
			typ:   f.Type,
		})
	}
	return found
}

func values(t reflect.Type) []string {
	if c, ok := reflect.Zero(t).Interface().(choice); ok {
		return c.Values()
	}
	if t.Kind() == reflect.Bool {
		return []string{"true", "false"}
	}
	return nil
}

func typeName(t reflect.Type) string {
	if c, ok := reflect.Zero(t).Interface().(choice); ok {
		return strings.Join(c.Values(), "|")
	}
	switch {
	case t == reflect.TypeFor[Duration]():
		return "duration"
	case t == reflect.TypeFor[secret.Text]():
		return "secret"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem())
	case t.Kind() == reflect.Map:
		return "map of name to " + typeName(t.Elem())
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "bool"
	}
	return "number"
}

// readDocs collects the comment above each field of each struct in Go source
// as gofmt leaves it.
func readDocs(source string) map[string]string {
	docs := map[string]string{}
	var holder string
	var comment []string
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "// "); ok {
			comment = append(comment, text)
			continue
		}
		words := strings.Fields(line)
		switch {
		case len(words) > 2 && words[0] == "type" && words[2] == "struct":
			holder = words[1]
		case holder != "" && len(words) > 2 && strings.HasPrefix(words[len(words)-1], "`yaml:"):
			docs[holder+"."+words[0]] = strings.Join(comment, " ")
		}
		comment = nil
	}
	return docs
}
