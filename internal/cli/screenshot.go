package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

type shotOptions struct {
	output, format string
	fullPage       bool
	quality        int
}

type shotAnswer struct {
	File     string `json:"file"`
	MIMEType string `json:"mime_type"`
	Bytes    int    `json:"bytes"`
}

func (a *app) screenshotCommand() *cobra.Command {
	var o shotOptions
	cmd := &cobra.Command{
		Use:   "screenshot",
		Short: "Photograph the page",
		Long: `Photographs what the active session shows. Without -o the picture goes into
a new file in the current folder, named for the time.`,
		Example: `  tapin screenshot
  tapin screenshot --full-page -o page.jpg
  tapin screenshot -o - | display`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.screenshot(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.output, "output", "o", "", "write to this `file`, replacing it; - is standard output")
	flags.BoolVar(&o.fullPage, "full-page", false, "the whole page instead of what is in view")
	flags.StringVar(&o.format, "format", "", "picture `format`: png, jpeg or webp (default by the file's name, else png)")
	flags.IntVar(&o.quality, "quality", 0, "`N` from 1 to 100, for jpeg and webp")
	complete(cmd, "format", func() []string { return []string{"png", "jpeg", "webp"} })
	return cmd
}

func (a *app) screenshot(ctx context.Context, o shotOptions) error {
	if o.output == "-" && a.env.IsTerminal(a.env.Stdout) {
		return fault.New(fault.InvalidRequest, "", "a picture cannot be shown on a terminal").
			WithHint("Send it on, as in: %s | display; or name a file.", a.command("screenshot", "-o", "-"))
	}
	if o.output == "-" && a.json {
		return fault.New(fault.InvalidRequest, "", "--json and -o - both want standard output").WithHint("Name a file with -o.")
	}
	if o.format == "" {
		o.format = formatOf(o.output)
	}
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	done := a.progress("photographing the page")
	defer done()
	shot, err := client.Screenshot(ctx, "", api.ScreenshotQuery{FullPage: o.fullPage, Format: o.format, Quality: o.quality})
	done()
	if err != nil {
		return err
	}
	if o.output == "-" {
		_, err := a.env.Stdout.Write(shot.Bytes)
		return err
	}
	file, err := save(o.output, shot)
	if err != nil {
		return fault.New(fault.InvalidRequest, "save the picture", "%w", err).WithHint("Name another place with -o.")
	}
	return a.answer(shotAnswer{File: file, MIMEType: shot.MIMEType, Bytes: len(shot.Bytes)}, func() {
		a.printf("%s  %s\n", file, a.paint(a.env.Stdout).dim(size(len(shot.Bytes))))
	})
}

func formatOf(file string) string {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".jpg", ".jpeg":
		return "jpeg"
	case ".webp":
		return "webp"
	}
	return "png"
}

// save writes a picture for its owner alone: it may show anything. Without a
// name it finds a new one, and never replaces a file that nobody named.
func save(output string, shot *api.Shot) (file string, err error) {
	if output != "" {
		return output, os.WriteFile(output, shot.Bytes, 0o600)
	}
	_, ending, _ := strings.Cut(shot.MIMEType, "/")
	base := time.Now().Format("tapin-20060102-150405")
	for n := 1; ; n++ {
		file = base + "." + ending
		if n > 1 {
			file = fmt.Sprintf("%s-%d.%s", base, n, ending)
		}
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the current folder
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(shot.Bytes)
		return file, errors.Join(err, f.Close())
	}
}

// size writes a number of bytes for people.
func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.0f KB", float64(n)/1000)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1_000_000)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1_000_000_000)
}
