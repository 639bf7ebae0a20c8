package apiserver

import (
	"context"
	"time"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// Console is the owner's inbox on the web, as far as the terminal has to do with
// it. Safe for concurrent use.
type Console interface {
	// SignIn makes a path that signs one device in.
	SignIn(ctx context.Context) (path secret.Text, expires time.Time, err error)
	Devices(ctx context.Context) []api.ConsoleDevice
	SignOut(ctx context.Context, device string) error
}

// ConsoleSignIn is an answer that has a token in the clear: it is for the owner,
// and told this once.
type ConsoleSignIn struct {
	OpenURL   string    `json:"open_url" doc:"Signs the first device in that opens it; told this once."`
	ExpiresAt time.Time `json:"expires_at"`
}

// consoleRoutes are the rows about who is signed in to the console.
func consoleRoutes() []*route {
	return []*route{
		post("/console/sign-in", Owner, "Makes an address at which one device signs in to the console.", (*Server).consoleSignIn),
		get("/console/devices", Owner, "Lists the devices that are signed in to the console.", (*Server).consoleDevices),
		remove("/console/devices/{id}", Owner, "Signs a device out, and ends what it has open.", (*Server).signOutDevice),
	}
}

func (s *Server) consoleRoom() (Console, error) {
	if s.console == nil || s.views.address == nil {
		return nil, fault.New(fault.Disabled, "", "this server has no console")
	}
	return s.console, nil
}

func (s *Server) consoleSignIn(c *call, _ *api.Nothing) (*ConsoleSignIn, error) {
	room, err := s.consoleRoom()
	if err != nil {
		return nil, err
	}
	path, expires, err := room.SignIn(c.r.Context())
	if err != nil {
		return nil, err
	}
	base, _ := s.views.address.Now()
	return &ConsoleSignIn{OpenURL: base + path.Reveal(), ExpiresAt: expires}, nil
}

func (s *Server) consoleDevices(c *call, _ *nothing) (*api.ConsoleDevices, error) {
	room, err := s.consoleRoom()
	if err != nil {
		return nil, err
	}
	answer := &api.ConsoleDevices{Devices: []api.ConsoleDevice{}}
	answer.Devices = append(answer.Devices, room.Devices(c.r.Context())...)
	return answer, nil
}

func (s *Server) signOutDevice(c *call) (*api.SignedOutDevice, error) {
	room, err := s.consoleRoom()
	if err != nil {
		return nil, err
	}
	return &api.SignedOutDevice{DeviceID: c.id, SignedOut: true}, room.SignOut(c.r.Context(), c.id)
}
