package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"tapin/internal/browser/browsertest"
	"testing"
)

// mirror shows the cookies it is sent, and sets those it is asked to.
func mirror(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/cookies/set" {
		for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
			http.SetCookie(w, &http.Cookie{Name: name, Value: r.URL.Query().Get(name), Path: "/"})
		}
		http.Redirect(w, r, "/cookies", http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprint(w, `<!doctype html><title>Mirror</title><ul>`)
	for _, c := range r.Cookies() {
		_, _ = fmt.Fprintf(w, "<li>cookie %s is %s", c.Name, c.Value)
	}
	_, _ = fmt.Fprint(w, `</ul><pre></pre><button onclick="localStorage.cart='canary-cart-31'; localStorage.b='2'; sessionStorage.s='1'; show()">Keep</button>
<script>function show() { document.querySelector('pre').textContent = 'stored ' + Object.keys(localStorage).sort().join(' ') }; show()</script>`)
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// steady is an envelope without what changes with the time.
func steady(t *testing.T, envelope any) string {
	t.Helper()
	e := maps.Clone(envelope.(map[string]any))
	delete(e, "capturedAt")
	delete(e, "integrity")
	return asJSON(t, e)
}

// The checklist for portable logins, step by step and by MCP alone: two homes,
// two browsers, and a kill of all of the first between two exports.
func TestTheContextChecklistHoldsByMCPAlone(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	a := newDesk(t, http.HandlerFunc(mirror))
	b := newHome(t, a.site)
	from, into := a.agent(), b.agent()
	sees := func(h *host, wants ...string) { // what begins with ! is not there
		t.Helper()
		h.do("browser_navigate", map[string]any{"url": a.site.URL + "/cookies"})
		text, _ := h.do("browser_snapshot", nil)
		for _, want := range wants {
			if no := strings.HasPrefix(want, "!"); strings.Contains(text, strings.TrimPrefix(want, "!")) == no {
				t.Errorf("want %s: %s", want, text)
			}
		}
	}

	from.do("browser_navigate", map[string]any{"url": a.site.URL + "/cookies/set?user=alice&session=abc123"})
	from.do("browser_click", map[string]any{"text": "Keep"})
	sees(from, "cookie session is abc123", "cookie user is alice", "stored b cart")
	_, first := from.do("oc_context_export", map[string]any{"origin": a.site.URL, "includeStorage": true})
	envelope := first["envelope"].(map[string]any)
	var names []string
	for _, c := range envelope["cookies"].([]any) {
		names = append(names, c.(map[string]any)["name"].(string)+"="+c.(map[string]any)["value"].(string))
	}
	digest, _ := envelope["integrity"].(string)
	if !slices.Equal(names, []string{"session=abc123", "user=alice"}) || !hexDigest.MatchString(digest) || envelope["origin"] != a.site.URL || envelope["version"] != 1.0 {
		t.Errorf("the envelope is %v", envelope)
	}
	if envelope["userAgent"] != nil || envelope["httpAuth"] != nil {
		t.Errorf("nobody asked for all of %v", envelope)
	}

	// Everything of the first is killed; the same state gives the same envelope.
	a.kill("daemon_pid", "sidecar_pid")
	_, second := from.do("oc_context_export", map[string]any{"origin": a.site.URL})
	if was, is := steady(t, envelope), steady(t, second["envelope"]); was != is {
		t.Errorf("the first export is\n%s\nthe second\n%s", was, is)
	}

	// By default nothing is carried: the other browser knows nothing of it. What
	// it has of its own is there to be replaced.
	sees(into, "!cookie ", "!alice", "!cart")
	into.do("browser_navigate", map[string]any{"url": a.site.URL + "/cookies/set?mine=1"})

	// A changed envelope is refused, and changes nothing.
	for name, change := range map[string]func(map[string]any){
		"another user":       func(e map[string]any) { e["cookies"].([]any)[1].(map[string]any)["value"] = "mallory" },
		"another origin":     func(e map[string]any) { e["origin"] = "http://127.0.0.1:1" },
		"another time":       func(e map[string]any) { e["capturedAt"] = 1 },
		"more storage":       func(e map[string]any) { e["localStorage"].(map[string]any)["x"] = "y" },
		"no digest":          func(e map[string]any) { e["integrity"] = strings.Repeat("0", 64) },
		"storage taken away": func(e map[string]any) { delete(e, "localStorage") },
	} {
		forged := clone(t, envelope)
		change(forged)
		data := into.refused("INTEGRITY_MISMATCH", "oc_context_import", map[string]any{"envelope": forged})
		if said, _ := data["integrityError"].(string); data["ok"] != false || said == "" {
			t.Errorf("%s is refused with %v", name, data)
		}
	}
	sees(into, "cookie mine is 1", "!alice", "!mallory", "!cart")

	// The true one replaces what was there, all of it, and survives a kill.
	_, done := into.do("oc_context_import", map[string]any{"envelope": envelope})
	if done["ok"] != true || done["appliedCookies"] != 2.0 || done["appliedStorageKeys"].(float64) < 2 {
		t.Errorf("the import tells %v", done)
	}
	// The first question afterwards is one that may be asked twice: it may leave
	// on a connection of which nobody has noticed yet that it broke.
	b.kill("sidecar_pid")
	_, third := into.do("oc_context_export", nil)
	if was, is := steady(t, envelope), steady(t, third["envelope"]); was != is {
		t.Errorf("what was taken over is\n%s\nnot\n%s", is, was)
	}
	sees(into, "cookie session is abc123", "cookie user is alice", "!mine", "stored b cart")

	// Both journals tell of it with the origin, and with nothing that was carried.
	for _, h := range []*host{from, into} {
		_, journal := h.do("oc_journal", map[string]any{"recent": 200})
		told := map[string]bool{}
		for _, e := range journal["entries"].([]any) {
			entry := e.(map[string]any)
			if entry["origin"] == a.site.URL {
				told[entry["what"].(string)] = true
			}
		}
		want := "context.export"
		if h == into {
			want = "context.import"
		}
		if !told[want] {
			t.Errorf("no %s with its origin in the journal: %v", want, told)
		}
		for _, carried := range []string{"abc123", "alice", "canary-cart-31"} {
			if strings.Contains(asJSON(t, journal), carried) {
				t.Errorf("the journal has %s", carried)
			}
		}
	}
	for _, w := range []*desk{a, b} {
		if places := w.found("canary-cart-31"); !slices.Equal(places, []string{toAgent}) {
			t.Errorf("what was carried is in %v", places)
		}
	}
}

func clone(t *testing.T, from map[string]any) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(asJSON(t, from)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
