package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/browser/phone"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/secret"
)

// Login is the name of the saved login.
const Login = "fern-and-stone"

// Who speaks in a line of the story.
const (
	Agent = "agent"
	Tapin = "tapin"
	You   = "you"
	ShopT = "shop"
)

// Line is something that happened, in words.
type Line struct {
	Who  string `json:"who"`
	Text string `json:"text"`
	Mark string `json:"mark,omitempty"` // "ok" when something was reached, "stop" when only a person can go on
}

// Owner is who is called in: a person at the terminal, or somebody who plays
// one. Each call runs beside the agent, which waits; its context ends when the
// agent has its answer.
type Owner interface {
	// Help is called when a hand-off is running.
	Help(ctx context.Context, h *api.Handoff, liveView string) error
	// Decide is called when a payment waits for a yes or a no.
	Decide(ctx context.Context, a *api.Approval) error
}

// Play is what a story is played with.
type Play struct {
	Agent *api.Client // with the agent's token, and nothing more
	Owner Owner
	Shop  string     // its address
	Phone bool       // the owner comes by phone: the page is as large as one
	Tell  func(Line) // hears what happens, one line at a time
	Doing func(what string) (done func())
}

// Outcome is what there is to show at the end.
type Outcome struct {
	Restored bool          `json:"logged_in_from_last_time"`
	Handoff  *api.Handoff  `json:"handoff,omitempty"`
	Approval *api.Approval `json:"approval,omitempty"`
	Order    string        `json:"order,omitempty"`
	Run      *api.TaskRun  `json:"run,omitempty"`
	Login    *api.Context  `json:"login,omitempty"`
	Saved    bool          `json:"login_saved"`
}

// errCalledOff ends the story early: the owner did not want to.
var errCalledOff = errors.New("called off")

// Run plays the story once: an agent buys a tin of tea.
func (p *Play) Run(ctx context.Context) (*Outcome, error) {
	out := &Outcome{}
	run, err := p.Agent.StartRun(ctx, api.RunRequest{Goal: "Buy a tin of Mountain Oolong at " + ShopName})
	if err != nil {
		return nil, err
	}
	p.say(Agent, "My task: buy a tin of Mountain Oolong at %s.", ShopName)
	id, err := p.open(ctx, out)
	if err != nil {
		return nil, err
	}
	err = p.shop(ctx, id, run.RunID, out)
	end := api.RunEnd{Status: "COMPLETED", Summary: "Order " + out.Order}
	if errors.Is(err, errCalledOff) {
		end, err = api.RunEnd{Status: "CANCELLED", Summary: "The owner did not want it."}, nil
	}
	if err != nil {
		p.leave(ctx, id)
		return nil, err
	}
	if out.Run, err = p.Agent.CompleteRun(ctx, run.RunID, end); err != nil {
		return nil, err
	}
	return out, p.close(ctx, id, out)
}

func quiet() api.Look {
	none := false
	return api.Look{Screenshot: &none}
}

func (p *Play) say(who, format string, args ...any) {
	p.Tell(Line{Who: who, Text: fmt.Sprintf(format, args...)})
}

func (p *Play) reach(who, format string, args ...any) {
	p.Tell(Line{Who: who, Text: fmt.Sprintf(format, args...), Mark: "ok"})
}

func (p *Play) stuck(who, format string, args ...any) {
	p.Tell(Line{Who: who, Text: fmt.Sprintf(format, args...), Mark: "stop"})
}

// open starts a browser with whatever login there is from before.
func (p *Play) open(ctx context.Context, out *Outcome) (id string, err error) {
	defer p.Doing("starting a browser")()
	save := true
	req := api.StartRequest{URL: p.Shop, Context: Login, SaveContext: &save, Look: quiet()}
	if p.Phone {
		req.Viewport = &api.Viewport{Width: phone.Width, Height: 720}
	}
	started, err := p.Agent.Start(ctx, req)
	if err != nil {
		return "", err
	}
	out.Restored = started.Restored
	p.say(Agent, "Opened %s.", bare(p.Shop))
	return started.SessionID, nil
}

// shop goes from the shelf to the receipt.
func (p *Play) shop(ctx context.Context, id, run string, out *Outcome) error {
	if err := p.click(ctx, id, api.Target{Element: api.Element{Role: "button", Name: "Add Mountain Oolong"}}); err != nil {
		return err
	}
	if err := p.click(ctx, id, api.Target{Text: "Check out"}); err != nil {
		return err
	}
	p.say(Agent, "Put the tin into the basket and went to the checkout.")
	now, err := p.Agent.Status(ctx, id)
	if err != nil {
		return err
	}
	at, err := url.Parse(now.URL)
	if err != nil {
		return err
	}
	switch {
	case at.Path == "/sign-in":
		out.Restored = false
		if err := p.stuckAtLogin(ctx, id, run, now, out); err != nil {
			return err
		}
	default:
		p.reach(Agent, "Logged in from last time: nobody had to help.")
	}
	if err := p.deliver(ctx, id); err != nil {
		return err
	}
	return p.pay(ctx, id, out)
}

// stuckAtLogin is what tapin is for.
func (p *Play) stuckAtLogin(ctx context.Context, id, run string, now *api.Status, out *Outcome) error {
	p.stuck(Agent, "The shop wants a login, a code and a puzzle. That is for a person: I ask for help.")
	asked, err := p.Agent.StartHandoff(ctx, api.HandoffRequest{
		Reason: "login", Instruction: "Please sign in to " + ShopName + ". Any email and password will do.", Task: "buy a tin of tea",
		Verify: []api.Condition{{URL: "*/checkout"}, {Visible: "#account"}}, RunID: run, SessionID: id,
	})
	if err != nil {
		return err
	}
	p.say(Tapin, "The agent is locked out of the page until you are done.")
	view := ""
	if now.LiveViewURL != nil {
		view = *now.LiveViewURL
	}
	out.Handoff, err = beside(ctx, func(ctx context.Context) error { return p.Owner.Help(ctx, asked, view) },
		func(ctx context.Context) (*api.Handoff, bool, error) {
			h, err := p.Agent.Handoff(ctx, asked.HandoffID, api.WaitQuery{After: asked.Version, WaitMS: 50_000})
			if err == nil {
				asked.Version = h.Version
			}
			return h, err == nil && h.Status != "RUNNING", err
		})
	if err != nil {
		return err
	}
	if out.Handoff.Status != "FINISHED" {
		p.stuck(Agent, "The hand-off ended as %s; I stop here.", strings.ToLower(strings.ReplaceAll(out.Handoff.Status, "_", " ")))
		return errCalledOff
	}
	p.reach(Tapin, "Done, and checked: %s.", strings.Join(out.Handoff.Verified.Checked, "; "))
	p.say(Agent, "What I am told of it: %s", Changes(out.Handoff))
	return nil
}

// Changes are what a hand-off changed, in words, as the agent is told.
func Changes(h *api.Handoff) string {
	var all []string
	for _, c := range h.Delta {
		if c.Change != "changed" {
			continue
		}
		switch c.Field {
		case "url":
			all = append(all, "the address, "+path(c.Before)+" → "+path(c.After))
		case "cookie_count":
			all = append(all, "cookies, "+c.Before+" → "+c.After)
		case "storage_keys":
			all = append(all, "storage, +"+strings.Join(c.Added, ", +"))
		}
	}
	if len(all) == 0 {
		return h.DeltaSummary
	}
	return strings.Join(all, "; ") + ". Nothing of what was typed."
}

func path(address string) string {
	if u, err := url.Parse(address); err == nil && u.Path != "" {
		return u.Path
	}
	return address
}

func bare(address string) string {
	return strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
}

// deliver fills in what an agent can fill in by itself.
func (p *Play) deliver(ctx context.Context, id string) error {
	fill := func(label, text string) api.FieldValue {
		value := secret.New(text)
		return api.FieldValue{Element: api.Element{Label: label}, Value: &value}
	}
	_, err := p.Agent.Fill(ctx, id, api.FillRequest{Fields: []api.FieldValue{
		fill("Name", "The owner"), fill("Street", "1 Harbour Street"), fill("Postcode", "D02 X285"), fill("City", "Dublin"), fill("Speed", "usual"),
	}, Look: quiet()})
	if err != nil {
		return err
	}
	if err := p.click(ctx, id, api.Target{Text: "Continue"}); err != nil {
		return err
	}
	p.say(Agent, "Filled in the address myself, and chose two days.")
	return nil
}

// pay tries, is refused, asks, and pays once.
func (p *Play) pay(ctx context.Context, id string, out *Outcome) error {
	button := api.Target{Element: api.Element{Selector: "#pay"}}
	_, err := p.Agent.Click(ctx, id, api.ClickRequest{Target: button, Look: quiet()})
	if !errors.Is(err, fault.ApprovalRequired) {
		return fmt.Errorf("the click on Pay was not refused: %w", err)
	}
	p.stuck(Tapin, "Refused the agent's click on Pay: money needs your yes.")
	total, err := p.Agent.Extract(ctx, id, api.ExtractRequest{Instruction: "selector: .sum dd"})
	if err != nil {
		return err
	}
	asked, err := p.Agent.RequestApproval(ctx, api.ApprovalRequest{
		Site: ShopHost, Payee: ShopName, Amount: strings.Trim(fmt.Sprint(total.Content), "€ \n"), Currency: "EUR", Description: "a tin of Mountain Oolong", SessionID: id,
	})
	if err != nil {
		return err
	}
	if t := asked.Reading.Total; t != nil {
		p.say(Tapin, "Read on the page itself: %s %s to %s.", t.Amount, t.Currency, ShopName)
	}
	out.Approval, err = beside(ctx, func(ctx context.Context) error { return p.Owner.Decide(ctx, asked) },
		func(ctx context.Context) (*api.Approval, bool, error) {
			a, err := p.Agent.Approval(ctx, asked.ApprovalID, api.WaitQuery{After: asked.Version, WaitMS: 50_000})
			if err == nil {
				asked.Version = a.Version
			}
			return a, err == nil && a.Status != "pending", err
		})
	if err != nil {
		return err
	}
	if out.Approval.Status != "approved" {
		p.say(Agent, "The answer is %s. Nothing is paid.", out.Approval.Status)
		return errCalledOff
	}
	p.reach(You, "Said yes to %s %s, once.", out.Approval.Amount, out.Approval.Currency)
	if _, err := p.Agent.Click(ctx, id, api.ClickRequest{Target: button, Paying: api.Paying{ApprovalID: out.Approval.ApprovalID}, Look: quiet()}); err != nil {
		return err
	}
	if _, err := p.Agent.Wait(ctx, id, api.WaitRequest{Text: "Thank you", Look: quiet()}); err != nil {
		return err
	}
	order, err := p.Agent.Extract(ctx, id, api.ExtractRequest{Instruction: "selector: .number"})
	if err != nil {
		return err
	}
	out.Order = strings.TrimPrefix(strings.TrimSpace(fmt.Sprint(order.Content)), "Order ")
	p.reach(Agent, "Paid, once. The shop says: order %s.", out.Order)
	return nil
}

func (p *Play) click(ctx context.Context, id string, target api.Target) error {
	_, err := p.Agent.Click(ctx, id, api.ClickRequest{Target: target, Look: quiet()})
	return err
}

// close keeps the login and collects what there is to show.
func (p *Play) close(ctx context.Context, id string, out *Outcome) error {
	defer p.Doing("saving the login")()
	stopped, err := p.Agent.Stop(ctx, id, api.StopRequest{Verified: out.Restored})
	if errors.Is(err, fault.NoSession) && out.Handoff != nil && out.Handoff.Status != "FINISHED" {
		return nil // who calls a hand-off off ends its session too
	}
	if err != nil {
		return err
	}
	out.Saved = stopped.ContextSaved
	if out.Login, err = p.Agent.Context(ctx, Login); err != nil {
		return err
	}
	p.reach(Tapin, "Saved the login, sealed. The browser is gone.")
	return nil
}

// leave ends the session of a story that failed; the login stays as it was.
func (p *Play) leave(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	none := false
	_, _ = p.Agent.Stop(ctx, id, api.StopRequest{SaveContext: &none}) // whatever ends tapin ends it too
}

// breakBetween is how long a poll waits for a tapin that was killed and is
// being started again, all in all.
const breakBetween = 30 * time.Second

// beside lets somebody act while a record is waited for. A tapin that is away
// for a moment is waited for too: the record survives it.
func beside[R any](ctx context.Context, act func(context.Context) error, poll func(context.Context) (R, bool, error)) (R, error) {
	acting, stop := context.WithCancel(ctx)
	defer stop()
	acted := make(chan error, 1)
	go func() {
		defer guard.Catch("demo")
		acted <- act(acting)
	}()
	type answer struct {
		record R
		err    error
	}
	over := make(chan answer, 1)
	go func() {
		defer guard.Catch("demo")
		var away time.Time
		for {
			r, done, err := poll(acting)
			switch {
			case done || acting.Err() != nil:
				over <- answer{r, acting.Err()}
				return
			case err == nil:
				away = time.Time{}
				continue
			case !errors.Is(err, api.ErrNotRunning) && !errors.Is(err, api.ErrBroken):
				over <- answer{r, err}
				return
			case away.IsZero():
				away = time.Now()
			case time.Since(away) > breakBetween:
				over <- answer{r, err}
				return
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-acting.Done():
			}
		}
	}()
	for {
		select {
		case a := <-over:
			stop()
			if acted != nil {
				<-acted // it has heard
			}
			return a.record, a.err
		case err := <-acted:
			if err != nil {
				stop()
				a := <-over
				return a.record, err
			}
			acted = nil // has done their part; the record says when it is over
		}
	}
}
