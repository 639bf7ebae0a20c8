package oneshot

import (
	"bytes"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"strings"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
)

func TestAPictureOfAPage(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	mux := http.NewServeMux()
	html(mux, "/", `<title>Hello</title><meta name=viewport content="width=device-width"><h1>Hello</h1>`)
	html(mux, "/tall", `<title>Tall</title><meta name=viewport content="width=device-width"><body style="margin:0"><div style="height:3000px;background:linear-gradient(red,blue)">`)
	html(mux, "/noise", noise(390, 3000))
	html(mux, "/louder", noise(1280, 3200))
	html(mux, "/endless", `<body style="margin:0"><div style="height:40000px">`)
	mux.HandleFunc("/missing", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, "<title>No such page</title>")
	})
	mux.Handle("/moved", http.RedirectHandler("/tall", http.StatusFound))
	w := newWorld(t, mux, nil)

	take := func(t *testing.T, c ShotCall) (Shot, image.Config) {
		t.Helper()
		shot, err := w.Screenshot(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		size, format, err := image.DecodeConfig(bytes.NewReader(decoded(t, shot)))
		if err != nil {
			t.Fatal(err)
		}
		if shot.MIME != "image/"+format {
			t.Errorf("a %s is called %s", format, shot.MIME)
		}
		return shot, size
	}
	t.Run("is a PNG of a phone's screen", func(t *testing.T) {
		shot, size := take(t, ShotCall{Call: w.at("/")})
		if size.Width != 390 || size.Height != 844 || shot.MIME != "image/png" || shot.Truncated {
			t.Errorf("%dx%d %s truncated=%v", size.Width, size.Height, shot.MIME, shot.Truncated)
		}
		if shot.Title != "Hello" || shot.FinalURL != w.site.URL+"/" || shot.StatusCode != 200 || shot.Retries != 0 {
			t.Errorf("%+v", shot.Seen)
		}
	})
	t.Run("is of the whole page when that is asked for", func(t *testing.T) {
		if _, size := take(t, ShotCall{Call: w.at("/tall"), FullPage: true}); size.Height != 3000 {
			t.Errorf("its height is %d", size.Height)
		}
	})
	t.Run("has the size and kind of device that was asked for", func(t *testing.T) {
		desktop := false
		c := ShotCall{Call: w.at("/")}
		c.Width, c.Height, c.Mobile = 800, 600, &desktop
		if _, size := take(t, c); size.Width != 800 || size.Height != 600 {
			t.Errorf("%dx%d", size.Width, size.Height)
		}
	})
	t.Run("tells where a redirect led and what a missing page says", func(t *testing.T) {
		if shot, _ := take(t, ShotCall{Call: w.at("/moved")}); shot.FinalURL != w.site.URL+"/tall" || shot.Title != "Tall" {
			t.Errorf("%+v", shot.Seen)
		}
		if shot, _ := take(t, ShotCall{Call: w.at("/missing")}); shot.StatusCode != 404 || shot.Title != "No such page" {
			t.Errorf("%+v", shot.Seen)
		}
	})
	t.Run("over the limit is a JPEG, and is called one", func(t *testing.T) {
		shot, size := take(t, ShotCall{Call: w.at("/noise"), FullPage: true})
		if shot.MIME != "image/jpeg" || !shot.Truncated || size.Height != 3000 {
			t.Errorf("%dx%d %s truncated=%v", size.Width, size.Height, shot.MIME, shot.Truncated)
		}
		if n := len(decoded(t, shot)); n > mostImage {
			t.Errorf("it has %d bytes", n)
		}
	})
	t.Run("still over the limit is refused", func(t *testing.T) {
		for _, path := range []string{"/louder", "/endless"} {
			shot, err := w.Screenshot(ctx, ShotCall{Call: w.at(path), FullPage: true})
			f := wantCode(t, err, fault.ImageTooLarge)
			// A large picture may take a busy machine two tries; one that is too tall is never painted.
			if shot.Base64 != "" || path == "/endless" && f.Data["retries"] != 0 {
				t.Errorf("%s: %d characters came with it, data %v", path, len(shot.Base64), f.Data)
			}
		}
	})
	t.Run("needs both sides of a viewport", func(t *testing.T) {
		c := ShotCall{Call: w.at("/")}
		c.Width = 100
		_, err := w.Screenshot(ctx, c)
		_ = wantCode(t, err, fault.InvalidRequest)
	})
}

func TestTheContentOfAPage(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	mux := http.NewServeMux()
	html(mux, "/", `<title>Shop</title><body><h1>Shop</h1><ul><li>one<li>two</ul><p class=late></p>
		<script>setTimeout(() => document.querySelector(".late").textContent = innerWidth + " wide", 100)</script>`)
	html(mux, "/long", `<title>Long</title><p>`+strings.Repeat("word ", 9000))
	html(mux, "/asks", `<title>Asks</title><script>alert("hi"); onbeforeunload = e => e.preventDefault()</script><p>after `+`<script>document.write(confirm("?"))</script>`)
	w := newWorld(t, mux, nil)

	t.Run("is its text, on a desk, after scripts", func(t *testing.T) {
		got, err := w.Extract(ctx, ExtractCall{Call: w.at("/")})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := got.Content.(string)
		if !strings.Contains(text, "two") || !strings.Contains(text, "1280 wide") || got.Title != "Shop" || got.StatusCode != 200 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("is cut at 20,000 characters", func(t *testing.T) {
		got, err := w.Extract(ctx, ExtractCall{Call: w.at("/long")})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := got.Content.(string); !got.Truncated || len(text) > 20_000 || len(text) < 19_900 {
			t.Errorf("%d characters, truncated=%v", len(text), got.Truncated)
		}
	})
	t.Run("that an instruction does not find is named", func(t *testing.T) {
		_, err := w.Extract(ctx, ExtractCall{Call: w.at("/"), Instruction: "selector: .price"})
		f := wantCode(t, err, fault.EmptyExtraction)
		if !strings.Contains(f.Details(), ".price") {
			t.Errorf("it says %q", f.Details())
		}
	})
	t.Run("is not looked for with an instruction that makes no sense", func(t *testing.T) {
		_, err := w.Extract(ctx, ExtractCall{Call: w.at("/"), Instruction: "json: {"})
		_ = wantCode(t, err, fault.InvalidRequest)
	})
	t.Run("of free text is the page's, with a note", func(t *testing.T) {
		got, err := w.Extract(ctx, ExtractCall{Call: w.at("/"), Instruction: "the prices please"})
		if err != nil || !strings.Contains(got.Note, "selector") {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("comes although the page asks questions", func(t *testing.T) {
		got, err := w.Extract(ctx, ExtractCall{Call: w.at("/asks")})
		if text, _ := got.Content.(string); err != nil || !strings.Contains(text, "after false") {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
