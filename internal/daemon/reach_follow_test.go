package daemon

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/event"
	"tapin/internal/fault"
)

// listening is a sidecar as far as its public address goes, and the world that
// leads there or does not.
type listening struct {
	mu    sync.Mutex
	fixed string
	told  []string // the addresses it was told, in order, without repetitions
	asked int
	leads func(url string) bool
	down  bool
}

func (s *listening) Public(context.Context) (*api.Public, error) {
	return &api.Public{Local: "http://127.0.0.1:3850", URL: s.now()}, s.trouble()
}

func (s *listening) SetPublicURL(_ context.Context, url string) (*api.Public, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.told) == 0 || s.told[len(s.told)-1] != url {
		s.told = append(s.told, url)
	}
	return &api.Public{}, s.trouble()
}

func (s *listening) CheckPublic(context.Context) (*api.Reached, error) {
	url := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	r := &api.Reached{Public: api.Public{URL: url}, CheckedAt: time.Now(), Reached: s.leads(url)}
	if !r.Reached {
		r.Reason, r.Advice = "nobody answers", "see to it"
	}
	return r, s.trouble()
}

func (s *listening) trouble() error {
	if s.down {
		return fault.New(fault.Busy, "", "no")
	}
	return nil
}

func (s *listening) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fixed != "" || len(s.told) == 0 {
		return s.fixed
	}
	return s.told[len(s.told)-1]
}

func (s *listening) seen() (told []string, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told), s.asked
}

func (s *listening) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// announcer is a daemon with no processes, telling a sidecar.
func announcer(t *testing.T, kind config.Tunnel, fixed string) (*daemon, *listening) {
	t.Helper()
	home := openHome(t)
	o := Options{Home: home, Tunnel: TunnelOptions{Kind: kind, PublicURL: fixed}}
	d := newDaemon(o)
	d.reach = newReach(home, kind, fixed, nil)
	d.tunnel = newTunnel(o, d.reach, slog.New(slog.DiscardHandler), io.Discard, nil)
	return d, &listening{fixed: fixed, leads: func(string) bool { return true }}
}

func (d *daemon) known() Reach {
	d.reach.mu.Lock()
	defer d.reach.mu.Unlock()
	return d.reach.now
}

func TestTheSidecarIsToldWhereItCanBeReached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := announcer(t, config.TunnelCloudflared, "")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = d.keepTelling(ctx, s) }()
		synctest.Wait()
		if target := <-d.tunnel.targets; target != "127.0.0.1:3850" {
			t.Errorf("the tunnel is to lead to %q", target)
		}
		d.reach.set(func(r *Reach) { r.Stand, r.URL = Unproven, "https://one.example" })
		synctest.Wait()
		if _, asked := s.seen(); asked != 0 {
			t.Error("a new name is asked for at once, and would be unknown for long")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if r := d.known(); r.Stand != Open || r.CheckedAt == nil {
			t.Errorf("it leads here, and we know %+v", r)
		}
		d.reach.set(func(r *Reach) { r.Stand, r.URL = Opening, "" })
		synctest.Wait()
		d.reach.set(func(r *Reach) { r.Stand, r.URL = Unproven, "https://two.example" })
		synctest.Wait()
		told, _ := s.seen()
		if diff := cmp.Diff([]string{"", "https://one.example", "", "https://two.example"}, told); diff != "" {
			t.Errorf("the sidecar was told: %s", diff)
		}
	})
}

func TestAnAddressThatDoesNotLeadHereIsSaidAndAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := announcer(t, config.TunnelTailscale, "")
		s.leads = func(string) bool { return false }
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		d.reach.set(func(r *Reach) { r.Stand, r.URL = Unproven, "https://desk.ts.net" })
		go func() { _ = d.keepTelling(ctx, s) }()
		time.Sleep(time.Minute)
		if r := d.known(); r.Stand != Astray || r.Details != "nobody answers" || r.Hint != "see to it" {
			t.Errorf("we know %+v", r)
		}
		if _, asked := s.seen(); asked != 5 { // after 2, 5, 10, 20 and 40 seconds
			t.Errorf("it was asked %d times in a minute", asked)
		}
		time.Sleep(10 * time.Minute)
		names, err := d.opts.Home.List("letters")
		if err != nil || len(names) != 1 {
			t.Fatalf("the owner was left %d letters, %v", len(names), err)
		}
		var letter event.Event
		if err := d.opts.Home.ReadJSON("letters/"+names[0], &letter); err != nil || letter.Type != event.TunnelFailed || !strings.Contains(string(letter.Data), "Your phone cannot reach this machine") {
			t.Errorf("the letter is %+v, %v", letter, err)
		}
		s.set(func() { s.leads = func(string) bool { return true } })
		time.Sleep(31 * time.Second)
		if r := d.known(); r.Stand != Open || r.Details != "" {
			t.Errorf("it leads here again, and we know %+v", r)
		}
	})
}

func TestAQuickTunnelThatLeadsNowhereForLongIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := announcer(t, config.TunnelCloudflared, "")
		s.leads = func(string) bool { return false }
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		d.reach.set(func(r *Reach) { r.Stand, r.URL = Unproven, "https://one.example" })
		go func() { _ = d.keepTelling(ctx, s) }()
		time.Sleep(3*time.Minute + 30*time.Second)
		synctest.Wait()
		if len(d.tunnel.renewal) != 0 {
			t.Fatal("too early")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(d.tunnel.renewal) != 1 {
			t.Fatal("it stays as it is")
		}
	})
}

func TestWithoutATunnelWhatAnEarlierOneLeftIsWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := announcer(t, config.TunnelNone, "")
		s.told = []string{"https://old.example"}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.keepTelling(ctx, s) }()
		time.Sleep(time.Hour)
		stop()
		<-done
		if diff := cmp.Diff([]string{"https://old.example", ""}, s.told); diff != "" || s.asked != 0 {
			t.Errorf("the sidecar was told %s, and asked %d times", diff, s.asked)
		}
	})
}

func TestAnAddressOfTheOwnersIsCheckedAndNeverTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := announcer(t, config.TunnelNone, "https://tapin.example.com")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = d.keepTelling(ctx, s) }()
		time.Sleep(3 * time.Second)
		told, _ := s.seen()
		if r := d.known(); r.Stand != Open || r.URL != "https://tapin.example.com" || len(told) != 0 {
			t.Errorf("we know %+v, and it was told %q", r, told)
		}
	})
}
