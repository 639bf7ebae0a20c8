package page_test

import (
	"slices"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// TestItIsKnownWhichReportsAreOlderThanAnAnswer is what keeps a stand-in from
// forgetting the beginning of a password: the answer to an edit and the reports
// of the fields reach it by different ways, in any order.
func TestItIsKnownWhichReportsAreOlderThanAnAnswer(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{
		"/": `<!doctype html><title>order</title><input type=password aria-label=pass><input type=password aria-label=fleeting id=f>
<script>f.oninput = () => setTimeout(() => { f.value = '' })</script>`,
	}, "/")
	var n notes
	watch := w.tabs.Native(n.show)
	defer watch.Close()
	reports := func(id string) (out []page.NativeField) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, now := range n.seen {
			if i := slices.IndexFunc(now.Fields, func(f page.NativeField) bool { return f.ID == id }); i >= 0 {
				out = append(out, now.Fields[i])
			}
		}
		return out
	}

	id := n.field(t, "pass").ID
	read := []int{-1} // by the length that was answered
	for length := 1; length <= 20; length++ {
		base := secret.New(strings.Repeat("x", length-1))
		got, err := tab.Edit(ctx, page.NativeEdit{ID: id, Value: secret.New(strings.Repeat("x", length)), Base: &base, Caret: length})
		if err != nil || *got.Length != length {
			t.Fatalf("%d characters: %+v %v", length, got, err)
		}
		read = append(read, got.Read)
	}
	testwait.For(t, "the last edit is reported", func() bool {
		all := reports(id)
		return all[len(all)-1].Read > read[20]
	})
	for _, f := range reports(id) {
		for length, at := range read {
			if f.Read <= at && *f.Length > length || f.Read > at && *f.Length < length {
				t.Errorf("report %d tells of %d characters; %d were answered at %d", f.Read, *f.Length, length, at)
			}
		}
	}

	// A page that takes back what it had a moment ago, before anybody looked.
	id = n.field(t, "fleeting").ID
	got, err := tab.Edit(ctx, page.NativeEdit{ID: id, Value: secret.New("x"), Base: &secret.Text{}, Caret: 1})
	if err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "it is reported that the field is empty", func() bool {
		all := reports(id)
		last := all[len(all)-1]
		return last.Read > got.Read && *last.Length == 0
	})
}

// A question that was under way while another document came is answered by that
// one, which has counted as far: the fields of a page that nothing moves in any more
// would never be told of.
func TestADocumentIsToldOfThatCountsAsFarAsTheOneBefore(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	w, tab := open(ctx, t, page.Look{}, map[string]string{"/": `<title>first</title><input>`, "/second": `<title>second</title><input>`}, "/")
	number, first, err := tab.FieldsSince(ctx, 0, "")
	if err != nil || number != 1 || first == "" {
		t.Fatalf("the first document answers %d of %q, %v", number, first, err)
	}
	if again, doc, err := tab.FieldsSince(ctx, number, first); err != nil || again != number || doc != "" {
		t.Errorf("where nothing is new, %d of %q is told, %v", again, doc, err)
	}
	if _, err := tab.Navigate(ctx, w.URL+"/second", page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	now, second, err := tab.FieldsSince(ctx, number, first)
	if err != nil || now != number || second == "" || second == first {
		t.Errorf("after %d of %q the second document answers %d of %q, %v", number, first, now, second, err)
	}
}
