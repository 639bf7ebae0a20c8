package logins

import (
	"context"
	"errors"
	"slices"
	"testing"

	"tapin/internal/fault"
)

// keptAtProvider is a manifest with a login that a provider keeps too.
const keptAtProvider = "contexts:\n  chase: {browserbase_context_id: ctx_1, domain: chase.com}\n"

func TestDeletingALoginDeletesItAtItsProviderToo(t *testing.T) {
	t.Parallel()
	var deleted []string
	r := newRoom(t, keptAtProvider)
	r.forget = func(_ context.Context, id string) (bool, error) {
		deleted = append(deleted, id)
		return true, nil
	}
	save(t, r, "chase", "ses_1", "a")
	must(t, r.Release(t.Context(), "chase", "ses_1"))
	got, err := r.Delete(t.Context(), "chase", nil)
	if err != nil || !got.Remote || got.Remains != "" || !slices.Equal(deleted, []string{"ctx_1"}) {
		t.Errorf("it gave %+v, %v, and deleted %v", got, err, deleted)
	}
}

func TestADeletionThatItsProviderDidNotHearIsFinishedLater(t *testing.T) {
	t.Parallel()
	unreachable, asked := true, 0
	r := newRoom(t, keptAtProvider)
	r.forget = func(context.Context, string) (bool, error) {
		asked++
		if unreachable {
			return false, errors.New("nobody answers")
		}
		return true, nil
	}
	save(t, r, "chase", "ses_1", "a")
	must(t, r.Release(t.Context(), "chase", "ses_1"))
	if _, err := r.Delete(t.Context(), "chase", nil); !errors.Is(err, fault.ProviderError) {
		t.Fatalf("it gave %v", err)
	}
	// What opens accounts is gone from here at once, and nobody can use the rest.
	if sealed, previous, _, err := r.files("chase"); sealed || previous || err != nil {
		t.Errorf("there are still files: %v %v %v", sealed, previous, err)
	}
	if _, _, err := r.Checkout(t.Context(), "chase", "ses_2"); !errors.Is(err, fault.ContextLocked) {
		t.Errorf("half a login was given out: %v", err)
	}
	unreachable = false
	done, err := r.Reconcile(t.Context(), nil)
	if err != nil || !slices.Equal(done.Finished, []string{"chase"}) || asked != 2 {
		t.Errorf("later: %+v, %v, asked %d times", done, err, asked)
	}
	if _, err := r.Get(t.Context(), "chase"); !errors.Is(err, fault.NotFound) {
		t.Errorf("it is still there: %v", err)
	}
}
