package logins

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"tapin/internal/fault"
)

const (
	maxManifest = 1 << 20
	maxLeaves   = 20_000 // also what aliases of aliases may unfold to
	maxNesting  = 32
)

// document is the text of a manifest and what it says. The text is what is
// changed; the tree only tells where. A printer of trees would put a person's
// spaces, quotes and blank lines in its own order.
type document struct {
	file   string
	bom    string
	lines  []string // each with its own line break
	root   ast.Node // nil when nothing is written
	leaves map[string]leaf
	order  []string // of leaves, as written

	anchors map[string]ast.Node
}

// leaf is a value that holds no others, with aliases and merges followed.
type leaf struct {
	kind         kind
	text         string
	line, column int
}

type kind int

const (
	kindNull kind = iota
	kindText
	kindNumber
	kindBool
	kindMap  // an empty one
	kindList // an empty one
)

// key joins a path into the key of a leaf.
func key(path ...string) string { return strings.Join(path, "\x00") }

// readDocument reads a manifest, or says where it is broken.
func readDocument(file string, data []byte) (_ *document, err error) {
	d := &document{file: file, leaves: map[string]leaf{}, anchors: map[string]ast.Node{}}
	if len(data) > maxManifest {
		return nil, d.broken(1, 1, "it is longer than 1 MiB")
	}
	if rest, ok := bytes.CutPrefix(data, []byte("\ufeff")); ok {
		d.bom, data = "\ufeff", rest
	}
	d.lines = strings.SplitAfter(string(data), "\n")
	for i, line := range d.lines {
		// Lines are counted by us and by the parser, and must be the same.
		if at := strings.IndexFunc(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), unprintable); at >= 0 {
			return nil, d.broken(i+1, at+1, "here is something that is not text")
		}
	}
	defer func() {
		// The parser is given whatever a person saved; its panic is their typo.
		if recover() != nil {
			err = d.broken(1, 1, "it is not valid YAML")
		}
	}()
	parsed, err := parser.ParseBytes(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), 0)
	if err != nil {
		return nil, d.syntax(err)
	}
	for _, doc := range parsed.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case d.root != nil:
			at := doc.Body.GetToken().Position
			return nil, d.broken(at.Line, at.Column, "a second document begins here; the file must be one")
		default:
			d.root = doc.Body
		}
	}
	if d.root == nil {
		return d, nil
	}
	return d, d.unfold(d.root, nil)
}

func unprintable(r rune) bool {
	return r < ' ' && r != '\t' || r == 0x7f || r == utf8.RuneError || r == 0x85 || r == 0x2028 || r == 0x2029
}

func (d *document) String() string { return d.bom + strings.Join(d.lines, "") }

// unfold notes what is written under a path.
func (d *document) unfold(node ast.Node, path []string) error {
	if len(path) > maxNesting || len(d.leaves) > maxLeaves {
		return d.brokenAt(node, "it nests too deep, or holds too much")
	}
	switch n := node.(type) {
	case *ast.AnchorNode:
		// Known only from here on: nothing can be inside itself.
		err := d.unfold(n.Value, path)
		if n.Name != nil {
			d.anchors[n.Name.GetToken().Value] = n.Value
		}
		return err
	case *ast.AliasNode:
		target, ok := d.anchors[n.Value.GetToken().Value]
		if !ok {
			return d.brokenAt(node, "this alias has no anchor before it")
		}
		return d.unfold(target, path)
	case *ast.TagNode:
		return d.unfold(n.Value, path)
	case *ast.MappingNode, *ast.MappingValueNode:
		return d.unfoldMap(pairs(node), node, path)
	case *ast.SequenceNode:
		if len(n.Values) == 0 {
			d.note(path, node, leaf{kind: kindList})
		}
		for i, item := range n.Values {
			if err := d.unfold(item, within(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
		return nil
	}
	d.note(path, node, scalar(node))
	return nil
}

func (d *document) unfoldMap(members []*ast.MappingValueNode, node ast.Node, path []string) error {
	if len(members) == 0 {
		d.note(path, node, leaf{kind: kindMap})
	}
	for _, pair := range members {
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge {
			continue
		}
		if strings.Contains(keyName(pair.Key), "\x00") { // what joins a path must not be in it
			return d.brokenAt(pair.Key, "this key holds a character that no name has")
		}
		if err := d.unfold(pair.Value, within(path, keyName(pair.Key))); err != nil {
			return err
		}
	}
	for _, pair := range members { // what is merged in never wins over what is written
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge {
			if err := d.merge(pair.Value, path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *document) merge(node ast.Node, path []string) error {
	sources := []ast.Node{node}
	if list, ok := node.(*ast.SequenceNode); ok {
		sources = list.Values
	}
	for _, source := range sources {
		inner := &document{file: d.file, leaves: map[string]leaf{}, anchors: d.anchors}
		if err := inner.unfold(source, path); err != nil {
			return err
		}
		if len(d.leaves)+len(inner.leaves) > maxLeaves {
			return d.brokenAt(node, "it holds too much")
		}
		depth := len(path) + 1
		for _, k := range inner.order {
			// A key that is written here hides the merged one with all under it.
			top := key(strings.SplitN(k, "\x00", depth+1)[:min(depth, strings.Count(k, "\x00")+1)]...)
			if !d.has(top) {
				d.leaves[k] = inner.leaves[k]
				d.order = append(d.order, k)
			}
		}
	}
	return nil
}

// has reports whether something is written at a key or under it.
func (d *document) has(k string) bool {
	if _, ok := d.leaves[k]; ok {
		return true
	}
	return slices.ContainsFunc(d.order, func(other string) bool { return strings.HasPrefix(other, k+"\x00") })
}

func (d *document) note(path []string, node ast.Node, l leaf) {
	if tok := node.GetToken(); tok != nil && tok.Position != nil {
		l.line, l.column = tok.Position.Line, tok.Position.Column
	}
	k := key(path...)
	if _, again := d.leaves[k]; !again {
		d.order = append(d.order, k)
	}
	d.leaves[k] = l
}

// children are the keys written directly under a path, in their order.
func (d *document) children(path ...string) []string {
	var names []string
	for _, k := range d.order {
		rest, ok := strings.CutPrefix(k, key(path...)+"\x00")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, "\x00")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// says compares what two documents say, wherever they say it, but for the
// values at the keys given and what they are in.
func (d *document) says(other map[string]leaf, but func(k string) bool) bool {
	bare := func(leaves map[string]leaf) map[string]leaf {
		out := maps.Clone(leaves)
		for k, l := range out {
			if but(k) {
				delete(out, k)
				continue
			}
			l.line, l.column = 0, 0
			out[k] = l
		}
		return out
	}
	return maps.Equal(bare(d.leaves), bare(other))
}

func (d *document) brokenAt(node ast.Node, why string) error {
	line, column := 1, 1
	if tok := node.GetToken(); tok != nil && tok.Position != nil {
		line, column = tok.Position.Line, tok.Position.Column
	}
	return d.broken(line, column, why)
}

func (d *document) broken(line, column int, why string) error {
	return fault.New(fault.InvalidRequest, "read the saved logins", "%s:%d:%d: %s", d.file, line, column, why).
		WithHint("Mend that line of the file; until then nothing is written to it.").
		With("line", line).With("column", column)
}

// cited is what a message of the parser quotes from the file, which is the
// owner's business.
var cited = regexp.MustCompile(`"(?:[^"\\]|\\.){2,}"|'(?:[^'\\]|\\.){2,}'`)

func (d *document) syntax(err error) error {
	line, column, why := 1, 1, "it is not valid YAML"
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		why = cited.ReplaceAllString(syntax.GetMessage(), "•••")
		if tok := syntax.GetToken(); tok != nil && tok.Position != nil {
			line, column = tok.Position.Line, tok.Position.Column
		}
	}
	return d.broken(line, column, why)
}

func scalar(node ast.Node) leaf {
	switch n := node.(type) {
	case *ast.StringNode:
		return leaf{kind: kindText, text: n.Value}
	case *ast.LiteralNode:
		return leaf{kind: kindText, text: n.Value.Value}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return leaf{kind: kindNumber, text: strings.TrimSpace(n.GetToken().Value)}
	case *ast.BoolNode:
		return leaf{kind: kindBool, text: strconv.FormatBool(n.Value)}
	case *ast.NullNode:
		return leaf{kind: kindNull}
	}
	return leaf{kind: kindText, text: fmt.Sprint(node)}
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

func keyName(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	if tok := k.GetToken(); tok != nil {
		return tok.Value
	}
	return ""
}

// within is a path with one more part, sharing nothing with the path.
func within(path []string, name string) []string { return append(slices.Clone(path), name) }
