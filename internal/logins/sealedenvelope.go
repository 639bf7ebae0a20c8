package logins

import (
	"encoding/json"
	"math"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	// sealedFor is what envelopes are sealed for, beside their origin: a sealed
	// file of another kind is not one.
	sealedFor = "envelope"
	// withPassphrase stands among the recipients of what a passphrase opens.
	withPassphrase = "passphrase"

	maxSealed     = 2 * MaxEnvelope // armor takes a third more, and a line break every 64
	maxRecipients = 64
)

// Porter seals for others too. *vault.Vault is one.
type Porter interface {
	Recipient() string
	Open(name, origin string, sealed []byte) ([]byte, error)
	SealTo(recipients []string, name, origin string, plaintext []byte) (string, error)
	SealWithPassphrase(pass secret.Text, name, origin string, plaintext []byte) (string, error)
	OpenWithPassphrase(pass secret.Text, name, origin string, sealed []byte) ([]byte, error)
}

// SealOptions say who can open a sealed envelope; nil means this tapin alone.
type SealOptions struct {
	Recipients []string    // of other tapins
	Passphrase secret.Text // instead of recipients
}

// Sealed is an envelope that only its recipients can read. The origin is in the
// clear, so that people know what they carry, and inside as well.
type Sealed struct {
	Origin     string
	Recipients []string
	Text       string // in age's armor
}

type wireSealed struct {
	Version    int      `json:"version"`
	Origin     string   `json:"origin"`
	Recipients []string `json:"recipients"`
	Sealed     string   `json:"sealed"`
}

// Seal seals an envelope and returns the sealed form in JSON.
func Seal(v Porter, raw []byte, o *SealOptions) ([]byte, error) {
	e, err := Verify(raw)
	if err != nil {
		return nil, err
	}
	w := wireSealed{Version: envelopeVersion, Origin: e.Origin}
	switch {
	case o != nil && !o.Passphrase.IsEmpty() && len(o.Recipients) > 0:
		return nil, fault.New(fault.InvalidRequest, "seal the envelope", "it is sealed for recipients or with a passphrase, not both")
	case o != nil && !o.Passphrase.IsEmpty():
		w.Recipients = []string{withPassphrase}
		w.Sealed, err = v.SealWithPassphrase(o.Passphrase, sealedFor, e.Origin, raw)
	case o != nil && len(o.Recipients) > 0:
		w.Recipients = o.Recipients
		w.Sealed, err = v.SealTo(o.Recipients, sealedFor, e.Origin, raw)
	default:
		w.Recipients = []string{v.Recipient()}
		w.Sealed, err = v.SealTo(w.Recipients, sealedFor, e.Origin, raw)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// Unseal reads an envelope in either form. The passphrase is wanted only by
// what was sealed with one.
func Unseal(v Porter, raw []byte, pass secret.Text) (e Envelope, sealed bool, err error) {
	if err := examine(raw, maxSealed); err != nil {
		return Envelope{}, false, err
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // what is no object is refused by Verify
	if _, sealed = members["sealed"]; !sealed {
		e, err = Verify(raw)
		return e, false, err
	}
	s, err := readSealed(raw)
	if err != nil {
		return Envelope{}, true, err
	}
	var plain []byte
	if !pass.IsEmpty() {
		plain, err = v.OpenWithPassphrase(pass, sealedFor, s.Origin, []byte(s.Text))
	} else if len(s.Recipients) == 1 && s.Recipients[0] == withPassphrase {
		err = fault.New(fault.InvalidRequest, opVerify, "it is sealed with a passphrase, and none was given").WithHint("Give the passphrase that it was sealed with.")
	} else {
		plain, err = v.Open(sealedFor, s.Origin, []byte(s.Text))
	}
	if err != nil {
		return Envelope{}, true, err
	}
	if e, err = Verify(plain); err != nil {
		return Envelope{}, true, err
	}
	if e.Origin != s.Origin {
		return Envelope{}, true, fault.New(fault.OriginMismatch, opVerify, "it is for another origin than it says outside")
	}
	return e, true, nil
}

func readSealed(raw []byte) (Sealed, error) {
	r := newReader(raw)
	var s Sealed
	var version float64
	err := r.object("", []string{"version", "origin", "recipients", "sealed"}, func(name string) (err error) {
		switch name {
		case "version":
			version, err = r.whole(name, math.MinInt32, math.MaxInt32)
		case "origin":
			s.Origin, err = r.text(name)
		case "recipients":
			err = r.list(name, maxRecipients, func(int) error {
				one, err := r.printable("a recipient", 1, 4096)
				s.Recipients = append(s.Recipients, one)
				return err
			})
		case "sealed":
			s.Text, err = r.text(name)
		default:
			err = r.unknown(name)
		}
		return err
	})
	if err == nil && version != envelopeVersion {
		err = refuse("it is of version %v, and this tapin reads version %d", version, envelopeVersion)
	}
	if err == nil {
		_, err = readOrigin(s.Origin)
	}
	return s, err
}
