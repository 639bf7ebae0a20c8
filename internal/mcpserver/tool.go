package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

// The groups of tools. A host is offered all of them unless it asks for less.
const (
	groupBrowser = "browser" // what every page needs
	groupMore    = "more"    // what some pages need
	groupHandoff = "handoff" // the owner at the page
	groupOneShot = "oneshot" // a page for one call, beside the session
	groupStorage = "storage" // logins
	groupTasks   = "tasks"   // runs, and what was done
)

// nature is what a call may do to the world, for the host's own judgement.
type nature int

const (
	reads   nature = iota // changes nothing
	steers                // changes what is shown; again is the same
	changes               // may change something, here or at the site
	ends                  // takes something away; again is the same
)

// tool is one row of the table: everything there is to know about it.
type tool struct {
	name   string
	title  string
	group  string
	nature nature
	doc    string
	also   []string     // names by which agents may know it
	input  reflect.Type // of the arguments
	output reflect.Type // nil for pictures, which have no structured form
	run    func(context.Context, *call, json.RawMessage) (answer, error)
}

// call is one call of a tool on its way.
type call struct {
	line *line
	seen *view // what this connection knows of the pages
}

// answer is what a tool gives back: words of our own, what the page says, the
// same as a structure, pictures.
type answer struct {
	words    string
	page     string // fenced
	data     any
	pictures []picture
}

// row makes a tool of a function over its typed arguments. The answer's words
// are ours alone; whatever a page says goes into its page.
func row[In, Out any](name, title, group string, n nature, doc string, run func(context.Context, *call, *In) (string, *Out, error)) *tool {
	return &tool{
		name: name, title: title, group: group, nature: n, doc: doc,
		input: reflect.TypeFor[In](), output: reflect.TypeFor[Out](),
		run: func(ctx context.Context, c *call, raw json.RawMessage) (answer, error) {
			in := new(In)
			if err := decode(raw, in); err != nil {
				return answer{}, err
			}
			words, out, err := run(ctx, c, in)
			if err != nil {
				return answer{}, err
			}
			a := answer{words: words, data: out}
			if shown, ok := any(out).(interface{ content() string }); ok {
				a.page = shown.content()
			}
			return a, nil
		},
	}
}

// known adds names by which agents may know the tool.
func (t *tool) known(as ...string) *tool {
	t.also = as
	return t
}

// describe is the tool as the host lists it.
func (t *tool) describe() *mcp.Tool {
	yes, no := true, false
	notes := &mcp.ToolAnnotations{Title: t.title, OpenWorldHint: &yes, DestructiveHint: &no}
	switch t.nature {
	case reads:
		notes.ReadOnlyHint, notes.IdempotentHint = true, true
	case steers:
		notes.IdempotentHint = true
	case changes:
		notes.DestructiveHint = &yes // a click can delete an account
	case ends:
		notes.DestructiveHint, notes.IdempotentHint = &yes, true
	}
	d := &mcp.Tool{Name: t.name, Title: t.title, Description: t.doc, Annotations: notes, InputSchema: inputSchema(t.input)}
	if t.output != nil {
		d.OutputSchema = outputSchema(t.output)
	}
	return d
}

// call runs the tool for a host. Whatever goes wrong is an answer of the tool:
// only that reaches the agent.
func (t *tool) call(ctx context.Context, l *line, v *views, req *mcp.CallToolRequest) *mcp.CallToolResult {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	defer progress(ctx, req)()
	id := ""
	if req.Session != nil {
		id = req.Session.ID()
	}
	a, err := t.run(ctx, &call{line: l, seen: v.of(id)}, req.Params.Arguments)
	if err != nil {
		return failed(err)
	}
	return a.result()
}

// every is how often a host that asked for it hears that a call goes on.
const every = 5 * time.Second

// progress tells the host that a call goes on, until the returned function is called.
func progress(ctx context.Context, req *mcp.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer guard.Catch("MCP door")
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for began := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			passed := time.Since(began).Seconds()
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: passed, Total: callWithin.Seconds(), Message: fmt.Sprintf("still at it after %.0f s", passed),
			})
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (a answer) result() *mcp.CallToolResult {
	text := a.words
	if a.page != "" {
		text = strings.TrimSpace(text + "\n" + a.page)
	}
	result := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	for _, p := range a.pictures {
		result.Content = append(result.Content, &mcp.ImageContent{Data: p.bytes, MIMEType: p.mime})
	}
	if a.data == nil {
		return result
	}
	data, err := withOK(a.data)
	if err != nil {
		return failed(err)
	}
	result.StructuredContent = data
	return result
}

// quoting are failures whose details and hints may hold words of the page.
var quoting = map[fault.Code]bool{
	fault.ElementNotFound: true, fault.ElementNotActionable: true, fault.StaleRef: true, fault.DialogOpen: true,
	fault.NavigationFailed: true, fault.NavigationTimeout: true, fault.WaitTimeout: true, fault.NoFocusedField: true,
	fault.BlockedTarget: true, fault.EmptyExtraction: true, fault.NotFound: true, fault.ApprovalRequired: true,
}

// failed is an error as the answer of a tool: code, sentence and hint to read,
// and everything the sidecar said about it for machines.
func failed(err error) *mcp.CallToolResult {
	f := fault.Of(err)
	data := object{}
	for name, value := range f.Data {
		data[name] = value
	}
	details, hint, quoted := plain(f.Details(), maxWords), toolHint(f), ""
	if quoting[f.Code] {
		said := []string{details}
		if f.Hint != "" && f.Hint != f.Code.Hint() { // such as what a list has to choose from
			said = append(said, plain(f.Hint, maxWords))
			hint = toolHint(&fault.Error{Code: f.Code})
		}
		quoted = fence(strings.Join(said, "\n"))
		details = f.Code.Sentence()
		data["page"] = object{"content": quoted}
	}
	data["ok"], data["error"], data["details"], data["hint"] = false, string(f.Code), details, hint
	words := []string{fmt.Sprintf("%s: %s", f.Code, details)}
	if hint != "" {
		words = append(words, "Hint: "+hint)
	}
	suggested, lines := next(f)
	if suggested != nil {
		data["suggested_next"] = suggested
	}
	words = append(words, lines...)
	a := answer{words: strings.Join(words, "\n"), page: quoted}
	result := a.result()
	result.StructuredContent, result.IsError = data, true
	return result
}

// next are the suggested calls as they are to be made, and a line of each. Why
// the sidecar suggests them may quote the page: that stands in the fence, and
// here what is so of every such failure.
func next(f *fault.Error) (calls []any, lines []string) {
	list, _ := f.Data["suggested_next"].([]any)
	for _, s := range list {
		one, _ := s.(map[string]any)
		arguments, err := json.Marshal(one["arguments"])
		if err != nil || one["tool"] == nil {
			continue
		}
		calls = append(calls, object{"tool": one["tool"], "arguments": one["arguments"], "why": f.Code.Sentence()})
		lines = append(lines, fmt.Sprintf("Next: %v %s", one["tool"], arguments))
	}
	return calls, lines
}

// toolHint is the hint for one who has tools and no HTTP.
func toolHint(f *fault.Error) string {
	switch f.Code {
	case fault.NoSession:
		return "Start one with browser_start, or with browser_navigate and an address."
	case fault.SessionActive:
		return "Go on in it: browser_navigate opens an address there. browser_close ends it first."
	case fault.DialogOpen:
		return "Answer it with browser_handle_dialog; nothing else works until then."
	case fault.StaleRef:
		return "The page has changed: take a ref from a new browser_snapshot."
	case fault.HumanInControl:
		return "The owner is at the page. Wait with oc_handoff_status and wait_ms; do not try other ways in."
	case fault.ApprovalRequired:
		return "Ask with oc_approval_request, then repeat the click with its approval_id."
	case fault.Unauthorized:
		return "tapin's tokens have changed; start the MCP host again."
	}
	return plain(f.Advice(), maxWords)
}

// withOK is an answer with ok among its fields. It is written once: a page may be
// long.
func withOK(data any) (json.RawMessage, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	if string(raw) == "{}" || string(raw) == "null" {
		return json.RawMessage(`{"ok":true}`), nil
	}
	return slices.Concat([]byte(`{"ok":true,`), raw[1:]), nil
}
