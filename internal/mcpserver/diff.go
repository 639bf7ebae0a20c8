package mcpserver

import (
	"fmt"
	"regexp"
	"strings"
)

// change is what is different between two outlines of a page.
type change struct {
	lines                       []string // "+ …" appeared, "~ …" changed, "- …" vanished
	appeared, changed, vanished int
}

func (c change) none() bool { return len(c.lines) == 0 }

func (c change) size() int {
	n := 0
	for _, l := range c.lines {
		n += len(l) + 1
	}
	return n
}

// refOf is the ref that a line begins with; "" where it has none. Pages have
// thousands of lines, and each is asked several times.
func refOf(l string) string {
	if l == "" || l[0] != '[' {
		return ""
	}
	end := strings.IndexByte(l, ']')
	if end < 3 || !strings.HasPrefix(l[end:], "] ") {
		return ""
	}
	digits := l[1:end]
	if digits[0] == 'f' {
		_, rest, _ := strings.Cut(digits, "e")
		digits = "e" + rest
	}
	if digits[0] != 'e' || len(digits) == 1 || strings.Trim(digits[1:], "0123456789") != "" {
		return ""
	}
	return l[1:end]
}

// tells reports whether the change says something new of its own: what only
// takes things away, or says that it is not done yet, is the first half of one.
func (c change) tells() bool {
	if c.appeared+c.changed == 0 {
		return false
	}
	for _, l := range c.lines {
		if l[0] != '-' && unfinished.MatchString(l) {
			return false
		}
	}
	return true
}

// unfinished are the signs by which pages say that more is to come.
var unfinished = regexp.MustCompile(`(?i)\bbusy\b|\bprogress\b|\bloading\b|\bplease wait\b|\b(?:check|load|process|search|send|sav|submitt|verify|sign|updat|work|connect|download|upload)\w*ing\b|…|\.\.\.`)

// compare tells what a reader of the old outline has to know to have read the
// new one. What has a ref is the same thing for as long as its document lives;
// everything else is compared by its words.
func compare(before, after string) change {
	if before == after {
		return change{}
	}
	old := linesOf(before)
	byRef, words := map[string]string{}, map[string]int{}
	for _, l := range old {
		if r := refOf(l); r != "" {
			byRef[r] = l
		} else {
			words[l]++
		}
	}
	var c change
	stays := map[string]bool{}
	for _, l := range linesOf(after) {
		if r := refOf(l); r != "" {
			was, known := byRef[r]
			stays[r] = true
			switch {
			case !known:
				c.appeared++
				c.lines = append(c.lines, "+ "+l)
			case was != l:
				c.changed++
				c.lines = append(c.lines, "~ "+l)
			}
			continue
		}
		if words[l] > 0 {
			words[l]--
			continue
		}
		c.appeared++
		c.lines = append(c.lines, "+ "+l)
	}
	for _, l := range old {
		if r := refOf(l); r != "" {
			if stays[r] {
				continue
			}
		} else if words[l] == 0 {
			continue
		} else {
			words[l]--
		}
		c.vanished++
		c.lines = append(c.lines, "- "+l)
	}
	return c
}

// focus is the state of the element that has it. Every action moves it, so
// that it is no news by itself.
var focus = regexp.MustCompile(`^(\[(?:f\d+)?e\d+\] [a-z]+(?: [a-z-]+)*?) focused\b`)

// linesOf are the lines without focus and indentation: where a thing stands is
// told by its neighbours, and moving it deeper is no news.
func linesOf(outline string) []string {
	var lines []string
	for l := range strings.SplitSeq(outline, "\n") {
		if l = strings.TrimLeft(l, " "); l != "" {
			if strings.Contains(l, " focused") {
				l = focus.ReplaceAllString(l, "$1")
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// within is the change in at most so many bytes, and whether that is all of it.
func (c change) within(most int) (text string, whole bool) {
	var out strings.Builder
	for i, l := range c.lines {
		if out.Len()+len(l) > most {
			fmt.Fprintf(&out, "… %d more changes\n", len(c.lines)-i)
			return strings.TrimSuffix(out.String(), "\n"), false
		}
		out.WriteString(l)
		out.WriteByte('\n')
	}
	return strings.TrimSuffix(out.String(), "\n"), true
}
