package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// Edit gives a key of a file of settings a value, written as for --set, and
// returns the file that says so. Only the lines of that key change: comments,
// order and everything else stay as they are, which is proven by reading both.
// Messages call the file name.
func Edit(file []byte, name, path, text string) ([]byte, error) {
	const op = "change the settings"
	s := settingByPath[path]
	if s == nil {
		var names []string
		for _, s := range settings {
			names = append(names, s.path)
		}
		return nil, fault.New(fault.InvalidRequest, op, "there is no setting %s%s", shown(path), didYouMean(path, names)).
			WithHint("List them with tapin config keys.")
	}
	if s.holdsSecret() {
		return nil, fault.New(fault.InvalidRequest, op, "%s may hold a secret, which a command line would show to others", path).
			WithHint("Write it into the file with tapin config edit.")
	}
	before, err := readOnly(file, name)
	if err != nil {
		return nil, err
	}
	wanted := newLoader(Inputs{FileName: name})
	wanted.assignText(s, text, Origin{Source: FromFlag, Name: path})
	if err := wanted.fault(); err != nil {
		return nil, err
	}
	want := wanted.field(s)
	lines := strings.SplitAfter(string(file), "\n")
	body, _ := parse(file) // it was read above
	out := strings.Join(place(lines, body, strings.Split(path, "."), inline(want)), "")
	after, err := readOnly([]byte(out), name)
	if err != nil || !sameBut(before, after, s, want) {
		return nil, fault.New(fault.InvalidRequest, op, "%s: %s cannot be changed here without changing something else", name, path).
			WithHint("Write it into the file with tapin config edit.")
	}
	// What is valid by itself may contradict the rest.
	whole := newLoader(Inputs{FileName: name})
	whole.readFile([]byte(out))
	whole.derive()
	whole.check()
	if err := whole.fault(); err != nil {
		return nil, err
	}
	return []byte(out), nil
}

func (s *setting) holdsSecret() bool {
	t := s.typ
	if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t == reflect.TypeFor[secret.Text]()
}

// readOnly reads what the file itself says, and nothing that follows from it.
func readOnly(file []byte, name string) (*loader, error) {
	l := newLoader(Inputs{FileName: name})
	l.readFile(file)
	return l, l.fault()
}

func sameBut(before, after *loader, s *setting, want reflect.Value) bool {
	for i := range settings {
		other := &settings[i]
		if other.path != s.path && !reflect.DeepEqual(before.field(other).Interface(), after.field(other).Interface()) {
			return false
		}
	}
	return reflect.DeepEqual(after.field(s).Interface(), want.Interface())
}

// place writes one key into the lines of a file. A shape that it does not know
// comes out wrong, and is found out by its caller.
func place(lines []string, body ast.Node, path []string, value string) []string {
	if n := len(lines); lines[n-1] != "" {
		lines[n-1] += "\n"
	} else {
		lines = lines[:n-1]
	}
	at := body
	indent, behind := "", len(lines) // where a new key goes
	for i, name := range path {
		var found *ast.MappingValueNode
		for _, pair := range pairs(at) {
			if keyName(pair.Key) == name {
				found = pair
			}
		}
		if members := pairs(at); len(members) > 0 {
			indent = strings.Repeat(" ", members[0].Key.GetToken().Position.Column-1)
			behind = lastLine(members[len(members)-1])
		}
		if found == nil {
			return slices.Insert(lines, behind, written(indent, path[i:], value)...)
		}
		first := found.Key.GetToken().Position.Line
		if i == len(path)-1 {
			line := lines[first-1][:found.Key.GetToken().Position.Column-1] + name + ": " + value + comment(lines[first-1]) + "\n"
			return slices.Replace(lines, first-1, max(first, lastLine(found)), line)
		}
		// A heading whose keys are all commented out gets its first one below it.
		indent, behind, at = indent+"  ", first, found.Value
	}
	return lines
}

func written(indent string, path []string, value string) []string {
	var lines []string
	for i, name := range path {
		line := indent + strings.Repeat("  ", i) + name + ":"
		if i == len(path)-1 {
			line += " " + value
		}
		lines = append(lines, line+"\n")
	}
	return lines
}

// lastLine is the last line that a node stands on, from 1.
func lastLine(node ast.Node) int {
	last := 0
	ast.Walk(visit(func(n ast.Node) {
		if tok := n.GetToken(); tok != nil && tok.Position != nil {
			last = max(last, tok.Position.Line+strings.Count(strings.Trim(tok.Origin, "\n "), "\n"))
		}
		switch n := n.(type) {
		case *ast.SequenceNode:
			if n.End != nil {
				last = max(last, n.End.Position.Line)
			}
		case *ast.MappingNode:
			if n.End != nil {
				last = max(last, n.End.Position.Line)
			}
		}
	}), node)
	return last
}

type visit func(ast.Node)

func (v visit) Visit(node ast.Node) ast.Visitor {
	v(node)
	return v
}

// comment is what stands behind a value on its line, with the blanks before it.
func comment(line string) string {
	line = strings.TrimRight(line, "\r\n")
	quote := byte(0)
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0:
			if c == quote && (quote != '"' || line[i-1] != '\\') {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#' && i > 0 && (line[i-1] == ' ' || line[i-1] == '\t'):
			return line[len(strings.TrimRight(line[:i], " \t")):]
		}
	}
	return ""
}
