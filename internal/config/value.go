package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// value is what was written for a key, before it is known to fit.
type value struct {
	kind  valueKind
	text  string   // of a scalar
	items []string // of a list, or the values of a map
	names []string // of a map
}

type valueKind int

const (
	scalar valueKind = iota
	list
	table
)

func (k valueKind) String() string {
	return [...]string{"a single value", "a list", "a map of names to values"}[k]
}

func kindOf(t reflect.Type) valueKind {
	switch t.Kind() {
	case reflect.Slice:
		return list
	case reflect.Map:
		return table
	}
	return scalar
}

// valueOf reads what a variable or a flag says. Text and numbers are taken as
// they stand, so that no password needs YAML's quotes.
func valueOf(text string, t reflect.Type) (value, error) {
	kind := kindOf(t)
	trimmed := strings.TrimSpace(text)
	switch {
	case kind == scalar:
		return value{text: text}, nil
	case kind == list && trimmed == "":
		return value{kind: list}, nil
	case kind == list && !strings.HasPrefix(trimmed, "["):
		v := value{kind: list}
		for item := range strings.SplitSeq(text, ",") {
			v.items = append(v.items, strings.TrimSpace(item))
		}
		return v, nil
	case kind == table && !strings.HasPrefix(trimmed, "{"):
		return value{}, errors.New("must be a map, written {name: value}")
	}
	body, err := parse([]byte(text))
	if err != nil || body == nil {
		return value{}, errors.New("is not valid YAML")
	}
	v, err := nodeValue(body)
	if err != nil {
		return value{}, err
	}
	return *v, nil
}

var errNested = errors.New("must not be nested deeper")

// nodeValue reads a node of the file; nil means that nothing is written there.
func nodeValue(node ast.Node) (*value, error) {
	switch n := node.(type) {
	case *ast.NullNode:
		return nil, nil
	case *ast.SequenceNode:
		v := &value{kind: list}
		for _, item := range n.Values {
			text, err := scalarText(item)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, text)
		}
		return v, nil
	case *ast.MappingNode, *ast.MappingValueNode:
		v := &value{kind: table}
		for _, pair := range pairs(n) {
			text, err := scalarText(pair.Value)
			if err != nil {
				return nil, err
			}
			name := keyName(pair.Key)
			if slices.Contains(v.names, name) {
				return nil, errors.New("has the same name twice")
			}
			v.names, v.items = append(v.names, name), append(v.items, text)
		}
		return v, nil
	}
	text, err := scalarText(node)
	if err != nil {
		return nil, err
	}
	return &value{text: text}, nil
}

// scalarText is the text of a scalar as it was written, whatever YAML takes it
// for: "off" and "0123" mean what the key makes of them.
func scalarText(node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	case *ast.NullNode:
		return "", errors.New("has an empty item")
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "", errors.New("must be written out: anchors, aliases and tags are not supported")
	}
	return "", errNested
}

// into stores the value in a field, or says in a few words why it does not fit.
func (v value) into(field reflect.Value) error {
	if want := kindOf(field.Type()); want != v.kind {
		return fmt.Errorf("must be %v, not %v", want, v.kind)
	}
	switch v.kind {
	case list:
		// An empty list is not a missing one.
		field.Set(reflect.MakeSlice(field.Type(), len(v.items), len(v.items)))
		for i, item := range v.items {
			if err := scalarInto(field.Index(i), item); err != nil {
				return fmt.Errorf("item %d %w", i+1, err)
			}
		}
		return nil
	case table:
		field.Set(reflect.MakeMap(field.Type()))
		for i, name := range v.names {
			item := reflect.New(field.Type().Elem()).Elem()
			if err := scalarInto(item, v.items[i]); err != nil {
				return fmt.Errorf("entry %s %w", shown(name), err)
			}
			field.SetMapIndex(reflect.ValueOf(name), item)
		}
		return nil
	}
	return scalarInto(field, v.text)
}

func scalarInto(field reflect.Value, text string) error {
	if !utf8.ValidString(text) {
		return errors.New("must be UTF-8 text")
	}
	if c, ok := field.Interface().(choice); ok {
		if !slices.Contains(c.Values(), text) {
			return fmt.Errorf("must be one of %s%s", strings.Join(c.Values(), ", "), didYouMean(text, c.Values()))
		}
		field.SetString(text)
		return nil
	}
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1":
			field.SetBool(true)
		case "false", "no", "off", "0":
			field.SetBool(false)
		default:
			return errors.New("must be true or false")
		}
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || field.OverflowInt(n) {
			return errors.New("must be a whole number")
		}
		field.SetInt(n)
	default:
		// A type that no rule above covers is a mistake in settings.go, and
		// the test that walks every key finds it.
		return fmt.Errorf("has type %s, which cannot be read", field.Type())
	}
	return nil
}
