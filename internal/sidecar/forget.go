package sidecar

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/forget"
	"tapin/internal/logins"
	"tapin/internal/site"
	"tapin/internal/store"
	"tapin/internal/trouble"
	"tapin/internal/vault"
)

// Forgotten says what of a site there was, and what is left of it elsewhere.
type Forgotten struct {
	Site     string        `json:"site"`
	Removed  forget.Counts `json:"removed"`
	Left     []string      `json:"left,omitempty"`    // files that could not be read
	Remains  []string      `json:"remains,omitempty"` // contexts that a provider keeps
	Set      []string      `json:"set,omitempty"`     // credentials that the environment has
	Yours    []string      `json:"yours,omitempty"`   // the owner's own texts that name it
	Pending  []string      `json:"pending,omitempty"` // other sites that are not forgotten to the end yet
	Finished bool          `json:"finished"`          // nothing that matters is left
}

// ForgetSite takes everything of a site out of a home that nobody serves. What
// is cut off is finished by the next call, or the next start of tapin. A hand-off
// or a session of the site that is not over refuses it, unless it is forced.
// While a file is left that exists nowhere else, the wish stays. Begin is called
// right before anything is changed; nil is nothing.
func ForgetSite(ctx context.Context, home *store.Home, cfg *config.Config, opts *vault.Options, at site.Site, force bool, begin func() error) (Forgotten, error) {
	noted, err := forget.Noted(home)
	if err != nil {
		return Forgotten{}, err
	}
	wish, err := forget.Plan(home, at)
	if err != nil {
		return Forgotten{}, err
	}
	for _, before := range noted {
		if before.Site == at { // what was agreed to is not asked again
			wish.Open = slices.DeleteFunc(wish.Open, func(id string) bool { return slices.Contains(before.Records, id) })
			wish.Records = append(wish.Records, before.Records...)
			slices.Sort(wish.Records)
			wish.Records = slices.Compact(wish.Records)
		}
	}
	if len(wish.Open) > 0 && !force {
		return Forgotten{}, fault.New(fault.SessionActive, "forget "+string(at), "something of it is not over: %s", strings.Join(wish.Open, ", ")).
			WithHint("Finish or cancel it first, or use --force, which ends it.").With("open", wish.Open)
	}
	keys, room, err := ofForgetting(ctx, home, cfg, opts)
	if err != nil {
		return Forgotten{}, err
	}
	// What can refuse does so before anything is noted: a wish that is noted is fulfilled.
	if _, err := kept(ctx, keys, at); err != nil {
		return Forgotten{}, err
	}
	if err := room.MayForget(at); err != nil {
		return Forgotten{}, err
	}
	if begin != nil {
		if err := begin(); err != nil {
			return Forgotten{}, err
		}
	}
	if err := forget.Note(home, wish); err != nil {
		return Forgotten{}, err
	}
	done, err := fulfil(ctx, home, keys, room, wish)
	if err != nil {
		return done, err
	}
	for _, other := range noted {
		if other.Site == at {
			continue
		}
		if more, err := resume(ctx, home, keys, room, other); err != nil || !more.Finished {
			done.Pending = append(done.Pending, string(other.Site))
		}
	}
	return done, nil
}

// GiveUpForgetting takes the wish to forget a site back. What is gone is gone, and
// what is left stays.
func GiveUpForgetting(home *store.Home, at site.Site) (found bool, err error) {
	noted, err := forget.Noted(home)
	if err != nil || !slices.ContainsFunc(noted, func(w forget.Wish) bool { return w.Site == at }) {
		return false, err
	}
	return true, forget.Done(home, at)
}

// errUnfinished is a wish that files stand in the way of.
var errUnfinished = errors.New("some files cannot be read")

// finishForgetting does what a kill has cut off.
func finishForgetting(ctx context.Context, home *store.Home, cfg *config.Config, opts *vault.Options) error {
	noted, err := forget.Noted(home)
	if err != nil || len(noted) == 0 {
		return err
	}
	keys, room, err := ofForgetting(ctx, home, cfg, opts)
	if err != nil {
		return err
	}
	var errs []error
	for _, wish := range noted {
		done, err := resume(ctx, home, keys, room, wish)
		if err == nil && !done.Finished {
			err = fault.New(fault.Unreadable, "forget a site", "%w: %s", errUnfinished, strings.Join(forget.Matters(done.Left), ", "))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// showForgetting has everybody told that a site is not forgotten yet, without its name.
func (s *sidecar) showForgetting(err error) {
	const key = "forget"
	if err == nil {
		s.board.Clear(key)
		return
	}
	s.opts.Logger.Warn("a site could not be forgotten to the end yet", "error", err)
	why := "something refused it; the log says what"
	if errors.Is(err, errUnfinished) {
		why = fault.Of(err).Details()
	}
	s.board.Set(key, trouble.Trouble{
		What: "site to forget", State: trouble.Unfinished,
		Details: "What is left of it is still here: " + why + ". The file forget.json names the site. What came after it was to be forgotten stays.",
		Hint:    "End tapin and run tapin forget SITE again to finish it, or tapin forget SITE --drop to leave what is left.",
	})
}

func ofForgetting(ctx context.Context, home *store.Home, cfg *config.Config, opts *vault.Options) (*vault.Vault, *logins.Room, error) {
	keys, err := vault.Open(ctx, home, opts)
	if err != nil {
		return nil, nil, err
	}
	return keys, logins.New(home, keys, &logins.Options{Manifest: config.Under(home.Path(), cfg.Integrations.Browserbase.ContextStore)}), nil
}

// kept are the credentials of a site.
func kept(ctx context.Context, keys *vault.Vault, at site.Site) ([]vault.Kept, error) {
	all, err := keys.List(ctx)
	if err != nil {
		return nil, err
	}
	var of []vault.Kept
	for _, k := range all {
		login, err := keys.Login(ctx, k.Site)
		if err != nil && !errors.Is(err, fault.NotFound) && !errors.Is(err, fault.InvalidRequest) {
			return nil, err
		}
		if site.Same(k.Site, string(at)) || login.Domain != "" && site.Same(login.Domain, string(at)) {
			of = append(of, k)
		}
	}
	return of, nil
}

// resume is fulfil of a wish that was noted before: what could not be read then
// may be readable now.
func resume(ctx context.Context, home *store.Home, keys *vault.Vault, room *logins.Room, wish forget.Wish) (Forgotten, error) {
	again, err := wish.Again(home)
	if err != nil {
		return Forgotten{}, err
	}
	if len(again.Records) > len(wish.Records) {
		if err := forget.Note(home, again); err != nil {
			return Forgotten{}, err
		}
	}
	return fulfil(ctx, home, keys, room, again)
}

func fulfil(ctx context.Context, home *store.Home, keys *vault.Vault, room *logins.Room, wish forget.Wish) (done Forgotten, err error) {
	done = Forgotten{Site: string(wish.Site), Removed: forget.Counts{}}
	if !wish.Keys {
		if err := forgetKeys(ctx, home, keys, wish.Site, &done); err != nil {
			return done, err
		}
		// A credential has no time: those that are set from now on are not meant.
		wish.Keys = true
		if err := forget.Note(home, wish); err != nil {
			return done, err
		}
	}
	were, err := room.ForgetSite(ctx, wish.Site, wish.Since())
	done.Remains, done.Left = were.Remains, were.Left
	if n := len(were.Deleted); n > 0 {
		done.Removed["saved login"] = n
	}
	if n := len(were.Cleaned); n > 0 {
		done.Removed["part of another login"] = n
	}
	if err != nil {
		return done, err
	}
	left, err := forget.Fulfil(home, wish, done.Removed)
	done.Left = append(done.Left, left...)
	slices.Sort(done.Left)
	done.Left = slices.Compact(done.Left)
	if err != nil {
		return done, err
	}
	if done.Yours, err = forget.Yours(home, wish); err != nil || len(forget.Matters(done.Left)) > 0 {
		return done, err
	}
	done.Finished = true
	return done, forget.Done(home, wish.Site)
}

func forgetKeys(ctx context.Context, home *store.Home, keys *vault.Vault, at site.Site, done *Forgotten) error {
	of, err := kept(ctx, keys, at)
	if err != nil {
		return err
	}
	for _, k := range of {
		if k.Login == vault.FromEnvironment || k.TOTP == vault.FromEnvironment {
			done.Set = append(done.Set, k.Site)
		}
		err := keys.Delete(ctx, k.Site)
		inKeychain := cmp.Or(k.Login, k.TOTP) == vault.FromKeychain || k.TOTP == vault.FromKeychain
		switch {
		case err == nil:
			done.Removed["credential"]++
		case errors.Is(err, fault.NotFound), errors.Is(err, fault.Forbidden) && !inKeychain: // the environment alone has it
		default:
			return err
		}
	}
	// A name that was noted, and whose credential was never stored.
	var names struct {
		Sites []string `json:"sites"`
	}
	if err := home.ReadJSON("credentials.json", &names); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names.Sites {
		if !site.Same(name, string(at)) || slices.ContainsFunc(of, func(k vault.Kept) bool { return k.Site == name }) {
			continue
		}
		if err := keys.Delete(ctx, name); err != nil && !errors.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}
