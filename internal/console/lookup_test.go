package console

import (
	"context"
	"errors"
	"testing"

	"tapin/internal/fault"
)

type seenLately struct {
	again string
	list  []Lookup
}

func (s *seenLately) Recent(context.Context) []Lookup { return s.list }

func (s *seenLately) Photo(context.Context, string) ([]byte, string, error) {
	return nil, "", fault.NotFound
}

func (s *seenLately) Again(_ context.Context, id string) error {
	s.again = id
	return nil
}

func TestLookupsAreCutToWhatIsRead(t *testing.T) {
	t.Parallel()
	long := make([]byte, 10*maxWords)
	for i := range long {
		long[i] = 'a'
	}
	lately := &seenLately{}
	for range 2 * maxShown {
		lately.list = append(lately.list, Lookup{ID: "crd_1", Content: string(long), Title: string(long)})
	}
	d := &Door{deps: Deps{Lookups: lately}}
	got := d.lookups(t.Context())
	if len(got) != maxShown || len(got[0].Content) > maxWords+3 || len(got[0].Title) > maxWords+3 {
		t.Errorf("%d lookups of %d characters", len(got), len(got[0].Content))
	}
	if _, err := d.lookAgain(t.Context(), "crd_1"); err != nil || lately.again != "crd_1" {
		t.Errorf("%q, %v", lately.again, err)
	}
	none := &Door{}
	if got := none.lookups(t.Context()); got == nil || len(got) != 0 {
		t.Errorf("none is %v", got)
	}
	if _, err := none.lookAgain(t.Context(), "x"); !errors.Is(err, fault.Disabled) {
		t.Errorf("got %v", err)
	}
}

func TestWithoutFiguresThePageIsToldSo(t *testing.T) {
	t.Parallel()
	s := &socket{door: &Door{}}
	if _, err := s.do(t.Context(), message{A: "figures", Days: 7}); !errors.Is(err, fault.Disabled) {
		t.Errorf("got %v", err)
	}
}
