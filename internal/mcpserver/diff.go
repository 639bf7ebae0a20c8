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

var ref = regexp.MustCompile(`^\[((?:f\d+)?e\d+)\] `)

// compare tells what a reader of the old outline has to know to have read the
// new one. What has a ref is the same thing for as long as its document lives;
// everything else is compared by its words.
func compare(before, after string) change {
	old := linesOf(before)
	byRef, words := map[string]string{}, map[string]int{}
	for _, l := range old {
		if m := ref.FindStringSubmatch(l); m != nil {
			byRef[m[1]] = l
		} else {
			words[l]++
		}
	}
	var c change
	stays := map[string]bool{}
	for _, l := range linesOf(after) {
		if m := ref.FindStringSubmatch(l); m != nil {
			was, known := byRef[m[1]]
			stays[m[1]] = true
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
		if m := ref.FindStringSubmatch(l); m != nil {
			if stays[m[1]] {
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
			lines = append(lines, focus.ReplaceAllString(l, "$1"))
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
