package phone

import (
	"context"
	"time"
)

// Tap touches an element with a finger.
func (p *Phone) Tap(ctx context.Context, selector string) error {
	at, err := p.Where(ctx, selector)
	if err != nil {
		return err
	}
	return p.TapAt(ctx, at)
}

// TapAt touches a place on the glass.
func (p *Phone) TapAt(ctx context.Context, at Point) error {
	return p.down(ctx, func() error { return nil }, at)
}

// Hold keeps a finger on an element until something is so.
func (p *Phone) Hold(ctx context.Context, selector, until string) error {
	at, err := p.Where(ctx, selector)
	if err != nil {
		return err
	}
	return p.down(ctx, func() error { return p.Until(ctx, until+" under the finger", until) }, at)
}

// Drag moves fingers together, all by the same way.
func (p *Phone) Drag(ctx context.Context, dx, dy float64, fingers ...Point) error {
	return p.down(ctx, func() error {
		const steps = 8
		for i := 1; i <= steps; i++ {
			moved := make([]Point, len(fingers))
			for j, f := range fingers {
				moved[j] = Point{f.X + dx*float64(i)/steps, f.Y + dy*float64(i)/steps}
			}
			if err := p.touch(ctx, "touchMove", moved...); err != nil {
				return err
			}
		}
		return nil
	}, fingers...)
}

// lifting is how long fingers may take to leave the glass.
const lifting = 5 * time.Second

// down puts fingers on the glass while something is done, and lifts them after it
// in any case: with a finger left lying there, no later tap is one.
func (p *Phone) down(ctx context.Context, while func() error, fingers ...Point) error {
	err := p.touch(ctx, "touchStart", fingers...)
	if err == nil {
		err = while()
	}
	up, cancel := context.WithTimeout(context.WithoutCancel(ctx), lifting)
	defer cancel()
	if lifted := p.touch(up, "touchEnd"); err == nil {
		err = lifted
	}
	return err
}

func (p *Phone) touch(ctx context.Context, kind string, fingers ...Point) error {
	points := []map[string]any{}
	for i, f := range fingers {
		points = append(points, map[string]any{"x": f.X, "y": f.Y, "id": i})
	}
	return p.Do(ctx, "Input.dispatchTouchEvent", map[string]any{"type": kind, "touchPoints": points})
}

// Type strikes the keys of a text, one after the other.
func (p *Phone) Type(ctx context.Context, text string) error {
	for _, c := range text {
		if err := p.Strike(ctx, string(c), string(c), 0); err != nil {
			return err
		}
	}
	return nil
}

// keyCodes are the numbers of keys that write nothing by themselves.
var keyCodes = map[string]int{"Enter": 13, "Tab": 9, "Backspace": 8, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Escape": 27}

// Key strikes one that writes nothing by itself.
func (p *Phone) Key(ctx context.Context, name string) error {
	text := ""
	if name == "Enter" {
		text = "\r"
	}
	return p.Strike(ctx, name, text, keyCodes[name])
}

// Strike strikes a key by its name, the text it writes and its number.
func (p *Phone) Strike(ctx context.Context, key, text string, code int) error {
	down := map[string]any{"type": "rawKeyDown", "key": key, "windowsVirtualKeyCode": code}
	if text != "" {
		down["type"], down["text"] = "keyDown", text
	}
	if err := p.Do(ctx, "Input.dispatchKeyEvent", down); err != nil {
		return err
	}
	return p.Do(ctx, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": code})
}
