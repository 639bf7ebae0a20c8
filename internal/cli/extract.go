package cli

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"tapin/internal/api"
)

func (a *app) extractCommand() *cobra.Command {
	var req api.ExtractRequest
	cmd := &cobra.Command{
		Use:   "extract [INSTRUCTION]",
		Short: "Read out a part of the page",
		Long: `Reads out what the instruction names. Without one it is the page's text.

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
  tapin extract markdown`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				req.Instruction = args[0]
			}
			return drive(cmd.Context(), a, "reading the page", func(ctx context.Context, c *api.Client) (*api.ExtractAnswer, error) {
				return c.Extract(ctx, "", req)
			}, a.tellExtract)
		},
	}
	cmd.Flags().IntVar(&req.MaxChars, "max-chars", 0, "cut after `N` characters")
	cmd.ValidArgs = []cobra.Completion{"selector:", "xpath:", "table:", "json:", "markdown", "article"}
	return cmd
}

// tellExtract prints a text as it is, and rows and objects as JSON to read.
func (a *app) tellExtract(got *api.ExtractAnswer) {
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
