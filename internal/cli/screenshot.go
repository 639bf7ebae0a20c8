package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

type shotOptions struct {
	output, format string
	fullPage       bool
	quality        int
	of             targetFlags
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
		Long: `Photographs what the active session shows, or one element of it. Without -o
the picture goes into a new file in the current folder, named for the time.`,
		Example: `  tapin screenshot
  tapin screenshot --full-page -o page.jpg
  tapin screenshot --css "#chart" -o chart.png
  tapin screenshot -o - | display`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("output") && o.output == "" {
				return fault.New(fault.InvalidRequest, "", "-o names no file").WithHint("Leave it out for a new file in the current folder.")
			}
			if cmd.Flags().Changed("quality") && (o.quality < 1 || o.quality > 100) {
				return fault.New(fault.InvalidRequest, "", "--quality must be from 1 to 100, not %d", o.quality).WithHint("Leave it out for 80.")
			}
			return a.screenshot(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.output, "output", "o", "", "write to this `file`, replacing it; - is standard output")
	flags.BoolVar(&o.fullPage, "full-page", false, "the whole page instead of what is in view")
	flags.StringVar(&o.format, "format", "", "picture `format`: png, jpeg or webp (default by the file's name, else png)")
	flags.IntVar(&o.quality, "quality", 0, "`N` from 1 to 100, for jpeg and webp")
	o.of.add(cmd, false)
	complete(cmd, "format", func() []string { return []string{"png", "jpeg", "webp"} })
	return cmd
}

func (a *app) screenshot(ctx context.Context, o shotOptions) error {
	if o.output == "/dev/stdout" {
		o.output = "-"
	}
	if o.output == "-" && a.env.IsTerminal(a.env.Stdout) {
		return fault.New(fault.InvalidRequest, "", "a picture cannot be shown on a terminal").
			WithHint("Send it on, as in: %s | display; or name a file.", a.command("screenshot", "-o", "-"))
	}
	if o.output == "-" && a.json {
		return fault.New(fault.InvalidRequest, "", "--json and -o - both want standard output").WithHint("Name a file with -o.")
	}
	if err := o.settle(); err != nil {
		return err
	}
	var element api.Element
	if o.of.given() {
		t, _, err := o.of.pick(nil, false)
		if err != nil {
			return err
		}
		element = t.Element
	}
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	done := a.progress("photographing the page")
	defer done()
	shot, err := client.Screenshot(ctx, "", api.ScreenshotQuery{FullPage: o.fullPage, Format: o.format, Quality: o.quality, Element: element})
	done()
	if err != nil {
		return err
	}
	if o.output == "-" {
		_, err := a.env.Stdout.Write(shot.Bytes)
		return err
	}
	file, err := save(o.output, shot)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.New(fault.StorageFull, "save the picture", "%w", err).WithHint("Free some space, or name another place with -o.")
	}
	if err != nil {
		return fault.New(fault.InvalidRequest, "save the picture", "%w", err).WithHint("Name another place with -o.")
	}
	return a.answer(shotAnswer{File: file, MIMEType: shot.MIMEType, Bytes: len(shot.Bytes)}, func() {
		a.printf("%s  %s\n", file, a.paint(a.env.Stdout).dim(size(len(shot.Bytes))))
	})
}

// settle refuses a place that no picture can go to, before one is taken, and
// chooses the format by the file's name.
func (o *shotOptions) settle() error {
	if info, err := os.Stat(o.output); o.output != "-" && err == nil && !writable(o.output, info.Mode()) {
		return fault.New(fault.InvalidRequest, "", "%s is no file that a picture can be written to", clean(o.output)).
			WithHint("Name a file with -o, or - for standard output.")
	}
	ending := strings.ToLower(filepath.Ext(o.output))
	if slices.Contains(otherPictures, ending) {
		return fault.New(fault.InvalidRequest, "", "a %s cannot be made", ending).WithHint("Name a .png, .jpg or .webp file.")
	}
	switch format := formatOf(ending); {
	case o.format == "" && format == "":
		o.format = "png"
	case o.format == "":
		o.format = format
	case format != "" && o.format != format:
		return fault.New(fault.InvalidRequest, "", "--format %s and a %s file contradict each other", clean(o.format), ending).
			WithHint("Leave --format out, or name the file for it.")
	}
	return nil
}

// writable tells files and devices from folders and from pipes, whose opening
// waits for a reader that may never come. The shell's own pipes are open.
func writable(path string, mode fs.FileMode) bool {
	return mode.IsRegular() || mode&fs.ModeCharDevice != 0 || strings.HasPrefix(path, "/dev/fd/")
}

// otherPictures are the endings of pictures that browsers do not make.
var otherPictures = []string{".apng", ".avif", ".bmp", ".gif", ".heic", ".heif", ".ico", ".jxl", ".pdf", ".svg", ".tif", ".tiff"}

// formatOf is the format that a file's name asks for, if it does.
func formatOf(ending string) string {
	switch ending {
	case ".png":
		return "png"
	case ".jpg", ".jpeg":
		return "jpeg"
	case ".webp":
		return "webp"
	}
	return ""
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
