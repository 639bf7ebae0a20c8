package logins

import (
	"encoding/json"
	"time"

	"tapin/internal/browser"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	stateVersion = 1
	// maxState is what one login may take: more than any site stores in earnest.
	maxState = 64 << 20
)

// version is one saved state of a login.
type version struct {
	Generation uint64
	SavedAt    time.Time
	SavedBy    string    // the session it came from
	TakenAt    time.Time // when it was read from the browser
	State      browser.State
}

// The form of a version inside its seal. Values stand in it as they are: these
// types are encoded into what is sealed or exported, and nowhere else.
type (
	wireVersion struct {
		Version    int          `json:"version"`
		Generation uint64       `json:"generation"`
		SavedAt    time.Time    `json:"saved_at"`
		SavedBy    string       `json:"saved_by"`
		TakenAt    time.Time    `json:"taken_at"`
		Cookies    []wireCookie `json:"cookies"`
		Origins    []wireOrigin `json:"origins"`
	}
	// A part that is null is not known, one that is empty is empty.
	wireOrigin struct {
		Origin    string     `json:"origin"`
		Local     []wireItem `json:"local"`
		Session   []wireItem `json:"session"`
		Databases []byte     `json:"databases"`
	}
	wireItem   [2]string
	wireCookie struct {
		Name         string         `json:"name"`
		Value        string         `json:"value"`
		Domain       string         `json:"domain"` // with a leading dot: also for hosts below
		Path         string         `json:"path"`
		Expires      float64        `json:"expires,omitempty"` // absent: until the browser ends
		HTTPOnly     bool           `json:"httpOnly"`
		Secure       bool           `json:"secure"`
		SameSite     string         `json:"sameSite,omitempty"`
		Priority     string         `json:"priority,omitempty"`
		SourceScheme string         `json:"sourceScheme,omitempty"`
		SourcePort   int64          `json:"sourcePort,omitempty"`
		PartitionKey *wirePartition `json:"partitionKey,omitempty"`
	}
	wirePartition struct {
		TopLevelSite         string `json:"topLevelSite"`
		HasCrossSiteAncestor bool   `json:"hasCrossSiteAncestor"`
	}
)

func encodeVersion(v version) ([]byte, error) {
	w := wireVersion{
		Version: stateVersion, Generation: v.Generation, SavedAt: v.SavedAt, SavedBy: v.SavedBy, TakenAt: v.TakenAt,
		Cookies: make([]wireCookie, len(v.State.Cookies)), Origins: make([]wireOrigin, len(v.State.Origins)),
	}
	for i, c := range v.State.Cookies {
		w.Cookies[i] = toWire(c)
	}
	for i, o := range v.State.Origins {
		w.Origins[i] = wireOrigin{o.Origin, toItems(o.Local), toItems(o.Session), o.Databases}
	}
	data, err := json.Marshal(w)
	if err == nil && len(data) > maxState {
		return nil, fault.New(fault.PayloadTooLarge, "save the login", "it takes %d MiB, more than %d", len(data)>>20, maxState>>20).
			WithHint("A site stores that much in the browser; clear its data, or save the login of another site alone.")
	}
	return data, err
}

func decodeVersion(data []byte) (version, error) {
	var w wireVersion
	if err := json.Unmarshal(data, &w); err != nil {
		// Described, not wrapped: the cause may quote what is inside.
		return version{}, fault.New(fault.IntegrityMismatch, "", "it holds no login")
	}
	if w.Version != stateVersion {
		return version{}, fault.New(fault.Forbidden, "", "it was written by a newer tapin").WithHint("Install the tapin that wrote it, or a newer one.")
	}
	v := version{Generation: w.Generation, SavedAt: w.SavedAt, SavedBy: w.SavedBy, TakenAt: w.TakenAt}
	for _, c := range w.Cookies {
		v.State.Cookies = append(v.State.Cookies, fromWire(c))
	}
	for _, o := range w.Origins {
		v.State.Origins = append(v.State.Origins, browser.OriginState{Origin: o.Origin, Local: fromItems(o.Local), Session: fromItems(o.Session), Databases: o.Databases})
	}
	return v, nil
}

func toItems(items []browser.Item) []wireItem {
	if items == nil {
		return nil
	}
	out := make([]wireItem, len(items))
	for i, item := range items {
		out[i] = wireItem{item.Key.Reveal(), item.Value.Reveal()}
	}
	return out
}

func fromItems(items []wireItem) []browser.Item {
	if items == nil {
		return nil
	}
	out := make([]browser.Item, len(items))
	for i, item := range items {
		out[i] = browser.Item{Key: secret.New(item[0]), Value: secret.New(item[1])}
	}
	return out
}

func toWire(c browser.Cookie) wireCookie {
	w := wireCookie{
		Name: c.Name, Value: c.Value.Reveal(), Domain: c.Domain, Path: c.Path, Expires: c.Expires,
		HTTPOnly: c.HTTPOnly, Secure: c.Secure, SameSite: c.SameSite, Priority: c.Priority,
		SourceScheme: c.SourceScheme, SourcePort: c.SourcePort,
	}
	if c.Partition != nil {
		w.PartitionKey = &wirePartition{c.Partition.TopLevelSite, c.Partition.CrossSiteAncestor}
	}
	return w
}

func fromWire(w wireCookie) browser.Cookie {
	c := browser.Cookie{
		Name: w.Name, Value: secret.New(w.Value), Domain: w.Domain, Path: w.Path, Expires: w.Expires,
		HTTPOnly: w.HTTPOnly, Secure: w.Secure, SameSite: w.SameSite, Priority: w.Priority,
		SourceScheme: w.SourceScheme, SourcePort: w.SourcePort,
	}
	if w.PartitionKey != nil {
		c.Partition = &browser.PartitionKey{TopLevelSite: w.PartitionKey.TopLevelSite, CrossSiteAncestor: w.PartitionKey.HasCrossSiteAncestor}
	}
	return c
}
