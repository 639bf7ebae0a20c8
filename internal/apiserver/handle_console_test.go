package apiserver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/secret"
	"tapin/internal/store"
)

type fakeConsole struct{}

func (fakeConsole) SignIn(context.Context) (secret.Text, time.Time, error) {
	return secret.New("/console#t=abc"), time.Now().Add(10 * time.Minute), nil
}

func (fakeConsole) Devices(context.Context) []api.ConsoleDevice {
	return []api.ConsoleDevice{{DeviceID: "dev_1", Name: "Safari on iPhone"}}
}

func (fakeConsole) SignOut(_ context.Context, id string) error {
	if id != "dev_1" {
		return fault.New(fault.NotFound, "", "no such device is signed in")
	}
	return nil
}

func TestOnlyTheOwnerSignsDevicesInAndOut(t *testing.T) {
	t.Parallel()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	address := link.NewAddress(home, localView, &link.AddressOptions{Configured: "https://tapin.example.com"})
	f := serveWith(t, nil, func(d *apiserver.Deps) { d.Address, d.Console = address, fakeConsole{} })
	owner := f.client(t, ownerToken)
	t.Cleanup(owner.Close)
	made, err := owner.ConsoleSignIn(t.Context())
	if err != nil || made.OpenURL.Reveal() != "https://tapin.example.com/console#t=abc" || strings.Contains(made.OpenURL.String(), "abc") {
		t.Errorf("the sign-in: %v %v", made, err)
	}
	all, err := owner.ConsoleDevices(t.Context())
	if err != nil || len(all.Devices) != 1 || all.Devices[0].DeviceID != "dev_1" {
		t.Errorf("the devices: %v %v", all, err)
	}
	if out, err := owner.SignOutDevice(t.Context(), "dev_1"); err != nil || !out.SignedOut {
		t.Errorf("the sign-out: %v %v", out, err)
	}
	if _, err := owner.SignOutDevice(t.Context(), "dev_2"); !errors.Is(err, fault.NotFound) {
		t.Errorf("of another: %v", err)
	}
	for name, do := range map[string]func() error{
		"sign in":  func() error { _, err := f.agent.ConsoleSignIn(t.Context()); return err },
		"list":     func() error { _, err := f.agent.ConsoleDevices(t.Context()); return err },
		"sign out": func() error { _, err := f.agent.SignOutDevice(t.Context(), "dev_1"); return err },
	} {
		if err := do(); !errors.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bare := serveWith(t, nil, nil)
	nobody := bare.client(t, ownerToken)
	t.Cleanup(nobody.Close)
	if _, err := nobody.ConsoleSignIn(t.Context()); !errors.Is(err, fault.Disabled) {
		t.Errorf("a server without a console: %v", err)
	}
}
