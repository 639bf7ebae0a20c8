package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"tapin/internal/browser/local"
	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/sidecar"
)

// foundBrowser is the browser that local sessions get.
type foundBrowser struct {
	local.Chromium
	err error
}

// lookForBrowser asks for the browser's version while the rest starts.
func (s *screen) lookForBrowser() {
	s.found = make(chan foundBrowser, 1)
	if s.config.Provider != config.ProviderLocal {
		s.found <- foundBrowser{}
		return
	}
	go func() {
		defer guard.Catch("command line")
		c, err := local.Find(s.config.Browser.Path)
		s.found <- foundBrowser{c, err}
	}()
}

// labelWidth keeps the lines of the screen under each other.
const labelWidth = 8

// show prints the first screen, with the self-check in its middle. It returns
// why the check failed.
func (s *screen) show(ctx context.Context, control string) error {
	browser := <-s.found
	if s.app.json {
		return s.showJSON(ctx, control, browser)
	}
	s.where(control, browser)
	err := s.check(ctx)
	s.troubles(ctx)
	s.phone(ctx) // before the console, whose address is the one that this finds
	s.console(ctx)
	s.drive(control)
	s.next()
	return err
}

func (s *screen) showJSON(ctx context.Context, control string, browser foundBrowser) error {
	answer := upAnswer{
		PID: s.pid, Home: s.home.Path(), Control: control, Provider: string(s.config.Provider),
		Browser: browser.Version, Sandbox: s.config.Provider == config.ProviderLocal && !local.NeedsNoSandbox(),
	}
	if !s.options.noCheck {
		result := s.runCheck(ctx)
		if result.err != nil {
			return result.err
		}
		answer.CheckMS, answer.Session = result.took.Milliseconds(), result.active
	}
	if client, err := s.app.clientOf(ctx, s.home); err == nil {
		at := s.app.awaitPhone(ctx, s.home, client)
		answer.Phone = &at
		if health, err := client.Health(ctx); err == nil {
			answer.Troubles = health.Troubles
		}
		client.Close()
	}
	return s.app.answer(answer, nil)
}

// line prints one labelled line; further lines stand under its text.
func (s *screen) line(label string, texts ...string) {
	p := s.app.paint(s.app.env.Stdout)
	for i, text := range texts {
		if i > 0 {
			label = ""
		}
		s.app.printf("  %s  %s\n", p.dim(pad(label, labelWidth)), text)
	}
}

func (s *screen) where(control string, browser foundBrowser) {
	p := s.app.paint(s.app.env.Stdout)
	title := "tapin " + buildVersion()
	s.app.printf("\n  %s%s\n\n", p.bold(title), p.dim(strings.Repeat(" ", max(2, 50-utf8.RuneCountInString(title)))+"The agent drives. You tap in."))
	s.line("home", s.app.tilde(s.home.Path()))
	s.line("control", "http://"+control)
	switch {
	case s.config.Provider != config.ProviderLocal:
		s.line("browser", fmt.Sprintf("from provider %s", s.config.Provider))
	case browser.err != nil:
		f := fault.Of(browser.err)
		s.line("browser", p.red("✗")+" "+clean(f.Details()), "  "+clean(f.Advice()))
	default:
		s.line("browser", fmt.Sprintf("Chromium %s on this machine, %s", browser.Version, s.mode()))
		if local.NeedsNoSandbox() {
			s.line("", p.bang()+" Runs without its sandbox: you are root, and Chromium refuses it then.",
				"  A page that breaks out of the browser would be root too.",
				"  Start tapin as an ordinary user to have the sandbox.")
		}
	}
	if !s.config.Egress.BlockPrivate {
		why := "egress.block_private is false"
		if s.options.allowPrivate {
			why = "--allow-private"
		}
		s.line("network", p.bang()+" Pages may reach this machine and its network ("+why+").",
			"  For local development only: any page can then talk to your services.")
	}
}

func (s *screen) mode() string {
	if s.config.Browser.Headful {
		return "with a window"
	}
	return "without a window"
}

func (s *screen) runCheck(ctx context.Context) outcome {
	defer s.checked()
	client, err := s.app.clientOf(ctx, s.home)
	if err != nil {
		return outcome{err: err}
	}
	defer client.Close()
	done := s.app.progress("trying out the browser")
	defer done()
	return check(ctx, client)
}

// check prints how the first page went.
func (s *screen) check(ctx context.Context) error {
	if s.options.noCheck {
		return nil
	}
	p := s.app.paint(s.app.env.Stdout)
	switch result := s.runCheck(ctx); {
	case ctx.Err() != nil:
		return ctx.Err()
	case result.err != nil:
		f := fault.Of(result.err)
		s.line("check", p.red("✗")+" "+clean(f.Details())+" "+p.dim("["+string(f.Code)+"]"),
			"  "+clean(f.Advice()), "  tapin runs on; "+s.app.command("doctor")+" may know more.")
		return result.err
	case result.active != "":
		s.line("check", p.green("✓")+" Session "+result.active+" goes on from before.")
	default:
		s.line("check", p.green("✓")+" Drove its first page in "+seconds(result.took)+".")
	}
	return nil
}

func (s *screen) drive(control string) {
	token := s.app.tilde(s.home.Path() + "/" + sidecar.AgentTokenFile)
	s.section("Drive it",
		s.app.command("open", "https://example.com"),
		s.app.command("screenshot"),
		fmt.Sprintf(`curl -H "Authorization: Bearer $(cat %s)" http://%s/session/status`, shellWord(token), control))
}

func (s *screen) next() {
	p := s.app.paint(s.app.env.Stdout)
	lines := [][2]string{}
	if s.first {
		lines = append(lines, [2]string{s.app.command("demo"), "new here? a shop, an agent, and you, in two minutes"})
	}
	lines = append(lines, [][2]string{
		{s.app.command("status"), "what the browser shows"},
		{s.app.command("doctor"), "whether anything is amiss"},
		{s.app.command("--help"), "everything else"},
	}...)
	width := 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(l[0]))
	}
	var texts []string
	for _, l := range lines {
		texts = append(texts, pad(l[0], width)+"   "+p.dim(l[1]))
	}
	s.section("Next", texts...)
	s.app.printf("\n")
}

func (s *screen) section(title string, lines ...string) {
	s.app.printf("\n  %s\n", s.app.paint(s.app.env.Stdout).bold(title))
	for _, l := range lines {
		s.app.printf("    %s\n", l)
	}
}
