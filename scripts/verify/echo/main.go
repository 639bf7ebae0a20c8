// Command echo is a site that shows what a browser sent and what it has stored.
// It owns one loopback port, whose number it prints; "echo key" prints a new vault key instead.
// It must never be run for anything but a verification: it repeats every secret it gets.
package main

import (
	"encoding/json"
	"fmt"
	"html"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"filippo.io/age"
)

// shows writes down the keys of localStorage where text can be read out.
const shows = `<pre id=keys></pre><script>
for (const [k, v] of new URLSearchParams(location.search)) localStorage.setItem(k, v);
keys.textContent = JSON.stringify(Object.fromEntries(Object.entries(localStorage).sort()));
</script>`

func main() {
	if len(os.Args) > 1 && os.Args[1] == "key" {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(key)
		return
	}
	http.HandleFunc("/cookies/set", func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.URL.Query() {
			http.SetCookie(w, &http.Cookie{Name: name, Value: values[0], Path: "/"}) //nolint:gosec // as plain as the site that this stands for
		}
		http.Redirect(w, r, "/cookies", http.StatusFound)
	})
	http.HandleFunc("/cookies", func(w http.ResponseWriter, r *http.Request) {
		sent := map[string]string{}
		for _, c := range r.Cookies() {
			sent[c.Name] = c.Value
		}
		raw, err := json.Marshal(map[string]any{"cookies": sent})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, "<!doctype html><title>cookies</title><pre>%s</pre>", html.EscapeString(string(raw)))
	})
	http.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "<!doctype html><title>keys</title>"+shows)
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "<!doctype html><title>echo</title>")
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // it was asked for
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}
