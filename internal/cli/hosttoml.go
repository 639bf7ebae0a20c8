package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tapin/internal/fault"
)

// setTable puts a table into a TOML document in place of one with the same
// name, or at its end. Everything else stays as it is, byte for byte. What it
// cannot read for certain it refuses.
func setTable(doc string, path []string, lines []string) (string, error) {
	parts, err := statements(doc)
	if err != nil {
		return "", err
	}
	newline := "\n"
	if i := strings.IndexByte(doc, '\n'); i > 0 && doc[i-1] == '\r' {
		newline = "\r\n"
	}
	block := strings.Join(append([]string{"[" + strings.Join(path, ".") + "]"}, lines...), newline) + newline
	in := []string(nil) // the table that a statement stands in
	from, to := -1, -1
	for _, p := range parts {
		if p.header {
			if from >= 0 && to < 0 {
				to = p.start
			}
			in = p.name
			if slices.Equal(in, path) {
				if from >= 0 || p.list {
					return "", elsewhere(path)
				}
				from = p.start
			}
			continue
		}
		// The same table can be written in other ways, which cannot be told apart
		// from their neighbours without risk.
		full := slices.Concat(in, p.name)
		if !slices.Equal(in, path) && !begins(in, path) && (begins(full, path) || slices.Equal(full, path[:min(len(full), len(path))])) {
			return "", elsewhere(path)
		}
	}
	if from < 0 {
		if doc != "" && !strings.HasSuffix(doc, "\n") {
			doc += newline
		}
		if doc != "" {
			doc += newline
		}
		return doc + block, nil
	}
	if to < 0 {
		to = len(doc)
	}
	// What stands before the next header, comments and empty lines, is its own.
	end := from
	for _, p := range parts {
		if p.start >= from && p.end <= to {
			end = p.end
		}
	}
	tail := doc[end:to]
	if i := strings.IndexByte(tail, '\n'); i >= 0 {
		tail = tail[i+1:]
	} else {
		tail = ""
	}
	return doc[:from] + block + tail + doc[to:], nil
}

func elsewhere(path []string) error {
	return fault.New(fault.InvalidRequest, "", "it has %s in a form that cannot be changed safely", strings.Join(path, ".")).
		WithHint("Change that entry by hand, or remove it and try again.")
}

func begins(name, with []string) bool {
	return len(name) > len(with) && slices.Equal(name[:len(with)], with)
}

// statement is a header or a key with its value, by its bytes.
type statement struct {
	header, list bool
	name         []string
	start, end   int
}

// statements reads a document as far as is needed to know where each begins
// and ends.
func statements(doc string) ([]statement, error) {
	if strings.Count(doc, "\r") != strings.Count(doc, "\r\n") {
		return nil, fault.New(fault.InvalidRequest, "", "it has line ends that TOML does not know")
	}
	s := &tomlScanner{text: doc}
	var list []statement
	for {
		s.blank()
		if s.at >= len(s.text) {
			return list, nil
		}
		st := statement{start: s.at, header: s.text[s.at] == '['}
		var err error
		if st.header {
			st.list = strings.HasPrefix(s.text[s.at:], "[[")
			err = s.head(&st)
		} else {
			err = s.pair(&st)
		}
		if err != nil {
			line := 1 + strings.Count(s.text[:min(s.at, len(s.text))], "\n")
			return nil, fault.New(fault.InvalidRequest, "", "line %d is not TOML that tapin can read: %w", line, err)
		}
		st.end = s.at
		list = append(list, st)
	}
}

type tomlScanner struct {
	text string
	at   int
}

// blank skips white space, empty lines and comments.
func (s *tomlScanner) blank() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		case '#':
			s.comment()
		default:
			return
		}
	}
}

func (s *tomlScanner) comment() {
	if i := strings.IndexByte(s.text[s.at:], '\n'); i >= 0 {
		s.at += i
	} else {
		s.at = len(s.text)
	}
}

func (s *tomlScanner) spaces() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t') {
		s.at++
	}
}

func (s *tomlScanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return '\n'
}

func (s *tomlScanner) head(st *statement) error {
	depth := 1
	if st.list {
		depth = 2
	}
	s.at += depth
	var err error
	if st.name, err = s.key(); err != nil {
		return err
	}
	for range depth {
		if s.peek() != ']' {
			return fmt.Errorf("a header does not end")
		}
		s.at++
	}
	return s.ends()
}

func (s *tomlScanner) pair(st *statement) error {
	var err error
	if st.name, err = s.key(); err != nil {
		return err
	}
	if s.peek() != '=' {
		return fmt.Errorf("a key has no value")
	}
	s.at++
	s.spaces()
	if err := s.value(); err != nil {
		return err
	}
	return s.ends()
}

// ends: nothing but a comment may follow on the line.
func (s *tomlScanner) ends() error {
	end := s.at
	s.spaces()
	switch s.peek() {
	case '\r', '\n', '#':
	default:
		return fmt.Errorf("there is more on the line")
	}
	s.at = end
	return nil
}

// key reads a dotted key and stops behind it.
func (s *tomlScanner) key() ([]string, error) {
	var name []string
	for {
		s.spaces()
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			start := s.at
			if err := s.quoted(); err != nil {
				return nil, err
			}
			raw := s.text[start:s.at]
			if strings.HasPrefix(raw, `"""`) || strings.HasPrefix(raw, `'''`) {
				return nil, fmt.Errorf("a key is no key")
			}
			part := raw[1 : len(raw)-1]
			if c == '"' && json.Unmarshal([]byte(raw), &part) != nil {
				return nil, fmt.Errorf("a key cannot be read")
			}
			name = append(name, part)
		default:
			start := s.at
			for s.at < len(s.text) && isBare(s.text[s.at]) {
				s.at++
			}
			if s.at == start {
				return nil, fmt.Errorf("a key is missing")
			}
			name = append(name, s.text[start:s.at])
		}
		s.spaces()
		if s.peek() != '.' {
			return name, nil
		}
		s.at++
	}
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// quoted skips a string of any of the four kinds.
func (s *tomlScanner) quoted() error {
	c := s.text[s.at]
	long := strings.Repeat(string(c), 3)
	if strings.HasPrefix(s.text[s.at:], long) {
		for s.at += 3; s.at < len(s.text); s.at++ {
			switch {
			case c == '"' && s.text[s.at] == '\\':
				s.at++
			case strings.HasPrefix(s.text[s.at:], long):
				s.at += 3
				for i := 0; i < 2 && s.peek() == c; i++ { // up to two may stand before the end
					s.at++
				}
				return nil
			}
		}
		return fmt.Errorf("a text does not end")
	}
	for s.at++; s.at < len(s.text); s.at++ {
		switch {
		case s.text[s.at] == '\n':
			return fmt.Errorf("a text does not end")
		case c == '"' && s.text[s.at] == '\\':
			s.at++
		case s.text[s.at] == c:
			s.at++
			return nil
		}
	}
	return fmt.Errorf("a text does not end")
}

// value skips a value: a text, something with brackets, or a plain word.
func (s *tomlScanner) value() error {
	var open []byte
	start := s.at
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case '"', '\'':
			if err := s.quoted(); err != nil {
				return err
			}
			continue
		case '[', '{':
			open = append(open, c+2) // in ASCII the closing one stands two further
		case ']', '}':
			if len(open) == 0 || open[len(open)-1] != c {
				return fmt.Errorf("brackets do not match")
			}
			open = open[:len(open)-1]
		case '#':
			if len(open) == 0 {
				return s.some(start)
			}
			s.comment()
			continue
		case '\n':
			if len(open) == 0 {
				return s.some(start)
			}
		}
		s.at++
	}
	if len(open) > 0 {
		return fmt.Errorf("brackets do not match")
	}
	return s.some(start)
}

// some goes back over the white space behind a value, of which there must be one.
func (s *tomlScanner) some(start int) error {
	for s.at > start && strings.IndexByte(" \t\r", s.text[s.at-1]) >= 0 {
		s.at--
	}
	if s.at == start {
		return fmt.Errorf("a key has no value")
	}
	return nil
}

// tomlText writes a text as TOML does, which is how JSON does.
func tomlText(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(raw)
}
