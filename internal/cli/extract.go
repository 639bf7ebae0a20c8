package cli

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

func (a *app) extractCommand() *cobra.Command {
	var req api.ExtractRequest
	cmd := &cobra.Command{
		Use:   "extract [URL] [INSTRUCTION]",
		Short: "Read out a part of the page, or of the page at a URL",
		Long: `Reads out what the instruction names. Without one it is the page's text. With
a URL it is not the session's page that is read: the page is opened for this one
call, in a browser context of its own that knows no login and is gone afterwards.

  selector: CSS      the text of what matches; css: is the same; CSS@name an attribute
  xpath: XPATH       the same by XPath
  A; B               B inside the matches of A; into a frame when A is one
  table: CSS         the rows of a table
  json: {name: CSS}  an object; [CSS] is all matches, [CSS, {…}] an object for each
  markdown           the page, or with a selector before it that part
  article            the main content of the page`,
		Example: `  tapin extract "selector: h1"
  tapin extract "selector: .result; a@href"
  tapin extract "table: #prices" --json
  tapin extract 'json: {title: h1, items: [li, {name: h3, price: .price}]}'
  tapin extract markdown
  tapin extract https://example.com "selector: h1"`,
		Args: arguments(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			url := ""
			if len(args) > 0 && isAddress(args[0]) {
				url, args = args[0], args[1:]
			}
			if len(args) > 1 {
				return fault.New(fault.InvalidRequest, "", "%q is no address", clean(args[0])).WithHint("An address begins with http:// or https://.")
			}
			if len(args) > 0 {
				req.Instruction = args[0]
			}
			if url != "" {
				return a.extractAt(cmd.Context(), api.BrowserExtractRequest{OneShot: api.OneShot{URL: url}, ExtractRequest: req})
			}
			return drive(cmd.Context(), a, "reading the page", func(ctx context.Context, c *api.Client) (*api.ExtractAnswer, error) {
				return c.Extract(ctx, "", req)
			}, func(got *api.ExtractAnswer) { a.tellExtract(got.Extracted) })
		},
	}
	cmd.Flags().IntVar(&req.MaxChars, "max-chars", 0, "cut after `N` characters")
	cmd.ValidArgs = []cobra.Completion{"selector:", "xpath:", "table:", "json:", "markdown", "article"}
	return cmd
}

// tellExtract prints a text as it is, and rows and objects as JSON to read.
func (a *app) tellExtract(got api.Extracted) {
	text, ok := got.Content.(string)
	if !ok {
		raw, _ := got.Content.(json.RawMessage)
		var out bytes.Buffer
		if err := json.Indent(&out, raw, "", "  "); err == nil {
			text = out.String()
		}
	}
	a.tellText(text, got.Truncated)
	if got.Note != "" {
		a.errorf("%s %s\n", a.paint(a.env.Stderr).bang(), clean(got.Note))
	}
}
