package page

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"tapin/internal/fault"
)

// told writes an instruction as it was understood.
func (in *instruction) told() string {
	var out []string
	for _, s := range in.steps {
		out = append(out, s.told())
	}
	switch {
	case in.kind == KindTable && in.table == nil:
		out = append(out, "table")
	case in.kind == KindTable:
		out = append(out, "table "+in.table.told())
	case in.kind == KindJSON:
		out = append(out, in.shape.told())
	case in.kind != KindText:
		out = append(out, string(in.kind))
	}
	if in.note != "" {
		out = append(out, "note")
	}
	return strings.Join(out, " > ")
}

func (s *selection) told() string {
	out := "css(" + s.CSS + ")"
	if s.XPath != "" {
		out = "xpath(" + s.XPath + ")"
	}
	if s.Attr != "" {
		out += "@" + s.Attr
	}
	return out
}

func (s *shape) told() string {
	switch {
	case s.One != nil:
		return s.One.told()
	case s.All != nil:
		return "[" + s.All.told() + "]"
	case s.Each != nil:
		return "[" + s.Each.told() + ": " + s.Of.told() + "]"
	case s.Items:
		return "[" + s.Of.told() + "]"
	}
	var fields []string
	for _, f := range s.Fields {
		fields = append(fields, fmt.Sprintf("%s=%s", f.Key, f.Shape.told()))
	}
	return "{" + strings.Join(fields, " ") + "}"
}

func TestInstructionsAreUnderstoodAsWritten(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"nothing is the text":      {"", ""},
		"blanks are nothing":       {" \n\t ", ""},
		"a selector":               {"selector: .price", "css(.price)"},
		"css is the same":          {"css:.price", "css(.price)"},
		"words may be in capitals": {"Selector : h1", "css(h1)"},
		"xpath":                    {"xpath: //a[@id='x']", "xpath(//a[@id='x'])"},
		"a chain":                  {"selector: main; xpath: .//h2; css: a", "css(main) > xpath(.//h2) > css(a)"},
		"a step without a word is of the kind before": {"selector: main; h2 ; a@href", "css(main) > css(h2) > css(a)@href"},
		"a last semicolon is nothing":                 {"selector: h1;", "css(h1)"},
		"a semicolon in quotes":                       {`selector: [title="a;b"]; p`, `css([title="a;b"]) > css(p)`},
		"a semicolon in single quotes":                {`selector: [title='a;]b']`, `css([title='a;]b'])`},
		"a semicolon in parentheses":                  {`selector: :is(a;b); p`, `css(:is(a;b)) > css(p)`},
		"an escaped semicolon":                        {`selector: .a\;b; p`, `css(.a\;b) > css(p)`},
		"an escaped quote":                            {`selector: [x="\";"]; p`, `css([x="\";"]) > css(p)`},
		"no escapes in xpath":                         {`xpath: //a[.='\']; b`, `xpath(//a[.='\']) > xpath(b)`},
		"an attribute":                                {"selector: a[href^='mailto:x@y'] @ HREF", "css(a[href^='mailto:x@y'])@href"},
		"an attribute in quotes is none":              {`selector: a[href*="@x"]`, `css(a[href*="@x"])`},
		"a table":                                     {"table: #prices", "table css(#prices)"},
		"the first table":                             {"table", "table"},
		"the first table, with a colon":               {"table:", "table"},
		"a table inside":                              {"selector: #a; table", "css(#a) > table"},
		"markdown":                                    {"markdown", "markdown"},
		"markdown of a part":                          {"selector: main; Markdown;", "css(main) > markdown"},
		"article":                                     {" article ", "article"},
		"a shape with bare words":                     {"json: {title: h1, price: .price > b}", "{title=css(h1) price=css(.price > b)}"},
		"a shape in JSON":                             {`json: {"title": "h1", "link": "a@href"}`, "{title=css(h1) link=css(a)@href}"},
		"quotes for what begins with a bracket":       {`json: {a: :is(h1, h2), b: '[x="1,2"]'}`, `{a=css(:is(h1, h2)) b=css([x="1,2"])}`},
		"nested objects":                              {"json: {a: {b: {c: p}}}", "{a={b={c=css(p)}}}"},
		"all of something":                            {"json: {a: [li]}", "{a=[css(li)]}"},
		"items with a shape":                          {`json: {a: [li, {n: .n, u: @data-u}]}`, "{a=[css(li): {n=css(.n) u=css()@data-u}]}"},
		"rows of cells":                               {`json: [tr, [td]]`, "[css(tr): [css(td)]]"},
		"items of the step before":                    {"selector: li; json: [{n: .n, me: .}]", "css(li) > [{n=css(.n) me=css()}]"},
		"xpath in a field":                            {`json: {a: "xpath: .//b[1]", c: css: i}`, "{a=xpath(.//b[1]) c=css(i)}"},
		"an escape in a field":                        {`json: {a: "p\u0041 \"x\" \\31"}`, `{a=css(pA "x" \31)}`},
		"single quotes in a field":                    {`json: {a: 'p[t="x"] \' \\'}`, ``},
		"commas at the end":                           {"json: {a: [b,], c: d,};", "{a=[css(b)] c=css(d)}"},
		"other letters":                               {"json: {größe: .größe, 価格: .価格}", "{größe=css(.größe) 価格=css(.価格)}"},
		"free text":                                   {"What does it cost?", "note"},
		"free text with quotes and brackets":          {`don't; (say "`, "note"},
		"free text that begins like a form":           {"table of contents", "note"},
		"free text that begins like another":          {"markdown please", "note"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := parseInstruction(tt.text)
			if tt.want == "" && strings.TrimSpace(tt.text) != "" {
				if !errors.Is(err, fault.InvalidRequest) {
					t.Fatalf("%v, %v", in, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := in.told(); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestAMistakeInAnInstructionHasItsPlace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		at   int
		says string
	}{
		"no selector":               {"selector:  ", 12, "nothing to look for"},
		"no selector in the middle": {"css: a;; css: b", 8, "nothing to look for"},
		"an open bracket":           {"css: a[b", 7, "'[' is never closed"},
		"an open parenthesis":       {"css: é; css: :is(a", 17, "'(' is never closed"},
		"an open quote":             {`css: [a="b]`, 9, "quote is never closed"},
		"a bracket too many":        {"css: a]", 7, "']' closes nothing"},
		"brackets that cross":       {"css: (a[b)]", 10, "')' closes nothing"},
		"no name of an attribute":   {"css: a@1x", 6, "no name of an attribute"},
		"inside an attribute":       {"css: a@href; b", 14, "only the last step"},
		"a table in an attribute":   {"css: a@href; table", 6, "no table in it"},
		"a table as attribute":      {"table: a@href", 8, "not an attribute"},
		"something after a table":   {"table: a; b", 11, "nothing may follow table"},
		"something after markdown":  {"markdown; b", 11, "nothing may follow markdown"},
		"an article of a part":      {"css: a; article", 9, "by itself"},
		"no shape":                  {"json:", 6, "json needs"},
		"a bare word as shape":      {"json: h1", 7, "an object or an array"},
		"an empty object":           {"json: {}", 7, "no fields"},
		"an empty array":            {"json: {a: []}", 11, "nothing to read"},
		"an open object":            {"json: {a: b", 7, "'{' is never closed"},
		"no colon":                  {"json: {a b}", 10, "needs a colon"},
		"no key":                    {"json: {: b}", 8, "the name of a field"},
		"no value":                  {"json: {a: }", 11, "nothing to look for"},
		"a field twice":             {"json: {a: b, a: c}", 14, "there twice"},
		"items of nothing":          {"json: [{a: b}]", 7, "what its items are"},
		"items of nothing, inside":  {"css: li; json: {x: [{a: b}]}", 20, "what its items are"},
		"an array of three":         {"json: [a, b, c]", 14, "at most one shape"},
		"items of an attribute":     {"json: [a@href, {x: b}]", 8, "nothing inside it"},
		"something after json":      {"json: {a: b} x", 14, "nothing may follow json"},
		"an unknown escape":         {`json: {a: "\d"}`, 11, "escape"},
		"an open quote in json":     {`json: {a: "b}`, 11, "quote is never closed"},
		"crooked brackets in json":  {`json: {a: "b["}`, 11, "do not match"},
		"deeper than anybody reads": {"json: " + strings.Repeat("{a:", 20), 46, "nested more than"},
		"more than anybody writes":  {"json: {" + strings.Repeat("a:b,", 1) + manyFields(300) + "}", 0, "more than 200 selectors"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := parseInstruction(tt.text)
			if err == nil {
				t.Fatalf("understood as %s", in.told())
			}
			f := fault.Of(err)
			if f.Code != fault.InvalidRequest || !strings.Contains(f.Details(), tt.says) || f.Advice() == "" {
				t.Errorf("%s %s (%s)", f.Code, f.Details(), f.Advice())
			}
			if at := f.Data["position"]; tt.at != 0 && at != tt.at || at == nil {
				t.Errorf("at %v, not %d: %s", at, tt.at, f.Details())
			}
		})
	}
	if _, err := parseInstruction(strings.Repeat("x", mostInstruction+1)); !errors.Is(err, fault.InvalidRequest) {
		t.Errorf("an endless instruction: %v", err)
	}
}

func manyFields(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "f%d:p,", i)
	}
	return out.String()
}

// FuzzInstruction holds that every text is understood or refused with its place,
// and that nothing of a selector is lost or made up.
func FuzzInstruction(f *testing.F) {
	for _, seed := range []string{
		"", "selector: a; b", "xpath: //a[@b='c;d']", "table: #x", "json: {a: b, c: [d, {e: @f}]}", `json: {"a": 'b\'c'}`, "markdown", "article",
		"css: a@href", `css: .a\;b`, "selector: [x=\"", "json: [[[[[", "anything else",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := parseInstruction(text)
		if err != nil {
			if !errors.Is(err, fault.InvalidRequest) {
				t.Fatalf("%q: %v", text, err)
			}
			if at, ok := fault.Of(err).Data["position"].(int); ok && (at < 1 || at > utf8.RuneCountInString(text)+1) {
				t.Fatalf("%q: position %d", text, at)
			}
			return
		}
		for i, s := range in.all {
			if s.ID != i || s.CSS == "" && s.XPath == "" && s.Attr == "" && s.said != "." {
				t.Fatalf("%q: selection %d is %+v", text, i, s)
			}
			if strings.Contains(text, `\`) {
				continue // may have been unquoted
			}
			if !strings.Contains(text, s.said) || s.at < 1 || s.at > utf8.RuneCountInString(text) {
				t.Fatalf("%q: %+v", text, s)
			}
		}
		if (in.kind == KindJSON) != (in.shape != nil) {
			t.Fatalf("%q: %s with shape %v", text, in.kind, in.shape)
		}
	})
}
