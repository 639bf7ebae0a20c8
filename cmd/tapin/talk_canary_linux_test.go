package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf16"
)

// absent checks that words are nowhere that tapin keeps or tells anything: not
// in its home, not in the chat, not in what the agent or the owner can read.
// Nor are they there in another form.
func (k *talk) absent(words ...string) {
	k.t.Helper()
	places := k.places()
	for _, found := range sightings(places, words...) {
		k.t.Error(found)
	}
	if len(places) < 30 {
		k.t.Errorf("only %d places were looked at", len(places))
	}
}

// sightings are where any of the words is, and in which form.
func sightings(places map[string]string, words ...string) (found []string) {
	for _, w := range words {
		for place, all := range places {
			for form, text := range forms(w) {
				if strings.Contains(all, text) {
					found = append(found, fmt.Sprintf("%s is in %s, %s", w, place, form))
					break // one spelling may be another's too
				}
			}
		}
	}
	return found
}

// places are everything that tapin keeps or tells, by where it is.
func (k *talk) places() map[string]string {
	k.t.Helper()
	places := map[string]string{"the updates": k.bot.Pending()}
	for _, m := range k.bot.Chat(theOwner) {
		places[fmt.Sprintf("message %d", m.ID)] = m.Text
		places[fmt.Sprintf("the picture of message %d", m.ID)] = string(m.Photo)
	}
	for _, who := range []string{"agent", "owner"} {
		for _, path := range []string{"/journal?recent=1000", "/handoffs", "/approvals", "/task-runs", "/inbox", "/todos", "/session/status", "/sessions", "/contexts", "/openapi.json"} {
			raw, err := json.Marshal(k.must(who, "GET", path, nil).body)
			if err != nil {
				k.t.Fatal(err)
			}
			places[who+" "+path] = string(raw)
		}
		metrics := k.stream(who, "/metrics")
		raw, err := io.ReadAll(metrics.Body)
		_ = metrics.Body.Close()
		if err != nil || !bytes.Contains(raw, []byte("# TYPE")) {
			k.t.Errorf("the metrics are %.100q, %v", raw, err)
		}
		places[who+" /metrics"] = string(raw)
		events := k.events(who)
		if !strings.Contains(events, "handoff.started") {
			k.t.Errorf("the %s hears of nothing: %.200q", who, events)
		}
		places[who+" /events"] = events
	}
	kept(k.home, places)
	return places
}

// kept are the files of a home, by their names.
func kept(home string, places map[string]string) {
	_ = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "run" {
			return fs.SkipDir // the browser's own
		}
		if err == nil && d.Type().IsRegular() {
			raw, _ := os.ReadFile(path)
			places[path] = string(raw)
		}
		return nil
	})
}

// listed are the command lines and environments of the processes of a home, as
// every program of this user can read them.
func listed(home string, places map[string]string) (processes int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		command, err := os.ReadFile(line)
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(line), "environ"))
		if err != nil || !bytes.Contains(command, []byte(home)) && !bytes.Contains(environment, []byte(home)) {
			continue
		}
		processes++
		places["the command line "+line] = string(command)
		places["the environment of "+line] = string(environment)
	}
	return processes
}

// forms are how a text may look.
func forms(text string) map[string]string {
	escaped, _ := json.Marshal(text) // a text always encodes
	var percent, numbers strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&percent, "%%%02X", text[i])
	}
	var little, big []byte
	for _, u := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&numbers, `\u%04x`, u)
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u)) //nolint:gosec // its bytes
	}
	all := map[string]string{
		"as it is": text, "in JSON": string(escaped[1 : len(escaped)-1]), "in JSON's numbers": numbers.String(),
		"percent-encoded": percent.String(), "as of a form": url.QueryEscape(text), "as of a path": url.PathEscape(text),
		"in UTF-16LE": string(little), "in UTF-16BE": string(big),
	}
	// In the middle of something base64 is moved by what stands before, and both
	// ends are spoiled.
	for shift := range 3 {
		whole := base64.StdEncoding.EncodeToString(append(make([]byte, shift), text...))
		part := whole[(shift*8+5)/6 : (shift+len(text))*8/6]
		all[fmt.Sprintf("in base64 moved by %d", shift)] = part
		all[fmt.Sprintf("in the other base64 moved by %d", shift)] = strings.NewReplacer("+", "-", "/", "_").Replace(part)
	}
	return all
}

// events is the feed, from the oldest event to the newest one of now, as a
// reader gets it over HTTP.
func (k *talk) events(who string) string {
	k.t.Helper()
	newest := k.stream(who, "/events")
	_ = newest.Body.Close()
	last := newest.Header.Get("Last-Event-ID")
	if last == "" || last == "0" {
		return ""
	}
	feed := k.stream(who, "/events?after=0")
	defer func() { _ = feed.Body.Close() }()
	var all strings.Builder
	lines, reached := bufio.NewReader(feed.Body), false
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			k.t.Fatalf("the feed ends before %s: %v", last, err)
		}
		all.WriteString(line)
		if reached = reached || line == "id: "+last+"\n"; reached && line == "\n" {
			return all.String()
		}
	}
}
