package oneshot

import "testing"

func TestWhatAPromptWants(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]Intent{
		"Take a screenshot of https://example.com":                                 {Browser: true, Tool: ToolScreenshot, URL: "https://example.com"},
		"take a screen shot of example.com, please":                                {Browser: true, Tool: ToolScreenshot, URL: "https://example.com"},
		"What does https://example.com/pricing look like on a phone?":              {Browser: true, Tool: ToolScreenshot, URL: "https://example.com/pricing"},
		"Summarize https://news.example.org/a?b=c.":                                {Browser: true, Tool: ToolExtract, URL: "https://news.example.org/a?b=c"},
		"extract the table from (https://example.com/t)":                           {Browser: true, Tool: ToolExtract, URL: "https://example.com/t"},
		"get the prices on www.shop.example.com/sale":                              {Browser: true, Tool: ToolExtract, URL: "https://www.shop.example.com/sale"},
		"read https://example.com and take a screenshot":                           {Browser: true, URL: "https://example.com"},
		"open https://example.com":                                                 {Browser: true, URL: "https://example.com"},
		"go to example.org":                                                        {Browser: true, URL: "https://example.org"},
		"https://example.com":                                                      {Browser: true, URL: "https://example.com"},
		"HTTPS://EXAMPLE.COM/":                                                     {Browser: true, URL: "HTTPS://EXAMPLE.COM/"},
		"Look up the opening hours on a website and read them to me from the web.": {Browser: true, Tool: ToolExtract},

		"":                                 {},
		"   ":                              {},
		"Write a haiku about the sea.":     {},
		"What is 2+2?":                     {},
		"git clone https://github.com/a/b": {},
		"curl https://example.com/api":     {},
		"set the base url to https://example.com in the code":         {},
		"rename main.go to app.go":                                    {},
		"write a regex that finds https://example.com in a text":      {},
		"Do not open https://example.com, just tell me what you know": {},
		"The bug is in parser.go, line 3":                             {},
		"read the file config.yaml":                                   {},
		"take a screenshot":                                           {},
		"Fix the README so that it mentions https://example.com":      {},
	} {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			got := judge(prompt)
			if (got.Hint != "") != want.Browser {
				t.Errorf("the hint is %q", got.Hint)
			}
			got.Hint = ""
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestAHintNamesTheToolThatFits(t *testing.T) {
	t.Parallel()
	if got := judge("screenshot of https://example.com").Hint; got != "To look at web pages use sandbox_browser_screenshot instead of curl, wget or a script: it runs a real browser and answers in one call." {
		t.Error(got)
	}
}

func FuzzIntent(f *testing.F) {
	for _, seed := range []string{"", "https://example.com", "open www.", "a.com" + string(rune(0)), "\xff\xfe http://\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		got := judge(prompt)
		if got.Browser != (got.Hint != "") {
			t.Errorf("%+v", got)
		}
		if !got.Browser && got != (Intent{}) {
			t.Errorf("a no says more: %+v", got)
		}
	})
}
