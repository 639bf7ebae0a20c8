package page

import (
	"context"
	_ "embed" // readability
	"fmt"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
)

// readability tells a page's main content from what is around it. It is
// @mozilla/readability as published, with its licence beside it.
//
//go:embed readability/Readability.js
var readability string

// teachReading puts readability into our world of a document. Few are asked for
// their article, and none but ours gets to see it.
func (t *Tab) teachReading(ctx context.Context, id proto.FrameID) error {
	f, ok := t.frames.get(id)
	if !ok || f.world == 0 {
		return errWorldGone
	}
	got, err := proto.Call(ctx, f.session, runtime.Evaluate, runtime.EvaluateParams{
		Expression: "globalThis.tapin.Readability ??= (() => {" + readability + "\n;return Readability})(), 0", ContextID: f.world,
	})
	if err != nil {
		return worldError(err)
	}
	if got.ExceptionDetails != nil {
		return &thrown{text: "readability: " + got.ExceptionDetails.Text}
	}
	return nil
}

// markdown writes clean HTML of the engine's as Markdown, under a title if the
// text does not begin with it.
func markdown(ctx context.Context, html, title string) (string, error) {
	made := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		table.NewTablePlugin(
			table.WithSpanCellBehavior(table.SpanBehaviorMirror), table.WithNewlineBehavior(table.NewlineBehaviorPreserve),
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithHeaderPromotion(true), table.WithSkipEmptyRows(true),
		),
	))
	text, err := made.ConvertString(html, converter.WithContext(ctx))
	if err != nil {
		return "", fmt.Errorf("write the page as Markdown: %w", err)
	}
	text = strings.TrimSpace(text)
	title = strings.Join(strings.Fields(title), " ")
	if first, _, _ := strings.Cut(text, "\n"); title != "" && text != "" && strings.TrimLeft(first, "# ") != title {
		text = "# " + title + "\n\n" + text
	}
	return text, nil
}
