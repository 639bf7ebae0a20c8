package daemon

import (
	"context"
	"errors"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// outlook is the patience with an address that should lead here.
type outlook struct {
	first  time.Duration   // before a new address is asked: to ask for a name too early is to be told for long that there is none
	pauses []time.Duration // between questions until it answers; the last for ever
	steady time.Duration   // between questions once it does
	renew  time.Duration   // a quick tunnel that did not lead here for so long is started anew
	retry  time.Duration   // before the sidecar is told again what it did not take
}

func usualOutlook() outlook {
	return outlook{
		first:  2 * time.Second,
		pauses: []time.Duration{3 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second},
		steady: time.Minute, renew: 4 * time.Minute, retry: time.Second,
	}
}

// publicity is what of the sidecar has to do with its public address;
// *api.Client is one.
type publicity interface {
	Public(ctx context.Context) (*api.Public, error)
	SetPublicURL(ctx context.Context, address string) (*api.Public, error)
	CheckPublic(ctx context.Context) (*api.Reached, error)
}

var _ publicity = (*api.Client)(nil)

// announce carries the way to this machine between the tunnel and the sidecar at
// control until ctx ends: where the public listener is to the one, the address
// to the other, and whether that address really leads there to everybody.
func (d *daemon) announce(ctx context.Context, control string) {
	for ctx.Err() == nil {
		token, err := d.opts.Home.Read(ownerTokenFile)
		var client *api.Client
		if err == nil {
			client, err = api.NewClient("http://"+control, secret.New(strings.TrimSpace(string(token))), nil)
		}
		if err == nil {
			err = d.keepTelling(ctx, client)
			client.Close()
		}
		if errors.Is(err, fault.Disabled) || errors.Is(err, fault.NotFound) {
			d.log.Warn("this sidecar has no public listener", "error", err)
			return
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("the sidecar does not take the public address now", "error", err)
		}
		wait(ctx, nil, d.outlook.retry)
	}
}

// keepTelling returns why it could not go on.
func (d *daemon) keepTelling(ctx context.Context, client publicity) error {
	at, err := client.Public(ctx)
	if err != nil {
		return err
	}
	if at.Local != "" {
		d.tunnel.aim(strings.TrimPrefix(at.Local, "http://"))
	}
	if d.opts.Tunnel.PublicURL == "" && (d.tunnel.kind == "none" || d.tunnel.kind == "") {
		// There is nothing to tell, but for what an earlier tunnel left.
		_, err := client.SetPublicURL(ctx, "")
		if err == nil {
			<-ctx.Done()
		}
		return err
	}
	for {
		url, changed := d.reach.address()
		if d.opts.Tunnel.PublicURL == "" {
			if _, err := client.SetPublicURL(ctx, url); err != nil {
				return err
			}
		}
		if url == "" {
			if wait(ctx, changed, time.Hour); ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		if err := d.keepChecking(ctx, client, url, changed); err != nil {
			return err
		}
	}
}

// keepChecking asks an address again and again whether it leads here, until
// there is another.
func (d *daemon) keepChecking(ctx context.Context, client publicity, url string, changed <-chan struct{}) error {
	pause, tries, failing, told := d.outlook.first, 0, time.Time{}, false
	for {
		if wait(ctx, changed, pause) {
			return ctx.Err()
		}
		found, err := client.CheckPublic(ctx)
		if err != nil {
			return err
		}
		if now, _ := d.reach.address(); now != url || found.URL != url {
			return nil
		}
		at := found.CheckedAt
		if found.Reached {
			if !failing.IsZero() {
				d.log.Info("the public address leads here", "url", url, "took_ms", found.TookMS)
			}
			d.reach.set(func(r *Reach) { r.Stand, r.Details, r.Hint, r.CheckedAt = Open, "", "", &at })
			pause, tries, failing, told = d.outlook.steady, 0, time.Time{}, false
			continue
		}
		d.reach.set(func(r *Reach) { r.Stand, r.Details, r.Hint, r.CheckedAt = Astray, found.Reason, found.Advice, &at })
		pause = d.outlook.pauses[min(tries, len(d.outlook.pauses)-1)]
		tries++
		if failing.IsZero() {
			failing = time.Now()
			d.log.Warn("the public address does not lead here", "url", url, "reason", found.Reason)
		}
		if time.Since(failing) < d.outlook.renew {
			continue
		}
		if d.tunnel.quick() && d.opts.Tunnel.PublicURL == "" {
			d.tunnel.renew()
			pause = d.outlook.steady // or until it has another
			continue
		}
		if !told {
			told = true
			err := d.leave(event.TunnelFailed, store.NewID("tun"), event.Trouble{
				Details: "Your phone cannot reach this machine: " + found.Reason + ".", Hint: found.Advice,
			})
			if err != nil {
				d.log.Error("the owner could not be left a word about it", "error", err)
			}
		}
	}
}

// wait returns after a pause, or when something changed or ctx ended, which it
// reports.
func wait(ctx context.Context, changed <-chan struct{}, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-changed:
		return true
	case <-ctx.Done():
		return true
	}
}
