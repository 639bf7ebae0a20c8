package handoff

import (
	"strings"

	"tapin/internal/page"
	"tapin/internal/secret"
)

// phrases says conditions as people would.
func phrases(conditions []page.Condition) []string {
	out := make([]string, 0, len(conditions))
	for _, c := range conditions {
		switch {
		case c.URL != "":
			out = append(out, "the address matches "+shown(bareURL(c.URL)))
		case c.Text != "":
			out = append(out, "the page shows “"+shown(c.Text)+"”")
		case c.Visible != "":
			out = append(out, shown(c.Visible)+" is visible")
		case c.Absent != "":
			out = append(out, shown(c.Absent)+" is gone")
		}
	}
	return out
}

func shown(s string) string { return clip(secret.Conceal(s), 120) }

// finishedHint tells the agent where it is, what was checked, what was not,
// and what to go on with.
func finishedHint(r Record) string {
	var out []string
	switch {
	case r.After == nil:
		out = append(out, "The page could not be read when the owner was done: look at it first")
	case r.After.URL != r.Before.URL:
		out = append(out, "You are on "+place(r.After.URL)+" now; it was "+place(r.Before.URL))
	default:
		out = append(out, "You are still on "+place(r.After.URL))
	}
	if r.After != nil && r.After.URL == r.Before.URL && r.After.DOMFingerprint == r.Before.DOMFingerprint {
		out = append(out, "the page looks as it did before, so check whether anything was done")
	}
	switch {
	case r.Verified == nil:
		out = append(out, "nothing was verified: look at the page before you go on")
	case r.Verified.Held:
		out = append(out, "verified: "+list(r.Verified.Checked)+"; nothing else was")
	default:
		out = append(out, "the owner handed it back although not all of this holds: "+list(r.Verified.Checked)+"; look at the page first")
	}
	if r.Task != "" {
		out = append(out, "then go on with: "+clip(r.Task, 200))
	}
	out = append(out, "refs from before are stale")
	return strings.Join(out, "; ") + "."
}

func cancelledHint(r Record) string {
	if r.FinishedBy == Owner {
		return "The owner stopped this: the session is closed, and its login saved where it could be. Do not try again before the owner asks for it."
	}
	return "You took the wheel back; what the owner did until then was not looked at, and nothing was verified. Look at the page before you go on."
}

func timedOutHint(r Record) string {
	if r.OnTimeout == ReturnOnTimeout {
		return "Nobody finished this in time and you have the wheel again; nothing was verified. Look at the page, and ask again if it is still blocked (follows: " + r.ID + ")."
	}
	return "Nobody finished this in time: the session is closed, its login saved where it could be, and a to-do left for the owner. Start again when the owner is there."
}

func goneHint(why string) string {
	return "The browser was closed before the owner was done (" + clip(secret.Conceal(why), 120) + "); nothing was verified. Start a new session and look where it stands."
}

// place is an address without what everybody knows of it.
func place(url string) string {
	for _, scheme := range []string{"https://", "http://"} {
		if rest, ok := strings.CutPrefix(url, scheme); ok {
			return clip(strings.TrimSuffix(rest, "/"), 120)
		}
	}
	return clip(url, 120)
}
