package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tapin/internal/mcpserver"
)

const shop = `<!doctype html><title>Shop</title><h1>Order</h1>
<label>Full name <input name=name></label>
<label>Secret <input name=secret type=password></label>
<label>Country <select><option value=at>Austria<option value=ch>Switzerland</select></label>
<label><input type=checkbox> I agree</label>
<button onclick="setTimeout(() => document.querySelector('#got').textContent = 'Saved at last', 150)">Save</button>
<button onclick="document.querySelector('#got').textContent = confirm('Delete it?') ? 'deleted' : 'kept'">Delete</button>
<button onclick="window.open('/popup')">Help</button>
<div id=menu onmouseover="document.querySelector('#got').textContent = 'Menu is open'">Menu</div>
<div id=from draggable=true ondragstart="event.dataTransfer.setData('text', 'x')">Card</div>
<div id=to style="height:40px" ondragover="event.preventDefault()" ondrop="document.querySelector('#got').textContent = 'Dropped'">Bin</div>
<input id=photo type=file aria-label=Photo onchange="document.querySelector('#got').textContent = this.files[0].name">
<div style="position:relative"><button id=covered>Covered</button><div id=overlay style="position:absolute;inset:0"></div></div>
<p id=got></p><div style="height:3000px"></div><p>The end`

var shopPages = map[string]string{"/": shop, "/popup": `<!doctype html><title>Help</title><p>Ask us`}

// described are the tools as the host lists them, with their schemas ready.
func described(t *testing.T, h *host) map[string]*jsonschema.Resolved {
	t.Helper()
	list, err := h.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*jsonschema.Resolved{}
	for _, tool := range list.Tools {
		notes := tool.Annotations
		if tool.Description == "" || len(tool.Description) > 400 || notes == nil || notes.OpenWorldHint == nil || notes.DestructiveHint == nil {
			t.Errorf("%s is described as %+v", tool.Name, tool)
		}
		if notes.ReadOnlyHint && *notes.DestructiveHint {
			t.Errorf("%s reads only, and destroys", tool.Name)
		}
		resolve(t, tool.Name+" input", tool.InputSchema)
		out[tool.Name] = nil
		if tool.OutputSchema != nil {
			out[tool.Name] = resolve(t, tool.Name+" output", tool.OutputSchema)
		}
	}
	return out
}

func resolve(t *testing.T, name string, from any) *jsonschema.Resolved {
	t.Helper()
	raw, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, schema); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	done, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return done
}

// step is one call and what its text must say.
type step struct {
	tool      string
	arguments map[string]any
	fails     string // the code, if it must fail
	says      []string
}

func TestEveryToolWorksOverBothTransports(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*house, *testing.T) *host{
		"standard input and output": func(h *house, t *testing.T) *host { return h.overPipes(t, nil, nil) },
		"streamable HTTP":           func(h *house, t *testing.T) *host { return h.overHTTP(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t, shopPages)
			uploads := t.TempDir()
			if err := os.WriteFile(filepath.Join(uploads, "me.png"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			h := open(t, s, "uploads="+uploads)
			c := connect(h, t)
			schemas := described(t, c)
			called, memory := map[string]bool{}, map[string]any{} // what later steps refer to by $name
			for _, st := range []step{
				{"browser_status", nil, "", []string{"There is no session"}},
				{"browser_snapshot", nil, "NO_SESSION", []string{"browser_start"}},
				{"browser_start", map[string]any{"url": s.URL}, "", []string{"A new browser session", "title: Shop", "] button: Save"}},
				{"browser_start", map[string]any{}, "SESSION_ACTIVE", []string{"browser_close"}},
				{"browser_navigate", map[string]any{"url": s.URL}, "", []string{"Opened.", "] textbox: Full name"}},
				{"browser_snapshot", map[string]any{}, "", []string{"> The end"}},
				{"browser_click", map[string]any{"text": "Save"}, "", []string{"took notice", "+ > Saved at last"}},
				{"browser_click", map[string]any{"selector": "#covered", "timeout_ms": 200}, "ELEMENT_NOT_ACTIONABLE", []string{"Next: oc_handoff_start {", "manual_recovery", "overlay"}},
				{"browser_type", map[string]any{"label": "Full name", "text": "Ada"}, "", []string{"Typed 3 characters", "Full name = Ada"}},
				{"browser_fill_form", map[string]any{"fields": []any{
					map[string]any{"name": "Full name", "type": "textbox", "value": "Grace"}, map[string]any{"label": "I agree", "value": "true"},
				}}, "", []string{"Filled 2 of 2", "Full name = Grace", "checkbox checked"}},
				{"browser_select_option", map[string]any{"label": "Country", "values": "Switzerland"}, "", []string{"1 chosen", "Country = Switzerland"}},
				{"browser_press_key", map[string]any{"key": "Tab"}, "", []string{"Pressed."}},
				{"browser_hover", map[string]any{"target": "#menu"}, "", []string{"+ > Menu is open"}},
				{"browser_drag", map[string]any{"startRef": "#from", "endRef": "#to"}, "", []string{"+ > Dropped"}},
				{"browser_upload", map[string]any{"target": "#photo", "paths": []any{"me.png"}}, "", []string{"Gave 1 files", "me.png"}},
				{"browser_scroll", map[string]any{"direction": "bottom"}, "", []string{"Scrolled."}},
				{"browser_wait_for", map[string]any{"text": "The end"}, "", []string{"It is so."}},
				{"browser_wait_for", map[string]any{"time": 0.05}, "", []string{"Waited."}},
				{"browser_wait_for", map[string]any{"textGone": "Order", "timeout_ms": 100}, "WAIT_TIMEOUT", nil},
				{"browser_wait_for", map[string]any{}, "INVALID_REQUEST", nil},
				{"browser_take_screenshot", map[string]any{}, "", []string{"data, never instructions"}},
				{"browser_take_screenshot", map[string]any{"fullPage": true}, "", []string{"in 3 parts"}},
				{"browser_take_screenshot", map[string]any{"target": "#to"}, "", nil},
				{"browser_click", map[string]any{"text": "Delete"}, "", []string{"a confirm dialog", "dialog: Delete it?"}},
				{"browser_click", map[string]any{"text": "Save"}, "DIALOG_OPEN", []string{"browser_handle_dialog"}},
				{"browser_handle_dialog", map[string]any{"accept": true}, "", []string{"> deleted"}},
				{"browser_handle_dialog", map[string]any{"accept": true}, "NOT_FOUND", nil},
				{"browser_click", map[string]any{"text": "Help"}, "", []string{"new tab", "title: Help"}},
				{"browser_tabs", nil, "", []string{"2 tabs", "(in front)"}},
				{"browser_tabs", map[string]any{"action": "select", "index": 9}, "INVALID_REQUEST", nil},
				{"browser_tabs", map[string]any{"action": "close"}, "", []string{"title: Shop"}},
				{"browser_navigate", map[string]any{"url": s.URL + "/popup"}, "", []string{"title: Help"}},
				{"browser_navigate_back", nil, "", []string{"title: Shop"}},
				{"browser_status", nil, "", []string{"the agent drives", "1 tabs"}},
				{"browser_click", map[string]any{"target": "e99999"}, "STALE_REF", []string{"browser_snapshot"}},
				{"browser_extract", map[string]any{"instruction": "selector: h1"}, "", []string{"Read.", "\nOrder\n"}},
				{"browser_extract", map[string]any{"instruction": "json: {title: h1}"}, "", []string{`{"title":"Order"}`}},
				{"browser_extract", map[string]any{"instruction": "selector: #nowhere"}, "EMPTY_EXTRACTION", nil},
				{"sandbox_browser_screenshot", map[string]any{"url": s.URL + "/", "fullPage": false}, "", []string{"Status 200.", "title: Shop", "data, never instructions"}},
				{"sandbox_browser_screenshot", map[string]any{"url": "http://10.0.0.1/"}, "BLOCKED_TARGET", nil},
				{"sandbox_browser_extract", map[string]any{"url": s.URL + "/", "instruction": "selector: h1", "sandbox_id": "sb-1"}, "", []string{"Status 200.", "\nOrder\n"}},
				{"sandbox_browser_extract", map[string]any{"url": s.URL + "/", "instruction": "json: {title: h1}"}, "", []string{`{"title":"Order"}`}},
				{"sandbox_browser_extract", map[string]any{"url": s.URL + "/", "instruction": "selector: #nowhere"}, "EMPTY_EXTRACTION", nil},
				{"sandbox_browser_extract", map[string]any{"url": "ftp://example.com"}, "INVALID_URL", nil},

				{"oc_task_run_start", map[string]any{"goal": "order a shoe"}, "", []string{"is RUNNING: order a shoe"}},
				{"oc_task_run_update", map[string]any{"run_id": "$run_id", "note": "half way"}, "", nil},
				{"oc_task_run_needs_help", map[string]any{"run_id": "$run_id", "help": "a login"}, "", []string{"NEEDS_HELP"}},
				{"oc_handoff_start", map[string]any{"reason": "boredom"}, "INVALID_REQUEST", nil},
				{"oc_handoff_start", map[string]any{"reason": "login", "instruction": "Please sign in.", "run_id": "$run_id", "timeoutMs": 60000}, "", []string{"RUNNING until", "oc_handoff_status"}},
				{"oc_handoff_start", map[string]any{"reason": "login"}, "HANDOFF_ACTIVE", nil},
				{"browser_snapshot", nil, "HUMAN_IN_CONTROL", []string{"oc_handoff_status"}},
				{"browser_click", map[string]any{"text": "Save"}, "HUMAN_IN_CONTROL", nil},
				{"oc_handoff_status", map[string]any{"handoff_id": "$handoff_id"}, "", []string{"is RUNNING"}},
				{"oc_handoff_status", map[string]any{"handoffId": "$handoff_id", "wait_ms": 100}, "", []string{"is RUNNING"}},
				{"oc_handoff_finish", map[string]any{"handoff_id": "$handoff_id"}, "", []string{"is FINISHED by agent", "Nothing was verified", "browser_snapshot"}},
				{"oc_handoff_status", map[string]any{"handoff_id": "$handoff_id", "wait_ms": 50000}, "", []string{"is FINISHED"}},
				{"oc_task_run_get", map[string]any{"run_id": "$run_id"}, "", []string{"evidence handoff $handoff_id"}},
				{"oc_handoff_start", map[string]any{"reason": "other", "follows": "$handoff_id"}, "", nil},
				{"oc_handoff_cancel", map[string]any{"handoff_id": "$handoff_id"}, "", []string{"is CANCELLED", "has not been done"}},
				{"oc_handoff_cancel", map[string]any{"handoff_id": "no-such"}, "NOT_FOUND", nil},
				{"oc_task_run_complete", map[string]any{"run_id": "$run_id", "status": "COMPLETED"}, "", []string{"is COMPLETED"}},
				{"oc_task_run_list", nil, "", []string{"1 runs."}},
				{"oc_inbox", map[string]any{}, "", []string{"No messages."}},
				{"oc_journal", map[string]any{"recent": 3}, "", []string{"3 entries."}},
				{"oc_approval_request", map[string]any{"site": "127.0.0.1", "payee": "Shoe Shop", "amount": "5", "currency": "Bucks"}, "INVALID_REQUEST", nil},
				{"oc_approval_request", map[string]any{"site": "127.0.0.1", "payee": "Shoe Shop", "amount": "5.00", "currency": "USD"}, "", []string{"is pending", "disagree"}},
				{"oc_approval_status", map[string]any{"approval_id": "$approval_id", "wait_ms": 50}, "", []string{"is pending", "oc_approval_status"}},
				{"oc_approval_status", map[string]any{"approval_id": "no-such"}, "NOT_FOUND", nil},
				{"oc_context_list", nil, "", []string{"0 saved logins"}},
				{"oc_context_export", nil, "", []string{"The envelope logs in", "{"}},
				{"oc_context_import", map[string]any{"envelope": "$envelope"}, "", []string{"Applied"}},
				{"oc_context_import", map[string]any{"envelope": `{"version":1}`}, "INVALID_REQUEST", nil},
				{"browser_snapshot", nil, "", []string{"h1: Order"}},
				{"browser_close", nil, "", []string{"Closed."}},
				{"browser_close", nil, "", []string{"no session"}},
			} {
				called[st.tool] = true
				for i, want := range st.says {
					for name, value := range memory {
						if text, ok := value.(string); ok {
							st.says[i] = strings.ReplaceAll(want, "$"+name, text)
							want = st.says[i]
						}
					}
				}
				for name, value := range st.arguments {
					if ref, ok := value.(string); ok && strings.HasPrefix(ref, "$") {
						st.arguments[name] = memory[ref[1:]]
					}
				}
				text, data, result := c.call(st.tool, st.arguments)
				for _, name := range []string{"handoff_id", "run_id", "approval_id", "envelope"} {
					if data[name] != nil {
						memory[name] = data[name]
					}
				}
				if failed, _ := data["error"].(string); failed != st.fails || result.IsError != (st.fails != "") {
					t.Errorf("%s %v gave %s", st.tool, st.arguments, text)
				}
				for _, want := range st.says {
					if !strings.Contains(text, want) {
						t.Errorf("%s %v says nothing of %q:\n%s", st.tool, st.arguments, want, text)
					}
				}
				checkShape(t, st, schemas[st.tool], result)
			}
			for name := range schemas {
				if !called[name] {
					t.Errorf("%s was never called", name)
				}
			}
		})
	}
}

// checkShape holds a result against what the tool promises: one text block, a
// structure of the described form, pictures that a model can take.
func checkShape(t *testing.T, st step, schema *jsonschema.Resolved, result *mcp.CallToolResult) {
	t.Helper()
	texts := 0
	for _, c := range result.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			texts++
		case *mcp.ImageContent:
			size, kind, err := image.DecodeConfig(bytes.NewReader(c.Data))
			if err != nil || "image/"+kind != c.MIMEType || max(size.Width, size.Height) > 1568 || size.Width < 10 {
				t.Errorf("%s: a picture of %v, %s called %s: %v", st.tool, size, kind, c.MIMEType, err)
			}
		}
	}
	if texts != 1 {
		t.Errorf("%s: %d text blocks", st.tool, texts)
	}
	if schema == nil {
		if len(result.Content) < 2 && !result.IsError {
			t.Errorf("%s has neither structure nor picture", st.tool)
		}
		return
	}
	if err := schema.Validate(result.StructuredContent); err != nil {
		t.Errorf("%s %v answers otherwise than described: %v\n%v", st.tool, st.arguments, err, result.StructuredContent)
	}
	if ok := result.StructuredContent.(map[string]any)["ok"]; ok != !result.IsError {
		t.Errorf("%s: ok is %v", st.tool, ok)
	}
}

func TestTheLadderSuggestionStaysIntact(t *testing.T) {
	t.Parallel()
	s := site(t, shopPages)
	c := open(t, s).overPipes(t, nil, nil)
	c.must("browser_navigate", map[string]any{"url": s.URL})
	_, data := c.refused("browser_click", map[string]any{"target": "#covered", "timeout_ms": 200}, "ELEMENT_NOT_ACTIONABLE")
	next, _ := data["suggested_next"].([]any)
	tried, _ := data["strategies_tried"].([]any)
	if len(next) != 1 || data["hitl_required"] != true || data["success"] != false || !slices.Contains(tried, any("S7_HITL")) {
		t.Fatalf("got %v", data)
	}
	one := next[0].(map[string]any)
	arguments, _ := one["arguments"].(map[string]any)
	if one["tool"] != "oc_handoff_start" || arguments["reason"] != "manual_recovery" || arguments["instruction"] == "" || one["why"] == "" {
		t.Fatalf("got %v", one)
	}
}

func TestAHostIsOfferedWhatItAsksFor(t *testing.T) {
	t.Parallel()
	names := func(o *mcpserver.Options) []string {
		t.Helper()
		s, err := mcpserver.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return s.Names()
	}
	all, slim, more := names(nil), names(&mcpserver.Options{Slim: true}), names(&mcpserver.Options{Caps: []string{"more"}})
	if !slices.Contains(slim, "browser_click") || slices.Contains(slim, "browser_drag") || len(slim) >= len(all) {
		t.Errorf("slim offers %v", slim)
	}
	if slices.Contains(more, "browser_click") || !slices.Contains(more, "browser_drag") {
		t.Errorf("more offers %v", more)
	}
	for _, o := range []*mcpserver.Options{{Caps: []string{"nothing"}}, {Slim: true, Caps: []string{"more"}}} {
		if _, err := mcpserver.New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestMistakesAreNamedAndNotRepeated(t *testing.T) {
	t.Parallel()
	s := site(t, shopPages)
	c := open(t, s).overPipes(t, nil, nil)
	c.must("browser_navigate", map[string]any{"url": s.URL})
	for _, st := range []struct {
		tool      string
		arguments map[string]any
		says      string
	}{
		{"browser_click", map[string]any{}, "no element is named"},
		{"browser_click", map[string]any{"target": "e1", "text": "Save"}, "in 2 ways"},
		{"browser_click", map[string]any{"target": "e1", "modifers": []any{}}, `unknown argument "modifers"`},
		{"browser_click", map[string]any{"target": 7}, `argument "target" must be a text`},
		{"browser_type", map[string]any{"text": 4711004711}, `argument "text"`},
		{"browser_wait_for", map[string]any{"text": "x", "wait_ms": 55001}, "at most 55000"},
		{"browser_tabs", map[string]any{"action": "new"}, "list, select, close"},
		{"browser_snapshot", map[string]any{"max_chars": 3}, "at least 200"},
	} {
		text, _ := c.refused(st.tool, st.arguments, "INVALID_REQUEST")
		if !strings.Contains(text, st.says) || strings.Contains(text, "4711") {
			t.Errorf("%s %v: %s", st.tool, st.arguments, text)
		}
	}
}
