package daemon

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

// WebhookKeyFile holds the key that webhooks are signed with; the receiver
// needs the same one.
const WebhookKeyFile = "webhook.key"

const (
	webhookFor  = 30 * time.Second // for one post and its answer
	maxReadBack = 64 << 10         // of an answer, so that its connection can be used again
)

// webhook wakes by a signed post.
type webhook struct {
	url  secret.Text
	key  secret.Text
	http *http.Client
}

// webhookBody is what is posted.
type webhookBody struct {
	ID   string    `json:"id"`
	Type string    `json:"type"`
	At   time.Time `json:"at"`
	event.HandoffEnded
}

func newWebhook(url, key secret.Text) *webhook {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	transport := &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		DisableCompression:  true,
		IdleConnTimeout:     30 * time.Second,
		Proxy:               http.ProxyFromEnvironment,
	}
	if strings.HasPrefix(strings.ToLower(url.Reveal()), "http:") {
		// In the clear it must not leave this machine, whatever a name resolves to.
		transport.Proxy = nil
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().Unmap().IsLoopback() {
				return errNotLoopback
			}
			return nil
		}
	}
	return &webhook{url: url, key: key, http: &http.Client{
		Transport: transport, Timeout: webhookFor,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

var errNotLoopback = errors.New("it is not on this machine, and http is for this machine alone")

func (h *webhook) call(ctx context.Context, w wake) (again time.Duration, err error) {
	const op = "post to on_resume.webhook"
	body, err := json.Marshal(webhookBody{w.ID, w.Type, w.At, w.HandoffEnded})
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url.Reveal(), bytes.NewReader(body))
	if err != nil {
		return 0, fault.New(fault.InvalidURL, op, "it is no address; %w", errFinal)
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "tapin")
	req.Header.Set("X-Tapin-Id", w.ID)
	req.Header.Set("X-Tapin-Timestamp", stamp)
	req.Header.Set("X-Tapin-Signature", Sign(h.key, stamp, body))
	resp, err := h.http.Do(req)
	if err != nil {
		return 0, fault.New(fault.Busy, op, "%w", whyUnreached(err))
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxReadBack))
	_ = resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	return retryAfter(resp.Header.Get("Retry-After"), time.Now()), fault.New(fault.Busy, op, "the answer was %d", resp.StatusCode)
}

// Sign is the signature of a webhook: HMAC-SHA256 over the timestamp, a dot
// and the body, as "v1=" and hexadecimal digits.
func Sign(key secret.Text, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	_, _ = io.WriteString(mac, timestamp+".")
	_, _ = mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// whyUnreached describes a failure to connect. It wraps nothing that quotes
// the address, which is a secret.
func whyUnreached(err error) error {
	var dns *net.DNSError
	var timeout net.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errNotLoopback):
		return errNotLoopback
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.As(err, &dns):
		return errors.New("its name cannot be resolved")
	case errors.As(err, &cert):
		return errors.New("its certificate is not trusted")
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("it did not answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return syscall.ECONNREFUSED
	}
	return errors.New("the connection failed")
}

// retryAfter reads the header of that name, in seconds or as a date. What is
// neither, or in the past, asks for nothing.
func retryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// webhookKey reads the key, and makes it the first time.
func webhookKey(home *store.Home) (secret.Text, error) {
	raw, err := home.Read(WebhookKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		raw = []byte(rand.Text() + rand.Text() + "\n") // 256 bits
		err = home.Create(WebhookKeyFile, raw)
	}
	if err != nil {
		return secret.Text{}, err
	}
	file := filepath.Join(home.Path(), WebhookKeyFile)
	info, err := home.Stat(WebhookKeyFile)
	if err != nil {
		return secret.Text{}, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return secret.Text{}, fault.New(fault.Forbidden, "", "%s is open to other users (mode %04o)", file, mode).
			WithHint("Delete it and start tapin again, which makes a new one; give that to the receiver.")
	}
	key := strings.TrimSpace(string(raw))
	if !secret.IsToken(key) {
		return secret.Text{}, home.Unreadable(WebhookKeyFile, errors.New("it holds no key"))
	}
	home.Readable(WebhookKeyFile)
	return secret.New(key), nil
}

// unkeyed is a webhook whose key cannot be read. Its wakes wait, and are tried
// again: nothing goes out that the receiver could not tell from a fake.
type unkeyed struct {
	home *store.Home
	to   secret.Text
}

func (u unkeyed) call(ctx context.Context, k wake) (time.Duration, error) {
	key, err := webhookKey(u.home)
	if err != nil {
		return 0, err
	}
	return newWebhook(u.to, key).call(ctx, k)
}
