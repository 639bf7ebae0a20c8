package page

import (
	"context"
	"time"
)

// FieldsSince asks the main document for its fields as a watch does that was told
// of a document so far, and tells which document answered, with what number;
// nobody if there is nothing new.
func (t *Tab) FieldsSince(ctx context.Context, number int, doc string) (nowNumber int, nowDoc string, err error) {
	var got inDocument
	err = t.callMain(ctx, "nativeNext", map[string]any{"since": number, "of": doc, "wait": (50 * time.Millisecond).Milliseconds()}, &got)
	return got.Number, got.Doc, err
}
