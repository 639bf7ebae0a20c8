package page

import (
	"strings"

	"github.com/chromedp/cdproto/cdp/jsonv2"
)

// The shape that "json:" gives its answer:
//
//	shape  = object | array | selector
//	object = "{" key ":" shape { "," key ":" shape } "}"
//	array  = "[" selector "]"              the texts of all matches
//	       | "[" selector "," shape "]"    for each match one, read inside it
//	       | "[" shape "]"                 for each match of the steps before
//
// Keys and selectors may be quoted, as in JSON or with single quotes, or stand
// bare; a bare selector ends at a comma or a closing bracket. A selector is CSS
// unless it begins with "xpath:"; it may end in @name for an attribute, is only
// @name for one of the place itself, and "." for the text of the place itself.
// A selector alone is the first match that shows something; null means none does.

// shape is a value to read: exactly one of its parts is set.
type shape struct {
	One    *selection `json:"one,omitempty"`
	All    *selection `json:"all,omitempty"`
	Each   *selection `json:"each,omitempty"`  // with Of
	Items  bool       `json:"items,omitempty"` // with Of: one for each place
	Of     *shape     `json:"of,omitempty"`
	Fields []member   `json:"fields,omitempty"`
}

// member is one field of an object.
type member struct {
	Key   string `json:"key"`
	Shape *shape `json:"shape"`
}

// shape reads a value.
func (p *parser) shape(depth int) (*shape, error) {
	p.space()
	switch rest := p.text[p.pos:]; {
	case depth > mostNesting:
		return nil, p.bad(p.pos, "it is nested more than %d deep", mostNesting)
	case rest == "" || rest[0] == ';':
		return nil, p.bad(p.pos, "json needs what to read, such as {title: h1}")
	case rest[0] == '{':
		return p.object(depth)
	case rest[0] == '[':
		return p.array(depth)
	}
	if depth == 0 {
		return nil, p.bad(p.pos, "json needs an object or an array, such as {title: h1}")
	}
	one, err := p.value()
	return &shape{One: one}, err
}

func (p *parser) object(depth int) (*shape, error) {
	start := p.pos
	made := &shape{}
	seen := map[string]bool{}
	for p.pos++; ; {
		p.space()
		if p.take('}') {
			if len(made.Fields) == 0 {
				return nil, p.bad(start, "the object has no fields")
			}
			return made, nil
		}
		at := p.pos
		key, err := p.key()
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, p.bad(at, "the field %q is there twice", key)
		}
		seen[key] = true
		p.space()
		if !p.take(':') {
			return nil, p.bad(p.pos, "the field %q needs a colon and a selector", key)
		}
		inner, err := p.shape(depth + 1)
		if err != nil {
			return nil, err
		}
		made.Fields = append(made.Fields, member{Key: key, Shape: inner})
		p.space()
		if !p.take(',') && !p.peek('}') {
			return nil, p.unclosed(start, "} or a comma")
		}
	}
}

func (p *parser) array(depth int) (*shape, error) {
	start := p.pos
	p.pos++
	p.space()
	if p.peek(']') {
		return nil, p.bad(start, "the array has nothing to read")
	}
	first, err := p.shape(depth + 1)
	if err != nil {
		return nil, err
	}
	made := &shape{Items: true, Of: first}
	p.space()
	switch comma := p.take(','); {
	case first.One == nil && (depth > 0 || len(p.made.steps) == 0):
		return nil, p.bad(start, "the array does not say what its items are").
			WithHint(`Begin it with their selector, as in ["li", {name: ".name"}]; or select them first, as in selector: li; json: [{name: .name}].`)
	case first.One != nil:
		made = &shape{All: first.One}
		p.space()
		if comma && !p.peek(']') {
			if made.Of, err = p.shape(depth + 1); err != nil {
				return nil, err
			}
			made.Each, made.All = made.All, nil
			if made.Each.Attr != "" {
				return nil, p.fault(made.Each.at, "an attribute has nothing inside it")
			}
			p.space()
			p.take(',')
		}
	}
	p.space()
	if !p.take(']') {
		return nil, p.unclosed(start, "]; an array has a selector, and at most one shape for its items")
	}
	return made, nil
}

func (p *parser) unclosed(start int, missing string) error {
	if p.pos == len(p.text) {
		return p.bad(start, "%q is never closed", p.text[start])
	}
	return p.bad(p.pos, "here should be %s", missing)
}

// key is the name of a member.
func (p *parser) key() (string, error) {
	if p.peek('"') || p.peek('\'') {
		return p.quoted()
	}
	start := p.pos
	for p.pos < len(p.text) && strings.IndexByte(":,{}[]\"'; \t\r\n", p.text[p.pos]) < 0 {
		p.pos++
	}
	if p.pos == start {
		return "", p.bad(p.pos, "here should be the name of a field")
	}
	return p.text[start:p.pos], nil
}

// value is the selector of a member.
func (p *parser) value() (*selection, error) {
	start := p.pos
	var said string
	var err error
	if p.peek('"') || p.peek('\'') {
		said, err = p.quoted()
	} else if err = p.until(",}]", true); err == nil {
		said = p.text[start:p.pos]
	}
	if err != nil {
		return nil, err
	}
	said = strings.TrimSpace(said)
	xpath := false
	if m := formWord.FindStringSubmatch(said); m != nil && m[1] != "" && !strings.EqualFold(m[1], "table") && !strings.EqualFold(m[1], "json") {
		xpath = strings.EqualFold(m[1], "xpath")
		said = strings.TrimSpace(said[len(m[0]):])
	}
	if said == "" {
		return nil, p.bad(start, "there is nothing to look for")
	}
	inner := &parser{text: said, made: p.made}
	if err := inner.until("", !xpath); err != nil {
		return nil, p.bad(start, "brackets or quotes in it do not match")
	}
	return p.selection(said, p.at(start), xpath)
}

// requote makes the inside of single quotes one of double quotes. What is
// escaped comes first, so that no escape is read by half.
var requote = strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `\"`, `\"`, `"`, `\"`)

// quoted is a text in quotes, with JSON's escapes.
func (p *parser) quoted() (string, error) {
	start := p.pos
	if err := p.skipQuoted(true); err != nil {
		return "", err
	}
	inner := p.text[start+1 : p.pos]
	p.pos++
	if p.text[start] == '\'' {
		inner = requote.Replace(inner)
	}
	var text string
	if err := jsonv2.Unmarshal([]byte(`"`+inner+`"`), &text); err != nil {
		return "", p.bad(start, "the quoted text has an escape that JSON does not know").WithHint(`In JSON a backslash is written \\.`)
	}
	return text, nil
}

func (p *parser) peek(c byte) bool { return p.pos < len(p.text) && p.text[p.pos] == c }

func (p *parser) take(c byte) bool {
	if !p.peek(c) {
		return false
	}
	p.pos++
	return true
}
