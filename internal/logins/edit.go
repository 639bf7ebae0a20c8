package logins

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"tapin/internal/fault"
)

// header opens a manifest that tapin begins.
const header = "# The saved logins. tapin keeps the dates; everything else is yours to edit.\n"

// value is a scalar to be written.
type value struct {
	kind kind
	text string
}

func text(s string) value   { return value{kindText, s} }
func number(s string) value { return value{kindNumber, s} }

func boolean(b bool) value {
	if b {
		return value{kindBool, "true"}
	}
	return value{kindBool, "false"}
}

// set gives a path a value and returns the document that says so and is
// otherwise the same. Maps on the way are made.
func (d *document) set(v value, path ...string) (_ *document, err error) {
	defer d.notLost(path, &err)
	if l, ok := d.leaves[key(path...)]; ok && l.kind == v.kind && l.text == v.text {
		return d, nil
	}
	next := d.clone()
	pair, parent, flow, err := d.find(path)
	switch {
	case err != nil:
		return nil, err
	case pair == nil:
		err = next.add(parent, flow, path[len(parent.path):], v)
	default:
		err = next.replace(pair, flow, v)
	}
	if err != nil {
		return nil, err
	}
	want := leaf{kind: v.kind, text: v.text}
	return d.proven(next, path, func(after *document) bool {
		got := after.leaves[key(path...)]
		return got.kind == want.kind && got.text == want.text
	})
}

// remove takes a path out with all under it.
func (d *document) remove(path ...string) (_ *document, err error) {
	defer d.notLost(path, &err)
	pair, parent, flow, err := d.find(path)
	switch {
	case err != nil:
		return nil, err
	case pair == nil && d.has(key(path...)): // merged in from elsewhere
		return nil, d.unchangeable(path)
	case pair == nil:
		return d, nil
	}
	next := d.clone()
	if flow {
		err = next.cutFlow(pair, parent)
	} else {
		err = next.cutLines(pair)
	}
	if err != nil {
		return nil, err
	}
	return d.proven(next, path, func(after *document) bool { return !after.has(key(path...)) })
}

// rename gives the last part of a path another name.
func (d *document) rename(name string, path ...string) (_ *document, err error) {
	defer d.notLost(path, &err)
	pair, _, _, err := d.find(path)
	if err != nil {
		return nil, err
	}
	if pair == nil {
		return nil, unknown(path[len(path)-1])
	}
	next := d.clone()
	at, ok := d.spanAt(pair.Key.GetToken(), false)
	if !ok {
		return nil, d.unsafe(pair)
	}
	next.splice(at, quoteKey(name))
	renamed := append(slices.Clone(path[:len(path)-1]), name)
	return d.proven(next, path, func(after *document) bool {
		return !after.has(key(path...)) && maps.Equal(d.under(path), after.under(renamed))
	}, renamed)
}

// under is what is said at a path and below it.
func (d *document) under(path []string) map[string]leaf {
	out := map[string]leaf{}
	for k, l := range d.leaves {
		if rest, ok := strings.CutPrefix(k, key(path...)); ok && (rest == "" || rest[0] == 0) {
			out[rest] = leaf{kind: l.kind, text: l.text}
		}
	}
	return out
}

// notLost turns a place that the parser told wrong into a refusal: a file that
// a person wrote must not be able to end the process.
func (d *document) notLost(path []string, err *error) {
	if recover() != nil {
		*err = d.unchangeable(path)
	}
}

func (d *document) clone() *document {
	return &document{file: d.file, bom: d.bom, lines: slices.Clone(d.lines)}
}

// proven reads a changed text anew and holds it against the one before: it
// must say what was asked for, and of everything else exactly the same.
func (d *document) proven(next *document, path []string, holds func(*document) bool, more ...[]string) (*document, error) {
	after, err := readDocument(d.file, []byte(next.String()))
	if err != nil {
		return nil, d.unchangeable(path)
	}
	own := append(more, path)
	same := after.says(d.leaves, func(k string) bool {
		return slices.ContainsFunc(own, func(p []string) bool {
			whole := key(p...)
			return k == whole || strings.HasPrefix(k, whole+"\x00") || k == "" || strings.HasPrefix(whole, k+"\x00")
		})
	})
	if !same || !holds(after) {
		return nil, d.unchangeable(path)
	}
	return after, nil
}

func (d *document) unchangeable(path []string) error {
	at := d.first(path...)
	return fault.New(fault.InvalidRequest, "write the saved logins", "%s:%d:%d: this cannot be changed without changing something else", d.file, max(at.line, 1), max(at.column, 1)).
		WithHint("Write the values of that login out instead of sharing them by an anchor; until then nothing of it is written.")
}

func (d *document) unsafe(node ast.Node) error {
	at := node.GetToken().Position
	return fault.New(fault.InvalidRequest, "write the saved logins", "%s:%d:%d: this cannot be changed where it stands", d.file, at.Line, at.Column).
		WithHint("Write the values of that login out on lines of their own.")
}

// place is a map that something can be added to.
type place struct {
	path []string
	pair *ast.MappingValueNode // whose value it is; nil for the file itself
	node ast.Node              // the map, or what stands in its place; nil for an empty file
}

// find walks to a path. Without a pair, parent is the deepest place on the way.
func (d *document) find(path []string) (pair *ast.MappingValueNode, parent place, flow bool, err error) {
	parent.node = d.root
	for i, name := range path {
		if parent.node != nil && !isMap(parent.node) {
			if _, alias := parent.node.(*ast.AliasNode); alias {
				return nil, parent, flow, d.unchangeable(path[:i])
			}
			return nil, parent, flow, nil
		}
		if m, ok := parent.node.(*ast.MappingNode); ok && m.IsFlowStyle && len(m.Values) > 0 {
			flow = true // an empty one can still become lines
		}
		var found *ast.MappingValueNode
		for _, p := range pairs(parent.node) {
			if _, merge := p.Key.(*ast.MergeKeyNode); !merge && keyName(p.Key) == name {
				found = p
			}
		}
		if found == nil {
			return nil, parent, flow, nil
		}
		if i == len(path)-1 {
			return found, parent, flow, nil
		}
		parent = place{path: path[:i+1], pair: found, node: bare(found.Value)}
	}
	return nil, parent, flow, nil
}

// replace writes a value in the place of another.
func (d *document) replace(pair *ast.MappingValueNode, flow bool, v value) error {
	node := bare(pair.Value)
	switch n := node.(type) {
	case *ast.NullNode:
		at, ok := d.spanAt(n.GetToken(), flow)
		if found := d.cut(at); !ok || found != "~" && !strings.EqualFold(found, "null") {
			at = d.behind(pair.Start) // nothing is written there
			d.splice(at, " "+v.encode(0))
			return nil
		}
		d.splice(at, v.encode(0))
		return nil
	case *ast.AliasNode, *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		at, ok := d.spanAt(n.GetToken(), flow)
		if ok {
			style := byte(0)
			if old := d.cut(at); old != "" {
				style = old[0]
			}
			d.splice(at, v.encode(style))
			return nil
		}
	}
	if flow {
		return d.unsafe(pair)
	}
	// A value of several lines: its lines go, and one comes.
	indent := d.indent(pair)
	first, _ := d.extent(pair)
	if err := d.cutLines(pair); err != nil {
		return err
	}
	d.insertLines(first-1, indent, encodePath([]string{keyName(pair.Key)}, v, false))
	return nil
}

// add writes a path that does not exist yet into the map it belongs to.
func (d *document) add(to place, flow bool, rest []string, v value) error {
	m, _ := to.node.(*ast.MappingNode)
	switch {
	case flow || m != nil && m.IsFlowStyle && len(m.Values) > 0:
		return d.addFlow(m, to, rest, v)
	case to.node == nil && to.pair == nil: // an empty file, or one of comments
		if len(d.lines) == 1 && d.lines[0] == "" {
			d.lines = []string{header, ""}
		}
		d.insertLines(len(d.lines), "", encodePath(rest, v, false))
		return nil
	case isMap(to.node) && len(pairs(to.node)) > 0:
		last := pairs(to.node)[len(pairs(to.node))-1]
		_, end := d.extent(last)
		d.insertLines(end, d.indent(last), encodePath(rest, v, false))
		return nil
	}
	// Nothing, ~ or {} stands where the map will be.
	if to.pair == nil {
		return d.unsafe(to.node)
	}
	if at, ok := d.spanAt(to.node.GetToken(), false); ok {
		switch found := d.cut(at); {
		case m != nil && strings.ReplaceAll(found, " ", "") == "{}", found == "~", strings.EqualFold(found, "null"):
			at.from = len(strings.TrimRight(d.lines[at.line][:at.from], " "))
			d.splice(at, "")
		case m != nil:
			return d.unsafe(to.node)
		}
	}
	line := to.pair.Key.GetToken().Position.Line
	d.insertLines(line, d.indent(to.pair)+"  ", encodePath(rest, v, false))
	return nil
}

func (d *document) addFlow(m *ast.MappingNode, to place, rest []string, v value) error {
	if m == nil || m.End == nil {
		if to.node == nil || to.pair == nil {
			return d.unsafe(to.pair)
		}
		// Something else stands where a map will be: give it one.
		at, ok := d.spanAt(to.node.GetToken(), true)
		if found := d.cut(at); !ok || found != "~" && found != "null" {
			at = d.behind(to.pair.Start)
			d.splice(at, " {"+strings.Join(encodePath(rest, v, true), "")+"}")
			return nil
		}
		d.splice(at, "{"+strings.Join(encodePath(rest, v, true), "")+"}")
		return nil
	}
	added := strings.Join(encodePath(rest, v, true), "")
	before := m.End.Prev
	for before != nil && before.Type == token.CommentType {
		before = before.Prev
	}
	at := d.before(m.End)
	switch {
	case before != nil && before.Type == token.CollectEntryType:
		added = " " + added
	case len(m.Values) > 0:
		added = ", " + added
	}
	if text := strings.TrimRight(d.lines[at.line][:at.from], " "); strings.TrimSpace(text) != "" {
		at.from, at.to = len(text), len(text)
	} else {
		added = strings.TrimLeft(added, " ")
	}
	d.splice(at, added)
	return nil
}

// cutLines takes the lines of a pair out.
func (d *document) cutLines(pair *ast.MappingValueNode) error {
	first, end := d.extent(pair)
	if strings.TrimLeft(d.lines[first-1][:d.before(pair.Key.GetToken()).from], " ") != "" {
		return d.unsafe(pair)
	}
	d.lines = slices.Delete(d.lines, first-1, end)
	return nil
}

// cutFlow takes a pair out of a map that is written in braces.
func (d *document) cutFlow(pair *ast.MappingValueNode, in place) error {
	m, ok := in.node.(*ast.MappingNode)
	if !ok || m.End == nil {
		return d.unsafe(pair)
	}
	i := slices.Index(m.Values, pair)
	from, to := d.before(pair.Key.GetToken()), d.before(m.End)
	if i+1 < len(m.Values) {
		to = d.before(m.Values[i+1].Key.GetToken())
	} else if comma := pair.Key.GetToken().Prev; i > 0 && comma != nil && comma.Type == token.CollectEntryType {
		from = d.before(comma)
	}
	d.lines[from.line] = d.lines[from.line][:from.from] + d.lines[to.line][to.from:]
	d.lines = slices.Delete(d.lines, from.line+1, to.line+1)
	return nil
}

var plainKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// quoteKey writes a name so that YAML reads nothing else in it.
func quoteKey(name string) string {
	switch strings.ToLower(name) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return quote(name)
	}
	if !plainKey.MatchString(name) {
		return quote(name)
	}
	return name
}

func quote(s string) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	return strings.TrimSuffix(out.String(), "\n")
}

var plainDate = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+Z)?$`)

// encode writes a value in the style of the one it takes the place of, which
// is the first character of that: a quote, or anything else for none.
func (v value) encode(style byte) string {
	switch {
	case v.kind != kindText:
		return v.text
	case style == '\'' && !strings.ContainsAny(v.text, "\n\r\t"):
		return "'" + strings.ReplaceAll(v.text, "'", "''") + "'"
	case style != 0 && style != '"' && style != '*' && plainDate.MatchString(v.text):
		return v.text
	}
	return quote(v.text)
}

// encodePath writes a path and its value as lines without indent or line
// break, or as one piece for a map in braces.
func encodePath(path []string, v value, flow bool) []string {
	last := quoteKey(path[len(path)-1]) + ": " + v.encode(0)
	if flow {
		for i := len(path) - 2; i >= 0; i-- {
			last = quoteKey(path[i]) + ": {" + last + "}"
		}
		return []string{last}
	}
	var lines []string
	for i, name := range path[:len(path)-1] {
		lines = append(lines, strings.Repeat("  ", i)+quoteKey(name)+":")
	}
	return append(lines, strings.Repeat("  ", len(path)-1)+last)
}

// bare is a value without its anchor and tag.
func bare(node ast.Node) ast.Node {
	for {
		switch n := node.(type) {
		case *ast.AnchorNode:
			node = n.Value
		case *ast.TagNode:
			node = n.Value
		default:
			return node
		}
	}
}

func isMap(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	case *ast.AnchorNode:
		return isMap(n.Value)
	}
	return false
}
