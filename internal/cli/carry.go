package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/fault"
)

// maxEnvelopeFile is more than any envelope takes.
const maxEnvelopeFile = 32 << 20

type exportOptions struct {
	output, origin   string
	noStorage, plain bool
	withPassphrase   bool
	recipients       []string
}

type exportedFile struct {
	File string `json:"file"`
	api.ExportAnswer
	Envelope *struct{} `json:"envelope,omitempty"` // it is in the file, and nowhere else
}

func (a *app) contextExportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export NAME",
		Short: "Put a login into a file that can be carried",
		Long: `Writes the login of one site into a file. Only those it is sealed for can open it:
other tapins named with --to (tapin doctor prints each one's recipient), whoever
knows a passphrase, or, without either, this tapin alone.

With --plain anybody who has the file is logged in.`,
		Example: `  tapin context export chase --to age1… -o chase.json
  tapin context export chase --passphrase`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.contextExport(cmd.Context(), args[0], o) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.output, "output", "o", "", "the `file` to write (NAME.envelope.json); - is standard output")
	flags.StringArrayVar(&o.recipients, "to", nil, "a `recipient` that can open it; may be repeated")
	flags.BoolVar(&o.withPassphrase, "passphrase", false, "seal it with a passphrase, which is asked for")
	flags.BoolVar(&o.plain, "plain", false, "do not seal it")
	flags.StringVar(&o.origin, "origin", "", "the `site` whose login it is, where there are several")
	flags.BoolVar(&o.noStorage, "no-storage", false, "cookies alone")
	return cmd
}

func (a *app) contextExport(ctx context.Context, name string, o exportOptions) error {
	sealed := !o.plain
	if o.plain && (o.withPassphrase || len(o.recipients) > 0) || o.withPassphrase && len(o.recipients) > 0 {
		return fault.New(fault.InvalidRequest, "", "--plain, --passphrase and --to say different things").WithHint("Use one of them.")
	}
	storage := !o.noStorage
	req := api.ExportRequest{Origin: o.origin, IncludeStorage: &storage, Sealed: &sealed, Recipients: o.recipients}
	if o.withPassphrase {
		var err error
		if req.Passphrase, err = a.secrets().ask(ctx, "Passphrase"); err != nil {
			return err
		}
	}
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	got, err := client.ExportContext(ctx, name, req)
	if err != nil {
		return err
	}
	if o.output == "-" {
		a.printf("%s\n", got.Envelope)
		return nil
	}
	file, err := writeEnvelope(name, o.output, got.Envelope)
	if err != nil {
		return err
	}
	answer := exportedFile{File: file, ExportAnswer: *got}
	answer.ExportAnswer.Envelope = nil
	return a.answer(answer, func() {
		p := a.paint(a.env.Stdout)
		a.rows(row{"file", a.tilde(clean(file))}, row{"site", clean(got.Origin)},
			row{"holds", count(got.Cookies, "cookie") + ", " + count(got.StorageKeys, "storage key")},
			row{"without", clean(strings.Join(got.NotCarried, ", "))})
		if !got.Sealed {
			a.printf("%s It is not sealed: whoever has the file is logged in.\n", p.bang())
		}
	})
}

// writeEnvelope never writes over a file that it was not told to.
func writeEnvelope(name, output string, envelope []byte) (string, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if output == "" {
		output, flags = name+".envelope.json", os.O_WRONLY|os.O_CREATE|os.O_EXCL
	}
	output, err := filepath.Abs(output)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(output, flags, 0o600) //nolint:gosec // the owner says where
	if errors.Is(err, fs.ErrExist) {
		return "", fault.New(fault.InvalidRequest, "", "%s is there already", output).WithHint("Name the file with -o.")
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(envelope, '\n'))
	// What an older file let others read, this one must not.
	return output, errors.Join(err, f.Chmod(0o600), f.Close())
}

func (a *app) contextImportCommand() *cobra.Command {
	var withPassphrase bool
	cmd := &cobra.Command{
		Use:   "import NAME FILE",
		Short: "Take a login from a file",
		Long: `Reads an envelope, plain or sealed, and puts it in the place of what the login
had for that site. A login that does not exist is made. A FILE of - is read from
standard input.`,
		Example: "  tapin context import chase chase.json",
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if withPassphrase && args[1] == "-" {
				return fault.New(fault.InvalidRequest, "", "both the file and the passphrase would be read from standard input").WithHint("Name the file.")
			}
			req := api.ImportRequest{}
			var err error
			if req.Envelope, err = a.readEnvelope(args[1]); err != nil {
				return err
			}
			if withPassphrase {
				if req.Passphrase, err = a.secrets().ask(cmd.Context(), "Passphrase"); err != nil {
					return err
				}
			}
			return drive(cmd.Context(), a, "taking it in", func(ctx context.Context, c *api.Client) (*api.ImportAnswer, error) {
				return c.ImportContext(ctx, args[0], req)
			}, func(got *api.ImportAnswer) {
				a.rows(row{"login", clean(args[0])}, row{"site", clean(got.Origin)},
					row{"took", count(got.AppliedCookies, "cookie") + ", " + count(got.AppliedStorageKeys, "storage key")},
					row{"left alone", clean(strings.Join(got.LeftAlone, ", "))})
			})
		},
	}
	cmd.Flags().BoolVar(&withPassphrase, "passphrase", false, "it is sealed with a passphrase, which is asked for")
	return cmd
}

// readEnvelope reads a file that may hold secrets: what is wrong with it is
// said without quoting it.
func (a *app) readEnvelope(name string) (json.RawMessage, error) {
	var raw []byte
	var err error
	if name == "-" {
		raw, err = io.ReadAll(io.LimitReader(a.env.Stdin, maxEnvelopeFile+1))
	} else {
		var f *os.File
		if f, err = os.Open(name); err == nil { //nolint:gosec // the owner says which
			raw, err = io.ReadAll(io.LimitReader(f, maxEnvelopeFile+1))
			_ = f.Close()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "", "there is no file %s", clean(name))
	case err != nil:
		return nil, err
	case len(raw) > maxEnvelopeFile:
		return nil, fault.New(fault.PayloadTooLarge, "", "%s is no envelope: it is too long", clean(name))
	case !json.Valid(raw):
		return nil, fault.New(fault.InvalidRequest, "", "%s is no envelope: it is not JSON", clean(name))
	}
	return raw, nil
}
