package sidecar

import (
	"context"
	"errors"
	"strings"

	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/forget"
	"tapin/internal/logins"
	"tapin/internal/site"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// Forgotten says what of a site there was, and what is left of it elsewhere.
type Forgotten struct {
	Site    string        `json:"site"`
	Removed forget.Counts `json:"removed"`
	Left    []string      `json:"left,omitempty"`    // files that could not be read
	Remains []string      `json:"remains,omitempty"` // contexts that a provider keeps
}

// ForgetSite takes everything of a site out of a home that nobody serves. What
// is cut off is finished by the next call, or the next start of tapin. A hand-off
// or a session of the site that is not over refuses it, unless it is forced. Begin
// is called right before anything is changed, maybe twice; nil is nothing.
func ForgetSite(ctx context.Context, home *store.Home, cfg *config.Config, opts *vault.Options, at site.Site, force bool, begin func() error) (Forgotten, error) {
	if begin == nil {
		begin = func() error { return nil }
	}
	before, begun, err := forget.Noted(home)
	if err != nil {
		return Forgotten{}, err
	}
	if begun {
		if err := begin(); err != nil {
			return Forgotten{}, err
		}
	}
	if begun && before.Site != at {
		if _, err := fulfil(ctx, home, cfg, opts, before); err != nil {
			return Forgotten{}, err
		}
		begun = false
	}
	wish := before
	if !begun {
		if wish, err = forget.Plan(home, at); err != nil {
			return Forgotten{}, err
		}
		if len(wish.Open) > 0 && !force {
			return Forgotten{}, fault.New(fault.SessionActive, "forget "+string(at), "something of it is not over: %s", strings.Join(wish.Open, ", ")).
				WithHint("Finish or cancel it first, or use --force, which ends it.").With("open", wish.Open)
		}
		if err := begin(); err != nil {
			return Forgotten{}, err
		}
		if err := forget.Note(home, wish); err != nil {
			return Forgotten{}, err
		}
	}
	return fulfil(ctx, home, cfg, opts, wish)
}

// finishForgetting does what a kill has cut off.
func finishForgetting(ctx context.Context, home *store.Home, cfg *config.Config, opts *vault.Options) error {
	wish, begun, err := forget.Noted(home)
	if err != nil || !begun {
		return err
	}
	_, err = fulfil(ctx, home, cfg, opts, wish)
	return err
}

func fulfil(ctx context.Context, home *store.Home, cfg *config.Config, opts *vault.Options, wish forget.Wish) (done Forgotten, err error) {
	done = Forgotten{Site: string(wish.Site), Removed: forget.Counts{}}
	keys, err := vault.Open(ctx, home, opts)
	if err != nil {
		return done, err
	}
	kept, err := keys.List(ctx)
	if err != nil {
		return done, err
	}
	for _, k := range kept {
		login, err := keys.Login(ctx, k.Site)
		if err != nil && !errors.Is(err, fault.NotFound) && !errors.Is(err, fault.InvalidRequest) {
			return done, err
		}
		if !site.Same(k.Site, string(wish.Site)) && (login.Domain == "" || !site.Same(login.Domain, string(wish.Site))) {
			continue
		}
		if err := keys.Delete(ctx, k.Site); err != nil && !errors.Is(err, fault.NotFound) {
			return done, err
		}
		done.Removed["credential"]++
	}
	room := logins.New(home, keys, &logins.Options{Manifest: config.Under(home.Path(), cfg.Integrations.Browserbase.ContextStore)})
	were, err := room.ForgetSite(ctx, wish.Site)
	done.Remains = were.Remains
	if n := len(were.Deleted); n > 0 {
		done.Removed["saved login"] = n
	}
	if n := len(were.Cleaned); n > 0 {
		done.Removed["part of another login"] = n
	}
	if err != nil {
		return done, err
	}
	if done.Left, err = forget.Fulfil(home, wish, done.Removed); err != nil {
		return done, err
	}
	return done, forget.Done(home)
}
