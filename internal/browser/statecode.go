package browser

import (
	"encoding/json"
	"errors"
	"fmt"

	"tapin/internal/secret"
)

// A State prints as nothing but masks, and so needs its own way into a file. It
// is for files that are sealed, and for nothing else.

type stateCode struct {
	Version int          `json:"version"`
	Cookies []cookieCode `json:"cookies"`
	Origins []originCode `json:"origins"`
}

type cookieCode struct {
	Name         string        `json:"name"`
	Value        string        `json:"value"`
	Domain       string        `json:"domain"`
	Path         string        `json:"path"`
	Expires      float64       `json:"expires,omitempty"`
	HTTPOnly     bool          `json:"http_only,omitempty"`
	Secure       bool          `json:"secure,omitempty"`
	SameSite     string        `json:"same_site,omitempty"`
	Priority     string        `json:"priority,omitempty"`
	SourceScheme string        `json:"source_scheme,omitempty"`
	SourcePort   int64         `json:"source_port,omitempty"`
	Partition    *PartitionKey `json:"partition,omitempty"`
}

type originCode struct {
	Origin    string          `json:"origin"`
	Local     []itemCode      `json:"local"`
	Session   []itemCode      `json:"session"`
	Databases json.RawMessage `json:"databases,omitempty"`
}

// itemCode is a pair, key and value.
type itemCode [2]string

const stateVersion = 1

// Encode writes a state with all its secrets, to be sealed.
func (s State) Encode() ([]byte, error) {
	code := stateCode{Version: stateVersion}
	for _, c := range s.Cookies {
		code.Cookies = append(code.Cookies, cookieCode{
			Name: c.Name, Value: c.Value.Reveal(), Domain: c.Domain, Path: c.Path, Expires: c.Expires,
			HTTPOnly: c.HTTPOnly, Secure: c.Secure, SameSite: c.SameSite, Priority: c.Priority,
			SourceScheme: c.SourceScheme, SourcePort: c.SourcePort, Partition: c.Partition,
		})
	}
	for _, o := range s.Origins {
		code.Origins = append(code.Origins, originCode{o.Origin, encodeItems(o.Local), encodeItems(o.Session), o.Databases})
	}
	return json.Marshal(code)
}

// DecodeState reads what Encode wrote.
func DecodeState(raw []byte) (State, error) {
	var code stateCode
	if err := json.Unmarshal(raw, &code); err != nil {
		// Described, not wrapped: the cause may quote what it could not read.
		return State{}, errors.New("a kept browser state cannot be read")
	}
	if code.Version != stateVersion {
		return State{}, fmt.Errorf("a kept browser state has version %d, and this tapin reads %d", code.Version, stateVersion)
	}
	var s State
	for _, c := range code.Cookies {
		s.Cookies = append(s.Cookies, Cookie{
			Name: c.Name, Value: secret.New(c.Value), Domain: c.Domain, Path: c.Path, Expires: c.Expires,
			HTTPOnly: c.HTTPOnly, Secure: c.Secure, SameSite: c.SameSite, Priority: c.Priority,
			SourceScheme: c.SourceScheme, SourcePort: c.SourcePort, Partition: c.Partition,
		})
	}
	for _, o := range code.Origins {
		s.Origins = append(s.Origins, OriginState{
			Origin: o.Origin, Local: decodeItems(o.Local), Session: decodeItems(o.Session), Databases: o.Databases,
		})
	}
	return s, nil
}

// encodeItems keeps the difference between nothing known and nothing there.
func encodeItems(items []Item) []itemCode {
	if items == nil {
		return nil
	}
	out := make([]itemCode, len(items))
	for i, item := range items {
		out[i] = itemCode{item.Key.Reveal(), item.Value.Reveal()}
	}
	return out
}

func decodeItems(items []itemCode) []Item {
	if items == nil {
		return nil
	}
	out := make([]Item, len(items))
	for i, item := range items {
		out[i] = Item{Key: secret.New(item[0]), Value: secret.New(item[1])}
	}
	return out
}
