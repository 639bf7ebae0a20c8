package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tapin/internal/testwait"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mind is a scripted agent. It knows the answers it was given and nothing else,
// and picks what to act on by what the outline calls it.
type mind struct {
	*host
	known      []string // lines of the page, as last told
	last       string   // the last answer
	calls      int
	characters int // of the calls and of the answers' text
	transcript io.Writer
}

var (
	refOf = regexp.MustCompile(`\[((?:f\d+)?e\d+)\] ([a-z]+)(?: [a-z ]+)?(?:: ([^|{]*))?`)
	told  = regexp.MustCompile(`(?s)<page [0-9]{12}>\n(.*)\n</page [0-9]{12}>`)
)

// hear takes an answer in.
func (m *mind) hear(tool string, arguments map[string]any, text string) {
	asked, err := json.Marshal(arguments)
	if err != nil {
		m.w.t.Fatal(err)
	}
	m.calls++
	m.characters += len(tool) + len(asked) + len(text)
	if raw, err := json.Marshal([]string{tool + string(asked), text}); err == nil {
		_, _ = m.transcript.Write(append(raw, '\n'))
	}
	m.last = text
	page := told.FindStringSubmatch(text)
	if page == nil {
		return
	}
	lines := strings.Split(page[1], "\n")
	if !strings.Contains(text, "Changes since your last look") {
		if !strings.Contains(text, "Nothing on the page has changed") {
			m.known = lines
		}
		return
	}
	for _, line := range lines {
		sign, rest, _ := strings.Cut(line, " ")
		if sign != "+" && sign != "~" && sign != "-" {
			continue
		}
		if ref := refOf.FindStringSubmatch(rest); ref != nil {
			m.known = without(m.known, "["+ref[1]+"]")
		}
		if sign != "-" {
			m.known = append(m.known, rest)
		}
	}
}

func without(lines []string, part string) (kept []string) {
	for _, line := range lines {
		if !strings.Contains(line, part) {
			kept = append(kept, line)
		}
	}
	return kept
}

// look finds an element by role and name, in a line that also says what is near.
func (m *mind) look(role, name string, near ...string) string {
	for _, line := range m.known {
		fits := true
		for _, word := range near {
			fits = fits && strings.Contains(line, word)
		}
		for _, found := range refOf.FindAllStringSubmatch(line, -1) {
			called, _, _ := strings.Cut(found[3], " = ")
			if fits && found[2] == role && strings.TrimSpace(called) == name {
				return found[1]
			}
		}
	}
	return ""
}

// at is look for what must be there, with a second look at the page if it is not known.
func (m *mind) at(role, name string, near ...string) string {
	m.w.t.Helper()
	if ref := m.look(role, name, near...); ref != "" {
		return ref
	}
	m.do("browser_snapshot", nil)
	ref := m.look(role, name, near...)
	if ref == "" {
		m.w.t.Fatalf("there is no %s %q:\n%s", role, name, strings.Join(m.known, "\n"))
	}
	return ref
}

func (m *mind) click(role, name string, near ...string) {
	m.w.t.Helper()
	m.do("browser_click", map[string]any{"target": m.at(role, name, near...)})
}

func (m *mind) write(role, name, text string) {
	m.w.t.Helper()
	m.do("browser_type", map[string]any{"target": m.at(role, name), "text": text})
}

// fill fills fields given as role, name and value.
func (m *mind) fill(fields ...[3]string) {
	m.w.t.Helper()
	var list []any
	for _, f := range fields {
		list = append(list, map[string]any{"target": m.at(f[0], f[1]), "value": f[2]})
	}
	m.do("browser_fill_form", map[string]any{"fields": list})
}

// tasks are what the agent is to do; what must have arrived at the site in the end.
var tasks = []struct {
	name, want string
	do         func(*mind)
}{
	{"text", "Ada Lovelace", func(m *mind) {
		m.fill([3]string{"textbox", "First name", "Ada"}, [3]string{"textbox", "Last name", "Lovelace"})
		m.click("button", "Save")
	}},
	{"select", "Courier!", func(m *mind) {
		m.do("browser_select_option", map[string]any{"target": m.at("combobox", "Delivery"), "values": []string{"Courier"}})
		m.click("button", "Choose")
	}},
	{"radio", "Aisle", func(m *mind) {
		m.click("radio", "Aisle")
		m.click("button", "Book")
	}},
	{"checkbox", "Basil,Olives", func(m *mind) {
		m.fill([3]string{"checkbox", "Olives", "true"}, [3]string{"checkbox", "Basil", "true"}, [3]string{"checkbox", "Send me news", "false"})
		m.click("button", "Order")
	}},
	{"date", "2031-05-17/2031-05-20", func(m *mind) {
		m.fill([3]string{"textbox", "Arrival", "2031-05-17"}, [3]string{"textbox", "Departure", "2031-05-20"})
		m.click("button", "Reserve")
	}},
	{"slider", "70", func(m *mind) {
		m.fill([3]string{"slider", "Volume", "70"})
		m.click("button", "Apply")
	}},
	{"combobox", "Vilnius", func(m *mind) {
		m.write("combobox", "City", "Vi")
		m.click("option", "Vilnius")
	}},
	{"menu", "Archive", func(m *mind) {
		m.click("button", "Actions")
		m.click("menuitem", "Archive")
	}},
	{"tabs", "Billing", func(m *mind) {
		m.click("tab", "Billing")
		m.click("button", "Download")
	}},
	{"modal", "deleted", func(m *mind) {
		m.click("button", "Delete account")
		m.click("button", "Yes, delete")
	}},
	{"upload", "invoice 7", func(m *mind) {
		m.do("browser_upload", map[string]any{"target": m.at("file", "Invoice"), "files": []string{"invoice.txt"}})
		m.click("button", "Send")
	}},
	{"table", "refund 1043", func(m *mind) { m.click("button", "Refund", "1043") }},
	{"pagination", "Item Q-77", func(m *mind) {
		for m.look("button", "Item Q-77") == "" {
			m.click("button", "Next")
		}
		m.click("button", "Item Q-77")
	}},
	{"drag", "Milk in Bought", func(m *mind) {
		m.do("browser_drag", map[string]any{"startTarget": m.at("button", "Milk card"), "endTarget": m.at("button", "Bought list")})
	}},
	{"iframe", "INV-9", func(m *mind) {
		m.write("textbox", "Reference", "INV-9")
		m.click("button", "Confirm")
	}},
	{"shadow", "SAVE10", func(m *mind) {
		m.write("textbox", "Coupon", "SAVE10")
		m.click("button", "Redeem")
	}},
	{"editable", "See you at noon", func(m *mind) {
		m.write("textbox", "Message", "See you at noon")
		m.click("button", "Send")
	}},
	{"infinite", "Entry 47", func(m *mind) {
		for n := 10; m.look("button", "Entry 47") == ""; n += 10 {
			m.do("browser_scroll", map[string]any{"target": m.at("button", "Entry "+strconv.Itoa(n))})
		}
		m.click("button", "Entry 47")
	}},
	{"search", "Blue kettle", func(m *mind) {
		m.write("searchbox", "Search", "kettle")
		m.do("browser_select_option", map[string]any{"target": m.at("combobox", "Colour"), "values": []string{"Blue"}})
		if m.look("link", "Red kettle") != "" {
			m.w.t.Errorf("what was filtered out is still told: %v", m.known)
		}
		m.click("link", "Blue kettle")
	}},
	{"wizard", "Acme in Chile", func(m *mind) {
		m.fill([3]string{"textbox", "Company", "Acme"}, [3]string{"combobox", "Country", "Chile"})
		m.click("button", "Continue")
		if !strings.Contains(m.last, "Are you a person?") {
			m.w.t.Fatalf("the second page is %s", m.last)
		}
		m.handOver()
		m.click("button", "Finish")
	}},
}

// handOver is what an agent does where a person is asked for; a second client is
// that person.
func (m *mind) handOver() {
	m.w.t.Helper()
	_, over := m.do("oc_handoff_start", map[string]any{"reason": "captcha", "instruction": "Please say that you are a person, and go on.", "task": "the form for Acme"})
	wait := map[string]any{"handoff_id": over["handoff_id"], "wait_ms": 55_000}
	waits := m.waiting("oc_handoff_status", wait)
	person := m.w.person()
	person.do("browser_click", map[string]any{"label": "I am a person"})
	person.do("browser_click", map[string]any{"text": "Go on"})
	person.do("oc_handoff_finish", map[string]any{"handoff_id": over["handoff_id"]})
	result := <-waits
	if result == nil {
		m.w.t.Fatal("the wait was cut off")
	}
	m.hear("oc_handoff_status", wait, result.Content[0].(*mcp.TextContent).Text)
	if !strings.Contains(m.last, "FINISHED by owner") || !strings.Contains(m.last, "go on with what you were at: the form for Acme") {
		m.w.t.Fatalf("the hand-off ended as %s", m.last)
	}
}

func TestAScriptedAgentDoesTwentyTasksByWhatThePageSays(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("the pages are shuffled by %d", seed)
	site := newWidgets(seed)
	w := newDesk(t, site)
	if err := os.MkdirAll(filepath.Join(w.home, "up"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "up", "invoice.txt"), []byte("invoice 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	transcript, err := os.Create(filepath.Join(t.ArtifactDir(), "transcript.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer transcript.Close()
	m := &mind{host: w.agent(), transcript: transcript}
	m.heard = m.hear
	var table strings.Builder
	calls, characters := 0, 0
	for _, task := range testwait.Some(8, tasks) {
		m.calls, m.characters, m.known = 0, 0, nil
		_, _ = fmt.Fprintf(transcript, "[%q]\n", task.name)
		m.do("browser_navigate", map[string]any{"url": w.site.URL + "/" + task.name})
		task.do(m)
		if !strings.Contains(m.last, "Recorded") {
			m.do("browser_wait_for", map[string]any{"text": "Recorded"})
		}
		site.mu.Lock()
		got := site.done[task.name]
		site.mu.Unlock()
		if got != task.want {
			t.Errorf("%s: %q arrived, not %q", task.name, got, task.want)
		}
		_, _ = fmt.Fprintf(&table, "%-11s %2d calls %5d\n", task.name, m.calls, m.characters/4)
		calls, characters = calls+m.calls, characters+m.characters
	}
	t.Logf("tokens, roughly: characters of calls and answers, divided by 4\n%s%-11s %2d calls %5d", table.String(), "all", calls, characters/4)
}
