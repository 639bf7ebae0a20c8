package link

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/store"
)

// addressFile keeps what a tunnel told: a phone must find its way back also
// while nobody has told a new sidecar of it yet.
const addressFile = "links/public"

// Address is where links lead. What the owner has configured comes before what
// a tunnel tells, and that before this machine's own. It is safe for concurrent
// use.
type Address struct {
	home  *store.Home
	pump  *event.Pump
	fixed string
	local string

	mu      sync.Mutex
	kept    keptAddress
	changed chan struct{} // closed when it changes, then replaced
}

type keptAddress struct {
	Version int          `json:"version"`
	URL     string       `json:"url,omitempty"`
	Outbox  event.Outbox `json:"outbox,omitempty"`
}

// AddressOptions are what is known of the way in; nil means nothing but this machine.
type AddressOptions struct {
	Configured string      // by the owner, as an origin
	Tunnelled  bool        // a tunnel is to be expected; else an older one's address is forgotten
	Pump       *event.Pump // nil: nobody is told of changes
}

// NewAddress knows the local address, such as http://127.0.0.1:3850, and what
// was last told.
func NewAddress(home *store.Home, local string, opts *AddressOptions) *Address {
	a := &Address{home: home, local: local, changed: make(chan struct{})}
	if opts == nil {
		opts = &AddressOptions{}
	}
	a.pump, a.fixed = opts.Pump, strings.TrimRight(opts.Configured, "/")
	var ok bool
	if a.kept, ok = store.Derived[keptAddress](home, addressFile, nil); !ok {
		// News under numbers that were used before would be taken for old ones.
		a.kept.Version = int(time.Now().Unix())
	}
	if a.kept.URL != "" && (!opts.Tunnelled || checkAddress(a.kept.URL) != nil) {
		a.kept.URL = ""
	}
	return a
}

// Recover tells what a kill kept from being told.
func (a *Address) Recover(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deliver(ctx)
}

// Now is what links begin with, and whether a tunnel has told it.
func (a *Address) Now() (address string, discovered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now()
}

func (a *Address) now() (string, bool) {
	switch {
	case a.fixed != "":
		return a.fixed, false
	case a.kept.URL != "":
		return a.kept.URL, true
	}
	return a.local, false
}

// Local is the address on this machine.
func (a *Address) Local() string { return a.local }

// Names are the hosts under which people may come, this machine's own aside,
// and a channel that is closed when there are others.
func (a *Address) Names() ([]string, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []string
	for _, address := range []string{a.fixed, a.kept.URL} {
		if at, err := url.Parse(address); err == nil && at.Host != "" {
			names = append(names, strings.ToLower(at.Host))
		}
	}
	return names, a.changed
}

// Of is where a link leads. Without its token it opens nothing.
func (a *Address) Of(id string) string {
	base, _ := a.Now()
	return base + "/live/" + id
}

// Set takes what a tunnel tells; "" when there is none any more. Telling the
// same again changes nothing.
func (a *Address) Set(ctx context.Context, address string) error {
	const op = "set the public address"
	address = strings.TrimRight(address, "/")
	if address != "" {
		if err := checkAddress(address); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept.URL == address {
		return nil
	}
	before, _ := a.now()
	was := a.kept
	a.kept.URL = address
	a.kept.Version++
	if now, discovered := a.now(); now != before {
		data, err := json.Marshal(event.PublicNews{URL: now, Discovered: discovered})
		if err != nil {
			return err
		}
		a.kept.Outbox = append(a.kept.Outbox, event.Event{ID: "public", Version: a.kept.Version, Type: event.PublicChanged, At: time.Now().UTC(), Data: data})
	}
	if err := a.home.WriteJSON(addressFile, a.kept); err != nil {
		a.kept = was
		return fault.Wrap(fault.Internal, op, err)
	}
	close(a.changed)
	a.changed = make(chan struct{})
	a.deliver(ctx)
	return nil
}

// deliver tells what is to be told. Called with the lock held.
func (a *Address) deliver(ctx context.Context) {
	if len(a.kept.Outbox) == 0 || a.pump == nil || a.pump.Deliver(context.WithoutCancel(ctx), a.kept.Outbox...) != nil {
		return
	}
	a.kept.Outbox = nil
	_ = a.home.WriteJSON(addressFile, a.kept) // told again otherwise, which is telling once
}

// checkAddress refuses what is not an https origin: who comes over anything
// else can be read on the way.
func checkAddress(address string) error {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" || at.User != nil || at.RawQuery != "" || at.ForceQuery || at.Fragment != "" || at.Path != "" || at.Opaque != "" {
		return fault.New(fault.InvalidRequest, "set the public address", "it must be scheme and host alone").With("field", "url").
			WithHint("Give an https origin, such as https://tapin.example.com.")
	}
	return nil
}
