package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

// oneShotWithin is a little more than a one-shot may take: it ends by itself.
const oneShotWithin = 95 * time.Second

var httpAddress = regexp.MustCompile(`(?i)^https?://`)

func isAddress(s string) bool { return httpAddress.MatchString(s) }

type oneShotAnswer struct {
	shotAnswer
	Title      string `json:"title"`
	FinalURL   string `json:"final_url"`
	StatusCode int    `json:"status_code"`
	Truncated  bool   `json:"truncated"`
	Retries    int    `json:"retries"`
}

func (a *app) shotCommand() *cobra.Command {
	var (
		o    shotOptions
		wide bool
	)
	cmd := &cobra.Command{
		Use:   "shot URL",
		Short: "Photograph the page at a URL, beside the session",
		Long: `Photographs the page at a URL in a browser context of its own, which knows no
login and is gone afterwards. The session, if there is one, is not touched. The
picture is as a phone sees the page; PNG, or JPEG where that would be too large.`,
		Example: `  tapin shot https://example.com
  tapin shot https://example.com --full-page -o page.png
  tapin shot https://example.com --wide`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := api.BrowserScreenshotRequest{OneShot: api.OneShot{URL: args[0]}, FullPage: o.fullPage}
			if wide {
				phone := false
				req.Mobile, req.Viewport = &phone, &api.Viewport{Width: 1280, Height: 720}
			}
			return a.shot(cmd.Context(), req, o.output)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.output, "output", "o", "", "write to this `file`, replacing it; - is standard output")
	flags.BoolVar(&o.fullPage, "full-page", false, "the whole page instead of the first screen")
	flags.BoolVar(&wide, "wide", false, "as a desktop of 1280 by 720 sees it")
	return cmd
}

func (a *app) shot(ctx context.Context, req api.BrowserScreenshotRequest, output string) error {
	if output == "-" && (a.json || a.env.IsTerminal(a.env.Stdout)) {
		return fault.New(fault.InvalidRequest, "", "a picture cannot go to standard output here").WithHint("Name a file with -o.")
	}
	ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	done := a.progress("photographing the page")
	defer done()
	got, err := client.BrowserScreenshot(ctx, req)
	done()
	if err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(got.ImageBase64)
	if err != nil {
		return fault.New(fault.ProviderError, "", "the browser's picture cannot be read")
	}
	if output == "-" {
		_, err := a.env.Stdout.Write(raw)
		return err
	}
	file, err := save(output, &api.Shot{Bytes: raw, MIMEType: got.MIMEType})
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.New(fault.StorageFull, "save the picture", "%w", err).WithHint("Free some space, or name another place with -o.")
	}
	if err != nil {
		return fault.New(fault.InvalidRequest, "save the picture", "%w", err).WithHint("Name another place with -o.")
	}
	answer := oneShotAnswer{
		shotAnswer: shotAnswer{File: file, MIMEType: got.MIMEType, Bytes: len(raw)},
		Title:      got.Title, FinalURL: got.FinalURL, StatusCode: got.StatusCode, Truncated: got.Truncated, Retries: got.Retries,
	}
	return a.answer(answer, func() {
		a.printf("%s  %s\n", file, a.paint(a.env.Stdout).dim(size(len(raw))))
		a.rows(row{"url", clean(got.FinalURL)}, row{"title", clean(got.Title)})
		a.tellBlocked(got.Blocked)
	})
}

// extractAt reads the page at an address.
func (a *app) extractAt(ctx context.Context, req api.BrowserExtractRequest) error {
	ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	return drive(ctx, a, "reading the page", func(ctx context.Context, c *api.Client) (*api.BrowserExtract, error) {
		return c.BrowserExtract(ctx, req)
	}, func(got *api.BrowserExtract) {
		a.tellExtract(got.Extracted)
		a.tellBlocked(got.Blocked)
	})
}

// tellBlocked says what is missing from a page, and why.
func (a *app) tellBlocked(blocks []api.BlockedTarget) {
	for _, b := range blocks {
		a.errorf("%s The page asked for %s, which the network guard refused (%s).\n", a.paint(a.env.Stderr).bang(), clean(b.Host), clean(b.Rule))
	}
}
