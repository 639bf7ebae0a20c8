package canary

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// siege is a page of hostile vectors that stands at the gate, with its windows,
// while something is done to tapin.
type siege struct {
	rows    []*row
	hold    bool         // the page is not complete before the gate opens: a one-shot waits for it
	waits   int          // how many of it are at the gate
	windows map[int]bool // those that are ready, by their rows
}

// besiege makes a page of those vectors, and tells its address.
func (w *world) besiege(rows []*row, hold bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := strconv.Itoa(len(w.sieges))
	w.sieges[name] = &siege{rows: rows, hold: hold}
	return w.site.URL + "/besieged?" + url.Values{"name": {name}}.Encode()
}

// besieged reports whether all of them stand at the gate with their windows.
func (w *world) besieged() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sieges {
		if s.waits != 1 || slices.ContainsFunc(s.rows, func(r *row) bool { return r.window && r.skip == "" && !s.windows[r.n] }) {
			return false
		}
	}
	return true
}

func (w *world) handleSieges(mux *http.ServeMux) {
	named := func(in *http.Request) *siege {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.sieges[in.URL.Query().Get("name")]
	}
	mux.HandleFunc("GET /besieged", func(out http.ResponseWriter, in *http.Request) {
		s := named(in)
		w.mu.Lock()
		s.windows = map[int]bool{} // those of an earlier attempt are gone
		w.mu.Unlock()
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(out, s.page(in.URL.RawQuery))
	})
	mux.HandleFunc("GET /wait", func(_ http.ResponseWriter, in *http.Request) {
		s := named(in)
		count := func(by int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			s.waits += by
		}
		count(1)
		defer count(-1)
		select {
		case <-w.gate:
		case <-in.Context().Done():
		}
	})
	mux.HandleFunc("GET /later/{row}", func(out http.ResponseWriter, in *http.Request) {
		n, _ := strconv.Atoi(in.PathValue("row"))
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(out, `<!doctype html><title>later</title><script>
			new BroadcastChannel("gate").onmessage = () => { location = %q }; fetch("/ready/%d?%s", {method: "POST"})</script>`, w.rows[n].page(), n, in.URL.RawQuery)
	})
	mux.HandleFunc("POST /ready/{row}", func(_ http.ResponseWriter, in *http.Request) {
		n, _ := strconv.Atoi(in.PathValue("row"))
		s := named(in)
		w.mu.Lock()
		defer w.mu.Unlock()
		s.windows[n] = true
	})
}

// page opens its windows at once, and has them begin when the gate opens: the
// browser would not hold so many connections to one host. A window whose own
// windows wait to be seen to waits itself, with all that share its process.
func (s *siege) page(query string) string {
	var frames, windows []string
	for _, r := range s.rows {
		switch {
		case r.skip != "":
		case r.window:
			features := "popup,width=300,height=200"
			if r.opens {
				features = "noopener,width=300,height=200"
			}
			windows = append(windows, fmt.Sprintf(`open("/later/%d?%s", "", %q)`, r.n, query, features))
		default:
			frames = append(frames, strconv.Quote(r.page()))
		}
	}
	begin := `<script>fetch("/wait?` + query + `").then(go)</script>`
	if s.hold {
		begin = `<script src="/wait?` + query + `"></script><script>go()</script>`
	}
	return fmt.Sprintf(`<!doctype html><title>besieged</title><body><script>
%s
const go = () => {
	new BroadcastChannel("gate").postMessage("open")
	for (const at of [%s]) { const f = document.createElement("iframe"); f.src = at; document.body.append(f) }
}
</script>`, strings.Join(windows, "\n"), strings.Join(frames, ",")) + begin
}
