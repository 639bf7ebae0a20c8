package cli

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/config"
	"tapin/internal/fault"
)

type openOptions struct {
	viewport, provider, context string
	mobile, noSave              bool
	timeout                     string
}

func (a *app) openCommand() *cobra.Command {
	var o openOptions
	cmd := &cobra.Command{
		Use:   "open URL",
		Short: "Open a page",
		Long: `Opens an address in the active session, or in a new one if there is none.
The flags describe a new session; one that is active keeps what it has.`,
		Example: `  tapin open https://example.com
  tapin open example.com --mobile
  tapin open chase.com --context chase        with a saved login, or to begin one
  tapin open https://example.com --viewport 1440x900 --timeout 1h`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := o.request()
			if err != nil {
				return err
			}
			return a.open(cmd.Context(), address(args[0]), req)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.context, "context", "", "start with the saved login of this `name`, and save it at the end")
	flags.BoolVar(&o.noSave, "no-save", false, "leave the saved login as it is")
	flags.StringVar(&o.viewport, "viewport", "", "size of the page, as `WxH` (1280x720)")
	flags.BoolVar(&o.mobile, "mobile", false, "behave as a phone does")
	flags.StringVar(&o.timeout, "timeout", "", "end the session after this `time` (30m, 2h)")
	flags.StringVar(&o.provider, "provider", "", "`where` the browser runs: local, browserbase or cdp")
	complete(cmd, "provider", func() []string { return config.Provider("").Values() })
	return cmd
}

// request is the session that the flags describe.
func (o openOptions) request() (api.StartRequest, error) {
	none := false
	req := api.StartRequest{Context: o.context, Provider: o.provider, Mobile: o.mobile, Look: api.Look{Screenshot: &none}}
	if o.noSave {
		req.SaveContext = &none
	}
	if o.viewport != "" {
		w, h, ok := strings.Cut(strings.ToLower(o.viewport), "x")
		width, err := strconv.Atoi(w)
		height, err2 := strconv.Atoi(h)
		if !ok || err != nil || err2 != nil || width < 1 || height < 1 {
			return req, fault.New(fault.InvalidRequest, "", "--viewport must be width x height, not %q", clean(o.viewport)).
				WithHint("Such as --viewport 1280x720.")
		}
		req.Viewport = &api.Viewport{Width: width, Height: height}
	}
	if o.timeout != "" {
		var d config.Duration
		if err := d.UnmarshalText([]byte(o.timeout)); err != nil || d.Std() < time.Second {
			return req, fault.New(fault.InvalidRequest, "", "--timeout must be a length of time, not %q", clean(o.timeout)).
				WithHint("Such as --timeout 30m.")
		}
		req.TimeoutS = int(d.Std() / time.Second)
	}
	return req, nil
}

// describesSession reports whether any flag asks for a session of a certain kind.
func describesSession(req api.StartRequest) bool {
	return req.Context != "" || req.SaveContext != nil || req.Viewport != nil || req.Mobile || req.TimeoutS != 0 || req.Provider != ""
}

// address makes what a person types into an address: example.com, localhost:3000.
func address(s string) string {
	if strings.Contains(s, "://") || strings.HasPrefix(s, "about:") || strings.HasPrefix(s, "data:") {
		return s
	}
	host, _, _ := strings.Cut(s, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return "http://" + s
	}
	if hasScheme(s) {
		return s
	}
	return "https://" + s
}

// hasScheme tells javascript:alert(1) from example.com:8443. What no page can
// be opened at is for the API to refuse.
func hasScheme(s string) bool {
	scheme, rest, found := strings.Cut(s, ":")
	if !found || scheme == "" || strings.ContainsFunc(scheme, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '-'
	}) {
		return false
	}
	port := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		port = rest[:end]
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return err != nil
}

func (a *app) open(ctx context.Context, url string, req api.StartRequest) error {
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	done := a.progress("opening " + clean(url))
	defer done()
	id, fresh, err := a.session(ctx, client, req)
	if err != nil {
		return err
	}
	none := false
	page, err := client.Navigate(ctx, id, api.NavigateRequest{URL: url, Look: api.Look{Screenshot: &none}})
	done()
	if err != nil {
		if fresh {
			// A command that failed has changed nothing; also not when it was
			// a Ctrl-C that ended it.
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, _ = client.Stop(ending, id, api.StopRequest{SaveContext: &none})
		}
		return err
	}
	return a.tellPage(page)
}

// session is the active session, or a new one.
func (a *app) session(ctx context.Context, client *api.Client, req api.StartRequest) (id string, fresh bool, err error) {
	started, err := client.Start(ctx, req)
	if err == nil {
		return started.SessionID, true, nil
	}
	active, ok := fault.Of(err).Data["session_id"].(string)
	if !errors.Is(err, fault.SessionActive) || !ok {
		return "", false, err
	}
	if describesSession(req) {
		return "", false, fault.New(fault.SessionActive, "", "session %s is active, and the flags describe a new one", clean(active)).
			WithHint("Stop it first with: %s; or leave the flags out.", a.command("stop"))
	}
	return active, false, nil
}

// tellPage prints where an action has led.
func (a *app) tellPage(page *api.PageAnswer) error {
	return a.answer(page, func() {
		status := ""
		if page.StatusCode != 0 {
			status = strconv.Itoa(page.StatusCode)
		}
		a.rows(row{"session", clean(page.SessionID)}, row{"url", clean(page.URL)}, row{"title", clean(page.Title)}, row{"status", status})
	})
}
