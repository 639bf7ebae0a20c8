package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"

	"tapin/internal/api"
	"tapin/internal/guard"
	"tapin/internal/secret"
)

// wayIn is how the owner gets to the page of a session.
type wayIn struct {
	here  string      // opens on this machine, without a token
	link  secret.Text // opens for the first device; empty where it would not stay between us
	near  secret.Text // the same for devices of this network, to watch
	phone bool        // whether a phone can open it
}

// wayIn makes a link, where it goes to a terminal alone.
func (a *app) wayIn(ctx context.Context, owner *api.Client, session, liveView string) (wayIn, error) {
	way := wayIn{here: liveView}
	if a.json || !a.env.IsTerminal(a.env.Stdout) {
		return way, nil
	}
	at, err := owner.Public(ctx)
	if err != nil {
		return way, err
	}
	made, err := owner.MintLink(ctx, api.LinkRequest{SessionID: session, Minutes: linkMinutes})
	if err != nil {
		return way, err
	}
	way.link, way.phone = made.OpenURL, !isHere(made.URL)
	if near, err := nearby(made.OpenURL, at.LAN); err == nil {
		way.near = near
	}
	return way, nil
}

// tellWay shows it. opens says whether Enter opens it here; forPhone is the
// command by which a phone gets a way.
func (a *app) tellWay(way wayIn, h *api.Handoff, opens bool, forPhone string) {
	if a.json {
		_ = a.plainObject(map[string]any{"ask": "handoff", "handoff_id": h.HandoffID, "live_view_url": way.here, "instruction": h.Instruction})
		return
	}
	p := a.paint(a.env.Stdout)
	a.printf("\n    %s  %s\n\n", p.bold("Your turn"), clean(h.Instruction))
	switch {
	case way.link.IsEmpty():
		a.printf("    Open it on this machine: %s\n\n", clean(way.here))
		return
	case way.phone:
		a.printf("    %s\n\n", p.bold(clean(way.link.Reveal())))
		a.printQR(way.link)
		a.printf("    Point your phone's camera at it. It opens for the first device.\n")
	default:
		a.printf("    %s\n\n", p.bold(clean(way.link.Reveal())))
		a.printf("    Open it in a browser on this machine; a phone cannot reach it yet.\n")
		a.printf("    %s\n", p.dim("For your phone: "+forPhone))
	}
	if !way.near.IsEmpty() {
		a.printf("\n    In the same Wi-Fi a phone can watch by this one, not drive:\n")
		a.printQR(way.near)
	}
	if opens {
		a.printf("    %s\n", p.bold("Press Enter to open it in this machine's browser."))
	}
	a.printf("\n")
}

// opener is the program that opens an address for the person who sits here; nil
// where there is no screen.
func opener(getenv func(string) string) []string {
	switch {
	case runtime.GOOS == "darwin":
		return []string{"open"}
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "":
		return nil
	}
	if found := lookPath("xdg-open", getenv("PATH")); found != "" {
		return []string{found}
	}
	return nil
}

// openHere opens an address in the person's own browser. It must carry no
// token: everybody on the machine can read command lines.
func openHere(ctx context.Context, getenv func(string) string, address string) error {
	words := append(opener(getenv), address)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the system's own opener
	cmd.Env = os.Environ()
	if err := cmd.Start(); err != nil {
		return err
	}
	// it ends when its browser has the address
	go func() {
		defer guard.Catch("command line")
		_ = cmd.Wait()
	}()
	return nil
}

// typedLines are the lines that a person types; nil where nobody sits. Reading
// them cannot be ended, so the one who reads ends with the process.
func (a *app) typedLines() <-chan string {
	out, ok := a.env.Stdin.(io.Writer)
	if !ok || a.json || !a.env.IsTerminal(out) {
		return nil
	}
	lines := make(chan string)
	go func() {
		defer guard.Catch("command line")
		for in := bufio.NewScanner(a.env.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	return lines
}
