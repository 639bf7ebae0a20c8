package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tapin/internal/fault"
)

func TestALinkIsPrintedOnATerminalAloneAndADeviceIsLetInByItsNumber(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.says("Shop", "open", d.site.URL)
	links := func() []any { return d.json("link", "list")["links"].([]any) }
	own := len(links()) // the session's, which live_view_url names
	for _, piped := range [][]string{{"link"}, {"--json", "link"}} {
		if code, out := d.run("", piped...); code == 0 || strings.Contains(out, "#t=") {
			t.Errorf("%v: %d, %s", piped, code, out)
		}
	}
	if n := len(links()); n != own {
		t.Errorf("%d links were made for nobody", n-own)
	}

	w := newWorld(t, "--home", d.home, "link", "--minutes", "7")
	w.terminal = true
	if code := Main(t.Context(), w.Env); code != 0 {
		t.Fatalf("link: %d, %s", code, w.stderr.String())
	}
	at := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/live/(lnk_\w+)#t=([\w-]{43})`).FindStringSubmatch(w.stdout.String())
	if at == nil || !strings.Contains(w.stdout.String(), "7 minutes") {
		t.Fatalf("it says %q", w.stdout.String())
	}
	claim := func() (int, map[string]any) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at[1]+"/live/"+at[2]+"/claim", strings.NewReader(fmt.Sprintf(`{"token":%q}`, at[3])))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", at[1])
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		var said map[string]any
		if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, said
	}
	if status, said := claim(); status != http.StatusOK {
		t.Fatalf("the first device: %d %v", status, said)
	}
	status, said := claim()
	if status != http.StatusConflict {
		t.Fatalf("the second device: %d %v", status, said)
	}
	number := fmt.Sprint(said["number"])
	d.says("device "+number+" waits", "link", "list")
	other := "11"
	if number == other {
		other = "12"
	}
	if code, out := d.run("", "device", other); code != fault.ExitNotFound {
		t.Errorf("another number: %d, %s", code, out)
	}
	if code, _ := d.run("", "device", "four"); code != fault.InvalidRequest.Exit() {
		t.Errorf("no number: %d", code)
	}
	d.says("Device "+number+" is in", "device", number)
	d.says("opens nothing", "link", "end", at[2])
	if status, _ := claim(); status != http.StatusGone {
		t.Errorf("after its end: %d", status)
	}
}
