package liveview

import (
	"sync"

	"tapin/internal/page"
)

// layouts are what people have chosen, by site. It is safe for concurrent use.
type layouts struct {
	mu     sync.Mutex
	chosen map[string]page.Fitting
	order  []string // oldest first
}

// mostLayouts is how many sites are remembered.
const mostLayouts = 500

func (l *layouts) put(of string, choice page.Fitting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chosen == nil {
		l.chosen = map[string]page.Fitting{}
	}
	if _, known := l.chosen[of]; !known {
		l.order = append(l.order, of)
	}
	if l.chosen[of] = choice; len(l.order) > mostLayouts {
		delete(l.chosen, l.order[0])
		l.order = l.order[1:]
	}
}

func (l *layouts) of(of string) (page.Fitting, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	choice, ok := l.chosen[of]
	return choice, ok
}
