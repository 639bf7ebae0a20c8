package browsertest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"tapin/internal/browser/browsertest"
)

// A sheet sways faster than a finger can follow: its button is a pixel further
// with every millisecond, and thinner than the way between a look and a touch.
const swaying = `<!doctype html><meta name="viewport" content="width=device-width"><style>
dialog{position:fixed;inset:0;margin:0;width:100%;height:100%;max-width:none;max-height:none;padding:0;border:0;animation:sway .7s linear 4}
@keyframes sway{from{transform:translateY(-700px)}}
button{position:absolute;left:0;top:800px;width:100%;height:8px;padding:0;border:0;font-size:4px}
</style><dialog><button onclick="document.title='touched'">OK</button></dialog><script>document.querySelector('dialog').showModal()</script>`

func TestAPhoneTouchesWhatHasComeToRest(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(swaying))
	}))
	t.Cleanup(site.Close)
	phone := browsertest.NewPhone(t.Context(), t, browsertest.Network{})
	phone.Open(site.URL)
	phone.Tap("button")
	phone.Until("the button that was touched", `document.title === "touched"`)
}
