package logins

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// span is a piece of one line, in bytes.
type span struct {
	line     int // from 0
	from, to int
}

// before is the empty span where a token begins. The parser counts in
// characters and from 1; some of its positions are one short, so that blanks
// in front are skipped by those who look at what is there.
func (d *document) before(tok *token.Token) span {
	at := span{line: tok.Position.Line - 1}
	for range tok.Position.Column - 1 {
		_, size := utf8.DecodeRuneInString(d.lines[at.line][at.from:])
		at.from += size
	}
	at.to = at.from
	return at
}

// behind is the empty span after a token of one character.
func (d *document) behind(tok *token.Token) span {
	at := d.before(tok)
	at.from++
	at.to = at.from
	return at
}

// spanAt is where a scalar stands in its line; not ok if it goes on in the next.
func (d *document) spanAt(tok *token.Token, flow bool) (span, bool) {
	at := d.before(tok)
	line := strings.TrimRight(d.lines[at.line], "\r\n")
	if at.from > len(line) {
		return at, false
	}
	at.from += len(line[at.from:]) - len(strings.TrimLeft(line[at.from:], " "))
	rest := line[at.from:]
	var length int
	switch {
	case rest == "" || strings.IndexByte("#|>", rest[0]) >= 0:
		return at, false
	case rest[0] == '"':
		length = closing(rest, '"', '\\')
	case rest[0] == '\'':
		length = closing(rest, '\'', '\'')
	default:
		length = plainLength(rest, flow)
		if strings.Contains(strings.TrimRight(strings.TrimLeft(tok.Origin, " \n"), " \n"), "\n") {
			return at, false
		}
	}
	at.to = at.from + length
	return at, length > 0
}

// closing is the length of a quoted text up to its end, or 0 without one. The
// escape character hides the one after it; where it is the quote itself, only
// if that is another quote.
func closing(s string, quote, escape byte) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == escape && i+1 < len(s) && (escape != quote || s[i+1] == quote):
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return 0
}

func plainLength(s string, flow bool) int {
	end := len(s)
	for i := range len(s) {
		if s[i] == '#' && i > 0 && s[i-1] == ' ' || s[i] == ':' && (i+1 == len(s) || s[i+1] == ' ') || flow && strings.IndexByte(",}]", s[i]) >= 0 {
			end = i
			break
		}
	}
	return len(strings.TrimRight(s[:end], " "))
}

func (d *document) cut(at span) string {
	if at.to <= at.from || at.to > len(d.lines[at.line]) {
		return ""
	}
	return d.lines[at.line][at.from:at.to]
}

func (d *document) splice(at span, with string) {
	line := d.lines[at.line]
	d.lines[at.line] = line[:at.from] + with + line[at.to:]
}

// indent is what stands before the key of a pair.
func (d *document) indent(pair *ast.MappingValueNode) string {
	at := d.before(pair.Key.GetToken())
	line := d.lines[at.line][:at.from]
	return line[:len(line)-len(strings.TrimLeft(line, " "))]
}

// extent is the first line of a pair and the one its value ends on, from 1:
// all that is further in than its key, but for blank lines at the end.
func (d *document) extent(pair *ast.MappingValueNode) (first, last int) {
	first = pair.Key.GetToken().Position.Line
	indent := len(d.indent(pair))
	value := bare(pair.Value)
	list, isList := value.(*ast.SequenceNode)
	last = max(first, endOf(value))
	for i := last; i < len(d.lines); i++ {
		line := strings.TrimRight(d.lines[i], "\r\n")
		trimmed := strings.TrimLeft(line, " ")
		deep := len(line) - len(trimmed)
		item := isList && !list.IsFlowStyle && deep == indent && (trimmed == "-" || strings.HasPrefix(trimmed, "- "))
		if strings.TrimSpace(trimmed) == "" || deep <= indent && trimmed[0] == '#' {
			continue // it belongs to the pair only if more of the pair follows
		}
		if deep <= indent && !item {
			break
		}
		last = i + 1
	}
	return first, last
}

// endOf is the line of the closing brace of a value that has one.
func endOf(node ast.Node) int {
	var end *token.Token
	switch n := node.(type) {
	case *ast.MappingNode:
		end = n.End
	case *ast.SequenceNode:
		end = n.End
	}
	if end == nil {
		return 0
	}
	return end.Position.Line
}

// insertLines puts lines behind the first n, with the line break of the file.
// A file that ends without one still does afterwards.
func (d *document) insertLines(n int, indent string, lines []string) {
	eol := "\n"
	if strings.HasSuffix(d.lines[0], "\r\n") {
		eol = "\r\n"
	}
	if len(d.lines) > 0 && d.lines[len(d.lines)-1] == "" { // what SplitAfter leaves behind a final break
		d.lines = d.lines[:len(d.lines)-1]
		defer func() { d.lines = append(d.lines, "") }()
	}
	n = min(n, len(d.lines))
	added := make([]string, len(lines))
	for i, line := range lines {
		added[i] = indent + line + eol
	}
	if n > 0 && !strings.HasSuffix(d.lines[n-1], "\n") {
		d.lines[n-1] += eol
		added[len(added)-1] = strings.TrimSuffix(added[len(added)-1], eol)
	}
	d.lines = slices.Insert(d.lines, n, added...)
}
