package sidecar_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// A session elsewhere whose line is lost goes on as it was: the same page, its
// size, its time zone, what was typed, and everything that we do in it.
func TestALineToABrowserElsewhereIsMended(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	c := inTheCloud(t, nil)
	c.open("/", `,"viewport":{"width":500,"height":400},"timezone":"Asia/Tokyo"`)
	c.must("POST", "/session/type", `{"selector":"#a","text":"half","screenshot":false}`)
	h := c.must("POST", "/handoff/start", `{"reason":"login"}`)
	told := 0
	for name, breaking := range map[string]func(){
		"cut":     c.line.Cut,
		"expired": func() { c.cloud.Expire(); c.line.Cut() },
		"stalled": func() {
			c.line.Stall()
			time.AfterFunc(17*time.Second, c.line.Flow) // longer than it takes to notice
		},
	} {
		began := time.Now()
		breaking()
		testwait.For(t, "the reconnect", func() bool {
			return strings.Count(c.told(), `"session.reconnected"`) > told
		})
		told++
		t.Logf("%s: back after %s", name, time.Since(began).Round(time.Millisecond))
		c.owner.must("POST", "/session/click", `{"selector":"#see","screenshot":false}`)
		if now := c.owner.must("GET", "/session/status", ""); now["title"] != "500 400 Asia/Tokyo half" || now["generation"] != float64(1) || now["page_lost"] != nil {
			t.Fatalf("%s: it came back as %v", name, now)
		}
		if code, _, _ := c.owner.do("GET", "/session/screenshot", ""); code != http.StatusOK {
			t.Errorf("%s: no picture: %d", name, code)
		}
	}
	c.owner.must("POST", "/handoff/"+h["handoff_id"].(string)+"/finish", `{}`)
	c.must("POST", "/session/stop", `{}`)
	if n := len(c.cloud.Sessions("")); n != 1 {
		t.Errorf("%d sessions were made for one", n)
	}
}

// A dialog that is open when the line is lost can be answered by nobody. Its page
// is loaded anew, and that is told.
func TestADialogThatIsOpenWhenTheLineIsLostIsNotTheEnd(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	c := inTheCloud(t, nil)
	c.open("/", "")
	if clicked := c.must("POST", "/session/click", `{"selector":"#ask","screenshot":false}`); clicked["dialog"] == nil {
		t.Fatalf("there is no dialog: %v", clicked)
	}
	c.line.Cut()
	testwait.For(t, "the news", func() bool {
		return strings.Contains(c.told(), `"session.reconnected"`) && strings.Contains(c.told(), `"session.reloaded"`)
	})
	c.refused("POST", "/session/dialog", `{"accept":true}`, "NOT_FOUND")
	c.must("POST", "/session/click", `{"selector":"#ask","screenshot":false}`)
	c.must("POST", "/session/dialog", `{"accept":true,"screenshot":false}`)
	// The page goes on by itself once it has its answer.
	testwait.For(t, "what the page makes of the answer", func() bool {
		return c.must("GET", "/session/status", "")["title"] == "true"
	})
}

func TestALineToABrowserElsewhereIsTriedThreeTimesAndThenItIsReleased(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	c := inTheCloud(t, nil)
	c.open("/", "")
	began := time.Now()
	c.line.Down()
	testwait.For(t, "the end of the session", func() bool {
		return len(c.must("GET", "/sessions", "")["sessions"].([]any)) == 0
	})
	took := time.Since(began)
	var tries []time.Duration
	for _, at := range c.line.Knocks() {
		if after := at.Sub(began); len(tries) == 0 || after-tries[len(tries)-1] > time.Second {
			tries = append(tries, after.Round(10*time.Millisecond))
		}
	}
	t.Logf("tried after %v, released after %s", tries, took.Round(10*time.Millisecond))
	for i, at := range []time.Duration{0, 2 * time.Second, 7 * time.Second, 17 * time.Second} {
		if i >= len(tries) || tries[i] < at-200*time.Millisecond {
			t.Fatalf("it was tried after %v", tries)
		}
	}
	if running := c.billed(); len(running) != 0 {
		t.Errorf("there runs %+v", running)
	}
	if told := c.told(); strings.Count(told, `"session.ended"`) != 1 {
		t.Errorf("the owner was told %s", told)
	}
	if code, answer, _ := c.do("POST", "/session/reload", `{}`); code != http.StatusNotFound || !strings.Contains(fmt.Sprint(answer["details"]), "browser") {
		t.Errorf("the agent was told %d %v", code, answer)
	}
}
