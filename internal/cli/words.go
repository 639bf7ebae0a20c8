package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tapin/internal/event"
)

// sentences say an event in words. {name} stands for a member of its data;
// what is in [brackets] is left out if one in it is missing.
var sentences = map[string]string{
	event.SessionStarted:     "session {session_id} has begun[ ({provider})]",
	event.SessionRecovered:   "session {session_id} goes on after a restart",
	event.SessionReconnected: "session {session_id} has its browser back",
	event.SessionStopped:     "session {session_id} was stopped",
	event.SessionEnded:       "session {session_id} has ended by itself",
	"session.question":       "the page asks for something: {kind}[ ({dialog})][ ({name})][, {origin}]",
	"session.crash":          "a page has crashed",
	"session.download":       "a download: {state}",
	"session.tab_opened":     "a tab was opened",
	"session.tab_closed":     "a tab was closed",
	"session.popup_refused":  "a popup was refused: there are too many tabs",

	"handoff.started":      "a person is needed[: {reason}][ ({handoff_id})]",
	"handoff.reminded":     "the person was reminded[ ({handoff_id})]",
	"handoff.extended":     "the person has more time now[ ({handoff_id})]",
	"handoff.parked":       "the hand-off waits without a browser[ ({handoff_id})]",
	"handoff.resumed":      "the parked hand-off has a browser again[ ({handoff_id})]",
	event.HandoffFinished:  "the person is done, the agent goes on[ ({handoff_id})]",
	event.HandoffCancelled: "the hand-off was cancelled[ ({handoff_id})]",
	event.HandoffTimedOut:  "nobody came in time, the hand-off is over[ ({handoff_id})]",

	"approval.requested": "the agent asks to pay[ {amount} {currency}][ to {payee}]",
	"approval.approved":  "the payment was approved[ ({approval_id})]",
	"approval.denied":    "the payment was denied[ ({approval_id})]",
	"approval.expired":   "nobody answered about the payment in time[ ({approval_id})]",

	event.DaemonGaveUp: "tapin could not be kept running before: {details}",
	event.CrashLoop:    "{details}",
	event.RoomFailed:   "{details}",
	event.RoomGivenUp:  "{details}",
	event.RoomLeftOut:  "{details}",
	event.RoomBack:     "{details}",
	event.WakeFailed:   "{details}",
	event.WakeMissed:   "{details}",
}

// inWords is an event as a person understands it. One that has no sentence yet
// is told by its name and its ids.
func inWords(e event.Event) string {
	var data map[string]any
	_ = json.Unmarshal(e.Data, &data) // without data the sentence has less to say
	member := func(name string) string {
		switch v := data[name].(type) {
		case string:
			return strings.ReplaceAll(clean(v), "_", " ")
		case float64, bool:
			raw, _ := json.Marshal(v)
			return string(raw)
		}
		return ""
	}
	ids := func(name string) string {
		if strings.HasSuffix(name, "_id") {
			text, _ := data[name].(string)
			return clean(text)
		}
		return member(name)
	}
	if sentence, ok := sentences[e.Type]; ok {
		if text, whole := fillIn(sentence, ids); whole {
			return text
		}
	}
	words := []string{clean(strings.NewReplacer(".", ": ", "_", " ").Replace(e.Type))}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if strings.HasSuffix(name, "_id") && ids(name) != "" {
			words = append(words, ids(name))
		}
	}
	return strings.Join(words, " ")
}

// fillIn puts members into a sentence. It is not whole if one that is not in
// brackets is missing.
func fillIn(sentence string, member func(string) string) (text string, whole bool) {
	whole = true
	var out strings.Builder
	for sentence != "" {
		before, rest, optional := strings.Cut(sentence, "[")
		part, ok := putMembers(before, member)
		out.WriteString(part)
		whole = whole && ok
		if !optional {
			break
		}
		inside, after, _ := strings.Cut(rest, "]")
		if part, ok := putMembers(inside, member); ok {
			out.WriteString(part)
		}
		sentence = after
	}
	return out.String(), whole
}

func putMembers(text string, member func(string) string) (string, bool) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		out.WriteString(before)
		if !found {
			return out.String(), true
		}
		name, after, _ := strings.Cut(rest, "}")
		value := member(name)
		if value == "" {
			return "", false
		}
		out.WriteString(value)
		text = after
	}
}
