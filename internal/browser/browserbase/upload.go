package browserbase

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"time"

	"tapin/internal/fault"
	"tapin/internal/guard"
)

// uploads is where Browserbase puts the files it is sent, on the machine of the browser.
const uploads = "/tmp/.uploads"

// uploadWithin bounds the way of one file; it may be large, and the line slow.
const uploadWithin = 5 * time.Minute

// Carry sends files of ours to the browser's machine. Each keeps its name, which
// the page sees; of two with the same name the later one would replace the first.
func (i *instance) Carry(ctx context.Context, files []string) ([]string, error) {
	const op = "send files to Browserbase"
	there := make([]string, 0, len(files))
	seen := map[string]bool{}
	for _, file := range files {
		name := filepath.Base(file)
		if seen[name] {
			return nil, fault.New(fault.InvalidRequest, op, "two of the files have the same name").
				WithHint("Give them in two calls, or rename one.")
		}
		seen[name] = true
		if err := i.provider.upload(ctx, i.ref.Remote, file, name); err != nil {
			return nil, blame(op, fault.ProviderError, err)
		}
		there = append(there, path.Join(uploads, name))
	}
	return there, nil
}

// upload streams one file: it may be larger than what we would hold.
func (p *Provider) upload(ctx context.Context, session, file, name string) error {
	f, err := os.Open(file) //nolint:gosec // the caller has checked that it may leave
	if err != nil {
		return fault.New(fault.InvalidRequest, "", "a file cannot be read")
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return fault.New(fault.InvalidRequest, "", "only ordinary files can be sent to Browserbase")
	}
	body, form := io.Pipe()
	parts := multipart.NewWriter(form)
	done := make(chan struct{})
	go func() {
		defer guard.Catch("browserbase")
		defer close(done)
		part, err := parts.CreateFormFile("file", name)
		if err == nil {
			_, err = io.Copy(part, f)
		}
		_ = form.CloseWithError(errors.Join(err, parts.Close()))
	}()
	err = p.rest.send(ctx, uploadWithin, http.MethodPost, escape("/v1/sessions/%s/uploads", session), parts.FormDataContentType(), body, nil)
	_ = body.Close() // lets the writer end, whatever was read
	<-done
	return err
}
