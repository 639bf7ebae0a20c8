package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tapin/bench/timing"
)

// The kinds of actions that are measured.
const (
	navigate   = "navigate"
	screenshot = "screenshot"
	click      = "click"
	fill       = "fill"
	text       = "text"
	snapshot   = "snapshot"
)

// action is something that agents do, on one of the pages.
type action struct {
	Kind     string
	Page     string
	Selector string
	Other    string  // clicked in turn with it, where a second click changes nothing
	Target   float64 // the ratio to the floor that is aimed at through HTTP
	weight   weight
	often    map[string]int // how often in a round those play who play otherwise than in others
}

// weight is how well an action has to be known.
type weight int

const (
	aside weight = iota // the target table does not name it, or not on this page
	clear               // it is named, and far from each of its targets
	listed
	narrow // so near to a target that a few rounds do not tell
)

// rounds are how many of it are played, and for how long at most; see turns.
func (w weight) rounds(usual int) (rounds int, within time.Duration) {
	switch w {
	case aside:
		return (usual + 2) / 3, 8 * time.Second
	case clear:
		return (usual + 1) / 2, 12 * time.Second
	case narrow:
		return 2 * usual, 45 * time.Second
	}
	return usual, 22 * time.Second
}

func (a action) name() string { return a.Kind + ", " + a.Page + " page" }

// turn is the action as it is done for the nth time.
func (a action) turn(n int) action {
	if a.Other != "" && n%2 == 1 {
		a.Selector = a.Other
	}
	return a
}

// actions are everything that every participant does.
var actions = []action{
	{Kind: navigate, Page: "light", Target: 1.2, weight: narrow, often: map[string]int{"playwright-mcp": 1}},
	{Kind: navigate, Page: "heavy", Target: 1.2, weight: narrow, often: map[string]int{"tapin-mcp": 1, briefMCP: 6, "chrome-devtools-mcp": 3}},
	{Kind: navigate, Page: "images", Target: 1.2},
	{Kind: navigate, Page: "list", Target: 1.2},
	{Kind: navigate, Page: "spa", Target: 1.2},
	{Kind: screenshot, Page: "light", Target: 1.1, weight: narrow, often: pictures},
	{Kind: screenshot, Page: "heavy", Target: 1.1, weight: narrow, often: pictures},
	{Kind: screenshot, Page: "animating", Target: 1.1, often: pictures},
	{Kind: screenshot, Page: "images", Target: 1.1, often: pictures},
	{Kind: click, Page: "form", Selector: "#go", Target: 1.8, weight: listed},
	{Kind: click, Page: "spa", Selector: "#two", Other: "#one", Target: 1.8},
	{Kind: fill, Page: "form", Selector: "#f0", Target: 1.5, weight: listed},
	{Kind: text, Page: "heavy", Target: 2.0, weight: clear},
	{Kind: text, Page: "list", Target: 2.0},
	{Kind: snapshot, Page: "heavy", Target: 0.3, weight: clear},
	{Kind: snapshot, Page: "list", Target: 0.3},
}

// participant is somebody who can do them all.
type participant interface {
	name() string
	// open brings a page to the front, and whatever its actions need. It is not measured.
	open(ctx context.Context, a action, url string) error
	// do carries an action out; value is what a field is filled with.
	do(ctx context.Context, a action, url, value string) (time.Duration, error)
	// says is the text of the page, to see that what was done was done.
	says(ctx context.Context) (string, error)
	close()
}

// plays is how often somebody plays in a round; every, that somebody plays in one
// round of so many. All are compared with the first four, so these have to be
// known best; slow ones take most of the time; the last two are in no target.
// Where two are so near to each other that chance decides, an action has it
// otherwise.
var (
	plays = map[string]int{"floor": 3, "tapin": 3, "tapin-mcp": 2, briefMCP: 3}
	every = map[string]int{"agent-browser-mcp-look": 2, "playwright-mcp": 2, "playwright-core": 4, "agent-browser": 4}
)

// A picture takes everybody about as long, and how long is mostly a matter of chance:
// those of whom one has to be ahead of the other are known alike.
var pictures = map[string]int{"floor": 5, "tapin": 5, "tapin-mcp": 2, bareMCP: 2, "chrome-devtools-mcp": 2, "playwright-mcp": 1}

// plays is how often somebody does it in that round.
func (a action) plays(who string, round int) int {
	if often, ok := a.often[who]; ok {
		return often
	}
	if sitsOut(every[who], round) {
		return 0
	}
	return max(plays[who], 1)
}

// sitsOut reports whether somebody who plays in one round of so many does not play
// in this one. All take part in the first, which warms up.
func sitsOut(every, round int) bool { return every > 1 && round > 0 && round%every != 1 }

// A browser is not done when it says so: a page that has loaded is painted next, a
// page that was clicked or filled answers, and whoever came right after would pay
// for it. So there is a rest between turns, longer than all that takes and shorter
// than any agent thinks, and each round has an order of its own.
const (
	rest         = 30 * time.Millisecond
	restAfterAct = 120 * time.Millisecond
)

// measureAction lets everybody do it, turn by turn: a noisy moment hits all
// alike. The first round warms up and counts for nothing.
func measureAction(ctx context.Context, all []participant, a action, site string, usual int) (*rounds, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(p participant) bool {
		return p.name() == briefMCP && a.Kind != navigate || p.name() == bareMCP && !bareMCPDoes[a.Kind]
	})
	took := &rounds{}
	count := map[string]int{}
	for _, p := range all {
		if err := p.open(ctx, a, site+"/"+a.Page); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", a.name(), p.name(), err)
		}
	}
	pause := rest
	if a.Kind == navigate || a.Kind == click || a.Kind == fill {
		pause = restAfterAct
	}
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // an order, not a secret
	for round := range turns(a.weight.rounds(usual)) {
		took.Begin()
		var players []participant
		for _, p := range all {
			players = append(players, slices.Repeat([]participant{p}, a.plays(p.name(), round))...)
		}
		for _, i := range dice.Perm(len(players)) {
			p := players[i]
			time.Sleep(pause)
			n := count[p.name()]
			timing.InPhase(n)
			d, err := p.do(ctx, a.turn(n), fmt.Sprintf("%s/%s?n=%d", site, a.Page, n), fmt.Sprint("value ", n))
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", a.name(), p.name(), err)
			}
			count[p.name()]++
			if round > 0 {
				took.Add(p.name(), d)
			}
		}
		took.End()
	}
	for _, p := range all {
		if err := proven(ctx, p, a, count[p.name()]); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", a.name(), p.name(), err)
		}
	}
	return took, nil
}

// proven asks the page whether everything arrived: who is fast and does nothing
// has not won.
func proven(ctx context.Context, p participant, a action, count int) error {
	var want string
	switch {
	case a.Kind == click && a.Page == "form":
		want = fmt.Sprintf("pressed %d\n", count)
	case a.Kind == click:
		want = "View " + strings.TrimPrefix(a.turn(count-1).Selector, "#")
	case a.Kind == fill:
		want = fmt.Sprintf("typed value %d", count-1)
	default:
		return nil
	}
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(rest) { // what a click sets off may take a moment
		said, err := p.says(ctx)
		if err != nil || strings.Contains(strings.ReplaceAll(said, `\n`, "\n")+"\n", want) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the page does not say %q but %.300q", want, said)
		}
	}
}
