package main

import (
	"context"
	"errors"
	"time"
)

// floor is raw CDP, one round trip after the other, on one tab.
type floor struct{ *rawTab }

func newFloor(ctx context.Context, chromium string) (*floor, error) {
	b, err := startRaw(ctx, chromium)
	if err != nil {
		return nil, err
	}
	t, err := b.open(false)
	return &floor{t}, err
}

func (f *floor) name() string { return "floor" }
func (f *floor) close()       { f.end() }

func (f *floor) open(_ context.Context, _ action, url string) error {
	return f.navigate(url, "Page.loadEventFired")
}

func (f *floor) says(context.Context) (string, error) { return f.text() }

func (f *floor) do(_ context.Context, a action, url, value string) (time.Duration, error) {
	began := time.Now()
	var err error
	switch a.Kind {
	case navigate:
		err = f.navigate(url, "Page.loadEventFired")
	case screenshot:
		err = f.screenshot()
	case click:
		err = f.click(a.Selector)
	case fill:
		err = f.fill(a.Selector, value)
	case text:
		var said string
		if said, err = f.text(); err == nil && said == "" {
			err = errors.New("the page says nothing")
		}
	case snapshot:
		err = f.outline()
	}
	return time.Since(began), err
}

// floorColdStart starts Chromium and speaks the least CDP that gives a picture.
func floorColdStart(ctx context.Context, chromium, url string) (time.Duration, error) {
	began := time.Now()
	b, err := startRaw(ctx, chromium)
	if err != nil {
		return 0, err
	}
	defer b.end()
	t, err := b.open(false)
	if err == nil {
		err = t.navigate(url, "Page.domContentEventFired")
	}
	if err == nil {
		err = t.screenshot()
	}
	return time.Since(began), err
}

// floorNewContext is a private context in a browser that runs, until its first picture.
func floorNewContext(b *raw, url string) (time.Duration, error) {
	began := time.Now()
	t, err := b.open(true)
	if err == nil {
		err = t.navigate(url, "Page.domContentEventFired")
	}
	if err == nil {
		err = t.screenshot()
	}
	took := time.Since(began)
	if err == nil {
		err = t.do("Page.close", nil)
	}
	return took, err
}
