package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// readFile walks the syntax tree itself instead of decoding into the struct:
// a decoder stops at the first problem, quotes the source (and with it the
// secrets), and forgets on which line a value stood.
func (l *loader) readFile(data []byte) {
	if len(data) > maxFile {
		l.problem(Origin{Source: FromFile, Name: l.file, Line: 1, Column: 1}, "is longer than 1 MiB")
		return
	}
	body, err := parse(data)
	if err != nil {
		l.brokenFile(data, err)
		return
	}
	if body != nil {
		l.readSection(body, "")
	}
}

// parse returns the one document in data, or nil if there is nothing in it.
func parse(data []byte) (body ast.Node, err error) {
	defer func() {
		// The parser is given whatever a person saved; its panic is their typo.
		if recover() != nil {
			body, err = nil, errors.New("is not valid YAML")
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case body != nil:
			return nil, &yaml.SyntaxError{Message: "a second document begins here; the file must be one", Token: doc.Body.GetToken()}
		default:
			body = doc.Body
		}
	}
	return body, nil
}

func (l *loader) readSection(node ast.Node, section string) {
	switch node.(type) {
	case *ast.NullNode:
		return // a heading whose keys are all commented out
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		what := section
		if what == "" {
			what = "the file"
		}
		l.problem(l.at(node), "%s must hold lines of key: value", what)
		return
	}
	seen := map[string]bool{}
	for _, pair := range pairs(node) {
		name, at := keyName(pair.Key), l.at(pair.Key)
		path := name
		if section != "" {
			path = section + "." + name
		}
		s := settingByPath[path]
		switch {
		case seen[name]:
			l.problem(at, "%s is written twice", shown(path))
		case sections[path] && name != "":
			l.readSection(pair.Value, path)
		case s == nil:
			l.problem(at, "there is no setting %s%s", shown(path), l.suggest(section, name))
		default:
			v, err := nodeValue(pair.Value)
			if err != nil {
				l.problem(l.at(pair.Value), "%s %v", s.path, err)
			} else if v != nil {
				l.assign(s, *v, at)
			}
		}
		seen[name] = true
	}
}

// suggest looks among the section's own names first, then for the same name in
// another section: a key that is right but stands in the wrong place.
func (l *loader) suggest(section, name string) string {
	var siblings []string
	for _, s := range settings {
		rest, inside := strings.CutPrefix(s.path, section+".")
		if section == "" {
			rest, inside = s.path, true
		}
		if inside {
			sibling, _, _ := strings.Cut(rest, ".")
			siblings = append(siblings, sibling)
		}
	}
	if hint := didYouMean(name, siblings); hint != "" {
		return hint
	}
	for _, s := range settings {
		if s.path == name || strings.HasSuffix(s.path, "."+name) {
			return fmt.Sprintf("; did you mean %q?", s.path)
		}
	}
	return ""
}

func (l *loader) at(node ast.Node) Origin {
	o := Origin{Source: FromFile, Name: l.file, Line: 1, Column: 1}
	if tok := node.GetToken(); tok != nil && tok.Position != nil {
		o.Line, o.Column = tok.Position.Line, tok.Position.Column
	}
	return o
}

// quoted is what a message of the parser cites from the file.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)

// brokenFile reports where the file stops being YAML, with the line and a
// caret. Nobody can tell which part of a broken line is a secret, so of the
// line only a known key stays readable.
func (l *loader) brokenFile(data []byte, err error) {
	at, message := Origin{Source: FromFile, Name: l.file, Line: 1, Column: 1}, "is not valid YAML"
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		message = quoted.ReplaceAllStringFunc(syntax.GetMessage(), func(cited string) string {
			if len(cited) <= len("'x'") {
				return cited // a single character of YAML's own
			}
			return "•••"
		})
		if tok := syntax.GetToken(); tok != nil && tok.Position != nil {
			at.Line, at.Column = tok.Position.Line, tok.Position.Column
		}
	}
	lines := strings.Split(string(data), "\n")
	if at.Line < 1 || at.Line > len(lines) {
		l.problem(at, "%s", message)
		return
	}
	masked, caret := maskLine(lines[at.Line-1], at.Column)
	l.problem(at, "%s\n  %s\n  %s", message, masked, caret)
}

var keyed = regexp.MustCompile(`^(\s*(?:-\s+)?)([a-z_]+)(\s*:)`)

// maskLine hides a line but for its indent and its key, if that is one of
// ours, and draws the caret under the column.
func maskLine(line string, column int) (masked, caret string) {
	runes := []rune(strings.TrimRight(line, "\r"))
	column = max(1, min(column, len(runes)+1))
	open := len(line) - len(strings.TrimLeft(line, " \t"))
	if m := keyed.FindStringSubmatch(line); m != nil && isName(m[2]) {
		open = len(m[0])
	}
	for i, r := range runes {
		switch {
		case i < open && r == '\t':
			runes[i] = ' '
		case i >= open && r != ' ':
			runes[i] = '•'
		}
	}
	// The length of a secret is nobody's business either.
	if end := max(open, column) + 3; len(runes) > end {
		runes = append(runes[:end:end], '…')
	}
	return string(runes), strings.Repeat(" ", column-1) + "^"
}

// isName reports whether a word is a part of some key's path.
func isName(word string) bool {
	for _, s := range settings {
		for part := range strings.SplitSeq(s.path, ".") {
			if part == word {
				return true
			}
		}
	}
	return false
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,60}$`)

// shown quotes a name for a message, unless it looks like anything but a name:
// a value that slipped into the place of a key may be a secret.
func shown(name string) string {
	if !plain.MatchString(name) {
		return "•••"
	}
	return name
}

func pairs(node ast.Node) []*ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func keyName(key ast.MapKeyNode) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	if tok := key.GetToken(); tok != nil {
		return tok.Value
	}
	return ""
}
