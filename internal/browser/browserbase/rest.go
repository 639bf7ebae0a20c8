package browserbase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	// DefaultBaseURL is where Browserbase is.
	DefaultBaseURL = "https://api.browserbase.com"

	maxAnswer  = 4 << 20
	maxMessage = 240 // of an error's own words
	// patience is how long we wait ourselves when told to come back later; more
	// than that is the caller's to decide.
	patience = 5 * time.Second
)

// Account is whose browsers they are. It comes from the keychain or the environment.
type Account struct {
	Key     secret.Text
	Project string // empty leaves it to the key
	BaseURL string // empty means DefaultBaseURL
}

// rest speaks to the API. It is safe for concurrent use.
type rest struct {
	http    *http.Client
	account func(context.Context) (Account, error)
	within  time.Duration // of one answer

	mu     sync.Mutex
	known  *Account
	notYet time.Time // when we were told to come back
}

// newREST follows no redirect: the key must not travel to somebody else.
func newREST(account func(context.Context) (Account, error), within time.Duration) *rest {
	return &rest{
		account: account, within: within,
		http: &http.Client{
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// who is the account. It is asked for anew after it was refused: the owner may
// have put another key in place.
func (r *rest) who(ctx context.Context) (Account, error) {
	r.mu.Lock()
	known := r.known
	r.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	a, err := r.account(ctx)
	if err != nil {
		return Account{}, err
	}
	if a.BaseURL == "" {
		a.BaseURL = DefaultBaseURL
	}
	u, err := url.Parse(a.BaseURL)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return Account{}, fault.New(fault.ProviderNotConfigured, "use Browserbase", "BROWSERBASE_BASE_URL is no https address").
			WithHint("Leave it out for %s; http:// is for this machine alone.", DefaultBaseURL)
	}
	a.BaseURL = strings.TrimRight(a.BaseURL, "/")
	r.mu.Lock()
	r.known = &a
	r.mu.Unlock()
	return a, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// unheard is a call without an answer: it may have been done.
type unheard struct{ why string }

func (u *unheard) Error() string { return "Browserbase did not answer: " + u.why }

// refusal is the answer to a call that was not done.
type refusal struct {
	status int
	words  string // Browserbase's own, made harmless
	after  time.Duration
}

func (r *refusal) Error() string {
	text := "Browserbase answered " + strconv.Itoa(r.status) + " " + http.StatusText(r.status)
	if r.words != "" {
		text += ": " + r.words
	}
	return text
}

// isUnheard reports whether it is not known if a call was done.
func isUnheard(err error) bool {
	_, ok := errors.AsType[*unheard](err)
	return ok
}

// refusedWith reports whether the answer was that status.
func refusedWith(err error, status int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == status
}

// call is one request that is sent once.
func (r *rest) call(ctx context.Context, method, path string, body, out any) error {
	var payload io.Reader
	kind := ""
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload, kind = bytes.NewReader(raw), "application/json"
	}
	return r.send(ctx, r.within, method, path, kind, payload, out)
}

// ask is a request that may be repeated, and is, where a repeat may help.
func (r *rest) ask(ctx context.Context, method, path string, body, out any) error {
	pauses := []time.Duration{200 * time.Millisecond, time.Second}
	for {
		err := r.call(ctx, method, path, body, out)
		pause := time.Duration(-1)
		if refused, ok := errors.AsType[*refusal](err); ok && refused.status == http.StatusTooManyRequests && refused.after <= patience {
			pause = max(refused.after, 200*time.Millisecond)
		}
		if len(pauses) == 0 || !isUnheard(err) && pause < 0 {
			return err
		}
		if err := wait(ctx, max(pause, pauses[0])); err != nil {
			return err
		}
		pauses = pauses[1:]
	}
}

func (r *rest) send(ctx context.Context, within time.Duration, method, path, kind string, payload io.Reader, out any) error {
	account, err := r.who(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, account.BaseURL+path, payload)
	if err != nil {
		return errors.New("the request to Browserbase cannot be made")
	}
	req.Header.Set("X-BB-API-Key", account.Key.Reveal())
	req.Header.Set("Accept", "application/json")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return &unheard{describe(err)} // its own words hold the address
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil || len(raw) > maxAnswer {
		return &unheard{"the answer broke off"}
	}
	switch {
	case resp.StatusCode >= 500:
		return &unheard{"it answered " + strconv.Itoa(resp.StatusCode)}
	case resp.StatusCode == http.StatusRequestTimeout:
		return &unheard{"it gave up"}
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		return r.refused(resp, raw, account)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return &unheard{"the answer cannot be understood"} // what was asked for was done
	}
	return nil
}

func (r *rest) refused(resp *http.Response, raw []byte, account Account) error {
	refused := &refusal{status: resp.StatusCode, words: words(raw, account), after: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		r.known = nil
	case http.StatusTooManyRequests:
		r.notYet = time.Now().Add(refused.after)
	}
	return refused
}

// words are what an error says of itself, without anything that may be a secret.
func words(raw []byte, account Account) string {
	var told struct {
		Message json.RawMessage `json:"message"`
		Error   string          `json:"error"`
	}
	if json.Unmarshal(raw, &told) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(told.Message, &text) != nil || text == "" {
		text = told.Error
	}
	text = strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, text)
	if cut := []rune(text); len(cut) > maxMessage {
		text = string(cut[:maxMessage]) + "…"
	}
	return secret.Conceal(text, account.Key)
}

// retryAfter reads seconds or a date; without either a moment is enough.
func retryAfter(header string, now time.Time) time.Duration {
	const least, most = time.Second, 10 * time.Minute
	d := least
	if n, err := strconv.ParseFloat(strings.TrimSpace(header), 64); err == nil && n >= 0 && n < most.Seconds() {
		d = time.Duration(n * float64(time.Second))
	} else if err == nil && n > 0 {
		d = most
	} else if at, err := http.ParseTime(header); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), most)
}

// waiting is how long we were told to stay away.
func (r *rest) waiting() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.notYet)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// describe says what kind of failure it was, in words that hold nothing of the address.
func describe(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "its name cannot be resolved"
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	case errors.Is(err, context.Canceled):
		return "the call was given up"
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" {
		return "it cannot be reached"
	}
	return "the connection broke"
}

// blame gives an error of the API the code and the hint that help.
func blame(op string, other fault.Code, err error) error {
	if err == nil {
		return nil
	}
	refused, ok := errors.AsType[*refusal](err)
	if !ok {
		return fault.Wrap(other, op, err)
	}
	f := fault.New(other, op, "%w", err)
	switch refused.status {
	case http.StatusUnauthorized:
		f.Code = fault.ProviderNotConfigured
		return f.WithHint("The API key is not accepted. Put the right one into the keychain as credential-browserbase-api-key, or into BROWSERBASE_API_KEY.")
	case http.StatusPaymentRequired:
		f.Code = fault.ProviderError
		return f.WithHint("The account has no browser time left. Add some at Browserbase, or use provider: local.")
	case http.StatusForbidden:
		f.Code = fault.ProviderNotConfigured
		return f.WithHint("The plan or the API key does not allow it. Check the project id (credential-browserbase-project-id) and the plan, or use provider: local.")
	case http.StatusConflict:
		f.Code = fault.ProviderError
		return f.WithHint("Something else at Browserbase is in the way, perhaps a session that still ends. Try again in a moment.")
	case http.StatusTooManyRequests:
		f.Code = fault.RateLimited
		seconds := int((refused.after + time.Second - 1) / time.Second)
		return f.With("retry_after_s", seconds).WithHint("Browserbase allows no more now: too many browsers at a time, or too many a minute. Try again in %d s.", max(1, seconds))
	}
	return f
}

// escape makes a name safe as a part of a path.
func escape(format string, names ...any) string {
	for i, n := range names {
		names[i] = url.PathEscape(fmt.Sprint(n))
	}
	return fmt.Sprintf(format, names...)
}
