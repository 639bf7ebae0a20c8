package page

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp/jsonv2"
)

// The engine sends values without their names, since an object of its own would
// put names that look like numbers first, and stumble over others. Here they get
// them, in the order of the page or of the instruction.

// grid is a table with every place filled.
type grid struct {
	Names []string   `json:"names"` // nil means that the table has no header
	Rows  [][]string `json:"rows"`
}

// encode writes the rows: objects by the names of the columns, or arrays. As
// many as fit, and at least one.
func (g *grid) encode(most int) (raw []byte, cut bool, err error) {
	wide := len(g.Names)
	for _, row := range g.Rows {
		wide = max(wide, len(row))
	}
	names := columnNames(g.Names, wide)
	var out bytes.Buffer
	out.WriteByte('[')
	used := 2
	for i, row := range g.Rows {
		var line bytes.Buffer
		if g.Names == nil {
			err = write(&line, row)
		} else {
			err = writeObject(&line, names, func(w *bytes.Buffer, at int) error {
				if at >= len(row) {
					return write(w, "")
				}
				return write(w, row[at])
			})
		}
		if err != nil {
			return nil, false, err
		}
		used += utf8.RuneCount(line.Bytes()) + 1
		if used > most && i > 0 {
			cut = true
			break
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(line.Bytes())
	}
	out.WriteByte(']')
	return out.Bytes(), cut, nil
}

// columnNames gives every column a name of its own.
func columnNames(given []string, wide int) []string {
	names := make([]string, wide)
	for i := range names {
		base := fmt.Sprintf("column %d", i+1)
		if i < len(given) && given[i] != "" {
			base = given[i]
		}
		names[i] = base
		for n := 2; slices.Contains(names[:i], names[i]); n++ {
			names[i] = fmt.Sprintf("%s %d", base, n)
		}
	}
	return names
}

var errShape = errors.New("the page's engine answered in an unexpected shape")

// encode gives the engine's value its names.
func (s *shape) encode(raw jsonv2.Value) ([]byte, error) {
	var value any
	if jsonv2.Unmarshal(raw, &value, jsonv2.AllowInvalidUTF8(true)) != nil {
		return nil, errShape
	}
	var out bytes.Buffer
	err := s.write(&out, value)
	return out.Bytes(), err
}

func (s *shape) write(w *bytes.Buffer, value any) error {
	items, isArray := value.([]any)
	switch {
	case s.One != nil:
		if _, isText := value.(string); !isText && value != nil {
			return errShape
		}
		return write(w, value)
	case !isArray:
		return errShape
	case s.Fields != nil:
		names := make([]string, 0, len(s.Fields))
		for _, f := range s.Fields {
			names = append(names, f.Key)
		}
		if len(items) != len(names) {
			return errShape
		}
		return writeObject(w, names, func(w *bytes.Buffer, at int) error { return s.Fields[at].Shape.write(w, items[at]) })
	}
	of := s.Of
	if of == nil {
		of = &shape{One: s.All}
	}
	w.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := of.write(w, item); err != nil {
			return err
		}
	}
	w.WriteByte(']')
	return nil
}

// lacking names the fields for which nothing was found anywhere.
func (s *shape) lacking(hits []int) []string {
	var names []string
	var walk func(*shape, string)
	walk = func(s *shape, path string) {
		for _, sel := range []*selection{s.One, s.All, s.Each} {
			if sel != nil && !slices.Contains(hits, sel.ID) {
				if path == "" {
					path = sel.String()
				}
				names = append(names, path)
				return // what is inside it cannot be found either
			}
		}
		if s.Of != nil {
			walk(s.Of, path)
		}
		for _, f := range s.Fields {
			inner := f.Key
			if path != "" {
				inner = path + "." + f.Key
			}
			walk(f.Shape, inner)
		}
	}
	walk(s, "")
	return names
}

func writeObject(w *bytes.Buffer, names []string, value func(*bytes.Buffer, int) error) error {
	w.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := write(w, name); err != nil {
			return err
		}
		w.WriteByte(':')
		if err := value(w, i); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func write(w *bytes.Buffer, value any) error {
	raw, err := jsonv2.Marshal(value, jsonv2.AllowInvalidUTF8(true))
	w.Write(raw)
	return err
}
