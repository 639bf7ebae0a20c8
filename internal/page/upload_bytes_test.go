package page_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/endpoint"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// far is a browser that cannot read our disk.
type far struct{ browser.Instance }

func (far) Distant() bool { return true }

func TestFilesReachABrowserThatCannotReadOurDisk(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	got := make(chan map[string][]byte, 2)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			files := map[string][]byte{}
			if form, err := r.MultipartReader(); err == nil {
				for part, err := form.NextPart(); err == nil; part, err = form.NextPart() {
					raw, _ := io.ReadAll(part)
					files[part.FileName()+" "+part.Header.Get("Content-Type")] = raw
				}
			}
			got <- files
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<!doctype html><meta charset=utf-8><form method=post enctype=multipart/form-data><input type=file name=f id=f multiple onchange="this.form.submit()"></form>
			<button id=b onclick="f.click()">Choose</button>`)
	}))
	t.Cleanup(site.Close)
	p, err := endpoint.New(secret.New(browsertest.Chromium(t).String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_far-1"})
	if err != nil {
		t.Fatal(err)
	}
	tabs, err := page.Open(ctx, far{inst}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tabs.Close)
	tab, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 3<<20+17) // several parts
	_, _ = rand.Read(large)
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a.txt"), filepath.Join(dir, "ü b.png")}
	for i, content := range [][]byte{[]byte("142.50"), large} {
		if err := os.WriteFile(files[i], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, meant := range map[string]string{"a field": "#f", "what opens a chooser": "#b"} {
		if _, err := tab.Navigate(ctx, site.URL, page.WaitLoad); err != nil {
			t.Fatal(err)
		}
		if err := tab.Upload(ctx, page.Locator{CSS: meant}, files, 0); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sent := <-got
		if !bytes.Equal(sent["a.txt text/plain"], []byte("142.50")) || !bytes.Equal(sent["ü b.png image/png"], large) {
			for k, v := range sent {
				t.Logf("%q has %d bytes", k, len(v))
			}
			t.Errorf("%s: the site was sent something else", name)
		}
	}
	huge := filepath.Join(dir, "huge")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 51<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Navigate(ctx, site.URL, page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	if err := tab.Upload(ctx, page.Locator{CSS: "#f"}, []string{huge}, 0); err == nil {
		t.Error("51 MiB were taken")
	}
}
