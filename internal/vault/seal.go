package vault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"filippo.io/age"
	"filippo.io/age/armor"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	// maxPlaintext bounds what is sealed and what is opened alike: nothing is
	// sealed that could not be opened again.
	maxPlaintext = 256 << 20

	// maxRecipients is more than anybody runs tapins.
	maxRecipients = 32

	// workFactor is age's own for passphrases: a second and 256 MiB. A file that
	// asks for more was not made to be opened by us.
	workFactor = 18

	// leastPassphrase is what a stolen file withstands for a while.
	leastPassphrase = 8
)

// Seal encrypts plaintext in the age format, for this vault alone. The name and
// origin it is sealed for are inside, and Open wants the same ones.
func (v *Vault) Seal(name, origin string, plaintext []byte) ([]byte, error) {
	key, err := v.key()
	if err != nil {
		return nil, err
	}
	var sealed bytes.Buffer
	if err := encrypt(&sealed, name, origin, plaintext, key.Recipient()); err != nil {
		return nil, err
	}
	return sealed.Bytes(), nil
}

// SealTo encrypts plaintext for other tapins, by the recipients that they give
// for themselves. This vault can open it too only if its own Recipient is one
// of them. The result is text, in age's armor: the age command opens it as it is.
func (v *Vault) SealTo(recipients []string, name, origin string, plaintext []byte) (string, error) {
	op := "seal " + name
	recipients = slices.Compact(slices.Sorted(slices.Values(recipients)))
	if len(recipients) == 0 || len(recipients) > maxRecipients {
		return "", fault.New(fault.InvalidRequest, op, "%d recipients are not 1 to %d", len(recipients), maxRecipients).
			WithHint("Name at least one tapin to seal for; tapin doctor prints each one's.")
	}
	to := make([]age.Recipient, 0, len(recipients))
	for _, r := range recipients {
		parsed, err := age.ParseX25519Recipient(r)
		if err != nil {
			// Not quoted: it may be a key that was taken for its public half.
			return "", fault.New(fault.InvalidRequest, op, "one of the recipients is none").
				WithHint("A recipient is one word that begins with age1.")
		}
		to = append(to, parsed)
	}
	return encryptText(name, origin, plaintext, to...)
}

// SealWithPassphrase encrypts plaintext for whoever knows the passphrase. The
// result is text, as SealTo's is.
func (v *Vault) SealWithPassphrase(pass secret.Text, name, origin string, plaintext []byte) (string, error) {
	if utf8.RuneCountInString(pass.Reveal()) < leastPassphrase {
		return "", fault.New(fault.InvalidRequest, "seal "+name, "the passphrase is shorter than %d characters", leastPassphrase).
			WithHint("Take several words: a sealed file can be tried against for as long as somebody likes.")
	}
	to, err := age.NewScryptRecipient(pass.Reveal())
	if err != nil {
		return "", fault.New(fault.InvalidRequest, "seal "+name, "the passphrase cannot be used")
	}
	to.SetWorkFactor(sealFactor)
	v.stretch.Lock()
	defer v.stretch.Unlock()
	return encryptText(name, origin, plaintext, to)
}

// Open decrypts what Seal or SealTo made for that name and origin, with or
// without armor. Anything else, also what was sealed with another key or for
// another name, is INTEGRITY_MISMATCH.
func (v *Vault) Open(name, origin string, sealed []byte) ([]byte, error) {
	keys, err := v.identities()
	if err != nil {
		return nil, err
	}
	return decrypt(name, origin, sealed, keys,
		"it was sealed with another key", "Use the key that sealed it, or log in once more.")
}

// OpenWithPassphrase decrypts what SealWithPassphrase made, or age -p with a
// work factor no higher than its usual one: a file must not decide how many
// minutes and gigabytes it costs.
func (v *Vault) OpenWithPassphrase(pass secret.Text, name, origin string, sealed []byte) ([]byte, error) {
	id, err := age.NewScryptIdentity(pass.Reveal())
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "open sealed "+name, "the passphrase is empty")
	}
	id.SetMaxWorkFactor(workFactor)
	v.stretch.Lock()
	defer v.stretch.Unlock()
	return decrypt(name, origin, sealed, []age.Identity{id},
		"the passphrase is wrong, or it was not sealed with one", "Give the passphrase that it was sealed with.")
}

func encryptText(name, origin string, plaintext []byte, to ...age.Recipient) (string, error) {
	var text bytes.Buffer
	w := armor.NewWriter(&text)
	if err := encrypt(w, name, origin, plaintext, to...); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("seal %s: %w", name, err)
	}
	return text.String(), nil
}

func encrypt(dst io.Writer, name, origin string, plaintext []byte, to ...age.Recipient) error {
	head, err := header(name, origin)
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	if len(plaintext) > maxPlaintext {
		return fault.New(fault.PayloadTooLarge, "seal "+name, "%d bytes are more than %d", len(plaintext), maxPlaintext)
	}
	w, err := age.Encrypt(dst, to...)
	if err != nil {
		return fmt.Errorf("seal %s: %w", name, err)
	}
	for _, part := range [][]byte{head, plaintext} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("seal %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("seal %s: %w", name, err)
	}
	return nil
}

// decrypt opens and checks what it was sealed for. stranger and hint are said
// when the identity is not one that it was sealed for.
func decrypt(name, origin string, sealed []byte, ids []age.Identity, stranger, hint string) ([]byte, error) {
	op := "open sealed " + name
	head, err := header(name, origin)
	if err != nil {
		return nil, fault.New(fault.IntegrityMismatch, op, "%w", err)
	}
	var src io.Reader = bytes.NewReader(sealed)
	if text := bytes.TrimSpace(sealed); bytes.HasPrefix(text, []byte(armor.Header)) {
		src = armor.NewReader(bytes.NewReader(text))
	}
	r, err := age.Decrypt(src, ids...)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, fault.New(fault.IntegrityMismatch, op, "%s", stranger).WithHint("%s", hint)
	}
	var plain []byte
	if err == nil {
		plain, err = io.ReadAll(io.LimitReader(r, int64(len(head)+maxPlaintext)+1))
	}
	if err != nil || len(plain) > len(head)+maxPlaintext {
		// Described, not wrapped: the cause may quote what was sealed.
		return nil, fault.New(fault.IntegrityMismatch, op, "it is damaged").
			WithHint("Restore it from a backup, or log in once more.")
	}
	plain, ok := bytes.CutPrefix(plain, head)
	if !ok {
		return nil, fault.New(fault.IntegrityMismatch, op, "it was sealed for another name or origin").
			WithHint("A sealed file cannot be renamed or moved to another site; log in once more.")
	}
	return plain, nil
}

// header is the first line of the plaintext. The same name and origin always
// give the same bytes, and different ones different bytes.
func header(name, origin string) ([]byte, error) {
	if !utf8.ValidString(name) || !utf8.ValidString(origin) {
		return nil, errors.New("the name or origin is not text")
	}
	line, err := json.Marshal(struct {
		Vault  int    `json:"tapin_vault"`
		Name   string `json:"name"`
		Origin string `json:"origin"`
	}{1, name, origin})
	return append(line, '\n'), err
}
