package session

import (
	"context"
	"errors"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/site"
)

// Did is what every action tells beside its own result: where it has led, and
// the dialog that is open now.
type Did struct {
	URL    string
	Title  string
	Moved  bool // it is another address than before
	Took   time.Duration
	Dialog *Dialog
	// Questions are what else that page asks now.
	Questions []Question
}

// Click clicks an element of the tab in front.
func (s *Session) Click(ctx context.Context, at page.Locator, o page.ClickOptions) (page.Clicked, Did, error) {
	return do(ctx, s, "session.click", func(ctx context.Context, t *page.Tab) (page.Clicked, counts, error) {
		clicked, err := t.Click(ctx, at, o)
		return clicked, counts{"strategies": len(clicked.Tried)}, err
	})
}

// Hover moves the pointer over an element.
func (s *Session) Hover(ctx context.Context, at page.Locator, within time.Duration) (page.Clicked, Did, error) {
	return do(ctx, s, "session.hover", func(ctx context.Context, t *page.Tab) (page.Clicked, counts, error) {
		hovered, err := t.Hover(ctx, at, within)
		return hovered, nil, err
	})
}

// Drag drags an element onto another.
func (s *Session) Drag(ctx context.Context, from, to page.Locator, within time.Duration) (page.Clicked, Did, error) {
	return do(ctx, s, "session.drag", func(ctx context.Context, t *page.Tab) (page.Clicked, counts, error) {
		dragged, err := t.Drag(ctx, from, to, within)
		return dragged, nil, err
	})
}

// Type types a text into a field. When it fails half-way, the fault tells how
// many characters are typed.
func (s *Session) Type(ctx context.Context, text secret.Text, o page.TypeOptions) (page.Typed, Did, error) {
	return do(ctx, s, "session.type", func(ctx context.Context, t *page.Tab) (page.Typed, counts, error) {
		return typing(ctx, t, text, o)
	})
}

func typing(ctx context.Context, t *page.Tab, text secret.Text, o page.TypeOptions) (page.Typed, counts, error) {
	free := t.Dialog() == nil
	typed, err := t.Type(ctx, text, o)
	if free && typed.Field != "" && errors.Is(err, fault.DialogOpen) {
		err = nil // the page's answer to what was typed
	}
	if err != nil && typed.Characters > 0 {
		err = fault.Of(err).With("characters", typed.Characters)
	}
	return typed, counts{"characters": typed.Characters}, err
}

// Press presses a key or a combination.
func (s *Session) Press(ctx context.Context, key string) (Did, error) {
	return only(do(ctx, s, "session.press", func(ctx context.Context, t *page.Tab) (none, counts, error) {
		free := t.Dialog() == nil
		err := t.Press(ctx, key)
		if free && errors.Is(err, fault.DialogOpen) {
			err = nil // the page's answer to the key
		}
		return none{}, nil, err
	}))
}

// Select chooses options of a list.
func (s *Session) Select(ctx context.Context, at page.Locator, values []string, within time.Duration) ([]string, Did, error) {
	return do(ctx, s, "session.select", func(ctx context.Context, t *page.Tab) ([]string, counts, error) {
		chosen, err := t.Select(ctx, at, values, within)
		return chosen, counts{"options": len(chosen)}, err
	})
}

// Scroll scrolls the page or an element.
func (s *Session) Scroll(ctx context.Context, o page.ScrollOptions) (Did, error) {
	return only(do(ctx, s, "session.scroll", func(ctx context.Context, t *page.Tab) (none, counts, error) {
		return none{}, nil, t.Scroll(ctx, o)
	}))
}

// WaitFor waits until the page is as asked for.
func (s *Session) WaitFor(ctx context.Context, o page.WaitOptions) (Did, error) {
	return only(do(ctx, s, "session.wait", func(ctx context.Context, t *page.Tab) (none, counts, error) {
		return none{}, nil, t.WaitFor(ctx, o)
	}))
}

// Answer answers the dialog of the tab in front.
func (s *Session) Answer(ctx context.Context, accept bool, text secret.Text) (Did, error) {
	return only(do(ctx, s, "session.dialog", func(ctx context.Context, t *page.Tab) (none, counts, error) {
		return none{}, nil, t.Answer(ctx, accept, text.Reveal())
	}))
}

// Snapshot is the page as an outline with refs.
func (s *Session) Snapshot(ctx context.Context, o page.SnapshotOptions) (page.Snapshot, error) {
	return act(ctx, s, "session.snapshot", func(ctx context.Context, t *page.Tab) (page.Snapshot, note, error) {
		shot, err := t.Snapshot(ctx, o)
		return shot, note{address: shot.URL, counts: counts{"characters": len(shot.Text)}}, err
	})
}

// Text is what the page says.
func (s *Session) Text(ctx context.Context, most int) (text string, truncated bool, err error) {
	text, err = act(ctx, s, "session.text", func(ctx context.Context, t *page.Tab) (string, note, error) {
		var err error
		text, truncated, err = t.Text(ctx, most)
		address, _ := t.Address()
		return text, note{address: address, counts: counts{"characters": len(text)}}, err
	})
	return text, truncated, err
}

// Extract is what an instruction finds on the page.
func (s *Session) Extract(ctx context.Context, o page.ExtractOptions) (page.Extract, error) {
	return act(ctx, s, "session.extract", func(ctx context.Context, t *page.Tab) (page.Extract, note, error) {
		got, err := t.Extract(ctx, o)
		return got, note{address: got.URL, counts: counts{"matches": got.Matches}}, err
	})
}

// Switch brings a tab to the front.
func (s *Session) Switch(ctx context.Context, tab string) (Did, error) {
	return behind(ctx, s, "session.tab.switch", func(ctx context.Context) error { return s.view().tabs.Switch(ctx, tab) })
}

// CloseTab closes a tab; the one behind it comes to the front.
func (s *Session) CloseTab(ctx context.Context, tab string) (Did, error) {
	return behind(ctx, s, "session.tab.close", func(ctx context.Context) error { return s.view().tabs.CloseTab(ctx, tab) })
}

// Tabs are the pages of the session. It waits for nobody's turn.
func (s *Session) Tabs(ctx context.Context) ([]Tab, error) {
	if err := s.permit(ctx); err != nil {
		return nil, err
	}
	status, err := s.Status(ctx)
	if err == nil {
		err = s.permit(ctx) // it may have changed hands meanwhile
	}
	if err != nil {
		return nil, err
	}
	return status.Tabs, nil
}

// Permission lets a site do something, or not; origin "" is that of the page.
func (s *Session) Permission(ctx context.Context, origin, name string, grant bool) (Did, error) {
	return behind(ctx, s, "session.permission", func(ctx context.Context) error {
		if origin == "" {
			var now Did
			now.look(ctx, s)
			here, err := site.Origin(now.URL)
			if err != nil {
				return fault.New(fault.InvalidRequest, "answer a permission", "the page has no origin").
					WithHint("Name the site with origin, or open it first.")
			}
			origin = here
		}
		return s.view().tabs.Permission(ctx, origin, name, grant)
	})
}

// Authenticate answers a site that asks for a name and a password, and loads
// its page again.
func (s *Session) Authenticate(ctx context.Context, username string, password secret.Text) (Did, error) {
	return only(do(ctx, s, "session.auth", func(ctx context.Context, t *page.Tab) (none, counts, error) {
		return none{}, nil, t.Authenticate(ctx, username, password)
	}))
}

// none is the result of an action that has none of its own.
type none struct{}

func only(_ none, did Did, err error) (Did, error) { return did, err }

// do is an action in the tab in front.
func do[R any](ctx context.Context, s *Session, what string, fn func(context.Context, *page.Tab) (R, counts, error)) (R, Did, error) {
	var did Did
	result, err := act(ctx, s, what, func(ctx context.Context, t *page.Tab) (R, note, error) {
		before, _ := t.Address()
		began := time.Now()
		result, counted, err := fn(s.guarded(ctx), t)
		did.Took = time.Since(began)
		if err == nil {
			s.meet(ctx, t)
		}
		did.look(ctx, s)
		did.Moved = did.URL != before
		return result, note{address: did.URL, counts: counted}, err
	})
	return result, did, err
}

// behind is an action that needs no page to answer, only the browser.
func behind(ctx context.Context, s *Session, what string, fn func(context.Context) error) (Did, error) {
	var did Did
	_, err := turn(ctx, s, what, func(ctx context.Context) (none, note, error) {
		began := time.Now()
		err := fn(ctx)
		did.Took = time.Since(began)
		did.look(ctx, s)
		return none{}, note{address: did.URL}, err
	})
	return did, err
}

// popupWithin is what a popup gets to show something before its opener's
// answer goes out; one that stays blank costs that much and no more.
const popupWithin = time.Second

// meet lets a tab that an action opened come to its first page: until then
// there is neither an address nor a picture of it.
func (s *Session) meet(ctx context.Context, from *page.Tab) {
	front, err := s.view().tabs.Front(ctx)
	if err != nil || front.ID() == from.ID() {
		return
	}
	_ = front.WaitFor(ctx, page.WaitOptions{URL: "://", Timeout: popupWithin})
	_ = front.WaitFor(ctx, page.WaitOptions{State: "domcontentloaded", Timeout: popupWithin})
}

// look asks the browser, not the page, where things stand: a page may be busy,
// gone, or behind its dialog. What cannot be learnt stays empty.
func (d *Did) look(ctx context.Context, s *Session) {
	status, err := s.Status(ctx)
	if err != nil {
		return
	}
	d.URL, d.Title = status.URL, status.Title
	front := ""
	if n := len(status.Tabs); n > 0 {
		front = status.Tabs[n-1].ID
	}
	for _, open := range status.Dialogs {
		if open.TabID == front {
			d.Dialog = &open
		}
	}
	for _, q := range status.Questions {
		if q.TabID == front {
			d.Questions = append(d.Questions, q)
		}
	}
}
