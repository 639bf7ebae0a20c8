package vault

import (
	"cmp"
	"errors"
	"io"
	"unicode/utf8"

	"filippo.io/age"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// SealStream seals what is written to it for whoever knows the passphrase. It
// is whole once it is closed; a part of one opens, and then fails. A factor of 0
// has whoever tries a passphrase work for about a second; tests take less.
func SealStream(to io.Writer, pass secret.Text, factor int) (io.WriteCloser, error) {
	const op = "seal a backup"
	if utf8.RuneCountInString(pass.Reveal()) < leastPassphrase {
		return nil, fault.New(fault.InvalidRequest, op, "the passphrase is shorter than %d characters", leastPassphrase).
			WithHint("Take several words: a sealed file can be tried against for as long as somebody likes.")
	}
	recipient, err := age.NewScryptRecipient(pass.Reveal())
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, op, "the passphrase cannot be used")
	}
	recipient.SetWorkFactor(cmp.Or(factor, sealFactor))
	return age.Encrypt(to, recipient)
}

// OpenStream opens what SealStream made. What is cut or changed fails while it
// is read, with an error that quotes nothing.
func OpenStream(from io.Reader, pass secret.Text) (io.Reader, error) {
	const op = "open a backup"
	id, err := age.NewScryptIdentity(pass.Reveal())
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, op, "the passphrase is empty")
	}
	id.SetMaxWorkFactor(workFactor)
	r, err := age.Decrypt(from, id)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, fault.New(fault.IntegrityMismatch, op, "the passphrase is wrong").WithHint("Give the passphrase that it was made with.")
	}
	if err != nil {
		return nil, fault.New(fault.IntegrityMismatch, op, "it is no backup of tapin, or its beginning is damaged").WithHint("Nothing was changed. Take another copy of it.")
	}
	return damaging{r}, nil
}

// damaging says of every failure to read on that the file is damaged.
type damaging struct{ io.Reader }

func (d damaging) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fault.New(fault.IntegrityMismatch, "open a backup", "it is cut or was changed").WithHint("Nothing was changed. Take another copy of it.")
	}
	return n, err
}
