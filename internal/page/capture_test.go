package page_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	_ "image/png"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
)

// picture decodes a screenshot, and fails where it is not what it says it is.
func picture(t *testing.T, shot page.Image, err error) image.Image {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	raw := rawPicture(t, shot)
	img, kind, err := image.Decode(bytes.NewReader(raw))
	if err != nil || kind != string(shot.Format) {
		t.Fatalf("a picture said to be %s is %q, %v", shot.Format, kind, err)
	}
	return img
}

func rawPicture(t *testing.T, shot page.Image) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(shot.Base64)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)
}

// colours is what a picture shows at points of it.
func colours(img image.Image, at ...image.Point) string {
	var out []string
	for _, p := range at {
		out = append(out, hex(img.At(p.X, p.Y)))
	}
	return strings.Join(out, " ")
}

func open(ctx context.Context, t *testing.T, look page.Look, pages map[string]string, path string) (*web, *page.Tab) {
	t.Helper()
	w := visit(t, pages, look)
	tab := w.front(ctx, t)
	if _, err := tab.Navigate(ctx, w.URL+path, page.WaitLoad); err != nil {
		t.Fatal(err)
	}
	return w, tab
}

const boxes = `<!doctype html><meta charset=utf-8><title>boxes</title><style>body{margin:0;background:#fff;height:3000px}
div,iframe{position:absolute;border:0} #a{left:20px;top:30px;width:100px;height:50px;background:#ff0000}
#b{left:40px;top:1500px;width:200px;height:80px;background:#00ff00;border-bottom:10px solid #0000ff}
#huge{left:300px;top:200px;width:60px;height:2000px;background:linear-gradient(#ff00ff 50%,#00ffff 50%)}
#odd{left:500.4px;top:10.6px;width:30.2px;height:20.2px;background:#808000}
iframe{left:400px;top:900px;width:300px;height:200px;border:5px solid #000;padding:7px}
</style><div id=a></div><div id=b></div><div id=huge></div><div id=odd></div><iframe src="OTHER/inner"></iframe>`

var boxPages = map[string]string{
	"/":      boxes,
	"/inner": `<!doctype html><style>body{margin:0;height:900px}div{position:absolute;left:10px;top:500px;width:40px;height:30px;background:#ff8000}</style><div id=in></div>`,
}

func TestAnElementIsPhotographedExactly(t *testing.T) {
	t.Parallel()
	for _, ratio := range []int{1, 2} {
		t.Run(fmt.Sprintf("at %d pixels a pixel", ratio), func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			_, tab := open(ctx, t, page.Look{Scale: float64(ratio)}, boxPages, "/")
			for _, tt := range []struct {
				name          string
				css           string
				width, height int
				blur          int    // what another process draws may be soft at its edge
				colours       string // corner, middle, opposite corner
			}{
				{"one in view", "#a", 100, 50, 0, "ff0000 ff0000 ff0000"},
				{"one far down", "#b", 200, 90, 0, "00ff00 00ff00 0000ff"},
				{"one larger than the viewport", "#huge", 60, 2000, 0, "ff00ff 00ffff 00ffff"},
				{"one in a frame of another site, below its fold", "#in", 40, 30, 2, "ff8000 ff8000 ff8000"},
			} {
				shot, err := tab.Screenshot(ctx, page.ShotOptions{Locator: &page.Locator{CSS: tt.css}, Asked: true})
				img := picture(t, shot, err)
				size := img.Bounds().Size()
				if size != image.Pt(tt.width*ratio, tt.height*ratio) {
					t.Errorf("%s is %v large", tt.name, size)
				}
				if got := colours(img, image.Pt(tt.blur, tt.blur), size.Div(2), size.Sub(image.Pt(1+tt.blur, 1+tt.blur))); got != tt.colours {
					t.Errorf("%s shows %s", tt.name, got)
				}
				if shot.Title != "boxes" || !strings.HasSuffix(shot.URL, "/") {
					t.Errorf("%s is of %q, %q", tt.name, shot.Title, shot.URL)
				}
			}
			shot, err := tab.Screenshot(ctx, page.ShotOptions{Locator: &page.Locator{CSS: "#odd"}})
			img := picture(t, shot, err)
			if size := img.Bounds().Size(); size.X < 30*ratio || size.X > 32*ratio || size.Y < 20*ratio || size.Y > 22*ratio || hex(img.At(size.X/2, size.Y/2)) != "808000" {
				t.Errorf("one between the pixels is %v and shows %s", size, hex(img.At(size.X/2, size.Y/2)))
			}
		})
	}
}

func TestPicturesAreWhatTheySayTheyAre(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	_, tab := open(ctx, t, page.Look{Width: 640, Height: 400}, boxPages, "/")
	mask := []page.Locator{{CSS: "#a"}}
	for _, tt := range []struct {
		name  string
		o     page.ShotOptions
		magic string
		mime  string
	}{
		{"by itself", page.ShotOptions{}, "\x89PNG\r\n", "image/png"},
		{"png", page.ShotOptions{Format: page.PNG, Mask: mask}, "\x89PNG\r\n", "image/png"},
		{"jpeg", page.ShotOptions{Format: page.JPEG}, "\xff\xd8\xff", "image/jpeg"},
		{"masked jpeg", page.ShotOptions{Format: page.JPEG, Mask: mask}, "\xff\xd8\xff", "image/jpeg"},
		{"webp", page.ShotOptions{Format: page.WebP}, "RIFF", "image/webp"},
		{"masked webp", page.ShotOptions{Format: page.WebP, Quality: 50, Mask: mask}, "RIFF", "image/webp"},
	} {
		shot, err := tab.Screenshot(ctx, tt.o)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if raw := rawPicture(t, shot); !strings.HasPrefix(string(raw), tt.magic) || shot.Format.MIME() != tt.mime {
			t.Errorf("%s: %s begins with %q", tt.name, shot.Format.MIME(), raw[:8])
		}
	}
	for name, o := range map[string]page.ShotOptions{
		"an unknown format":         {Format: "gif"},
		"too much quality":          {Format: page.JPEG, Quality: 101},
		"an element and everything": {FullPage: true, Locator: &page.Locator{CSS: "#a"}},
		"an empty locator":          {Locator: &page.Locator{}},
	} {
		if _, err := tab.Screenshot(ctx, o); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%s gave %v", name, err)
		}
	}
	if _, err := tab.Screenshot(ctx, page.ShotOptions{Mask: []page.Locator{{CSS: "#nothing"}}}); !errors.Is(err, fault.ElementNotFound) {
		t.Errorf("a mask of nothing gave %v", err)
	}
}

// The vault is small: pictures are decoded slowly under the race detector.
const vault = `<!doctype html><meta charset=utf-8><title>vault</title><style>body{margin:0;background:#fff}input,iframe,#note{position:absolute;left:20px;width:200px;height:40px;border:0;margin:0;padding:0;background:#ffff00;outline:0}
#note{top:500px;background:#00ff00}iframe{left:400px;top:100px;width:300px;height:300px}</style>
<input type=password value=hunter2 style="top:20px"><input id=clear autocomplete=current-password value=hunter2 style="top:80px"><input name=otp inputmode=numeric maxlength=6 value=123456 style="top:140px">
<input name=city value=Bern style="top:200px"><input type=password value=below style="top:TOP"><div id=note>note</div><iframe src="OTHER/pay"></iframe>
<div id=host></div><script>host.attachShadow({mode: "closed"}).innerHTML = "<input type=password value=sealed style='position:absolute;left:20px;top:260px;width:200px;height:40px;border:0;background:#ffff00'>"</script>`

var vaultPages = map[string]string{
	"/":     strings.Replace(vault, "TOP", "800px", 1),
	"/tall": strings.Replace(vault, "TOP", "calc(100vh + 200px)", 1),
	"/pay":  `<!doctype html><style>body{margin:0;background:#fff}input{position:absolute;left:10px;top:50px;width:100px;height:30px;border:0;background:#ffff00}</style><input autocomplete=cc-number value=4111111111111111>`,
}

func TestMasksCoverWhatTheyShould(t *testing.T) {
	t.Parallel()
	for _, ratio := range []int{1, 2} {
		t.Run(fmt.Sprintf("at %d pixels a pixel", ratio), func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			w, tab := open(ctx, t, page.Look{Width: 720, Height: 600, Scale: float64(ratio)}, vaultPages, "/")
			before := w.eval(ctx, t, tab, `document.documentElement.outerHTML`)
			at := func(x, y int) image.Point { return image.Pt(x*ratio, y*ratio) }
			points := []image.Point{at(21, 21), at(219, 59), at(100, 100), at(100, 160), at(508, 177), at(200, 280), at(200, 220), at(25, 535), at(300, 300)}
			const bare = "ffff00 ffff00 ffff00 ffff00 ffff00 ffff00 ffff00 00ff00 ffffff"
			const secrets = "000000 000000 000000 000000 000000 000000 ffff00 00ff00 ffffff"
			const noted = "ffff00 ffff00 ffff00 ffff00 ffff00 ffff00 ffff00 000000 ffffff"
			for _, tt := range []struct {
				name string
				o    page.ShotOptions
				want string
			}{
				{"nothing is masked unasked", page.ShotOptions{}, bare},
				{"secrets", page.ShotOptions{MaskSecrets: true}, secrets},
				{"one by name", page.ShotOptions{Mask: []page.Locator{{CSS: "#note"}}}, noted},
				{"secrets of the full page", page.ShotOptions{MaskSecrets: true, FullPage: true}, secrets},
			} {
				shot, err := tab.Screenshot(ctx, tt.o)
				img := picture(t, shot, err)
				if got := colours(img, points...); got != tt.want {
					t.Errorf("%s: %s, not %s", tt.name, got, tt.want)
				}
				if tt.o.FullPage && colours(img, at(25, 805)) != "000000" {
					t.Errorf("%s: what is below the fold is to be seen", tt.name)
				}
			}
			shot, err := tab.Screenshot(ctx, page.ShotOptions{MaskSecrets: true, Locator: &page.Locator{CSS: "iframe"}})
			if got := colours(picture(t, shot, err), at(60, 65), at(200, 200)); got != "000000 ffffff" {
				t.Errorf("an element with a secret in it shows %s", got)
			}
			if after := w.eval(ctx, t, tab, `document.documentElement.outerHTML`); after != before {
				t.Error("the page was changed")
			}
		})
	}
}

func TestMasksHoldWhereTheFullPageIsLaidOutAnew(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	_, tab := open(ctx, t, page.Look{Width: 720, Height: 600}, vaultPages, "/tall")
	shot, err := tab.Screenshot(ctx, page.ShotOptions{MaskSecrets: true, FullPage: true})
	img := picture(t, shot, err)
	rows := map[string]int{}
	for y := 600; y < img.Bounds().Dy(); y++ {
		rows[hex(img.At(100, y))]++
	}
	if rows["ffff00"] > 0 || rows["000000"] < 40 {
		t.Errorf("%d rows of a password field are to be seen, %d are black", rows["ffff00"], rows["000000"])
	}
}

func TestTheFullPageHasWhatLoadsLate(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	late := `<!doctype html><title>late</title><style>body{margin:0}</style><div style="height:5000px"></div><div id=late style="height:100px"></div><script>
new IntersectionObserver((e, o) => { if (e[0].isIntersecting) { o.disconnect(); e[0].target.style.cssText = "height:700px;background:#00ff00" } }).observe(document.getElementById("late"))</script>`
	w, tab := open(ctx, t, page.Look{Width: 400, Height: 600}, map[string]string{
		"/": late, "/wide": `<body style="margin:0"><div style="width:17000px;height:10px">`, "/tall": `<body style="margin:0"><div style="height:16500px;width:10px">`, "/ok": `<body style="margin:0"><div style="height:16384px;width:10px">`,
	}, "/")
	w.eval(ctx, t, tab, `void scrollTo(0, 700)`)
	shot, err := tab.Screenshot(ctx, page.ShotOptions{FullPage: true})
	img := picture(t, shot, err)
	if img.Bounds().Dy() != 5700 || colours(img, image.Pt(5, 5690)) != "00ff00" {
		t.Errorf("the page is %v high and ends in %s", img.Bounds().Dy(), colours(img, image.Pt(5, 5690)))
	}
	if got := w.eval(ctx, t, tab, `scrollY`); got != "700" {
		t.Errorf("the page was left at %s", got)
	}
	for path, code := range map[string]fault.Code{"/wide": fault.ImageTooLarge, "/tall": fault.ImageTooLarge, "/ok": ""} {
		if _, err := tab.Navigate(ctx, w.URL+path, page.WaitLoad); err != nil {
			t.Fatal(err)
		}
		_, err := tab.Screenshot(ctx, page.ShotOptions{FullPage: true, Format: page.JPEG, Quality: 1})
		if code == "" && err != nil || code != "" && !errors.Is(err, code) {
			t.Errorf("%s gave %v", path, err)
		}
	}
}

func TestAShortPatienceIsHonoured(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `<p>Nothing here</p>`})
	s.open(ctx, t, "/")
	missing := page.Locator{CSS: "#missing"}
	for name, act := range map[string]func() error{
		"a click": func() error {
			_, err := s.tab.Click(ctx, missing, page.ClickOptions{Timeout: 50 * time.Millisecond})
			return err
		},
		"a picture": func() error {
			_, err := s.tab.Screenshot(ctx, page.ShotOptions{Locator: &missing, Timeout: 50 * time.Millisecond})
			return err
		},
	} {
		best := time.Hour
		for range 3 { // the machine may be busy, but not every time
			began := time.Now()
			if err := act(); !errors.Is(err, fault.ElementNotFound) {
				t.Fatalf("%s: %v", name, err)
			}
			best = min(best, time.Since(began))
		}
		if best > 3*time.Second { // short: without one it is five and ten
			t.Errorf("%s with a patience of 50ms took %s", name, best)
		}
	}
	began := time.Now()
	if _, err := s.tab.Screenshot(ctx, page.ShotOptions{Locator: &missing}); !errors.Is(err, fault.ElementNotFound) || time.Since(began) < 5*time.Second { // short: no less than what an element gets
		t.Errorf("without a patience: %v after %s", err, time.Since(began))
	}
}
