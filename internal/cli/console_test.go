package cli

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tapin/internal/fault"
)

func TestASignInIsShownOnATerminalAloneAndSignsOneDeviceIn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, piped := range [][]string{{"console"}, {"--json", "console"}} {
		if code, out := d.run("", piped...); code != fault.InvalidRequest.Exit() || strings.Contains(out, "#t=") || !strings.Contains(out, "terminal") {
			t.Errorf("%v: %d, %s", piped, code, out)
		}
	}
	w := newWorld(t, "--home", d.home, "console")
	w.terminal = true
	if code := Main(t.Context(), w.Env); code != 0 {
		t.Fatalf("console: %d, %s", code, w.stderr.String())
	}
	at := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/console#t=([\w-]{43})`).FindStringSubmatch(w.stdout.String())
	if at == nil || !strings.Contains(w.stdout.String(), "this machine") {
		t.Fatalf("it says %q", w.stdout.String())
	}
	d.says("No device is signed in", "console", "devices")
	claim := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at[1]+"/console/claim", strings.NewReader(`{"token":"`+at[2]+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", at[1])
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("User-Agent", "Mozilla/5.0 (iPhone) Version/18.1 Mobile/15E148 Safari/604.1")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if first, second := claim(), claim(); first != http.StatusOK || second != http.StatusUnauthorized {
		t.Errorf("the first device: %d, the second: %d", first, second)
	}
	d.says("Safari on iPhone", "console", "devices")
	devices := d.json("console", "devices")["devices"].([]any)
	id := devices[0].(map[string]any)["device_id"].(string)
	d.says("Signed out", "console", "sign-out", id)
	if code, out := d.run("", "console", "sign-out", id); code != fault.ExitNotFound {
		t.Errorf("once more: %d, %s", code, out)
	}
	d.says("No device is signed in", "console", "devices")
}
