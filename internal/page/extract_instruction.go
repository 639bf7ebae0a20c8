package page

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"tapin/internal/fault"
)

// The language of instructions:
//
//	instruction = [ step { ";" step } ] [ ";" end ] | end | anything else
//	step        = ( "selector:" | "css:" | "xpath:" ) expression
//	end         = "table:" [ CSS ] | "json:" shape | "markdown" | "article"
//
// A step selects inside the matches of the step before; the first one selects
// in the page. A step without its word is of the kind of the one before. A step
// that matches a frame leads into it. The last CSS step may end in @name, and
// then reads that attribute. A semicolon inside quotes, brackets or parentheses
// belongs to the expression; in CSS a backslash keeps any character from ending
// anything. "article" reads the whole page and stands alone. The empty
// instruction is the page's text, and so is what begins with none of the words,
// with a note that names them.

// Kind is the form in which an extract comes.
type Kind string

// The kinds of extract.
const (
	KindText     Kind = "text"
	KindTable    Kind = "table"    // rows: objects by the table's header, else arrays
	KindJSON     Kind = "json"     // in the shape that the instruction gave
	KindMarkdown Kind = "markdown" // the page, or what was selected
	KindArticle  Kind = "article"  // the main content as Markdown
)

// FormsNote names the forms to somebody who did not use one.
const FormsNote = `the instruction is none of the forms, so this is the page's text; the forms are "selector: CSS", "css: CSS", "xpath: XPATH" (several chained with ";"), "table: CSS", "json: {field: selector, …}", "markdown" and "article"`

// Bounds of an instruction. What a person or an agent would write is far below.
const (
	mostInstruction = 10_000 // characters
	mostSelectors   = 200
	mostNesting     = 12
)

const parseOp = "read the instruction"

// selection names nodes: by a CSS selector or an XPath, or the place itself
// when both are empty.
type selection struct {
	ID    int    `json:"id"` // its number in the instruction
	CSS   string `json:"css,omitempty"`
	XPath string `json:"xpath,omitempty"`
	Attr  string `json:"attr,omitempty"` // the attribute to read in place of the text

	said string // as the instruction has it
	at   int    // the character it begins with, from 1
}

// instruction is one that was understood.
type instruction struct {
	kind  Kind
	steps []*selection
	table *selection // nil means the first one
	shape *shape
	note  string

	all []*selection // every selection in it, by its number
}

// words that an instruction, or a part of it, may begin with.
var formWord = regexp.MustCompile(`^(?i:(selector|css|xpath|table|json)\s*:|(table|markdown|article|selector|css|xpath|json)\s*(?:$|;))`)

// CheckInstruction says whether an instruction can be understood, without a page.
func CheckInstruction(text string) error {
	_, err := parseInstruction(text)
	return err
}

// parser reads an instruction from left to right.
type parser struct {
	text string
	pos  int // in bytes
	made *instruction
}

// parseInstruction understands an instruction or says where it does not.
func parseInstruction(text string) (*instruction, error) {
	p := &parser{text: text, made: &instruction{kind: KindText}}
	if n := utf8.RuneCountInString(text); n > mostInstruction {
		return nil, fault.New(fault.InvalidRequest, parseOp, "%d characters are more than %d", n, mostInstruction)
	}
	if !utf8.ValidString(text) {
		return nil, fault.New(fault.InvalidRequest, parseOp, "it is not valid UTF-8")
	}
	p.space()
	if p.pos == len(text) {
		return p.made, nil
	}
	if !formWord.MatchString(text[p.pos:]) {
		p.made.note = FormsNote
		return p.made, nil
	}
	last := ""
	for p.pos < len(text) {
		word, err := p.part(last)
		if err != nil {
			return nil, err
		}
		if word != "selector" && word != "xpath" {
			if p.pos < len(text) {
				return nil, p.bad(p.pos, "nothing may follow %s", word)
			}
			break
		}
		last = word
	}
	return p.made, p.whole()
}

// part reads one part up to its semicolon, and tells by which word it goes.
func (p *parser) part(last string) (string, error) {
	p.space()
	start := p.pos
	word := last
	if m := formWord.FindStringSubmatch(p.text[p.pos:]); m != nil {
		word = strings.ToLower(m[1] + m[2])
		if m[1] != "" {
			p.pos += len(m[0])
		} else {
			p.pos += len(m[2])
		}
	}
	if word == "css" {
		word = "selector"
	}
	p.space()
	switch word {
	case "selector", "xpath":
		said, at, err := p.expression(word == "selector")
		if err != nil {
			return "", err
		}
		s, err := p.selection(said, at, word == "xpath")
		if err != nil {
			return "", err
		}
		if n := len(p.made.steps); n > 0 && p.made.steps[n-1].Attr != "" {
			return "", p.bad(start, "an attribute has nothing inside it; only the last step may end in @name")
		}
		p.made.steps = append(p.made.steps, s)
		return word, nil
	case "table":
		p.made.kind = KindTable
		said, at, err := p.expressionOrNone()
		if err != nil || said == "" {
			return word, err
		}
		p.made.table, err = p.selection(said, at, false)
		if err == nil && p.made.table.Attr != "" {
			err = p.fault(at, "a table is not an attribute")
		}
		return word, err
	case "json":
		p.made.kind = KindJSON
		var err error
		if p.made.shape, err = p.shape(0); err != nil {
			return "", err
		}
		p.space()
		p.pos += len(p.semicolon())
		p.space()
		return word, nil
	}
	p.made.kind = Kind(word)
	if word == "article" && len(p.made.steps) > 0 {
		return "", p.bad(start, "article finds the main content of the whole page by itself").WithHint("Use markdown to have what was selected.")
	}
	p.pos += len(p.semicolon())
	p.space()
	return word, nil
}

// whole refuses what only shows when everything was read.
func (p *parser) whole() error {
	if p.made.kind == KindText || len(p.made.steps) == 0 {
		return nil
	}
	if last := p.made.steps[len(p.made.steps)-1]; last.Attr != "" {
		return p.fault(last.at, "an attribute has no %s in it", p.made.kind)
	}
	return nil
}

// expression reads a selector or an XPath up to the semicolon that ends it.
func (p *parser) expression(css bool) (said string, at int, err error) {
	start := p.pos
	if err := p.until(";", css); err != nil {
		return "", 0, err
	}
	said = strings.TrimSpace(p.text[start:p.pos])
	if said == "" {
		return "", 0, p.bad(start, "there is nothing to look for")
	}
	p.pos += len(p.semicolon())
	p.space()
	return said, p.at(start), nil
}

// expressionOrNone is a CSS selector that may be left out.
func (p *parser) expressionOrNone() (said string, at int, err error) {
	if rest := p.text[p.pos:]; rest == "" || rest[0] == ';' {
		p.pos += len(p.semicolon())
		p.space()
		return "", 0, nil
	}
	return p.expression(true)
}

// until goes on to the first of the bytes in ends that stands outside of
// quotes and brackets, or to the end.
func (p *parser) until(ends string, css bool) error {
	var open []int // where the brackets that are open stand
	pairs := map[byte]byte{')': '(', ']': '['}
	for ; p.pos < len(p.text); p.pos++ {
		c := p.text[p.pos]
		if len(open) == 0 && strings.IndexByte(ends, c) >= 0 {
			return nil
		}
		switch c {
		case '\\':
			if css && p.pos+1 < len(p.text) {
				p.pos++
			}
		case '"', '\'':
			if err := p.skipQuoted(css); err != nil {
				return err
			}
		case '(', '[':
			open = append(open, p.pos)
		case ')', ']':
			if len(open) == 0 || p.text[open[len(open)-1]] != pairs[c] {
				return p.bad(p.pos, "%q closes nothing", c)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		at := open[len(open)-1]
		return p.bad(at, "%q is never closed", p.text[at])
	}
	return nil
}

// skipQuoted goes on to the quote that ends the one here.
func (p *parser) skipQuoted(escapes bool) error {
	start := p.pos
	for p.pos++; p.pos < len(p.text); p.pos++ {
		switch c := p.text[p.pos]; {
		case c == p.text[start]:
			return nil
		case c == '\\' && escapes:
			p.pos++
		}
	}
	return p.bad(start, "the quote is never closed")
}

// attribute is what may stand behind an @.
var attribute = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,99}$`)

// selection takes an expression apart and gives it its number.
func (p *parser) selection(said string, at int, xpath bool) (*selection, error) {
	s := &selection{ID: len(p.made.all), said: said, at: at}
	if s.ID == mostSelectors {
		return nil, p.fault(at, "more than %d selectors", mostSelectors)
	}
	p.made.all = append(p.made.all, s)
	if xpath {
		s.XPath = said
		return s, nil
	}
	css, attr, has := cutAttribute(said)
	if has && !attribute.MatchString(attr) {
		return nil, p.fault(at, "%q is no name of an attribute", attr)
	}
	if s.Attr = strings.ToLower(attr); css != "." {
		s.CSS = css
	}
	return s, nil
}

// cutAttribute finds the @name at the end of a selector. No selector has an @
// outside of quotes and brackets.
func cutAttribute(said string) (css, attr string, has bool) {
	p := &parser{text: said}
	if p.until("@", true) != nil || p.pos == len(said) {
		return said, "", false
	}
	return strings.TrimSpace(said[:p.pos]), strings.TrimSpace(said[p.pos+1:]), true
}

func (p *parser) space() {
	rest := p.text[p.pos:]
	p.pos += len(rest) - len(strings.TrimLeft(rest, " \t\r\n"))
}

// semicolon is the one that stands here, if one does.
func (p *parser) semicolon() string {
	if rest := p.text[p.pos:]; rest != "" && rest[0] == ';' {
		return ";"
	}
	return ""
}

// at is the number of the character at a byte, from 1.
func (p *parser) at(pos int) int { return utf8.RuneCountInString(p.text[:min(pos, len(p.text))]) + 1 }

func (p *parser) bad(pos int, format string, args ...any) *fault.Error {
	return p.fault(p.at(pos), format, args...)
}

// fault says what is wrong with which character.
func (*parser) fault(at int, format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidRequest, parseOp, "at character %d: "+format, append([]any{at}, args...)...).
		With("field", "instruction").With("position", at).
		WithHint(`The forms are "selector: CSS", "xpath: XPATH", "table: CSS", "json: {field: selector, …}", "markdown", "article"; steps are chained with ";".`)
}
