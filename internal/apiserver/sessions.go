package apiserver

import (
	"context"

	"tapin/internal/page"
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
}

// Session is one live browser. Its methods are safe for concurrent use; the
// session itself puts actions in order and refuses them while a person drives.
type Session interface {
	Info() session.Info
	Status(ctx context.Context) (session.Status, error)
	Navigate(ctx context.Context, url, wait string) (page.Navigation, error)
	Back(ctx context.Context) (page.Navigation, error)
	Forward(ctx context.Context) (page.Navigation, error)
	Reload(ctx context.Context) (page.Navigation, error)
	Screenshot(ctx context.Context, o page.ShotOptions) (page.Image, error)
}

// Host is a host of sessions of a concrete type, as the session room has it.
type Host[S Session] interface {
	Start(ctx context.Context, o session.StartOptions) (S, error)
	Get(id string) (S, error)
	Active() (S, error)
	List() []session.Info
	Stop(ctx context.Context, id string, save *bool) (session.Stopped, error)
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
