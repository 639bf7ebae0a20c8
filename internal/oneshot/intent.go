package oneshot

import (
	"regexp"
	"strings"
	"sync"
)

// The tools that a hint may name.
const (
	ToolScreenshot = "sandbox_browser_screenshot"
	ToolExtract    = "sandbox_browser_extract"
)

// Intent is whether a prompt wants the browser.
type Intent struct {
	Browser bool
	Tool    string // the tool that fits best; empty when both would do
	URL     string // the first address in the prompt, if there is one
	Hint    string // to be added to the prompt; empty when there is none to give
}

// Intent judges a prompt, and makes a context ready when the answer is yes.
func (r *Room) Intent(prompt string) Intent {
	if r.disabled {
		return Intent{}
	}
	got := judge(prompt)
	if got.Browser && r.pool.admit() {
		r.pool.announce()
		r.tasks.Done()
	}
	return got
}

// mostPrompt is how much of a prompt is read: what it wants is said early or late.
const mostPrompt = 8_000

var (
	// address is a URL, or a bare name that can hardly be anything else.
	address = lazily(`(?i)\bhttps?://[^\s<>"'` + "`" + `]+|\bwww\.[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/[^\s<>"'` + "`" + `]*)?`)
	// bare is a name with a common ending and nothing that makes it a file.
	bare = lazily(`(?i)(?:^|[\s(])((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|io|dev|app|ai|co|edu|gov|info|ch|de|uk|eu|fr))(?:/[^\s<>"']*)?(?:$|[\s),.;:!?])`)

	looks = lazily(`(?i)\b(screen ?shots?|screen ?grabs?|snapshots? of|pictures? of|photo of|what does .{1,60} look like|how does .{1,60} look|render(?:s|ed)?|visually|layout of|take a look at|look at)\b`)
	reads = lazily(`(?i)\b(extract|scrape|read|fetch|summari[sz]e|sum up|crawl|get the (?:text|content|table|price|prices|headlines?|title)|what does .{1,60} say|content of|text of|tables? (?:on|from|at)|check)\b`)
	goes  = lazily(`(?i)\b(open|visit|browse|go to|goto|navigate to|look up|web ?page|web ?site|site|page|url|link|online|browser)\b`)
	// other is work for which an address is only mentioned.
	other = lazily(`(?i)\b(git clone|clone|curl|wget|npm|pip|go get|docker|import|api endpoint|base ?url|set the (?:url|origin|endpoint)|replace|rename|regex|regexp|parse (?:a |the )?urls?|dockerfile|readme|in the code|unit tests?|do not (?:open|visit)|don't (?:open|visit)|without (?:opening|visiting))\b`)
)

// judge is what the words say: an address together with a wish to see, read or
// visit it; or a wish that only a browser can fulfil. A mere address is a wish
// too when the prompt is little else.
func judge(prompt string) Intent {
	text := strings.TrimSpace(clip(prompt, mostPrompt))
	at := firstAddress(text)
	wish := addressless(text)
	picture, content, going := looks().MatchString(wish), reads().MatchString(wish), goes().MatchString(wish)
	elsewhere := other().MatchString(wish)
	wants := false
	switch {
	case text == "" || elsewhere:
	case at != "":
		wants = picture || content || going || len(strings.Fields(wish)) <= 2
	default:
		wants = going && (picture || content) && strings.Contains(strings.ToLower(wish), "web")
	}
	if !wants {
		return Intent{}
	}
	got := Intent{Browser: true, URL: at}
	switch {
	case picture && !content:
		got.Tool = ToolScreenshot
	case content && !picture:
		got.Tool = ToolExtract
	}
	got.Hint = hint(got)
	return got
}

// hint is what to tell the model, so that it does not reach for curl.
func hint(i Intent) string {
	tools := ToolScreenshot + " (to see a page) or " + ToolExtract + " (to read it)"
	if i.Tool != "" {
		tools = i.Tool
	}
	return "To look at web pages use " + tools + " instead of curl, wget or a script: it runs a real browser and answers in one call."
}

func firstAddress(text string) string {
	found := address().FindString(text)
	if found == "" {
		if m := bare().FindStringSubmatch(text); m != nil {
			found = m[1]
		}
	}
	if found == "" {
		return ""
	}
	found = strings.TrimRight(found, ".,;:!?)]}'\"")
	if !strings.Contains(strings.ToLower(found), "://") {
		found = "https://" + found
	}
	return found
}

// addressless is the prompt without its addresses, whose words are nobody's wish.
func addressless(text string) string {
	return strings.TrimSpace(bare().ReplaceAllString(address().ReplaceAllString(text, " "), " "))
}

// clip keeps the beginning and the end of a long text.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2]+" "+text[len(text)-most/2:], "")
}

// lazily is a pattern for who needs it: most processes ask for none.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
