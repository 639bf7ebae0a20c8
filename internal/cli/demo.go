package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tapin/internal/api"
	"tapin/internal/browser/local"
	"tapin/internal/config"
	"tapin/internal/daemon"
	"tapin/internal/demo"
	"tapin/internal/fault"
	"tapin/internal/guard"
	"tapin/internal/sidecar"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// demoFolder is the demo's own home, inside tapin's.
const demoFolder = "demo"

func (a *app) demoCommand() *cobra.Command {
	var auto, reset bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a story: a shop, an agent, and you",
		Long: `Plays a small story on this machine. An agent shops in a make-believe shop, gets
stuck at the login, and asks you; you tap in, and it goes on, asks before it
pays, and keeps the login. The second time it needs no login.

The demo has a home of its own, the folder demo in tapin's home, and ports of its
own: it touches neither your logins nor a tapin that is running.`,
		Example: `  tapin demo
  tapin demo --auto                        somebody else plays the owner
  tapin demo --set tunnel=cloudflared      help from your phone, wherever you are
  tapin demo --reset                       forget its login and its records`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := a.homePath()
			if err != nil {
				return err
			}
			again := a.command("demo") // before the home becomes the demo's own
			a.home = filepath.Join(path, demoFolder)
			if reset {
				return a.forgetDemo(cmd.Context())
			}
			return a.demo(cmd.Context(), auto, again)
		},
	}
	cmd.Flags().BoolVar(&auto, "auto", false, "let a second browser play the owner")
	cmd.Flags().BoolVar(&reset, "reset", false, "forget the login and the records of earlier runs, and play nothing")
	cmd.MarkFlagsMutuallyExclusive("auto", "reset")
	return cmd
}

// demoLock keeps a home to one demo at a time.
const demoLock = "demo"

// forgetDemo removes everything that demos have left.
func (a *app) forgetDemo(ctx context.Context) error {
	home, _, err := a.runningHome()
	if err != nil {
		return err
	}
	was := home != nil
	if was {
		unlock, err := a.alone(home)
		if err == nil {
			err = new(downAnswer).end(ctx, home)
		}
		if err == nil {
			err = demo.PutAway(ctx, home.Path())
		}
		if unlock != nil {
			unlock()
		}
		if e := home.Close(); err == nil {
			err = e
		}
		if err == nil {
			err = os.RemoveAll(home.Path())
		}
		if err != nil {
			return err
		}
	}
	return a.answer(struct {
		Forgotten bool `json:"forgotten"`
	}{was}, func() {
		if !was {
			a.printf("There is nothing to forget.\n")
			return
		}
		a.printf("The demo is forgotten: its login, its records, its key.\n")
	})
}

// alone takes the demo's home, or says who has it.
func (a *app) alone(home *store.Home) (unlock func(), err error) {
	unlock, ok, err := home.TryLock(demoLock)
	if err != nil || ok {
		return unlock, err
	}
	pid, _, _ := home.LockHolder(demoLock)
	return nil, fault.New(fault.Busy, "", "a demo is running already (pid %d)", pid).WithHint("Go on there, or end it there with Ctrl-C.")
}

// demoStage is everything that a demo runs on. close ends all of it.
type demoStage struct {
	app     *app
	command string // by which the owner played it
	auto    bool   // a second browser plays the owner
	home    *store.Home
	config  *config.Config
	shop    *demo.Shop
	address string // of the shop
	public  string // address of the live view
	codes   chan string
	screen  *demoScreen

	agent, owner *api.Client
	endings      []func()
}

func (a *app) demo(ctx context.Context, auto bool, command string) (err error) {
	began := time.Now()
	s := &demoStage{app: a, command: command, auto: auto, codes: make(chan string, 8), screen: newDemoScreen(a)}
	defer s.screen.close()
	done := s.screen.doing("setting the stage")
	err = s.open(ctx)
	defer s.close()
	var owner demo.Owner
	if err == nil {
		owner, err = s.casting(ctx, auto)
	}
	done()
	if err == nil {
		s.screen.hello(s, auto)
		play := demo.Play{
			Agent: s.agent, Owner: owner, Shop: s.address, Phone: auto || !isHere(s.public), Tell: s.screen.tell, Doing: s.screen.doing,
		}
		var out *demo.Outcome
		if out, err = play.Run(ctx); err == nil {
			done := s.screen.doing("ending what was started")
			s.close()
			done()
			return s.screen.goodbye(s, out, time.Since(began))
		}
	}
	if ctx.Err() != nil {
		s.screen.ending()
		s.close()
		return s.interrupted()
	}
	return err
}

func (s *demoStage) interrupted() error {
	const details = "interrupted; everything of the demo has been ended"
	if s.app.json {
		if err := s.app.object(false, api.Problem{Error: string(fault.Busy), Details: details, Hint: "Play it again with: tapin demo"}); err != nil {
			return err
		}
		return exit(interrupted)
	}
	s.app.errorf("tapin: %s.\n", details)
	return exit(interrupted)
}

// atEnd does something when the demo ends, the latest first.
func (s *demoStage) atEnd(do func()) { s.endings = append(s.endings, do) }

func (s *demoStage) close() {
	for _, end := range slices.Backward(s.endings) {
		end()
	}
	s.endings = nil
}

// open makes the home, opens the shop and starts tapin.
func (s *demoStage) open(ctx context.Context) (err error) {
	if s.home, err = s.app.openHome(); err != nil {
		return err
	}
	s.atEnd(func() { _ = s.home.Close() })
	unlock, err := s.app.alone(s.home)
	if err != nil {
		return err
	}
	s.atEnd(unlock)
	// A key of its own: the owner's keychain has nothing to do with a demo.
	if err := vault.KeepKeyInFile(s.home); err != nil {
		return err
	}
	if err := s.openShop(); err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return err
	}
	if _, err := local.Find(s.config.Browser.Path); err != nil {
		return err // before anything is started that needs it
	}
	return s.startTapin(ctx)
}

const (
	shopKeyFile  = "shop.key"
	shopPortFile = "shop.port"
)

// openShop opens the shop where it was the last time, if that place is free.
func (s *demoStage) openShop() error {
	key, err := s.home.Read(shopKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		key = []byte(rand.Text() + rand.Text())
		err = s.home.Create(shopKeyFile, key)
	}
	if err != nil {
		return err
	}
	last, _ := s.home.Read(shopPortFile) // none the first time
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strings.TrimSpace(string(last))))
	if err != nil {
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return fault.New(fault.Busy, "open the shop", "%w", err)
		}
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := s.home.Write(shopPortFile, []byte(strconv.Itoa(port)+"\n")); err != nil {
		_ = listener.Close()
		return err
	}
	s.address = fmt.Sprintf("http://%s:%d/", demo.ShopHost, port)
	s.shop = demo.NewShop(key, func(code string) {
		s.screen.tell(demo.Line{Who: demo.ShopT, Text: "Text message to your phone: your code is " + code[:3] + " " + code[3:]})
		select {
		case s.codes <- code:
		default: // nobody waits for so many
		}
	})
	server := &http.Server{Handler: s.shop, ReadHeaderTimeout: 10 * time.Second}
	// ends with Close
	go func() {
		defer guard.Catch("command line")
		_ = server.Serve(listener)
	}()
	s.atEnd(func() { _ = server.Close() })
	return nil
}

// settle decides on the settings: ports that are free now and stay the same
// when tapin is started again, and the one private address that pages may reach.
func (s *demoStage) settle() error {
	var free [2]string
	for i := range free {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fault.New(fault.Busy, "find a free port", "%w", err)
		}
		free[i] = listener.Addr().String()
		defer func() { _ = listener.Close() }()
	}
	given := s.app.set
	s.app.noChat = !slices.ContainsFunc(given, func(set string) bool { return strings.HasPrefix(set, "telegram.") })
	host := strings.TrimSuffix(strings.TrimPrefix(s.address, "http://"), "/")
	s.app.set = append([]string{"listen.control=" + free[0], "listen.public=" + free[1]}, given...)
	s.app.set = append(s.app.set, "provider=local", "payment_guard=strict", "egress.allow="+host)
	var err error
	s.config, _, err = s.app.settings()
	return err
}

// demoTries is how often the demo's sidecar may end before it has been ready.
const demoTries = 3

// startTapin runs a daemon of the demo's own, in this process.
func (s *demoStage) startTapin(ctx context.Context) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	states, ended := make(chan daemon.State, 16), make(chan error, 1)
	go func() {
		defer guard.Catch("command line")
		ended <- s.app.runDaemon(running, s.home, s.config, func(st daemon.State) {
			select {
			case states <- st:
			case <-running.Done(): // nobody reads any more
			}
		}, nil)
	}()
	s.atEnd(func() {
		stop()
		<-ended
	})
	for {
		select {
		case err := <-ended:
			ended <- err // for the end
			return err
		case <-ctx.Done():
			return ctx.Err()
		case st := <-states:
			if st.Phase == daemon.Restarting && st.Restarts >= demoTries {
				return st.Cause // a daemon tries for ever; nobody waits that long for a demo
			}
			if st.Phase != daemon.Ready {
				continue
			}
			go func() {
				defer guard.Catch("command line")
				s.screen.follow(running, states)
			}()
			return s.connect(ctx, st.Control)
		}
	}
}

func (s *demoStage) connect(ctx context.Context, control string) (err error) {
	if s.agent, err = clientWith(s.home, control, sidecar.AgentTokenFile); err != nil {
		return err
	}
	s.atEnd(s.agent.Close)
	if s.owner, err = clientAt(s.home, control); err != nil {
		return err
	}
	s.atEnd(s.owner.Close)
	if s.config.Tunnel != config.TunnelNone {
		s.app.awaitPhone(ctx, s.home, s.owner)
	}
	at, err := s.owner.Public(ctx)
	if err != nil {
		return err
	}
	s.public = at.URL
	s.atEnd(func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), browsersWithin)
		defer cancel()
		_ = s.tidy(ending) // what is left is tidied up by the next demo
	})
	return s.tidy(ctx)
}

// tidy ends what a story has left in the middle: this one, or one before that
// was killed. As the owner may; the login stays as it was saved last.
func (s *demoStage) tidy(ctx context.Context) error {
	all, err := s.owner.Sessions(ctx)
	if err != nil {
		return err
	}
	none := false
	for _, left := range all.Sessions {
		if _, err := s.owner.Stop(ctx, left.SessionID, api.StopRequest{SaveContext: &none}); err != nil && !errors.Is(err, fault.NoSession) {
			return err
		}
	}
	asked, err := s.owner.Handoffs(ctx, api.HandoffsQuery{Status: "RUNNING"})
	if err != nil {
		return err
	}
	for _, h := range asked.Handoffs { // one that was parked keeps its login from others
		if _, err := s.owner.CancelHandoff(ctx, h.HandoffID); err != nil && !errors.Is(err, fault.HandoffNotRunning) {
			return err
		}
	}
	return nil
}

// casting decides who plays the owner.
func (s *demoStage) casting(ctx context.Context, auto bool) (demo.Owner, error) {
	if !auto {
		return newTerminalOwner(s), nil
	}
	at, err := s.owner.Public(ctx)
	if err != nil {
		return nil, err
	}
	thumb, err := demo.NewThumb(ctx, demo.ThumbOptions{
		Owner: s.owner, Shop: s.shop, Codes: s.codes, Tell: s.screen.tell, Home: s.home.Path(), Chromium: s.config.Browser.Path,
		Public: at,
	})
	if err != nil {
		return nil, err
	}
	s.atEnd(func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), browsersWithin)
		defer cancel()
		_ = thumb.Close(ending) // what is left ends by itself
	})
	return thumb, nil
}
