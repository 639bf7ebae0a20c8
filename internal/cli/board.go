package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/width"

	"tapin/internal/api"
)

// board is what the live screen shows: what is so now, and what happened lately.
type board struct {
	version string
	note    string // why there is nothing to see
	seats   []seat
	turns   []api.Handoff
	asks    []api.Approval
	todos   int
	lately  []happening
	read    time.Time // the journal is on the board up to here
	program string    // how to call tapin from here
}

// seat is one session and who is in it.
type seat struct {
	api.SessionInfo
	status api.Status
}

// happening is one line of the past.
type happening struct {
	at   time.Time
	who  string
	text string
	bad  bool
}

// The styles of a piece of text, as terminals number them.
const (
	styleTitle = "1"
	styleDim   = "2"
	styleGood  = "32"
	styleBad   = "31"
	styleWait  = "33"
	stylePlain = ""
)

// piece is a text of one style. What comes from outside is clean already.
type piece struct{ style, text string }

// line is a row of the screen; the parts from tail on stand at its right end.
type line struct {
	pieces []piece
	tail   string
}

func words(style, text string) piece { return piece{style, text} }

// draw is the screen as rows, none wider than columns and no more than rows.
// What waits for the owner is the last thing to be left out.
func (b *board) draw(columns, rows int, now time.Time, ink paint) []string {
	head := []line{{pieces: []piece{words(styleTitle, "tapin"), words(styleDim, " "+b.version)}, tail: now.Format("15:04:05")}}
	if b.note != "" {
		head = append(head, line{}, line{pieces: []piece{words(styleWait, b.note)}})
	}
	var body []line
	for _, part := range [][]line{b.waiting(now), b.paying(now), b.sitting(now)} {
		if len(part) > 0 {
			body = append(append(body, line{}), part...)
		}
	}
	if b.note == "" && len(body) == 0 {
		body = []line{{}, {pieces: []piece{words(styleDim, "No session is open, and nothing waits for you.")}}}
	}
	foot := line{pieces: []piece{words(styleDim, "q ends watching; tapin runs on")}, tail: b.remaining()}
	all := append(head, body...)
	room := rows - len(all) - 1
	if past := b.past(room-2, columns); len(past) > 0 && room > 2 {
		all = append(append(all, line{}, line{pieces: []piece{words(styleTitle, "Lately")}}), past...)
	}
	if len(all) > rows-1 {
		all = all[:max(0, rows-1)]
	}
	for len(all) < rows-1 {
		all = append(all, line{})
	}
	all = append(all, foot)
	out := make([]string, 0, rows)
	for _, l := range all[:min(len(all), rows)] {
		out = append(out, l.fit(columns, ink))
	}
	return out
}

func (b *board) remaining() string {
	if b.todos == 0 {
		return ""
	}
	return count(b.todos, "to-do") + " in " + b.program + " todos"
}

func (b *board) waiting(now time.Time) (lines []line) {
	if len(b.turns) == 0 {
		return nil
	}
	lines = append(lines, line{pieces: []piece{words(styleTitle, "A person is needed")}})
	for _, h := range b.turns {
		left, style := remains(h.Deadline, now), styleWait
		if h.Parked {
			left, style = "parked", styleDim
		}
		lines = append(lines, line{pieces: []piece{words(style, "● "+strings.ReplaceAll(clean(h.Reason), "_", " ")), words(stylePlain, "  "+clean(h.Instruction))}, tail: left})
		lines = append(lines, line{pieces: []piece{words(styleDim, "  "+clean(bare(h.Before.Origin))+"  "+clean(h.HandoffID))}})
	}
	return append(lines, line{pieces: []piece{words(styleDim, "  "+b.program+" link opens it; "+b.program+" handoff finish says that you are done")}})
}

func (b *board) paying(now time.Time) (lines []line) {
	if len(b.asks) == 0 {
		return nil
	}
	lines = append(lines, line{pieces: []piece{words(styleTitle, "A payment waits for your word")}})
	for _, ask := range b.asks {
		sum := clean(ask.Amount + " " + ask.Currency)
		lines = append(lines, line{pieces: []piece{words(styleWait, "● "+sum), words(stylePlain, " to "+clean(ask.Payee))}, tail: remains(ask.Deadline, now)})
		if len(ask.Differs) > 0 {
			lines = append(lines, line{pieces: []piece{words(styleBad, "  the page says something else: "+clean(strings.Join(ask.Differs, ", ")))}})
		}
		lines = append(lines, line{pieces: []piece{words(styleDim, "  "+b.program+" approve "+clean(ask.ApprovalID))}})
	}
	return lines
}

func (b *board) sitting(now time.Time) (lines []line) {
	if len(b.seats) == 0 {
		return nil
	}
	lines = append(lines, line{pieces: []piece{words(styleTitle, plural(len(b.seats), "session", "sessions"))}})
	for _, s := range b.seats {
		who, style := "the agent drives", styleGood
		if s.status.Driver == "human" {
			who, style = "a person drives", styleWait
		}
		about := clean(s.Provider)
		if s.Context != "" {
			about += ", login " + clean(s.Context)
		}
		left := ""
		if !s.Deadline.IsZero() {
			left = remains(s.Deadline, now)
		}
		lines = append(lines, line{pieces: []piece{words(style, "● "+who), words(styleDim, "  "+about+"  "+clean(s.SessionID))}, tail: left})
		if s.status.URL != "" {
			lines = append(lines, line{pieces: []piece{words(stylePlain, "  "+clean(placeOf(s.status.URL))), words(styleDim, "  "+clean(s.status.Title))}})
		}
		for _, d := range s.status.Dialogs {
			lines = append(lines, line{pieces: []piece{words(styleWait, "  a dialog is open: "+clean(d.Kind)+": "+clean(d.Message))}})
		}
		for _, q := range s.status.Questions {
			lines = append(lines, line{pieces: []piece{words(styleWait, "  the page asks for "+clean(strings.TrimSpace(strings.ReplaceAll(q.Kind, "_", " ")+" "+q.Name)))}})
		}
	}
	return lines
}

// placeOf is an address without what may be secret in it: others may look at
// this screen too.
func placeOf(url string) string {
	if end := strings.IndexAny(url, "?#"); end >= 0 {
		url = url[:end]
	}
	return bare(url)
}

// past is the newest of what happened, as much as there is room for.
func (b *board) past(rows, columns int) (lines []line) {
	rows = max(0, rows)
	recent := b.lately[max(0, len(b.lately)-rows):]
	for _, h := range recent {
		style := stylePlain
		if h.bad {
			style = styleBad
		}
		l := line{pieces: []piece{words(styleDim, h.at.Local().Format("15:04:05")+"  ")}}
		if columns >= 60 { // where it is narrow, what happened matters more than by whom
			l.pieces = append(l.pieces, words(styleDim, pad(h.who, 6)))
		}
		lines = append(lines, line{pieces: append(l.pieces, words(style, h.text))})
	}
	return lines
}

// mostLately is as much of the past as any screen has rows for.
const mostLately = 200

// happened notes what happened, in its place by time.
func (b *board) happened(h happening) {
	at, _ := slices.BinarySearchFunc(b.lately, h, func(x, y happening) int {
		if x.at.After(y.at) {
			return 1
		}
		return -1 // of the same moment, the one told last stands last
	})
	b.lately = slices.Insert(b.lately, at, h)
	b.lately = b.lately[max(0, len(b.lately)-mostLately):]
}

// journal adds what is new of the journal, oldest first.
func (b *board) journal(entries []api.JournalEntry) {
	for _, e := range entries {
		if e.At.After(b.read) {
			b.read = e.At
			b.happened(entryInWords(e))
		}
	}
}

// remains is the time until a deadline: 12:07 left.
func remains(deadline, now time.Time) string {
	left := max(0, deadline.Sub(now).Round(time.Second))
	if left >= time.Hour {
		return fmt.Sprintf("%d:%02d:%02d left", int(left.Hours()), int(left.Minutes())%60, int(left.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d left", int(left.Minutes()), int(left.Seconds())%60)
}

// fit is a line as it is written, cut to a width, with its tail at the end.
func (l line) fit(columns int, ink paint) string {
	columns = max(1, columns)
	tail := l.tail
	if cells(tail) > columns/2 {
		tail = cut(tail, columns/2)
	}
	room := columns
	if tail != "" {
		room -= cells(tail) + 1
	}
	var out strings.Builder
	used := 0
	for _, p := range l.pieces {
		text := p.text
		if used+cells(text) > room {
			text = cut(text, room-used)
		}
		if p.style == stylePlain {
			out.WriteString(text)
		} else {
			out.WriteString(ink.code(p.style, text))
		}
		used += cells(text)
	}
	if tail == "" {
		return out.String()
	}
	return out.String() + strings.Repeat(" ", max(1, columns-used-cells(tail))) + ink.dim(tail)
}

// cells is how many columns a text takes on a terminal.
func cells(s string) (n int) {
	for _, r := range s {
		n += cell(r)
	}
	return n
}

func cell(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return 1
	case r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f' || r >= '\u0300' && r <= '\u036f':
		return 0
	case r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// cut is as much of a text as fits, with a sign that there was more.
func cut(s string, columns int) string {
	if columns <= 0 {
		return ""
	}
	if cells(s) <= columns {
		return s
	}
	used, end := 0, 0
	for i, r := range s {
		if used+cell(r) > columns-1 {
			break
		}
		used += cell(r)
		end = i + utf8.RuneLen(r)
	}
	return s[:end] + "…"
}
