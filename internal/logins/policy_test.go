package logins

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/fault"
)

func TestAPolicyIsWrittenWhereItIsRead(t *testing.T) {
	t.Parallel()
	r := newRoom(t, seed+"  shop: {notes: x}\n")
	full := Policy{MaxAmount: "142.50", AutoApprove: true, Currency: "USD", MonthlyBudget: "500", Expires: Moment{time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), true}}
	for _, name := range []string{"verizon", "chase", "shop"} {
		for _, want := range []*Policy{&full, {MaxAmount: "200", Currency: "EUR"}, nil, &full} {
			must(t, r.SetPolicy(t.Context(), name, want))
			if got := get(t, r, name); got.Problem != nil || !cmp.Equal(got.Policy, want) {
				t.Errorf("%s: %+v, %v; want %+v", name, got.Policy, got.Problem, want)
			}
		}
	}
	if text := read(t, r.Manifest()); !strings.Contains(text, "# Last time cookies were confirmed valid") || !strings.Contains(text, "max_amount: 142.50") {
		t.Errorf("the manifest is\n%s", text)
	}
	for _, wrong := range []Policy{{MaxAmount: "lots"}, {MaxAmount: "-1"}, {MonthlyBudget: "1e9"}, {Currency: "dollars"}} {
		if err := r.SetPolicy(t.Context(), "chase", &wrong); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if err := r.SetPolicy(t.Context(), "nobody", &full); !errors.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
}
