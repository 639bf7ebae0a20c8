package sidecar_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/testwait"
)

// kills is how often a chaos test kills; the short form is for every day.
func kills(t *testing.T, few int) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS")); err == nil && n > 0 {
		return n
	}
	return few
}

// A person types while the sidecar is killed again and again. The phone says
// that it reconnects, comes back by itself, and what was typed is in the field
// once: also what was typed while nobody was there.
func TestChaosASidecarIsKilledWhileAPersonTypes(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	rounds := kills(t, 2)
	ctx, cancel := context.WithDeadline(t.Context(), testwait.Late().Add(time.Duration(rounds)*testwait.Limit()))
	t.Cleanup(cancel)
	site := newBranch(t)
	// A phone comes back to the address it knows.
	p := startProcess(t, site.URL, site.allow(), "listen.public=127.0.0.1:"+strconv.Itoa(browsertest.FreePort(t)))
	p.must("POST", "/session/start", `{"url":"`+site.URL+`/consent","screenshot":false}`)
	p.must("POST", "/handoff/start", `{"reason":"login","timeout_ms":3600000}`)
	phone, _ := p.tapIn(ctx, browsertest.Network{})
	phone.seen()
	phone.into(field("Name"))
	// What the phone did is noted by the page itself, so that nothing is missed.
	phone.See(`void (() => {
		window.noted = []
		const note = () => { const b = document.querySelector("#banner"), s = b.hidden ? "" : b.innerText; if (s !== noted.at(-1)) noted.push(s) }
		new MutationObserver(note).observe(document.querySelector("#app"), { subtree: true, childList: true, attributes: true, characterData: true })
	})()`)
	typed := ""
	strike := func(text string) {
		typed += text
		phone.Type(text)
	}
	var times []time.Duration
	for round := range rounds {
		strike(fmt.Sprintf("%d-vorher ", round))
		phone.See(`void (window.noted.length = 0)`)
		p.kill()
		strike("mitten ") // nobody is there
		if round%3 == 2 {
			phone.Until("that it reconnects", `document.querySelector("#banner").innerText.includes("Reconnecting")`)
			strike("weg ")
		}
		began := time.Now()
		p.begin()
		phone.Until("the way back", `document.querySelector("#banner").hidden && document.documentElement.dataset.bar === "you" && document.querySelector("#fields input")`)
		times = append(times, time.Since(began))
		strike("danach ")
		if said := phone.See(`noted.join("|")`); !strings.Contains(said, "Reconnecting") {
			t.Errorf("round %d: the phone said %q", round, said)
		}
		phone.Until("what was typed, on the phone", fmt.Sprintf(`document.querySelector('#fields input').value === %q`, typed))
		testwait.For(t, fmt.Sprintf("%q in the page, after %d kills", typed, round+1), func() bool { return site.stands(typed) })
	}
	phone.press(250, 450) // Allow
	if got := site.await(t, "name"); got != typed {
		t.Errorf("the site was sent %q, not %q", got, typed)
	}
	slices.Sort(times)
	t.Logf("%d kills; start of the next sidecar to the phone's place back: median %s, p95 %s, most %s", rounds,
		times[len(times)/2].Round(time.Millisecond), times[min(len(times)-1, len(times)*95/100)].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
}
