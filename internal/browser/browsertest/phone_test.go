package browsertest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"tapin/internal/browser/browsertest"
)

// A sheet rises for longer than it takes to look and to touch, and its button is
// nowhere near the place it had at first.
const rising = `<!doctype html><meta name="viewport" content="width=device-width"><style>
dialog{position:fixed;inset:auto 0 0;margin:0;width:100%;height:200px;padding:0;border:0;animation:rise 1.5s linear}
@keyframes rise{from{transform:translateY(140px)}}
button{position:absolute;left:0;top:10px;width:100%;height:50px}
i{position:fixed;width:9px;height:9px;animation:turn 1s linear infinite}
@keyframes turn{to{transform:rotate(1turn)}}
</style><i></i><dialog><button onclick="document.title='touched'">OK</button></dialog><script>document.querySelector('dialog').showModal()</script>`

func TestAPhoneTouchesWhatHasComeToRest(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(rising))
	}))
	t.Cleanup(site.Close)
	phone := browsertest.NewPhone(t.Context(), t, browsertest.Network{})
	phone.Open(site.URL)
	phone.Tap("button")
	phone.Until("the button that was touched", `document.title === "touched"`)
}
