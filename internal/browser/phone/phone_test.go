package phone_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/phone"
	"tapin/internal/cdp"
	"tapin/internal/secret"
)

// Whoever holds a button and is called away has lifted the finger: the next
// page is tapped with one that is not still down somewhere else.
func TestAFingerIsLiftedFromWhatIsHeldNoLonger(t *testing.T) {
	ctx := browsertest.Context(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<meta name=viewport content="width=device-width"><body style="margin:0"><button style="width:200px;height:80px" onclick="this.className='clicked'">Here</button><script>
			addEventListener("pointerdown", () => document.body.className = "down")
			for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => document.body.className = "up")
		</script>`)
	}))
	t.Cleanup(site.Close)
	transport, err := cdp.Dial(ctx, secret.New(browsertest.Chromium(t).String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn := cdp.New(transport, nil)
	conn.Dispatch()
	t.Cleanup(func() { _ = conn.Close() })
	hand, err := phone.New(ctx, conn, "")
	if err != nil {
		t.Fatal(err)
	}

	if err := hand.Open(ctx, site.URL+"/held"); err != nil {
		t.Fatal(err)
	}
	holding, called := context.WithCancel(ctx)
	held := make(chan error)
	go func() { held <- hand.Hold(holding, "button", "false") }()
	if err := hand.Until(ctx, "a finger on the button", `document.body.className === "down"`); err != nil {
		t.Fatal(err)
	}
	called()
	if err := <-held; err == nil {
		t.Fatal("what was never so was seen")
	}
	if err := hand.Open(ctx, site.URL+"/next"); err != nil {
		t.Fatal(err)
	}
	if err := hand.Until(ctx, "the next page", `location.pathname === "/next" && document.readyState === "complete"`); err != nil {
		t.Fatal(err)
	}
	if err := hand.Tap(ctx, "button"); err != nil {
		t.Fatal(err)
	}
	if err := hand.Until(ctx, "the button clicked", `document.querySelector("button").className === "clicked"`); err != nil {
		t.Fatal(err)
	}
}
