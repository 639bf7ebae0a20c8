package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"tapin/internal/api"
	"tapin/internal/daemon"
	"tapin/internal/demo"
)

// demoScreen is what a demo shows: lines as they happen, and below them what is
// under way.
type demoScreen struct {
	app *app

	mu    sync.Mutex
	under string // what is under way, "" for nothing
	done  func() // ends its telling
	shut  bool
}

func newDemoScreen(a *app) *demoScreen { return &demoScreen{app: a, done: func() {}} }

// doing tells what is under way until done is called, which may be twice.
func (d *demoScreen) doing(what string) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin(what)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.under == what {
			d.begin("")
		}
	}
}

func (d *demoScreen) begin(what string) {
	d.done()
	d.under, d.done = what, func() {}
	if what != "" && !d.shut {
		d.done = d.app.progress(what)
	}
}

// above prints something over what is under way.
func (d *demoScreen) above(say func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done()
	say()
	d.begin(d.under)
}

func (d *demoScreen) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	d.begin("")
}

// tell prints one line of the story.
func (d *demoScreen) tell(l demo.Line) {
	d.above(func() {
		if d.app.json {
			_ = d.app.plainObject(struct {
				At time.Time `json:"at"`
				demo.Line
			}{time.Now().UTC(), l})
			return
		}
		p := d.app.paint(d.app.env.Stdout)
		mark := " "
		switch l.Mark {
		case "ok":
			mark = p.green("✓")
		case "stop":
			mark = p.bang()
		}
		who := pad(l.Who, 5)
		if l.Who == demo.You {
			who = p.bold(who)
		} else {
			who = p.dim(who)
		}
		lines := wrapped(clean(l.Text), screenWidth-11)
		d.app.printf("  %s %s  %s\n", mark, who, lines[0])
		for _, more := range lines[1:] {
			d.app.printf("           %s\n", more)
		}
	})
}

// hello is the first thing to read.
func (d *demoScreen) hello(s *demoStage, auto bool) {
	if d.app.json {
		return
	}
	d.above(func() {
		p := d.app.paint(d.app.env.Stdout)
		d.app.printf("\n  %s%s\n\n", p.bold("tapin demo"), p.dim(strings.Repeat(" ", 40)+"The agent drives. You tap in."))
		who := "and you"
		if auto {
			who = "and a second browser that plays you on a phone"
		}
		d.app.printf("  A make-believe shop, a scripted agent, %s.\n", who)
		d.app.printf("  %s\n\n", p.dim("Its home is "+d.app.tilde(s.home.Path())+"; your own logins are not touched."))
	})
}

// follow tells of a tapin that had to be started again.
func (d *demoScreen) follow(ctx context.Context, states <-chan daemon.State) {
	for {
		select {
		case st := <-states:
			switch st.Phase {
			case daemon.Restarting:
				d.tell(demo.Line{Who: demo.Tapin, Text: "The process that drives the browser has ended; starting it again.", Mark: "stop"})
			case daemon.Ready:
				d.tell(demo.Line{Who: demo.Tapin, Text: "Ready again. The page and your place in it were kept.", Mark: "ok"})
			case daemon.Starting, daemon.Ending:
			}
		case <-ctx.Done():
			return
		}
	}
}

func (d *demoScreen) ending() {
	d.above(func() {
		if !d.app.json {
			d.app.printf("\n  Ending the browsers …\n")
		}
	})
}

// demoAnswer is the last line of the demo in JSON.
type demoAnswer struct {
	*demo.Outcome
	Home   string `json:"home"`
	TookMS int64  `json:"took_ms"`
}

// goodbye shows what is there afterwards.
func (d *demoScreen) goodbye(s *demoStage, out *demo.Outcome, took time.Duration) (err error) {
	d.above(func() {
		err = d.app.answer(demoAnswer{out, s.home.Path(), took.Milliseconds()}, func() { d.summary(s, out, took) })
	})
	return err
}

func (d *demoScreen) summary(s *demoStage, out *demo.Outcome, took time.Duration) {
	a := d.app
	p := a.paint(a.env.Stdout)
	a.printf("\n  %s\n", p.bold("What is there now"))
	line := func(label string, texts ...string) {
		for i, text := range texts {
			if i > 0 {
				label = ""
			}
			a.printf("    %s  %s\n", p.dim(pad(label, 8)), text)
		}
	}
	if h := out.Handoff; h != nil {
		line("hand-off", fmt.Sprintf("%s: %s by %s after %s", clean(h.HandoffID), strings.ToLower(h.Status), clean(h.FinishedBy), h.FinishedAt.Sub(h.CreatedAt).Round(time.Second)),
			"changed: "+clean(demo.Changes(h)))
	}
	if ap := out.Approval; ap != nil {
		line("payment", fmt.Sprintf("%s: %s %s, %s by %s, for one click", clean(ap.ApprovalID), clean(ap.Amount), clean(ap.Currency), clean(ap.Status), clean(ap.DecidedBy)))
	}
	if r := out.Run; r != nil {
		line("run", fmt.Sprintf("%s: %s, with %s of evidence", clean(r.RunID), strings.ToLower(r.Status), count(len(r.Evidence), "piece")))
	}
	if l := out.Login; l != nil && out.Saved {
		line("login", loginWords(l))
	}
	next := [][2]string{{"demo", "once more: this time nobody has to log in"}, {"demo --reset", "forget the demo's login and records"}, {"up", "start tapin for your own agents"}}
	switch {
	case out.Handoff == nil:
		next[0][1] = "once more"
	case s.auto:
		next = [][2]string{{"demo --reset", "forget the login, so that the next time you are needed"}, {"demo", "be the owner yourself"}, next[2]}
	}
	a.printf("\n  %s\n", p.bold("Next"))
	for _, n := range next {
		a.printf("    %s  %s\n", pad(shellWord(a.program)+" "+n[0], len(shellWord(a.program))+14), p.dim(n[1]))
	}
	a.printf("\n  %s\n\n", p.dim("Took "+seconds(took)+". Nothing of the demo is running any more."))
}

// loginWords say what is kept of a login, and nothing of what it holds.
func loginWords(l *api.Context) string {
	return fmt.Sprintf("%s: %s and the storage of %s, %s, sealed", clean(l.Name), count(l.Cookies, "cookie"), count(len(l.Origins), "site"), size(int(l.Bytes)))
}
