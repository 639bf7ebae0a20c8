package apiserver

import (
	"context"
	"time"

	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/session"
)

// Sessions are the browsers that the door opens onto. All methods are safe for
// concurrent use, and their errors are faults.
type Sessions interface {
	Start(ctx context.Context, o session.StartOptions) (Session, error)
	Get(id string) (Session, error)
	Active() (Session, error) // NO_SESSION when there is none
	List() []session.Info
	Stop(ctx context.Context, id string, save *bool) (session.Stopped, error)
	Verified(ctx context.Context, id string) error
}

// Session is one live browser. Its methods are safe for concurrent use; the
// session itself puts actions in order and refuses them while a person drives.
type Session interface {
	Info() session.Info
	Status(ctx context.Context) (session.Status, error)
	Navigate(ctx context.Context, url, wait string) (page.Navigation, error)
	Visit(ctx context.Context, url, wait string, o page.SnapshotOptions) (page.Navigation, *page.Snapshot, error)
	Back(ctx context.Context) (page.Navigation, error)
	Forward(ctx context.Context) (page.Navigation, error)
	Reload(ctx context.Context) (page.Navigation, error)
	Screenshot(ctx context.Context, o page.ShotOptions) (page.Image, error)
	Hands
	Fields
	Eyes
	Answers
}

// Hands are what can be done with a pointer, and waiting.
type Hands interface {
	Click(ctx context.Context, at page.Locator, o page.ClickOptions) (page.Clicked, session.Did, error)
	Hover(ctx context.Context, at page.Locator, within time.Duration) (page.Clicked, session.Did, error)
	Drag(ctx context.Context, from, to page.Locator, within time.Duration) (page.Clicked, session.Did, error)
	Scroll(ctx context.Context, o page.ScrollOptions) (session.Did, error)
	WaitFor(ctx context.Context, o page.WaitOptions) (session.Did, error)
}

// Fields are what can be done with forms.
type Fields interface {
	Type(ctx context.Context, text secret.Text, o page.TypeOptions) (page.Typed, session.Did, error)
	Fill(ctx context.Context, fields []session.Field, within time.Duration) ([]page.Filled, session.Did, error)
	Press(ctx context.Context, key string) (session.Did, error)
	Select(ctx context.Context, at page.Locator, values []string, within time.Duration) ([]string, session.Did, error)
	Upload(ctx context.Context, at *page.Locator, files []string, within time.Duration) (session.Did, error)
}

// Eyes are what can be read.
type Eyes interface {
	Snapshot(ctx context.Context, o page.SnapshotOptions) (page.Snapshot, error)
	Text(ctx context.Context, most int) (text string, truncated bool, err error)
	Extract(ctx context.Context, o page.ExtractOptions) (page.Extract, error)
	Downloads(ctx context.Context) ([]page.Download, error)
	Tabs(ctx context.Context) ([]session.Tab, error)
}

// Answers are for what a page asks the person at the browser, and for its tabs.
type Answers interface {
	Answer(ctx context.Context, accept bool, text secret.Text) (session.Did, error)
	Permission(ctx context.Context, origin, name string, grant bool) (session.Did, error)
	Authenticate(ctx context.Context, username string, password secret.Text) (session.Did, error)
	Switch(ctx context.Context, tab string) (session.Did, error)
	CloseTab(ctx context.Context, tab string) (session.Did, error)
}

// Host is a host of sessions of a concrete type, as the session room has it.
type Host[S Session] interface {
	Start(ctx context.Context, o session.StartOptions) (S, error)
	Get(id string) (S, error)
	Active() (S, error)
	List() []session.Info
	Stop(ctx context.Context, id string, save *bool) (session.Stopped, error)
	Verified(ctx context.Context, id string) error
}

// From lets a host of concrete sessions stand as Sessions.
func From[S Session](h Host[S]) Sessions { return hosted[S]{h} }

type hosted[S Session] struct{ Host[S] }

func (h hosted[S]) Start(ctx context.Context, o session.StartOptions) (Session, error) {
	return widen(h.Host.Start(ctx, o))
}

func (h hosted[S]) Get(id string) (Session, error) { return widen(h.Host.Get(id)) }

func (h hosted[S]) Active() (Session, error) { return widen(h.Host.Active()) }

// widen keeps a nil pointer beside an error from becoming a non-nil interface.
func widen[S Session](s S, err error) (Session, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
