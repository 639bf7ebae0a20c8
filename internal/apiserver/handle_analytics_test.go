package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/fault"
)

// daysAsked answers with the days it was asked for.
type daysAsked struct{}

func (daysAsked) Analytics(_ context.Context, days int) (*api.Analytics, error) {
	return &api.Analytics{Days: days}, nil
}

func TestFiguresAreTheOwnersAndForBoundedDays(t *testing.T) {
	t.Parallel()
	f := serveWith(t, nil, func(d *apiserver.Deps) { d.Analytics = daysAsked{} })
	owner := f.client(t, ownerToken)
	t.Cleanup(owner.Close)
	for asked, want := range map[int]int{0: 30, 7: 7, 90: 90} {
		if got, err := owner.Analytics(t.Context(), asked); err != nil || got.Days != want {
			t.Errorf("%d days: %+v, %v", asked, got, err)
		}
	}
	for _, days := range []int{-1, 91} {
		if _, err := owner.Analytics(t.Context(), days); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%d days: %v", days, err)
		}
	}
	if got := f.do(t, http.MethodGet, "/analytics", "", nil); got.status != http.StatusForbidden {
		t.Errorf("the agent got %d", got.status)
	}
	none := serveWith(t, nil, func(*apiserver.Deps) {})
	client := none.client(t, ownerToken)
	t.Cleanup(client.Close)
	if _, err := client.Analytics(t.Context(), 7); !errors.Is(err, fault.Disabled) {
		t.Errorf("without figures: %v", err)
	}
}
